//! Writes a revision of the map: what the points show so far, closed by a `map` line.

use ioscape_analysis::estimate;
use ioscape_analysis::finding::{self, Evidence};
use ioscape_analysis::predict::Predictor;
use ioscape_model::line::REPEATED_MIN;
use ioscape_model::units::{MIB, show_bytes};
use ioscape_model::{
    Code, Curve, Finding, FindingCode, FoundBy, Line, Map, ModelLine, Point, Role, Severity,
    Warning,
};
use ioscape_stats::{median, quantile};

use crate::course::{Event, JournalError, Progress, Run};
use crate::plan::filling::Filling;
use crate::plan::{Landscape, training};

/// Workloads by which `--precision` is judged: always the same ones.
const REFERENCE: u64 = 64;
const REFERENCE_SEED: u64 = 64;

/// Writes the next revision, and gives the models in it.
pub(crate) fn map(
    run: &mut Run<'_>,
    progress: &mut Progress,
    provisional: bool,
) -> Result<Option<Predictor>, JournalError> {
    let landscape = run.plan.landscape(&progress.points);
    progress.revision += 1;
    let revision = progress.revision;
    let (estimates, repeatability) = estimate::pool(&progress.points, revision);
    let graphs: Vec<_> =
        estimates.iter().filter(|estimate| !estimate.workload.has_extras()).cloned().collect();
    let evidence = Evidence {
        estimates: &graphs,
        points: &progress.points,
        borders: &landscape.borders,
        regions: &landscape.regions,
        host: &run.header.host,
        target: &run.header.target,
    };
    let predictor = fitted(run, &landscape, &evidence);
    let models = predictor.as_ref().map_or_else(Vec::new, |fitted| fitted.model_lines(revision));
    let mut findings = finding::findings(&evidence, revision);
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
    findings.extend(predictor.as_ref().and_then(|fitted| model_finding(fitted, &models, revision)));
    for model in models {
        (run.journal)(&Line::Model(model))?;
    }
    for finding in findings {
        (run.journal)(&Line::Finding(finding))?;
    }
    let elapsed_s = progress.elapsed_s(run.rig);
    let log = landscape.log.clone();
    (run.journal)(&Line::Map(Map { revision, provisional, repeatability, elapsed_s, log }))?;
    (run.on_event)(Event::Map { revision, landscape: &landscape });
    Ok(predictor)
}

/// The models that the points allow; where they allow none, the map goes without.
fn fitted(run: &Run<'_>, landscape: &Landscape, evidence: &Evidence<'_>) -> Option<Predictor> {
    let header = run.header;
    let known = (&header.host, &header.hints, header.ranges);
    let mut training = training(evidence.points, landscape, known);
    training.processor_borders = evidence.processor_borders();
    Predictor::fit(training).ok()
}

/// The parameters in words, with their figures.
fn model_finding(predictor: &Predictor, lines: &[ModelLine], revision: u32) -> Option<Finding> {
    let sentences = predictor.sentences();
    let parameters = lines.first().map(|line| line.parameters.iter());
    let figures = parameters.into_iter().flatten().map(|(name, p)| (name.clone(), p.value));
    (!sentences.is_empty()).then(|| Finding {
        code: FindingCode::Model,
        text: sentences.join(" "),
        figures: figures.collect(),
        revision,
    })
}

/// Whether the typical prediction is known this well: the median of the relative half-widths of
/// 90 % intervals, another hour apart, over workloads spread evenly over what was reached.
pub(crate) fn is_precise(predictor: &Predictor, run: &Run<'_>, points: &[Point]) -> bool {
    let Some(precision) = run.header.limits.precision else { return false };
    let largest_bytes = |process_num: u32| {
        let alike = |point: &&Point| (point.workload.process_num > 1) == (process_num > 1);
        let reached = points.iter().filter(alike).map(|point| point.workload.unique_bytes);
        reached.max().unwrap_or(0) as f64
    };
    let filling = Filling { ranges: &run.header.ranges, largest_bytes, seed: REFERENCE_SEED };
    let works = (0..REFERENCE).map(|index| filling.workload(index));
    let half_widths = works
        .filter(|work| work.check().is_ok() && predictor.is_in_range(work))
        .map(|work| predictor.half_width_here(&work).sinh());
    median(half_widths).is_some_and(|median| median <= precision)
}

