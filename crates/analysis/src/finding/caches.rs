//! How much data the caches hold, and what share of the memory that is (Chen and Patterson 1994,
//! section 8.1.3).

use std::fmt::Write as _;

use ioscape_model::units::three_digits;
use ioscape_model::{Border, Finding};

use super::family::size;
use super::policy::{Policy, policy};
use super::{Evidence, finding};

/// The target lives in memory.
pub(super) fn memory_filesystem(evidence: &Evidence<'_>) -> Option<Finding> {
    let filesystem = &evidence.target.filesystem;
    evidence.is_in_memory().then(|| {
        let text = format!(
            "The target is a {filesystem} and lives in memory: there is no storage behind it, and \
             nothing here says anything about a disk."
        );
        finding("memory_filesystem", text, &[])
    })
}

/// Where copying gets dearer, because data no longer fit the processor's cache.
pub(super) fn processor_cache(evidence: &Evidence<'_>) -> Option<Finding> {
    let llc_bytes = evidence.host.llc_bytes? as f64;
    let mut borders = evidence.borders.iter();
    let border = borders.find(|border| evidence.is_processor_cache(border))?;
    let text = format!(
        "A request takes {} times as long once the data no longer fit about {}: that is the \
         processor's last-level cache ({}), not the file cache.",
        three_digits(border.step),
        size(border.unique_bytes.capacity),
        size(llc_bytes),
    );
    let figures = [
        ("capacity_bytes", border.unique_bytes.capacity),
        ("llc_bytes", llc_bytes),
        ("step_ratio", border.step),
    ];
    Some(finding("processor_cache", text, &figures))
}

/// The effective file cache.
pub(super) fn read_cache(evidence: &Evidence<'_>) -> Option<Finding> {
    let border = evidence.read_border()?;
    let (share, mut figures) = memory_share(evidence, border.unique_bytes.capacity);
    let text = format!(
        "Reads are served from a cache of {}{share}. Requests slow down from {} on and take {} \
         times as long far beyond it.",
        capacity(border),
        size(border.unique_bytes.onset),
        three_digits(border.step),
    );
    figures.extend(border_figures(border));
    Some(finding("read_cache", text, &figures))
}

/// How much written data is absorbed before writers wait for the storage.
pub(super) fn write_cache(evidence: &Evidence<'_>) -> Option<Finding> {
    let border = evidence.write_border()?;
    let through = policy(evidence).is_some_and(|verdict| verdict.policy == Policy::WriteThrough);
    if through || evidence.is_in_memory() {
        return None;
    }
    let (share, mut figures) = memory_share(evidence, border.unique_bytes.capacity);
    let mut text = format!(
        "Writes are absorbed by a cache of {}{share}. Beyond {} writers begin to wait for the \
         storage, {} times as long per request in the end.",
        capacity(border),
        size(border.unique_bytes.onset),
        three_digits(border.step),
    );
    let limit = evidence.host.dirty_limit_bytes as f64;
    if limit > 0.0 && !evidence.is_simulated() {
        let share = border.unique_bytes.capacity / limit;
        let _ = write!(text, " The kernel's limit on dirty data is {}.", size(limit));
        figures.push(("dirty_limit_bytes", limit));
        figures.push(("dirty_limit_share", share));
    }
    figures.extend(border_figures(border));
    Some(finding("write_cache", text, &figures))
}

/// `about 249 MiB (95 %: 239 MiB to 259 MiB)`.
fn capacity(border: &Border) -> String {
    let at = border.unique_bytes;
    format!("about {} (95 %: {} to {})", size(at.capacity), size(at.low), size(at.high))
}

fn border_figures(border: &Border) -> [(&'static str, f64); 5] {
    [
        ("capacity_bytes", border.unique_bytes.capacity),
        ("capacity_low_bytes", border.unique_bytes.low),
        ("capacity_high_bytes", border.unique_bytes.high),
        ("onset_bytes", border.unique_bytes.onset),
        ("step_ratio", border.step),
    ]
}

/// The share of the memory limit, where there is one, and of the memory.
fn memory_share(
    evidence: &Evidence<'_>,
    capacity_bytes: f64,
) -> (String, Vec<(&'static str, f64)>) {
    let host = evidence.host;
    let memory_bytes = host.memory_bytes as f64;
    if evidence.is_simulated() || memory_bytes <= 0.0 {
        return (String::new(), Vec::new());
    }
    let memory_share = capacity_bytes / memory_bytes;
    let of_memory =
        format!("{:.0} % of the memory of {}", memory_share * 100.0, size(memory_bytes));
    let mut figures = vec![("memory_bytes", memory_bytes), ("memory_share", memory_share)];
    // A control group without a limit shows a number far above the memory.
    let limits = [host.memory_limit_set_bytes, host.memory_limit_bytes];
    let limit = limits.into_iter().flatten().min().filter(|limit| *limit < host.memory_bytes);
    let Some(limit_bytes) = limit.map(|limit| limit as f64).filter(|limit| *limit > 0.0) else {
        return (format!(", {of_memory}"), figures);
    };
    let limit_share = capacity_bytes / limit_bytes;
    figures.extend([("memory_limit_bytes", limit_bytes), ("memory_limit_share", limit_share)]);
    let of_limit =
        format!("{:.0} % of the memory limit of {}", limit_share * 100.0, size(limit_bytes));
    (format!(", {of_limit} ({of_memory})"), figures)
}
