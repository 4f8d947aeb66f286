//! MPI, loaded at run time: found by what the launcher left, told apart by its symbols, refused where
//! it does not fit, and used for a dozen calls that move bytes.
//!
//! A library that does not fit its launcher either ends the process while it is initialised, or
//! says of every rank that it is rank 0 of 1, which would make as many benchmarks as there are ranks.
//! So the fit is judged before, and size and rank are compared with the launcher's afterwards.

mod abi;
mod candidates;
mod loaded;
mod signals;
mod symbols;

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::clock::{Clock, Monotonic, sleep_ns};
use crate::error::{Error, Result};
use crate::group::{Group, Wait};
use crate::launch::{Environment, Launch, Launcher};
use abi::{Calls, Constants};
use candidates::candidates;
use loaded::Loaded;

/// A message and what says how long it is, where both fit: most do.
const FRAME_BYTES: usize = 512;
const LENGTH_BYTES: usize = 8;
/// Longer messages go in pieces, since lengths are C's `int`.
const PIECE_BYTES: usize = 1 << 28;
const TAG: c_int = 31;
/// MPI has this long to join the ranks: a few take it 0.02 to 1.1 s, a slow node may take it a minute.
const PATIENCE: Duration = Duration::from_secs(120);
/// It has so much more for each rank.
const PATIENCE_PER_RANK: Duration = Duration::from_millis(100);
/// A rank that waits looks for a message this long with a processor …
const SPIN_NS: i64 = 50_000;
/// … and then with pauses that grow to this.
const PAUSE_FIRST_NS: i64 = 50_000;
const PAUSE_MAX_NS: i64 = 1_000_000;

/// The ranks of an MPI job. Dropping it ends MPI in this process.
pub struct Mpi {
    calls: Calls,
    constants: Constants,
    rank: u32,
    size: u32,
    /// Path or name that it was found by, and what it says of itself.
    library: String,
    version: String,
    clock: Monotonic,
    /// Whether a rank is gone.
    is_abandoned: Cell<bool>,
}

impl Mpi {
    /// Path or name that the library was found by.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// First line of what the library says of itself.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Joins the ranks of a launch, by a library that was named or by one that is found. Where the others
/// never come, the library waits for them and cannot be stopped: then `give_up` is called with what to
/// say, by another thread, and the process ends at once with the exit code that it gives.
///
/// # Errors
/// [`Error::Refused`] where no library fits, or the one that does knows of other ranks than the
/// launcher.
pub fn join(
    launch: &Launch,
    named: Option<&str>,
    environment: &Environment<'_>,
    give_up: impl FnOnce(Error) -> u8 + Send + 'static,
) -> Result<Mpi> {
    loaded::restrain(environment);
    let loaded = load(launch, named, environment)?;
    let (calls, constants) = loaded.keep()?;
    let patience = PATIENCE + PATIENCE_PER_RANK * launch.size.unwrap_or(1);
    // The first speaks, and most launchers end the others; they speak where it is the first that is
    // missing.
    let patience = if launch.rank == 0 { patience } else { patience * 2 };
    let saved = signals::Saved::now();
    let (joined, is_joined) = mpsc::channel::<()>();
    let watch = move || {
        if is_joined.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            let code = give_up(Error::Refused(format!(
                "the other ranks have not joined within {} s: a node is slow or gone, a rank has \
                 another command or ended, or two have one number: start all ranks by one command",
                patience.as_secs()
            )));
            // SAFETY: it takes a number and does not return. `exit` would run what libraries registered
            // for the end while one of them is still being initialised.
            unsafe { libc::_exit(code.into()) };
        }
    };
    // Where no thread can be made, the library waits as long as it wants to.
    std::thread::Builder::new().spawn(watch).ok();
    let code = calls.init(constants.thread_funneled);
    drop(joined);
    saved.restore();
    let mut mpi = Mpi {
        calls,
        constants,
        rank: 0,
        size: 0,
        library: loaded.name.clone(),
        version: loaded.version.clone(),
        clock: Monotonic,
        is_abandoned: Cell::new(false),
    };
    if code != 0 {
        return Err(Error::Refused(format!("{}: MPI_Init failed with {code}", mpi.library)));
    }
    mpi.calls.return_errors(&mpi.constants);
    mpi.rank = mpi.calls.rank(&mpi.constants);
    mpi.size = mpi.calls.size(&mpi.constants);
    let is_of_launch = mpi.rank == launch.rank && launch.size.is_none_or(|size| size == mpi.size);
    if is_of_launch && mpi.size > 1 {
        return Ok(mpi);
    }
    let of = launch.size.map_or_else(String::new, |size| format!(" of {size}"));
    Err(Error::Refused(format!(
        "{} started this as rank {}{of}, and {} ({}) says rank {} of {}: name the library that \
         belongs to the launcher by --mpi, or start with the mpirun that belongs to the library",
        launch.launcher.name(),
        launch.rank,
        mpi.library,
        mpi.version,
        mpi.rank,
        mpi.size
    )))
}