/// What is doubtful about the run as a whole, now that it is over.
pub(crate) fn closing_warnings(run: &Run<'_>, progress: &Progress) -> Vec<Warning> {
    let landscape = run.plan.landscape(&progress.points);
    let counters = run.header.hints.counters;
    let read_border = landscape.borders.iter().any(|border| {
        border.curve != Curve::Write && (!counters || border.found_by != FoundBy::Timing)
    });
    let mut warnings = Vec::new();
    // What a map does not reach its validation has from it.
    let is_map = run.header.method.is_map();
    if is_map && !read_border && !progress.points.is_empty() {
        warnings.extend(border_not_reached(run, &progress.points));
    }
    warnings.extend(canary_drift(&progress.points));
    warnings.extend(incomplete(&progress.points, is_map));
    warnings
}

/// Where hardly anything was visited twice, the intervals rest on an assumption.
fn incomplete(points: &[Point], is_map: bool) -> Option<Warning> {
    let (estimates, _) = estimate::pool(points, 0);
    let repeated = estimates.iter().filter(|estimate| estimate.visits > 1).count();
    if estimates.is_empty() || repeated >= REPEATED_MIN.min(estimates.len()) {
        return None;
    }
    let text = match repeated {
        0 => format!(
            "no workload{} was visited more than once: intervals rest on an assumed spread \
             between visits",
            if is_map { " but the canary" } else { "" }
        ),
        _ => format!(
            "{repeated} of {} workloads were visited more than once: the intervals of the others \
             rest on an assumed spread between visits",
            estimates.len()
        ),
    };
    let remedy = if is_map {
        "give the run a longer --budget, or go on with it by --resume and a longer one"
    } else {
        "validate again and let it end, or ask for fewer --workloads"
    };
    Some(Warning::new(Code::Incomplete, text, remedy).with_severity(Severity::Note))
}

fn border_not_reached(run: &Run<'_>, points: &[Point]) -> Option<Warning> {
    let hints = &run.header.hints;
    let cache_bytes = hints.read_cache_bytes.filter(|_| !hints.in_memory)?;
    let reached = points.iter().map(|point| point.workload.unique_bytes).max()? as f64;
    if reached >= cache_bytes {
        return None;
    }
    let smaller_limit = smaller_limit_bytes(reached, run.header.host.memory_limit_bytes);
    let text = format!(
        "the map ends at {}, below the {} that the page cache could take: it shows cached reads \
         only",
        show_bytes(reached),
        show_bytes(cache_bytes)
    );
    let further = "a longer --budget and more free space let the map reach further";
    let remedy = smaller_limit.map_or_else(
        || further.to_owned(),
        |bytes| {
            format!(
                "`--memory-limit {}M` shows the border and what lies behind it in the same time; \
                 {further}",
                bytes / MIB
            )
        },
    );
    Some(Warning::new(Code::BorderNotReached, text, remedy).with_severity(Severity::Warning))
}

/// The memory limit under which a map that reaches so far shows the border; none where the limit
/// in force is as small already.
fn smaller_limit_bytes(reached: f64, in_force_bytes: Option<u64>) -> Option<u64> {
    let limit_bytes = (reached / 4.0).max(64.0 * MIB as f64) as u64;
    in_force_bytes.is_none_or(|in_force| limit_bytes < in_force).then_some(limit_bytes)
}

/// Doubt that the machine stayed as it was, from the canaries.
fn canary_drift(points: &[Point]) -> Option<Warning> {
    /// A canary that moves further than this, from the median, says that the machine changed.
    const DRIFT: f64 = 0.25;
    let canaries = points.iter().filter(|point| point.role == Role::Canary);
    let mut throughputs: Vec<f64> = canaries.map(Point::throughput).collect();
    throughputs.sort_by(f64::total_cmp);
    let median = Some(quantile(&throughputs, 0.5)).filter(|median| *median > 0.0)?;
    let (slowest, fastest) = (throughputs.first()? / median, throughputs.last()? / median);
    if slowest > 1.0 - DRIFT && fastest < 1.0 + DRIFT {
        return None;
    }
    let text = format!(
        "the same small cached read ran at {:.0} % to {:.0} % of its median during the run",
        slowest * 100.0,
        fastest * 100.0
    );
    let remedy = "something else used the machine, or its clock speed changed: run again when it \
                  is quiet, or give the run a longer --budget";
    Some(Warning::new(Code::Drift, text, remedy).with_severity(Severity::Warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_is_in_force_is_not_recommended() {
        let reached = 200.0 * MIB as f64;
        assert_eq!(smaller_limit_bytes(reached, None), Some(64 * MIB));
        assert_eq!(smaller_limit_bytes(reached, Some(1024 * MIB)), Some(64 * MIB));
        assert_eq!(smaller_limit_bytes(reached, Some(64 * MIB)), None);
    }
}
