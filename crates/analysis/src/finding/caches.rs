//! How much data the caches hold, and what share of the memory that is (Chen and Patterson 1994,
//! section 8.1.3).

use std::fmt::Write as _;

use ioscape_model::units::{show_percent, show_rate};
use ioscape_model::{Border, Finding, FindingCode, FoundBy};

use super::family::{Slowdown, Spot, border_curves, size, write_curve};
use super::policy::{Policy, policy};
use super::{Evidence, NEAR_LIMIT, finding};

/// The target lives in memory.
pub(super) fn memory_filesystem(evidence: &Evidence<'_>) -> Option<Finding> {
    let filesystem = &evidence.target.filesystem;
    evidence.target.is_in_memory().then(|| {
        let text = format!(
            "The target is a {filesystem} and lives in memory: there is no storage behind it, and \
             nothing here says anything about a disk."
        );
        finding(FindingCode::MemoryFilesystem, text, &[])
    })
}

/// Where copying gets dearer, because data no longer fit the processor's cache.
pub(super) fn processor_cache(evidence: &Evidence<'_>) -> Option<Finding> {
    let llc_bytes = evidence.host.llc_bytes? as f64;
    let mut borders = evidence.borders.iter();
    let border = borders.find(|border| evidence.is_processor_cache(border))?;
    let text = format!(
        "A request takes longer once the data no longer fit about {}, but memory still answers: \
         the processor's caches end there (its last level has {}), not the file cache.",
        size(border.unique_bytes.capacity),
        size(llc_bytes),
    );
    let figures = [
        ("capacity_bytes", border.unique_bytes.capacity),
        ("llc_bytes", llc_bytes),
        ("step_ratio", border.step),
    ];
    Some(finding(FindingCode::ProcessorCache, text, &figures))
}

/// The effective file cache.
pub(super) fn read_cache(evidence: &Evidence<'_>) -> Option<Finding> {
    let border = evidence.read_border()?;
    let (share, mut figures) = memory_share(evidence, border.unique_bytes.capacity);
    let curve = border_curves(evidence.estimates, border.curve).into_iter().next();
    let slowdown = curve.and_then(|curve| Slowdown::across(border, &curve));
    let whose = match (evidence.target.is_served(), evidence.keeps_pages_here()) {
        (false, _) => "a ",
        (true, true) => "this machine's ",
        (true, false) => "the server's ",
    };
    let text = format!(
        "Reads are served from {whose}cache of {}{share}. Requests slow down from {} on{}.",
        capacity(border),
        size(border.unique_bytes.onset),
        measured(slowdown.as_ref(), &mut figures),
    );
    figures.extend(border_figures(border));
    Some(finding(FindingCode::ReadCache, text, &figures))
}

/// The server's cache, behind this machine's page cache. If no border of it was found: up to how much data it
/// was looked for.
pub(super) fn server_cache(evidence: &Evidence<'_>) -> Option<Finding> {
    /// Data so many times this machine's cache have to be served from elsewhere.
    const SERVED_FROM: f64 = 2.0;
    let ours = evidence.read_border().filter(|_| evidence.has_server_behind())?;
    let curve = border_curves(evidence.estimates, ours.curve).into_iter().next()?;
    let last = *curve.last()?;
    let ours_bytes = ours.unique_bytes.capacity;
    let Some(border) = evidence.server_border() else {
        let text = format!(
            "Reads that miss this machine's memory are served alike up to {} of data, the most that was \
             tried: the server's cache is larger, or no larger than this machine's, which hides it, or its \
             storage is as fast as the network.",
            size(last.value)
        );
        let figures = [("tried_bytes", last.value), ("client_capacity_bytes", ours_bytes)];
        return (last.value >= SERVED_FROM * ours_bytes)
            .then(|| finding(FindingCode::ServerCache, text, &figures));
    };
    let at = border.unique_bytes;
    let text = match server_spot(&curve, ours, border).filter(|_| last.value > at.high) {
        Some(before) => format!(
            "Reads that miss this machine's memory are served from the server's, up to {} of data: {} over {}, \
             of which this machine holds {}; beyond it from the server's storage: {} over {}.",
            capacity(border),
            show_rate(before.throughput().mean),
            size(before.value),
            size(ours_bytes),
            show_rate(last.throughput().mean),
            size(last.value),
        ),
        None => format!(
            "Reads that miss this machine's memory are served from the server's, up to {} of data.",
            capacity(border)
        ),
    };
    let mut figures = border_figures(border).to_vec();
    figures.push(("client_capacity_bytes", ours_bytes));
    Some(finding(FindingCode::ServerCache, text, &figures))
}

/// The largest data on a curve that outgrow this machine's memory and surely fit the server's.
pub(crate) fn server_spot<'a>(
    curve: &[Spot<'a>],
    ours: &Border,
    server: &Border,
) -> Option<Spot<'a>> {
    let (from, at) = (ours.unique_bytes.high, server.unique_bytes);
    curve.iter().rfind(|spot| spot.value > from && spot.value <= at.onset.min(at.low)).copied()
}

