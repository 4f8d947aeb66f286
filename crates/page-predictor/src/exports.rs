//! What the module shows to the page. WebAssembly passes numbers only, so texts lie in the module's
//! memory: the page asks where [`input`] wants one, writes it there, and reads the answer from where
//! [`output`] is. The memory belongs to this side throughout, so no pointer is ever followed here.
//!
//! An export has no `self`: the one [`Desk`] of an instance of the module is a static.

#![expect(unsafe_code, reason = "an export keeps its name, which the compiler cannot check")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Session;

static DESK: Mutex<Desk> =
    Mutex::new(Desk { session: Session::new(), input: Vec::new(), output: Vec::new() });

struct Desk {
    session: Session,
    input: Vec<u8>,
    output: Vec<u8>,
}

fn desk() -> MutexGuard<'static, Desk> {
    DESK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for an input of this many bytes. Gives its address.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn ioscape_input(bytes: usize) -> usize {
    let input = &mut desk().input;
    input.clear();
    input.resize(bytes, 0);
    input.as_mut_ptr().expose_provenance()
}

/// Loads the model that is the input. Gives the length of the output: what is wrong with the model,
/// nothing where it is fine.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn ioscape_load() -> usize {
    let Desk { session, input, output } = &mut *desk();
    *output = session.load(input).err().unwrap_or_default().into_bytes();
    output.len()
}

/// Answers for the workload that is the input. Gives the length of the output.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn ioscape_predict() -> usize {
    let Desk { session, input, output } = &mut *desk();
    let typed = String::from_utf8_lossy(input);
    *output = serde_json::to_vec(&session.predict(&typed)).unwrap_or_default();
    output.len()
}

/// The address of the output.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn ioscape_output() -> usize {
    desk().output.as_ptr().expose_provenance()
}
