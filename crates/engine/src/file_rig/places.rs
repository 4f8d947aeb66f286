//! Where the processes of a workload have their data.

use ioscape_model::{Layout, Workload};

/// Number of the file that a worker's share lies in, and where in it the share begins.
pub(super) fn place(work: &Workload, worker: u32) -> (usize, u64) {
    match work.layout {
        Layout::Private => (worker as usize, 0),
        Layout::Shared => (0, u64::from(worker) * work.share_bytes()),
    }
}

/// The files of a workload and how much of each it touches, bytes.
pub(super) fn shares(work: &Workload) -> Vec<(usize, u64)> {
    let share = work.share_bytes();
    let processes = work.process_num as usize;
    match work.layout {
        Layout::Private => (0..processes).map(|number| (number, share)).collect(),
        Layout::Shared => vec![(0, share * processes as u64)],
    }
}

/// A worker needs a few descriptors: as many as the system allows anyway.
pub(super) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).ok(); // small workloads do without
}
