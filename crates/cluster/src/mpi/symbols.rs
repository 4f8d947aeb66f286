//! A shared library and its symbols.

use std::ffi::{CStr, CString, c_int, c_void};

/// How the loader of a static build refuses.
pub(super) const STATIC: &str = "Dynamic loading not supported";

/// A library that is open. Closed when dropped, unless it was kept.
pub(super) struct Symbols(*mut c_void);

impl Symbols {
    /// No library, for tests.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self(std::ptr::null_mut())
    }

    /// Address of a symbol.
    pub(super) fn address(&self, name: &CStr) -> Option<usize> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the handle is open, and the name ends in a zero.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address as usize)
    }
}

impl Drop for Symbols {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the handle is open, and no address of it is used any more: MPI was not
            // initialised, or the handle was put in another's place by `keep`.
            unsafe { libc::dlclose(self.0) };
        }
    }
}

/// Opens a library by its path or name, or says why that cannot be.
pub(super) fn open(name: &str, flags: c_int) -> std::result::Result<Symbols, String> {
    let name = CString::new(name).map_err(|_| "a path holds no zero".to_owned())?;
    // SAFETY: the name ends in a zero. Initialisers of the library run, as they would in any
    // program that is linked to it.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    if handle.is_null() {
        return Err(load_error());
    }
    Ok(Symbols(handle))
}

fn load_error() -> String {
    // SAFETY: the loader gives a text that ends in a zero, or null; it is read at once.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy()) }
    };
    text.map_or_else(|| STATIC.to_owned(), |text| text.replace('\n', " "))
}
