//! Recording by the kernel's sums alone, where nothing else is allowed.

use ioscape_trace::Sink;

use crate::convert::Converter;
use crate::error::Error;
use crate::observed::Counts;
use crate::proc;
use crate::recording::{
    Ending, Flow, Means, Options, Program, Progress, Recorded, Subject, conclude, progress,
};
use crate::spawn::{Before, Released, hold};
use crate::time::{now_ns, page_bytes, wait_ms};

const PAUSE_MS: i32 = 20;

/// Whose sums are read.
enum Counted<'a> {
    /// A command; its children are counted with it when they have ended.
    Command(Released),
    /// Processes.
    Processes(Vec<u32>),
    /// Those of a control group.
    Group(&'a std::path::Path),
}

impl Counted<'_> {
    fn counts(&self) -> Counts {
        let all = match self {
            Self::Command(released) => vec![released.child().cast_unsigned()],
            Self::Processes(processes) => processes.clone(),
            Self::Group(group) => proc::of_group(group),
        };
        let counts = all.into_iter().filter_map(proc::counts_with_children);
        counts.fold(Counts::default(), Counts::plus)
    }

    /// Whether nothing is left to count.
    fn has_ended(&self) -> bool {
        match self {
            Self::Command(released) => released.has_ended(),
            Self::Processes(all) => !all.iter().any(|process| proc::is_alive(*process)),
            Self::Group(_) => false,
        }
    }

    fn pass(&self, signal: i32) {
        if let Self::Command(released) = self {
            // SAFETY: the call takes two numbers; the child has not been waited for, so its number
            // is nobody else's.
            unsafe { libc::kill(released.child(), signal) };
        }
    }
}

pub(crate) fn record(
    subject: &Subject,
    options: &Options,
    sink: &mut dyn Sink,
    tick: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Recorded, Error> {
    let start_ns = now_ns();
    let counted = match subject {
        Subject::Command(command) => {
            let held = hold(command, options.user.as_ref(), &Before::Nothing)?;
            Counted::Command(held.release())
        }
        Subject::Process(process) if !proc::is_alive(*process) => {
            return Err(Error::NoProcess(*process));
        }
        Subject::Process(process) => Counted::Processes(proc::tree(*process)),
        Subject::Group(group) => Counted::Group(group),
    };
    let before = match &counted {
        Counted::Command(_) => Counts::default(),
        others => others.counts(),
    };
    let mut converter = Converter::new(sink, start_ns, page_bytes());
    loop {
        let ended = counted.has_ended();
        // A process that has ended keeps its sums until somebody waits for it.
        let sums = counted.counts().since(before);
        if sums.read >= converter.totals.counted.read {
            converter.totals.counted = sums;
        }
        let mut so_far = progress(&converter, start_ns, 0);
        (so_far.read_bytes, so_far.written_bytes) = (sums.read, sums.written);
        match tick(&so_far) {
            _ if ended => break,
            Flow::GoOn => wait_ms(PAUSE_MS),
            Flow::Finish => break,
            Flow::Pass(signal) => counted.pass(signal),
        }
    }
    let program = match counted {
        Counted::Command(released) => match released.ended()? {
            Some(status) => match released.failure() {
                Some(failure) => return Err(failure),
                None => Program::Ended(status),
            },
            None => Program::Runs(released),
        },
        _ => Program::Foreign,
    };
    let limits = vec!["no single call was seen: only the kernel's sums are known".to_owned()];
    let ending = Ending {
        means: Means::Counters,
        start_ns,
        end_ns: now_ns(),
        overhead_s: 0.0,
        lost: 0,
        limits,
        cut: None,
        program,
    };
    Ok(conclude(converter, options, ending))
}