/// How much written data is absorbed before writers wait for the storage, and further steps.
pub(super) fn write_cache(evidence: &Evidence<'_>) -> Option<Finding> {
    let borders = evidence.write_borders();
    let (border, others) = borders.split_first()?;
    let through = policy(evidence).is_some_and(|verdict| verdict.policy == Policy::WriteThrough);
    if through || evidence.target.is_in_memory() {
        return None;
    }
    let (share, mut figures) = memory_share(evidence, border.unique_bytes.capacity);
    let curve = write_curve(evidence.estimates);
    let slowdown = curve.and_then(|curve| Slowdown::across(border, &curve));
    let mut text = format!(
        "Writes are absorbed by a cache of {}{share}{}. Beyond {} writers begin to wait for the \
         storage{}.",
        capacity(border),
        near_limit(evidence, border),
        size(border.unique_bytes.onset),
        measured(slowdown.as_ref(), &mut figures),
    );
    for other in others {
        let near = near_limit(evidence, other);
        let _ = write!(text, " Writes slow down again at {}{near}.", capacity(other));
    }
    let limit = evidence.host.dirty_limit_bytes as f64;
    if limit > 0.0 && !evidence.target.is_simulated() {
        let is_near = |border: &&Border| {
            nearest_limit(evidence, border).is_some_and(|(limit, _)| limit == Limit::Dirty)
        };
        if !borders.iter().any(is_near) {
            let _ = write!(text, " The kernel's {DIRTY_LIMIT} is {}.", size(limit));
        }
        figures.push(("dirty_limit_bytes", limit));
        figures.push(("dirty_limit_share", border.unique_bytes.capacity / limit));
    }
    figures.push(("borders_count", borders.len() as f64));
    figures.extend(others.first().map(|next| ("next_capacity_bytes", next.unique_bytes.capacity)));
    figures.extend(border_figures(border));
    Some(finding(FindingCode::WriteCache, text, &figures))
}

const DIRTY_LIMIT: &str = "limit on dirty data";

/// A limit of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Background,
    Dirty,
}

/// The kernel's limit that a border lies near, with its bytes.
fn nearest_limit(evidence: &Evidence<'_>, border: &Border) -> Option<(Limit, f64)> {
    let host = evidence.host;
    let limits = [
        (Limit::Background, host.dirty_background_bytes as f64),
        (Limit::Dirty, host.dirty_limit_bytes as f64),
    ];
    let distance = |bytes: f64| (border.unique_bytes.capacity / bytes).ln().abs();
    limits
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0.0 && !evidence.target.is_simulated())
        .min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)))
        .filter(|(_, bytes)| distance(*bytes) <= NEAR_LIMIT.ln())
}

/// `, near the kernel's background limit of 32 MiB`, or nothing.
fn near_limit(evidence: &Evidence<'_>, border: &Border) -> String {
    nearest_limit(evidence, border).map_or_else(String::new, |(limit, bytes)| {
        let name = if limit == Limit::Dirty { DIRTY_LIMIT } else { "background limit" };
        format!(", near the kernel's {name} of {}", size(bytes))
    })
}

/// `; with 904 MiB of data a request takes 57.3 times as long as with 8 MiB`, or nothing.
fn measured(slowdown: Option<&Slowdown<'_>>, figures: &mut Vec<(&'static str, f64)>) -> String {
    let Some(slowdown) = slowdown else { return String::new() };
    figures.push(("slowdown_ratio", slowdown.ratio()));
    format!("; {}", slowdown.words())
}

/// `about 249 MiB (95 %: 239 MiB to 259 MiB)`. The steepest part of a curve lies between two
/// points, which is no interval of confidence.
fn capacity(border: &Border) -> String {
    let at = border.unique_bytes;
    let kind = if border.found_by == FoundBy::Slope { "between" } else { "95 %:" };
    let to = if border.found_by == FoundBy::Slope { "and" } else { "to" };
    format!("about {} ({kind} {} {to} {})", size(at.capacity), size(at.low), size(at.high))
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
    let memory_bytes = evidence.host.memory_bytes as f64;
    if evidence.target.is_simulated() || memory_bytes <= 0.0 {
        return (String::new(), Vec::new());
    }
    let memory_share = capacity_bytes / memory_bytes;
    let of_memory =
        format!("{} of the memory of {}", show_percent(memory_share), size(memory_bytes));
    let mut figures = vec![("memory_bytes", memory_bytes), ("memory_share", memory_share)];
    let Some(limit_bytes) = evidence.memory_limit_bytes().map(|limit| limit as f64) else {
        return (format!(", {of_memory}"), figures);
    };
    let limit_share = capacity_bytes / limit_bytes;
    figures.extend([("memory_limit_bytes", limit_bytes), ("memory_limit_share", limit_share)]);
    let of_limit =
        format!("{} of the memory limit of {}", show_percent(limit_share), size(limit_bytes));
    (format!(", {of_limit} ({of_memory})"), figures)
}
