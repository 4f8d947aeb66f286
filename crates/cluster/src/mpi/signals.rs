//! MPI installs handlers for signals when it is initialised. Ours come back afterwards: a run that is
//! stopped has files to remove.

use std::mem::MaybeUninit;

/// Signals that have numbers of their own; the others are for threads.
const LAST: i32 = 31;

/// The action of each signal at one moment.
pub(super) struct Saved(Vec<(i32, libc::sigaction)>);

impl Saved {
    pub(super) fn now() -> Self {
        let action = |signal| {
            let mut action = MaybeUninit::uninit();
            // SAFETY: nothing is changed; the kernel fills the structure where it says so.
            let code = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
            // SAFETY: it was filled.
            (code == 0).then(|| (signal, unsafe { action.assume_init() }))
        };
        Self((1..=LAST).filter_map(action).collect())
    }

    pub(super) fn restore(self) {
        for (signal, action) in self.0 {
            // SAFETY: the action is one that was in force, so its handler is there.
            unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        }
    }
}
