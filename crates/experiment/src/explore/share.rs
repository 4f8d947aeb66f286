//! What a visit has of `--max-written`, and what becomes of later ones where it is not enough.

use ioscape_model::{Access, Workload};

use super::seen_now;
use crate::course::{Progress, Run};
use crate::written;

/// Where little may be written, workloads that touch less than this still write, bytes.
const WRITES_UP_TO_BYTES_MIN: u64 = 64 << 20;

/// Runs that may write at least this many bytes keep some for the system vector.
const VECTOR_KEPT_FROM_BYTES: u64 = 8 << 30;

/// Bytes kept for the system vector, of which it takes half at most: enough for some rounds, also where a filesystem
/// writes more than was expected (btrfs with compression used 800 MiB).
const VECTOR_KEPT_BYTES: u64 = 2 << 30;

/// Buffered visits leave a 16th of `--max-written` to the graphs of the device layer. A visit of these graphs ends after
/// 0.2 s once a third of what may be written is used; six of them wrote 400 MiB on a disk of 1 GB/s.
const DEVICE_GRAPHS_SHARE: u64 = 16;

/// … in runs that may write at least this many bytes. With less the graphs of the cache layer suffer: on the simulated
/// drive `nvme` three of them were missing with 9 GB, one with 10 GB, and none more than before with 12 and 16 GB.
const DEVICE_GRAPHS_FROM_BYTES: u64 = 11 << 30;

/// Bytes that a visit may not use: for the system vector while it is still to come (graphs that are not drawn yet need
/// what it leaves), for graphs of the device layer that are, and for visits whose writes the page cache takes.
pub(super) fn kept_bytes(run: &Run<'_>, progress: &Progress, work: &Workload) -> u64 {
    let most_bytes = run.header.limits.written_max_bytes.unwrap_or(0);
    let is_kept = run.vector.is_some() && most_bytes >= VECTOR_KEPT_FROM_BYTES;
    let for_vector_bytes = if is_kept { VECTOR_KEPT_BYTES } else { 0 };
    let leaves_some = leaves_bytes_to_device_graphs(run, progress, work);
    let for_device_bytes = if leaves_some { most_bytes / DEVICE_GRAPHS_SHARE } else { 0 };
    for_vector_bytes + for_device_bytes + written::kept_for_absorbed_bytes(run.header, work)
}

fn leaves_bytes_to_device_graphs(run: &Run<'_>, progress: &Progress, work: &Workload) -> bool {
    let owes_writes = || {
        let owed = run.plan.owed(&seen_now(run.header, run.rig, progress));
        owed.iter()
            .any(|visit| visit.workload.access == Access::Direct && visit.workload.read_frac < 1.0)
    };
    let most_bytes = run.header.limits.written_max_bytes.unwrap_or(0);
    most_bytes >= DEVICE_GRAPHS_FROM_BYTES && work.access == Access::Buffered && owes_writes()
}

/// Has a visit that finds no room make way: for graphs of the device layer that write, or for workloads that
/// write to half of its data. True if it does; the plan is then asked again.
pub(super) fn make_way(run: &Run<'_>, progress: &mut Progress, work: &Workload) -> bool {
    if progress.reads_only {
        return false;
    }
    if !progress.device_is_due && leaves_bytes_to_device_graphs(run, progress, work) {
        progress.device_is_due = true;
        return true;
    }
    let is_large = work.read_frac < 1.0
        && work.access == Access::Buffered
        && work.unique_bytes >= WRITES_UP_TO_BYTES_MIN
        // A plan that heeds no limit asks for it again.
        && work.unique_bytes <= progress.writes_up_to_bytes;
    if is_large {
        progress.writes_up_to_bytes = work.unique_bytes / 2;
    }
    is_large
}

/// Lets later visits need at most half as many new bytes of files as this one, if new files are most of what
/// this visit would write. True if that limit was lowered.
pub(super) fn limit_new_files(
    progress: &mut Progress,
    work: &Workload,
    expected_bytes: u64,
) -> bool {
    let half_bytes = progress.written.layout_bytes(&progress.points, work) / 2;
    // A plan that heeds no limit asks for it again.
    let is_less = half_bytes > expected_bytes / 4 && half_bytes < progress.lays_out_up_to_bytes;
    if is_less && !progress.reads_only {
        progress.lays_out_up_to_bytes = half_bytes;
    }
    is_less && !progress.reads_only
}
