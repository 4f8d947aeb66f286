//! A shared library that may be MPI: opened, asked what it is, and closed again where it is not kept.

use std::ffi::{CStr, c_char, c_int};

use super::abi::{Calls, Constants, Family};
use super::symbols::{Symbols, open};
use crate::error::{Error, Result};
use crate::launch::Environment;

/// Covers what any library says of its version.
const VERSION_BYTES: usize = 8192;

/// Forbids what MPI would do to this process beside its job: put its own versions in the place of the
/// memory calls, and handle what crashes it. To be called before any library is opened.
pub(super) fn restrain(environment: &Environment<'_>) {
    for (name, value) in [
        (c"UCX_MEM_EVENTS", c"no"),
        (c"UCX_ERROR_SIGNALS", c""),
        // Where neither is used, it would say so on stdout, which is for the answer.
        (c"UCX_WARN_UNUSED_ENV_VARS", c"n"),
    ] {
        if environment(name.to_str().unwrap_or_default()).is_none() {
            // SAFETY: one thread runs yet, so nobody reads the environment meanwhile.
            unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
        }
    }
}

/// An MPI library, opened and not initialised.
pub(super) struct Loaded {
    _symbols: Symbols,
    family: Family,
    /// Path or name.
    pub(super) name: String,
    /// First line of what it says of itself.
    pub(super) version: String,
}

impl Loaded {
    /// Opens a library by its path or name and asks what it is; or says why it is none.
    pub(super) fn open(name: &str) -> std::result::Result<Self, String> {
        let symbols = open(name, libc::RTLD_LAZY | libc::RTLD_LOCAL)?;
        let version = version(&symbols).ok_or("this is no MPI library")?;
        let family = family(&symbols);
        Ok(Self { _symbols: symbols, family, name: name.to_owned(), version })
    }

    /// Makes the library one of the process, for good, and finds what is called.
    pub(super) fn keep(&self) -> Result<(Calls, Constants)> {
        // Open MPI loads parts of itself that look for its symbols among those of the process.
        let kept = open(&self.name, libc::RTLD_NOW | libc::RTLD_GLOBAL)
            .map_err(|why| Error::Refused(format!("{}: {why}", self.name)))?;
        let calls = Calls::find(&kept).map_err(|missing| {
            Error::Refused(format!("{} ({}) has no {missing}", self.name, self.version))
        });
        let constants = Constants::find(self.family, &kept)
            .ok_or_else(|| Error::Refused(format!("{} lacks handles of Open MPI", self.name)));
        std::mem::forget(kept); // a library that was initialised must never be closed
        Ok((calls?, constants?))
    }

    /// One that says this of itself and is none, for tests.
    #[cfg(test)]
    pub(super) fn pretended(version: &str) -> Self {
        Self {
            _symbols: Symbols::none(),
            family: Family::Mpich,
            name: "pretended".to_owned(),
            version: version.to_owned(),
        }
    }
}

/// First line of `MPI_Get_library_version`, which may be called before MPI is initialised.
fn version(symbols: &Symbols) -> Option<String> {
    type Ask = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    let address = symbols.address(c"MPI_Get_library_version")?;
    let mut text = vec![0_u8; VERSION_BYTES];
    let mut length: c_int = 0;
    // SAFETY: the standard gives the function of this name this signature; there is room for the
    // longest version there is.
    let code = unsafe {
        let ask = std::mem::transmute::<usize, Ask>(address);
        ask(text.as_mut_ptr().cast(), &raw mut length)
    };
    let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy();
    let first = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    (code == 0 && !words.is_empty()).then(|| words.join(" "))
}

/// The name of a library proves nothing: this does.
fn family(symbols: &Symbols) -> Family {
    type Ask = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    if symbols.address(c"ompi_mpi_comm_world").is_some() {
        return Family::OpenMpi;
    }
    let Some(address) = symbols.address(c"MPI_Abi_get_version") else { return Family::Mpich };
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: the standard gives the function of this name this signature, and lets it be called
    // before MPI is initialised; two numbers are written.
    unsafe {
        let ask = std::mem::transmute::<usize, Ask>(address);
        ask(&raw mut major, &raw mut minor);
    }
    // Libraries of the MPICH family have the function and answer −1.
    if major > 0 { Family::Standard } else { Family::Mpich }
}
