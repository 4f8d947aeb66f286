//! Waits of this process, by the kernel's counts: read twice, the difference is what it waited
//! for in between.

use ioscape_model::Waits;

use crate::cgroup::Group;
use crate::sysfs::read;

/// The counts now. Times of threads are those of threads that are alive: to be read while workers
/// are.
pub fn now() -> Waits {
    let memory = Group::current("memory");
    let io = Group::current("blkio");
    let (running_s, run_queue_s) = scheduled_s();
    Waits {
        quota_s: Group::current("cpu").and_then(|group| group.held_back_s()).unwrap_or(0.0),
        run_queue_s,
        running_s,
        memory_events: memory.and_then(|group| group.limit_events()).unwrap_or(0),
        has_io_limit: io.is_some_and(|group| !group.io_limits().is_empty()),
    }
}

/// Seconds that all threads of this process ran, and that they were ready to run and did not.
fn scheduled_s() -> (f64, f64) {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return (0.0, 0.0) };
    let scheduled_ns = |task: std::fs::DirEntry| -> Option<(u64, u64)> {
        let text = read(task.path().join("schedstat"))?;
        let mut fields = text.split_whitespace().map_while(|field| field.parse().ok());
        Some((fields.next()?, fields.next()?))
    };
    let add = |(running, waited), (of_running, of_waited): (u64, u64)| {
        (running + of_running as f64 * 1e-9, waited + of_waited as f64 * 1e-9)
    };
    tasks.flatten().filter_map(scheduled_ns).fold((0.0, 0.0), add)
}