/// The first library that fits the launcher.
fn load(launch: &Launch, named: Option<&str>, environment: &Environment<'_>) -> Result<Loaded> {
    let launcher = launch.launcher;
    if let Some(named) = named {
        let loaded = Loaded::open(named).map_err(|why| {
            Error::Refused(format!("--mpi {named}: {why}; leave it out to have it looked for"))
        })?;
        return match misfit(launcher, &loaded, environment) {
            None => Ok(loaded),
            Some(why) => Err(Error::Refused(format!(
                "--mpi {named} is {}, and {} started this: {why}",
                loaded.version,
                launcher.name()
            ))),
        };
    }
    let mut tried = Vec::new();
    for name in candidates(launcher, environment) {
        match Loaded::open(&name) {
            Ok(loaded) => match misfit(launcher, &loaded, environment) {
                None => return Ok(loaded),
                Some(why) => tried.push(format!("{name} is {} ({why})", loaded.version)),
            },
            Err(why) if why.contains(symbols::STATIC) => {
                return Err(Error::Refused(
                    "this static build cannot load MPI: use the build for glibc, or `--mpi off` \
                     for one host"
                        .to_owned(),
                ));
            }
            Err(why) if name.starts_with('/') && !why.contains("No such file") => {
                tried.push(format!("{name}: {why}"));
            }
            Err(_) => {}
        }
    }
    let found = if tried.is_empty() { "none was found".to_owned() } else { tried.join("; ") };
    let of = launch.size.map_or_else(String::new, |size| format!(" of {size}"));
    Err(Error::Refused(format!(
        "{} started this as rank {}{of}, and no MPI library fits: {found}; load the MPI that the \
         launcher belongs to, or name its libmpi.so by --mpi",
        launcher.name(),
        launch.rank
    )))
}

/// Why a library cannot work below a launcher, where it cannot: by what was tried with both
/// (docs/many-hosts.md has the table).
fn misfit(
    launcher: Launcher,
    loaded: &Loaded,
    environment: &Environment<'_>,
) -> Option<&'static str> {
    let is_open = loaded.version.starts_with("Open MPI");
    let is_intel = loaded.version.starts_with("Intel");
    match launcher {
        Launcher::OpenMpi if !is_open => Some("it needs Open MPI"),
        Launcher::OpenMpi if is_prrte(environment) && open_mpi_major(&loaded.version) < 5 => {
            Some("it needs Open MPI 5 or newer")
        }
        Launcher::Pmi if is_open => Some("it needs MPICH, or a library made from it"),
        Launcher::Pmix if !is_open && !is_intel => Some("it needs a library that speaks PMIx"),
        _ => None,
    }
}

/// Whether `mpirun` is that of Open MPI 5 or newer.
fn is_prrte(environment: &Environment<'_>) -> bool {
    let mpirun = environment("OMPI_COMM_WORLD_SIZE").is_some();
    mpirun && environment("PMIX_VERSION").is_some_and(|version| pmix_major(&version) >= 5)
}

