//! Where workers run: wherever the kernel likes, or each on a processor of its own, spread over
//! sockets and cores first.

use std::fs;

/// Who decides where workers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The kernel, from moment to moment.
    #[default]
    Free,
    /// We: pinned, in turns over memory nodes, then over cores, then over the threads of a core.
    Spread,
}

/// A processor and what it shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpu {
    number: usize,
    node: usize,
    /// Which thread of its core it is, from 0.
    thread: usize,
}

impl Placement {
    /// The processors that workers are given in turn; none where the kernel decides.
    pub(crate) fn cpus(self) -> Vec<usize> {
        match self {
            Self::Free => Vec::new(),
            Self::Spread => spread(crate::host::allowed_cpus().into_iter().map(describe).collect()),
        }
    }

    /// What the record says: `free`, or `spread over` and the processors in turn.
    pub fn describe(self) -> String {
        match self {
            Self::Free => "free".to_owned(),
            Self::Spread => {
                let cpus: Vec<String> = self.cpus().iter().map(ToString::to_string).collect();
                format!("spread over {}", cpus.join(" "))
            }
        }
    }
}

/// Keeps the calling thread on one processor. A processor that has gone is no reason to stop.
pub(crate) fn pin_to(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).ok();
}

/// Gives the calling thread a table of descriptors of its own, as a process has. In a shared one
/// the kernel counts every use of a file up and down again. What is closed from here on stays open
/// for the other threads. Where it is forbidden (some containers), requests cost a little more.
pub(crate) fn own_descriptors() {
    // SAFETY: descriptors that this thread holds stay valid: it gets a copy of the whole table.
    unsafe { libc::unshare(libc::CLONE_FILES) };
}

/// Runs the calling thread as a real-time thread where that is allowed, until dropped by the same thread.
/// Workers that share processors begin together so: else whoever is first keeps the next from its
/// processor for one or two ticks of 4 ms, however often it yields (eight starts of four ranks on two
/// processors: 44 µs to 9.9 ms). Threads made meanwhile are ordinary ones.
#[derive(Debug)]
pub struct Ahead {
    /// How the kernel scheduled the thread before, where that was changed.
    before: Option<libc::sched_attr>,
}

impl Ahead {
    /// Makes the calling thread a real-time one. One that is already stays as it is.
    pub fn begin() -> Self {
        const ORDINARY: [i32; 3] = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE];
        let before = scheduled()
            .filter(|before| ORDINARY.map(i32::cast_unsigned).contains(&before.sched_policy));
        let first = libc::sched_attr {
            sched_policy: libc::SCHED_FIFO.cast_unsigned(),
            sched_flags: RESET_ON_FORK,
            sched_priority: 1,
            ..UNSCHEDULED
        };
        Self { before: before.filter(|_| schedule(&first)) }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let Some(before) = self.before else { return };
        if !schedule(&before) {
            // To take the flag away needs a privilege that real time itself may not (`RLIMIT_RTPRIO`).
            let sched_flags = before.sched_flags | RESET_ON_FORK;
            let is_back = schedule(&libc::sched_attr { sched_flags, ..before });
            debug_assert!(is_back, "a thread may always become an ordinary one");
        }
    }
}

/// Threads that a real-time thread makes are ordinary ones, the kernel's own for io_uring too.
const RESET_ON_FORK: u64 = libc::SCHED_FLAG_RESET_ON_FORK as u64;

const UNSCHEDULED: libc::sched_attr = libc::sched_attr {
    size: size_of::<libc::sched_attr>() as u32,
    sched_policy: 0,
    sched_flags: 0,
    sched_nice: 0,
    sched_priority: 0,
    sched_runtime: 0,
    sched_deadline: 0,
    sched_period: 0,
};

/// How the kernel schedules the calling thread, where it says so.
fn scheduled() -> Option<libc::sched_attr> {
    let mut found = UNSCHEDULED;
    // SAFETY: the kernel writes one structure, whose size it is told, about the calling thread.
    let code = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, found.size, 0) };
    (code == 0).then_some(found)
}

/// Has the kernel schedule the calling thread so. Whether that was allowed.
fn schedule(how: &libc::sched_attr) -> bool {
    // SAFETY: the kernel reads one structure, whose size stands in it, and changes the calling thread alone.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *how, 0) == 0 }
}

fn describe(number: usize) -> Cpu {
    let directory = format!("/sys/devices/system/cpu/cpu{number}");
    let node = fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .find_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix("node")?.parse().ok());
    let siblings = fs::read_to_string(format!("{directory}/topology/thread_siblings_list"));
    let siblings = numbers(siblings.unwrap_or_default().trim());
    let thread = siblings.iter().position(|sibling| *sibling == number).unwrap_or(0);
    Cpu { number, node: node.unwrap_or(0), thread }
}

/// `0-2,5`.
fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// First threads of cores come before second ones; among them each node has its turn.
fn spread(mut cpus: Vec<Cpu>) -> Vec<usize> {
    cpus.sort_by_key(|cpu| (cpu.thread, cpu.node, cpu.number));
    let turn = |index: usize| {
        let cpu = cpus[index];
        let same = |other: &&Cpu| (other.thread, other.node) == (cpu.thread, cpu.node);
        (cpu.thread, cpus[..index].iter().filter(same).count(), cpu.node)
    };
    let mut order: Vec<usize> = (0..cpus.len()).collect();
    order.sort_by_key(|index| turn(*index));
    order.into_iter().map(|index| cpus[index].number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_take_turns_and_second_threads_come_last() {
        // Two nodes of two cores of two threads: 0-3 are first threads, 4-7 second ones.
        let cpu = |number: usize| Cpu { number, node: number / 2 % 2, thread: number / 4 };
        assert_eq!(spread((0..8).map(cpu).collect()), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(spread(vec![cpu(5)]), [5]);
    }

    #[test]
    fn a_thread_that_was_ahead_is_scheduled_as_before_and_what_it_makes_is_ordinary() {
        let policy = || scheduled().unwrap().sched_policy;
        let ordinary = policy();
        let ahead = Ahead::begin();
        if ahead.before.is_none() {
            return ioscape_test_support::skipped("real-time threads may not be made here");
        }
        assert_eq!(policy(), libc::SCHED_FIFO.cast_unsigned());
        assert_eq!(std::thread::spawn(policy).join().unwrap(), ordinary);
        let within = Ahead::begin();
        drop(within);
        assert_eq!(policy(), libc::SCHED_FIFO.cast_unsigned(), "it was ahead before");
        drop(ahead);
        assert_eq!(policy(), ordinary);
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(numbers("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(numbers("7"), [7]);
        assert_eq!(numbers(""), [0_usize; 0]);
    }

    #[test]
    fn every_allowed_processor_has_its_turn_and_a_thread_stays_where_it_is_pinned() {
        let cpus = Placement::Spread.cpus();
        let mut sorted = cpus.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, crate::host::allowed_cpus());
        let last = *cpus.last().unwrap();
        std::thread::spawn(move || {
            pin_to(last);
            assert_eq!(crate::host::allowed_cpus(), [last]);
        })
        .join()
        .unwrap();
    }
}
