//! Where the processes of a workload have their data, and which of them are here.

use ioscape_model::{Layout, Workload};

/// The processes of a workload that a rig runs: every so-many-th. A rig by itself runs all.
///
/// Taking turns spreads them evenly, and the file of a process belongs to one rank whatever the number
/// of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first of them, and which rank this is.
    pub rank: u32,
    /// Of so many ranks.
    pub ranks: u32,
}

impl Part {
    /// All processes.
    pub const ALL: Self = Self { rank: 0, ranks: 1 };

    /// Numbers of the processes that are here.
    pub fn workers(self, work: &Workload) -> impl Iterator<Item = u32> + use<> {
        (self.rank..work.process_num).step_by(self.ranks as usize)
    }
}

/// Number of the file that a worker's share lies in, and where in it the share begins.
pub(super) fn place(work: &Workload, worker: u32) -> (usize, u64) {
    match work.layout {
        Layout::Private => (worker as usize, 0),
        Layout::Shared => (0, u64::from(worker) * work.share_bytes()),
    }
}

/// The place among the files of [`shares`] of the file that the worker at this place uses.
pub(super) fn place_of_file(work: &Workload, index: usize) -> usize {
    match work.layout {
        Layout::Private => index,
        Layout::Shared => 0,
    }
}

/// The files that processes here touch and how much of each, bytes.
pub(super) fn shares(work: &Workload, part: Part) -> Vec<(usize, u64)> {
    let share = work.share_bytes();
    let mut workers = part.workers(work);
    match work.layout {
        Layout::Private => workers.map(|number| (number as usize, share)).collect(),
        Layout::Shared if workers.next().is_none() => Vec::new(),
        Layout::Shared => vec![(0, share * u64::from(work.process_num))],
    }
}

/// A worker needs a few descriptors: as many as the system allows anyway.
pub(super) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).ok(); // small workloads do without
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_spread_evenly_and_each_is_somewhere() {
        for ranks in 1..6 {
            for process_num in 1..20 {
                let work = Workload { process_num, ..Workload::default() };
                let parts = (0..ranks).map(|rank| Part { rank, ranks });
                let here: Vec<Vec<u32>> =
                    parts.clone().map(|part| part.workers(&work).collect()).collect();
                let counts = here.iter().map(Vec::len);
                assert!(counts.clone().max().unwrap() - counts.min().unwrap() <= 1, "{here:?}");
                let mut all: Vec<u32> = here.concat();
                all.sort_unstable();
                assert_eq!(all, (0..process_num).collect::<Vec<_>>());
                let files: usize = parts.map(|part| shares(&work, part).len()).sum();
                assert_eq!(files, process_num as usize);
            }
        }
    }

    #[test]
    fn a_shared_file_is_used_by_the_ranks_that_have_a_process() {
        let work = Workload { process_num: 2, layout: Layout::Shared, ..Workload::default() };
        let used = |rank| shares(&work, Part { rank, ranks: 3 });
        assert_eq!([used(0), used(1)], [[(0, 2 * work.share_bytes())]; 2]);
        assert!(used(2).is_empty());
    }
}
