//! Programs, processes, threads, and a byte from one to another; and how fast the processor is.

use std::ffi::CString;
use std::path::Path;

use ioscape_model::ElementName::{self, Exec, Fork, Pipe, Processor, Thread};
use rustix::process::{Pid, WaitOptions};

use super::Probe;
use super::sample::Shape;
use super::workplace::{Enough, Workplace};
use crate::error::Result;
use crate::primitives::{PingPong, Pinning};

/// Small programs that do nothing.
const PROGRAMS: [&str; 2] = ["/bin/true", "/usr/bin/true"];
/// What the processor's loop reads, 32-bit words: 1 MiB.
const TABLE: usize = 1 << 18;
const LOOP_ROUNDS: u32 = 1_000_000;

/// What a program costs before it does anything.
#[derive(Debug, Default)]
pub(super) struct Processes {
    program: Option<CString>,
    table: Vec<u32>,
}

impl Probe for Processes {
    fn names(&self) -> &'static [ElementName] {
        &[Exec, Fork, Thread, Pipe, Processor]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let found = PROGRAMS.into_iter().find(|path| Path::new(path).is_file());
        self.program = found.and_then(|path| CString::new(path).ok());
        if self.program.is_none() {
            at.refuse(Exec, "there is no /bin/true here");
        }
        self.table = (0..TABLE).map(|_| at.below(u64::from(u32::MAX)) as u32).collect();
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let many = |calls| Enough { seconds: 8.0 * at.cheap().seconds, calls };
        let (processes, threads) = (many(50), many(500));
        if let Some(program) = &self.program {
            at.time((Exec, Shape::NONE), processes, |_| child(Some(program)))?;
        }
        at.time((Fork, Shape::NONE), processes, |_| child(None))?;
        at.time((Thread, Shape::NONE), threads, |_| {
            // A thread that cannot be made is no result.
            std::thread::Builder::new()
                .spawn(|| {})
                .map_err(|_| rustix::io::Errno::AGAIN)?
                .join()
                .map_err(|_| rustix::io::Errno::AGAIN)
        })?;
        pipe(at)?;
        let (table, enough) = (&self.table, Enough { seconds: 0.0, calls: 1 });
        at.time((Processor, Shape::NONE), enough, |_| {
            std::hint::black_box(compute(table));
            Ok(())
        })?;
        Ok(())
    }
}

/// A byte there and back is two of them.
fn pipe(at: &mut Workplace) -> Result<()> {
    let mut pair = PingPong::start(Pinning::Free)?;
    let mut failure = None;
    let enough = at.cheap();
    let (lap, from_s) = (at.lap(), at.now_s());
    let mut trips = 0;
    while trips < enough.calls && at.now_s() - from_s < 2.0 * enough.seconds {
        if let Err(error) = pair.round_trip() {
            failure = Some(error);
            break;
        }
        trips += 1;
    }
    let passed_s = at.since(&lap);
    at.push(Pipe, Shape::NONE, (2 * trips, passed_s));
    failure.map_or(Ok(()), Err)
}

/// A child that ends at once, or runs a program first; waited for.
fn child(program: Option<&CString>) -> rustix::io::Result<()> {
    let nothing = [std::ptr::null()];
    let arguments = [program.map_or(std::ptr::null(), |path| path.as_ptr()), std::ptr::null()];
    // SAFETY: the child calls nothing but execve and _exit, both of which are safe after a fork from
    // a process with several threads; what it is handed was made before.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        // SAFETY: as above; the strings and lists end with a null and live on in the child's memory.
        unsafe {
            if let Some(path) = program {
                libc::execve(path.as_ptr(), arguments.as_ptr(), nothing.as_ptr());
            }
            libc::_exit(i32::from(program.is_some()));
        }
    }
    let child = Pid::from_raw(forked).filter(|_| forked > 0).ok_or(rustix::io::Errno::AGAIN)?;
    let ended = rustix::process::waitpid(Some(child), WaitOptions::empty())?;
    let is_well = ended.is_some_and(|(_, status)| status.exit_status() == Some(0));
    if is_well { Ok(()) } else { Err(rustix::io::Errno::CHILD) }
}

/// A chain of multiplications and reads of which each needs the one before.
fn compute(table: &[u32]) -> u32 {
    let mut value = 1_u32;
    for _ in 0..LOOP_ROUNDS {
        let index = value as usize % table.len();
        value = value.wrapping_mul(1_664_525).wrapping_add(table[index]);
    }
    value
}
