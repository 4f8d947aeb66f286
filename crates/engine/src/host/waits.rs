//! Waits of this process, by the kernel's counts: read twice, the difference is what it waited
//! for in between.

use ioscape_model::Waits;

use crate::cgroup::Group;
use crate::sysfs::read;

/// The counts now. Run queues are those of threads that are alive: to be read while workers are.
pub fn now() -> Waits {
    let memory = Group::current("memory");
    let io = Group::current("blkio");
    Waits {
        quota_s: Group::current("cpu").and_then(|group| group.held_back_s()).unwrap_or(0.0),
        run_queue_s: run_queue_s(),
        memory_events: memory.and_then(|group| group.limit_events()).unwrap_or(0),
        has_io_limit: io.is_some_and(|group| !group.io_limits().is_empty()),
    }
}

/// Seconds that all threads of this process were ready to run and did not.
fn run_queue_s() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let waited_ns = |task: std::fs::DirEntry| -> Option<u64> {
        read(task.path().join("schedstat"))?.split_whitespace().nth(1)?.parse().ok()
    };
    tasks.flatten().filter_map(waited_ns).sum::<u64>() as f64 * 1e-9
}
