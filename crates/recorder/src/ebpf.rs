//! Recording by programs in the kernel.

use std::collections::HashSet;
use std::ffi::CString;

use ioscape_trace::Sink;

use crate::bpf::{Programs, record::parse};
use crate::call::Calls;
use crate::convert::Converter;
use crate::error::Error;
use crate::proc;
use crate::recording::{
    Ending, Flow, Means, Options, Program, Progress, Recorded, Subject, conclude, progress,
};
use crate::spawn::{Before, Held, Released, hold};
use crate::time::{now_ns, page_bytes, wait_ms};

/// Two thirds of a second at a million calls a second.
const RING_BYTES: u32 = 64 << 20;
/// For asking whether programs are allowed at all.
const RING_BYTES_MIN: u32 = 1 << 16;
/// How long the reader sleeps where there is little to read.
const PAUSE_MS: i32 = 4;
/// Fewer records than this are little.
const LITTLE: usize = 2000;
const TICK_NS: u64 = 100_000_000;
/// Calls of a calibration, as several batches of which the fastest counts.
const CALIBRATION_BATCHES: u32 = 10;
const CALIBRATION_CALLS: u32 = 2000;

/// Why programs cannot be loaded here; `None` where they can.
pub(crate) fn refusal() -> Option<Error> {
    Programs::start(&Calls::native(), RING_BYTES_MIN).err()
}

/// Who is followed.
enum Followed<'a> {
    /// A command that waits to be let go.
    Held(Held),
    /// A command that runs.
    Command(Released),
    /// Processes that ran before.
    Processes(Vec<u32>),
    /// Those of a control group, also ones that come later.
    Group(&'a std::path::Path),
}

pub(crate) fn record(
    subject: &Subject,
    options: &Options,
    sink: &mut dyn Sink,
    tick: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Recorded, Error> {
    let calls = Calls::native();
    let ring_bytes = if options.ring_bytes == 0 { RING_BYTES } else { options.ring_bytes };
    // Loaded programs cost every thread of the machine something, also those that are not recorded.
    let bare_s = null_call_s(&mut || Ok(()))?;
    let mut programs = Programs::start(&calls, ring_bytes)?;
    let overhead_s = (recorded_call_s(&mut programs)? - bare_s).max(0.0);
    let followed = match subject {
        Subject::Command(command) => {
            Followed::Held(hold(command, options.user.as_ref(), &Before::Nothing)?)
        }
        Subject::Process(process) => {
            if !proc::is_alive(*process) {
                return Err(Error::NoProcess(*process));
            }
            Followed::Processes(proc::tree(*process))
        }
        Subject::Group(group) => Followed::Group(group),
    };
    let start_ns = now_ns();
    let converter = Converter::new(sink, start_ns, page_bytes());
    let mut session = Session { programs, calls, converter, start_ns, followed, cut: None };
    session.begin()?;
    let flow = session.run(tick)?;
    session.programs.stop();
    session.drain();
    Ok(session.conclude(options, overhead_s, flow))
}

/// What a recorded call that does nothing takes, seconds: this thread is recorded meanwhile.
fn recorded_call_s(programs: &mut Programs) -> Result<f64, Error> {
    // SAFETY: the call takes nothing and touches no memory. glibc has a function for it only since 2.30.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    programs.follow(thread, now_ns())?;
    // A batch fits into any ring.
    let recorded_s = null_call_s(&mut || programs.drain(|_| Ok::<(), Error>(())).map(drop));
    programs.forget(thread);
    programs.drain(|_| Ok::<(), Error>(()))?;
    recorded_s
}

/// What a call that does nothing takes, seconds: the fastest of some batches, each followed by `after`.
fn null_call_s(after: &mut dyn FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let nowhere = CString::default();
    let mut fastest_s = f64::INFINITY;
    for _ in 0..CALIBRATION_BATCHES {
        let start_ns = now_ns();
        for _ in 0..CALIBRATION_CALLS {
            // SAFETY: nothing is written through the pointer, for no byte is asked for and there is
            // no such descriptor.
            unsafe { libc::write(-1, nowhere.as_ptr().cast(), 0) };
        }
        let call_s = (now_ns() - start_ns) as f64 * 1e-9 / f64::from(CALIBRATION_CALLS);
        fastest_s = fastest_s.min(call_s);
        after()?;
    }
    Ok(fastest_s)
}

struct Session<'a> {
    programs: Programs,
    calls: Calls,
    converter: Converter<'a>,
    start_ns: u64,
    followed: Followed<'a>,
    /// Why the sink takes no more.
    cut: Option<std::io::Error>,
}

