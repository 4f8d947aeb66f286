//! Writes a revision of the map: what the points show so far, closed by a `map` line.

use ioscape_analysis::estimate;
use ioscape_analysis::finding::{self, Evidence};
use ioscape_model::units::{MIB, show_bytes};
use ioscape_model::{Code, Curve, Line, Map, Point, Severity, Warning};

use crate::explore::{self, Event, JournalError, Progress, Run};

/// One workload in so many has to be visited twice for the spread to be known.
const REPEATED_SHARE_MIN: usize = 5;

/// Writes the next revision.
pub(crate) fn map(
    run: &mut Run<'_>,
    progress: &mut Progress,
    provisional: bool,
) -> Result<(), JournalError> {
    let landscape = run.plan.landscape(&progress.points);
    progress.revision += 1;
    let revision = progress.revision;
    let (estimates, repeatability) = estimate::pool(&progress.points, revision);
    let findings = finding::findings(
        &Evidence {
            estimates: &estimates,
            points: &progress.points,
            borders: &landscape.borders,
            regions: &landscape.regions,
            host: &run.header.host,
            target: &run.header.target,
        },
        revision,
    );
    for estimate in estimates {
        (run.journal)(&Line::Estimate(estimate))?;
    }
    for border in &landscape.borders {
        let mut border = border.clone();
        border.revision = revision;
        (run.journal)(&Line::Border(border))?;
    }
    for region in &landscape.regions {
        let mut region = region.clone();
        region.revision = revision;
        (run.journal)(&Line::Region(region))?;
    }
    for finding in findings {
        (run.journal)(&Line::Finding(finding))?;
    }
    let elapsed_s = progress.elapsed_s(run.rig);
    let log = landscape.log.clone();
    (run.journal)(&Line::Map(Map { revision, provisional, repeatability, elapsed_s, log }))?;
    (run.on_event)(Event::Map { revision, landscape: &landscape });
    Ok(())
}

/// Whether nine in ten estimates have intervals of at most this relative half-width.
pub(crate) fn is_precise(points: &[Point], precision: f64) -> bool {
    let (estimates, repeatability) = estimate::pool(points, 0);
    if repeatability.is_none() || estimates.is_empty() {
        return false; // nothing was visited twice: no interval means anything yet
    }
    let precise =
        |throughput: ioscape_model::Interval| throughput.relative_half_width() <= precision;
    let count = estimates.iter().filter(|e| precise(e.throughput_bytes_per_s)).count();
    count * 10 >= estimates.len() * 9
}

/// What is doubtful about the run as a whole, now that it is over.
pub(crate) fn closing_warnings(run: &Run<'_>, progress: &Progress) -> Vec<Warning> {
    let landscape = run.plan.landscape(&progress.points);
    let counters = run.header.hints.counters;
    let read_border = landscape
        .borders
        .iter()
        .any(|border| border.curve != Curve::Write && (!counters || border.found_by != "timing"));
    let mut warnings = Vec::new();
    if !read_border && !progress.points.is_empty() {
        warnings.extend(border_not_reached(run, &progress.points));
    }
    warnings.extend(explore::canary_drift(&progress.points));
    warnings.extend(incomplete(&progress.points));
    warnings
}

/// Where hardly anything was visited twice, the intervals rest on an assumption.
fn incomplete(points: &[Point]) -> Option<Warning> {
    let (estimates, _) = estimate::pool(points, 0);
    let repeated = estimates.iter().filter(|estimate| estimate.visits > 1).count();
    if estimates.is_empty() || repeated * REPEATED_SHARE_MIN >= estimates.len() {
        return None;
    }
    let text = format!(
        "{repeated} of {} workloads were visited more than once: the intervals of the others rest \
         on an assumed spread between visits",
        estimates.len()
    );
    let remedy = "give the run a longer --budget, or go on with it by --resume and a longer one";
    Some(Warning::new(Code::Incomplete, text, remedy).with_severity(Severity::Note))
}

fn border_not_reached(run: &Run<'_>, points: &[Point]) -> Option<Warning> {
    let hints = &run.header.hints;
    let cache_bytes = hints.read_cache_bytes.filter(|_| !hints.in_memory)?;
    let reached = points.iter().map(|point| point.workload.unique_bytes).max()? as f64;
    if reached >= cache_bytes {
        return None;
    }
    let limit_bytes = (reached / 4.0).max(64.0 * MIB as f64);
    let text = format!(
        "the map ends at {}, below the {} that the page cache could take: it shows cached reads \
         only",
        show_bytes(reached),
        show_bytes(cache_bytes)
    );
    let remedy = format!(
        "`--memory-limit {}M` shows the border and what lies behind it in the same time; a longer \
         --budget and more free space let the map reach further",
        limit_bytes as u64 / MIB
    );
    Some(Warning::new(Code::BorderNotReached, text, remedy).with_severity(Severity::Warning))
}
