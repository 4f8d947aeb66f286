//! The three families of MPI libraries: what their constants are, and the calls that are used.
//!
//! Handles are C's `int` in the MPICH family and pointers elsewhere. `usize` does for all: the callee
//! reads the part that it knows. No status is ever read.

use std::ffi::{c_int, c_void};

use super::symbols::Symbols;

/// A communicator, datatype or error handler.
pub(super) type Handle = usize;

type InitThread = unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;
type AskNumber = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type Send = unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle) -> c_int;
type Recv = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, usize) -> c_int;
type Iprobe = unsafe extern "C" fn(c_int, c_int, Handle, *mut c_int, usize) -> c_int;
type Abort = unsafe extern "C" fn(Handle, c_int) -> c_int;
type SetErrorHandler = unsafe extern "C" fn(Handle, Handle) -> c_int;

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// The standard ABI of MPI 5.
    Standard,
    /// MPICH and what is made from it: Intel, MVAPICH, Cray.
    Mpich,
    /// Open MPI 3, 4 and 5.
    OpenMpi,
}

/// Constants of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constants {
    pub(super) world: Handle,
    pub(super) byte: Handle,
    pub(super) status_ignore: usize,
    pub(super) thread_funneled: c_int,
    errors_return: Handle,
}

impl Constants {
    /// Those of a family. Open MPI's handles are addresses of its symbols.
    pub(super) fn find(family: Family, symbols: &Symbols) -> Option<Self> {
        Some(match family {
            Family::Standard => Self {
                world: 0x101,
                byte: 0x247,
                status_ignore: 0,
                thread_funneled: 1024,
                errors_return: 0x143,
            },
            Family::Mpich => Self {
                world: 0x4400_0000,
                byte: 0x4c00_010d,
                status_ignore: 1,
                thread_funneled: 1,
                errors_return: 0x5400_0001,
            },
            Family::OpenMpi => Self {
                world: symbols.address(c"ompi_mpi_comm_world")?,
                byte: symbols.address(c"ompi_mpi_byte")?,
                status_ignore: 0,
                thread_funneled: 1,
                errors_return: symbols.address(c"ompi_mpi_errors_return")?,
            },
        })
    }
}

/// The calls, as long as the library is there, which is to the end of the process.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    init_thread: InitThread,
    finalize: Finalize,
    comm_rank: AskNumber,
    comm_size: AskNumber,
    set_error_handler: SetErrorHandler,
    pub(super) send: Send,
    pub(super) recv: Recv,
    pub(super) iprobe: Iprobe,
    pub(super) abort: Abort,
}

impl Calls {
    /// All of them, or the name of one that is missing.
    pub(super) fn find(symbols: &Symbols) -> Result<Self, &'static str> {
        macro_rules! call {
            ($name:literal, $kind:ty) => {{
                let address = symbols.address($name).ok_or($name.to_str().unwrap_or_default())?;
                // SAFETY: the MPI standard gives the function of this name this signature; handles
                // are as wide as an address or narrower, see the head of this file.
                unsafe { std::mem::transmute::<usize, $kind>(address) }
            }};
        }
        Ok(Self {
            init_thread: call!(c"MPI_Init_thread", InitThread),
            finalize: call!(c"MPI_Finalize", Finalize),
            comm_rank: call!(c"MPI_Comm_rank", AskNumber),
            comm_size: call!(c"MPI_Comm_size", AskNumber),
            set_error_handler: call!(c"MPI_Comm_set_errhandler", SetErrorHandler),
            send: call!(c"MPI_Send", Send),
            recv: call!(c"MPI_Recv", Recv),
            iprobe: call!(c"MPI_Iprobe", Iprobe),
            abort: call!(c"MPI_Abort", Abort),
        })
    }

    /// Initialises MPI for calls from one thread.
    pub(super) fn init(&self, level: c_int) -> c_int {
        let mut provided: c_int = 0;
        // SAFETY: the standard allows null for both arguments of `main`; one number is written.
        unsafe {
            (self.init_thread)(std::ptr::null_mut(), std::ptr::null_mut(), level, &raw mut provided)
        }
    }

    pub(super) fn finalize(&self) {
        // SAFETY: it takes nothing and is called once, when the group is dropped.
        unsafe { (self.finalize)() };
    }

    /// Has calls that fail say so, where they would end the process.
    pub(super) fn return_errors(&self, constants: &Constants) {
        // SAFETY: both handles are the library's own.
        unsafe { (self.set_error_handler)(constants.world, constants.errors_return) };
    }

    pub(super) fn rank(&self, constants: &Constants) -> u32 {
        Self::number(self.comm_rank, constants)
    }

    pub(super) fn size(&self, constants: &Constants) -> u32 {
        Self::number(self.comm_size, constants)
    }

    fn number(ask: AskNumber, constants: &Constants) -> u32 {
        let mut number: c_int = -1;
        // SAFETY: the handle is the library's own, and one number is written.
        unsafe { ask(constants.world, &raw mut number) };
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}