impl Session<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        let first = match &self.followed {
            Followed::Held(held) => vec![held.process()],
            Followed::Command(_) => Vec::new(),
            Followed::Processes(processes) => processes.clone(),
            Followed::Group(group) => proc::of_group(group),
        };
        self.follow(&first)?;
        let followed = std::mem::replace(&mut self.followed, Followed::Processes(first));
        self.followed = match followed {
            Followed::Held(held) => Followed::Command(held.release()),
            other => other,
        };
        Ok(())
    }

    /// Follows all threads of processes, also those that are started meanwhile.
    fn follow(&mut self, processes: &[u32]) -> Result<(), Error> {
        for process in processes {
            let mut known = HashSet::new();
            loop {
                let threads = proc::threads(*process);
                let fresh: Vec<u32> =
                    threads.into_iter().filter(|thread| known.insert(*thread)).collect();
                if fresh.is_empty() {
                    break;
                }
                for thread in fresh {
                    self.programs.follow(thread, now_ns())?;
                }
            }
            self.converter.adopt(*process, self.start_ns);
        }
        Ok(())
    }

    /// Takes what has arrived; how many records that were.
    fn drain(&mut self) -> usize {
        let (converter, calls) = (&mut self.converter, &self.calls);
        let cut = &mut self.cut;
        let drained = self.programs.drain(|record| {
            let taken = match parse(record, calls) {
                Some(observed) if cut.is_none() => converter.take(&observed),
                _ => Ok(()),
            };
            *cut = taken.err().or(cut.take());
            Ok::<(), Error>(())
        });
        drained.unwrap_or(0)
    }

    /// Records until the subject ends or somebody says so; the status of a command that has ended.
    fn run(&mut self, tick: &mut dyn FnMut(&Progress) -> Flow) -> Result<Option<i32>, Error> {
        let mut ticked_ns = self.start_ns;
        loop {
            let records = self.drain();
            if self.cut.is_some() {
                return Ok(None);
            }
            let now = now_ns();
            if now - ticked_ns >= TICK_NS {
                ticked_ns = now;
                let sums = progress(&self.converter, self.start_ns, self.programs.lost());
                match tick(&sums) {
                    Flow::GoOn => {}
                    Flow::Finish => return Ok(None),
                    Flow::Pass(signal) => self.pass(signal),
                }
                if self.have_ended()? {
                    return Ok(None);
                }
            }
            if let Followed::Command(released) = &self.followed
                && let Some(status) = released.ended()?
            {
                return released.failure().map_or(Ok(Some(status)), Err);
            }
            if records < LITTLE {
                wait_ms(PAUSE_MS);
            }
        }
    }

    fn pass(&self, signal: i32) {
        if let Followed::Command(released) = &self.followed {
            // SAFETY: the call takes two numbers; the child has not been waited for, so its number
            // is nobody else's.
            unsafe { libc::kill(released.child(), signal) };
        }
    }

    /// Whether processes that were not started here have all ended. Those that came to a control
    /// group are followed from now on.
    fn have_ended(&mut self) -> Result<bool, Error> {
        match &self.followed {
            Followed::Processes(processes) => {
                Ok(!processes.iter().any(|process| proc::is_alive(*process)))
            }
            Followed::Group(group) => {
                let all = proc::of_group(group).into_iter();
                let fresh: Vec<u32> =
                    all.filter(|process| !self.converter.knows(*process)).collect();
                self.follow(&fresh)?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    fn conclude(self, options: &Options, overhead_s: f64, status: Option<i32>) -> Recorded {
        let mut limits: Vec<String> =
            self.programs.unseen().iter().map(|limit| (*limit).to_owned()).collect();
        limits.push(
            "pages of mapped files are seen when they are touched first, up to 16 at a time; later \
             touches are not"
                .to_owned(),
        );
        let unfollowed = self.programs.unfollowed();
        if unfollowed > 0 {
            limits.push(format!("{unfollowed} threads were not recorded: there were too many"));
        }
        let program = match (self.followed, status) {
            (Followed::Command(_), Some(status)) => Program::Ended(status),
            (Followed::Command(released), None) => Program::Runs(released),
            _ => Program::Foreign,
        };
        let ending = Ending {
            means: Means::Ebpf,
            start_ns: self.start_ns,
            end_ns: now_ns(),
            overhead_s,
            lost: self.programs.lost(),
            limits,
            cut: self.cut,
            program,
        };
        conclude(self.converter, options, ending)
    }
}