fn pmix_major(version: &str) -> u32 {
    version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

/// `Open MPI v4.1.4, …`.
fn open_mpi_major(version: &str) -> u32 {
    let after = version.trim_start_matches("Open MPI v");
    after.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

impl Mpi {
    fn done(operation: &'static str, rank: u32, code: c_int) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(Error::Mpi { operation, rank, code }) }
    }

    fn send_piece(&self, to: u32, bytes: &[u8]) -> Result<()> {
        let buffer = bytes.as_ptr().cast::<c_void>();
        let count = c_int::try_from(bytes.len()).expect("a piece is that long");
        // SAFETY: the library reads `count` bytes, which are there until it returns.
        let code = unsafe {
            (self.calls.send)(
                buffer,
                count,
                self.constants.byte,
                to.cast_signed(),
                TAG,
                self.constants.world,
            )
        };
        Self::done("send to", to, code)
    }

    fn receive_piece(&self, from: u32, bytes: &mut [u8]) -> Result<()> {
        let buffer = bytes.as_mut_ptr().cast::<c_void>();
        let count = c_int::try_from(bytes.len()).expect("a piece is that long");
        // SAFETY: the library writes at most `count` bytes, for which there is room; the status is not
        // asked for.
        let code = unsafe {
            (self.calls.recv)(
                buffer,
                count,
                self.constants.byte,
                from.cast_signed(),
                TAG,
                self.constants.world,
                self.constants.status_ignore,
            )
        };
        Self::done("receive from", from, code)
    }

    fn has_message(&self, from: u32) -> Result<bool> {
        let mut flag: c_int = 0;
        // SAFETY: the library writes one number, and no status since none is asked for.
        let code = unsafe {
            (self.calls.iprobe)(
                from.cast_signed(),
                TAG,
                self.constants.world,
                &raw mut flag,
                self.constants.status_ignore,
            )
        };
        Self::done("hear of", from, code)?;
        Ok(flag != 0)
    }

    /// A library that waits spins, so it is only asked to wait for what has come.
    fn await_message(&self, from: u32, most_ns: i64) -> Result<()> {
        let began_ns = self.clock.now_ns();
        let mut pause_ns = PAUSE_FIRST_NS;
        while !self.has_message(from)? {
            let waited_ns = self.clock.now_ns() - began_ns;
            if waited_ns > most_ns {
                return Err(Error::Silent { rank: from });
            }
            if waited_ns > SPIN_NS {
                sleep_ns(pause_ns);
                pause_ns = (pause_ns * 3 / 2).min(PAUSE_MAX_NS);
            }
        }
        Ok(())
    }
}

impl Group for Mpi {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<()> {
        let mut frame = [0; FRAME_BYTES];
        frame[..LENGTH_BYTES].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let (first, rest) = bytes.split_at(bytes.len().min(FRAME_BYTES - LENGTH_BYTES));
        frame[LENGTH_BYTES..LENGTH_BYTES + first.len()].copy_from_slice(first);
        self.send_piece(to, &frame)?;
        rest.chunks(PIECE_BYTES).try_for_each(|piece| self.send_piece(to, piece))
    }

    fn receive(&self, from: u32, wait: Wait) -> Result<Vec<u8>> {
        if let Wait::Sleeping { most_ns } = wait {
            self.await_message(from, most_ns)?;
        }
        let mut frame = [0; FRAME_BYTES];
        self.receive_piece(from, &mut frame)?;
        let (length, first) = frame.split_at(LENGTH_BYTES);
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
        let mut bytes = first[..length.min(first.len())].to_vec();
        let inline = bytes.len();
        bytes.resize(length, 0);
        bytes[inline..]
            .chunks_mut(PIECE_BYTES)
            .try_for_each(|piece| self.receive_piece(from, piece))?;
        Ok(bytes)
    }

    fn abort(&self, code: i32) {
        // SAFETY: the call takes two numbers; it does not return.
        unsafe { (self.calls.abort)(self.constants.world, code) };
    }

    fn abandon(&self) {
        self.is_abandoned.set(true);
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // It waits for all ranks.
        if !self.is_abandoned.get() {
            self.calls.finalize();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(version: &str) -> Loaded {
        Loaded::pretended(version)
    }

    /// Each launcher with each library, as they were tried together.
    #[test]
    fn what_does_not_fit_is_known_before_it_is_initialised() {
        let libraries = [
            library("Open MPI v4.1.4, package: Debian"),
            library("Open MPI v5.0.11, package: Open MPI"),
            library("MPICH Version:      4.0.2"),
            library("MPICH Version:      5.0.2"),
            library("Intel(R) MPI Library 2021.18"),
        ];
        let pmix = |version: &'static str| {
            move |name: &str| match name {
                "OMPI_COMM_WORLD_SIZE" => Some("2".to_owned()),
                "PMIX_VERSION" => Some(version.to_owned()),
                _ => None,
            }
        };
        let (four, five) = (pmix("4.2.2"), pmix("5.0.9"));
        let cases: [(Launcher, &Environment<'_>, [bool; 5]); 4] = [
            (Launcher::OpenMpi, &four, [true, true, false, false, false]),
            (Launcher::OpenMpi, &five, [false, true, false, false, false]),
            (Launcher::Pmi, &|_| None, [false, false, true, true, true]),
            (Launcher::Pmix, &|_| None, [true, true, false, false, true]),
        ];
        for (launcher, environment, fits) in cases {
            for (library, fits) in libraries.iter().zip(fits) {
                let why = misfit(launcher, library, environment);
                assert_eq!(why.is_none(), fits, "{launcher:?} {}: {why:?}", library.version);
            }
        }
    }

    #[test]
    fn a_library_that_is_none_is_refused_with_its_name() {
        let launch = Launch { launcher: Launcher::Pmi, size: Some(2), rank: 0 };
        for named in ["/nonexistent/libmpi.so", "/etc/hostname", "libm.so.6"] {
            let Err(Error::Refused(text)) = load(&launch, Some(named), &|_| None) else {
                panic!("{named} was taken")
            };
            assert!(text.contains(named) && !text.contains('\n'), "{text}");
        }
    }
}
