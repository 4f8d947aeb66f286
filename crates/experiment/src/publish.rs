//! Writes a revision of the map: what the points show so far, closed by a `map` line.

use ioscape_analysis::conclusion::control_range;
use ioscape_analysis::datasheet;
use ioscape_analysis::estimate;
use ioscape_analysis::finding::{self, Evidence};
use ioscape_analysis::layer::LayerPart;
use ioscape_analysis::model::{device_hints, device_samples, drift_sd};
use ioscape_analysis::predict::Predictor;
use ioscape_model::line::REPEATED_MIN;
use ioscape_model::units::{MIB, show_bytes};
use ioscape_model::{
    Access, Border, Code, Curve, Estimate, Finding, FindingCode, FoundBy, Header, Hints, Layer,
    Line, Map, ModelLine, Point, Ranges, Region, Severity, State, Warning, Words, Workload,
};
use ioscape_stats::median;

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
    let measured = (&*progress.points, &*estimates);
    let drawn: Vec<Drawn> = layers(run.header)
        .into_iter()
        .map(|layer| Drawn::new(run.header, layer, measured, &landscape))
        .collect();
    let main_layer = Layer::of_access(run.header.ranges.access);
    let borders = landscape
        .borders
        .iter()
        .map(|border| Line::Border(Border { layer: main_layer, revision, ..border.clone() }));
    let regions = landscape.regions.iter().map(|region| {
        let layer = Layer::of_access(region.focal.access);
        Line::Region(Region { layer, revision, ..region.clone() })
    });
    let estimates = estimates.iter().cloned().map(Line::Estimate);
    for line in estimates.chain(borders).chain(regions) {
        (run.journal)(&line)?;
    }
    let models = drawn.iter().flat_map(|layer| layer.models(revision)).map(Line::Model);
    let sustained = progress.sustained.iter();
    let sustained = sustained.filter_map(|it| finding::first_and_sustained(it, revision));
    let at_rates = finding::rate_latency(&progress.points, revision);
    let findings = drawn.iter().flat_map(|layer| layer.findings(revision));
    let findings = findings.chain(sustained).chain(at_rates);
    for line in models.chain(findings.map(Line::Finding)) {
        (run.journal)(&line)?;
    }
    let elapsed_s = progress.elapsed_s(run.rig);
    let log = landscape.log.clone();
    let datasheet = datasheet::figures(&run.header.datasheet, &progress.points);
    let map = Map { revision, provisional, repeatability, elapsed_s, log, datasheet };
    (run.journal)(&Line::Map(map))?;
    (run.on_event)(Event::Map { revision, landscape: &landscape });
    let mut fitted = drawn.into_iter().map(|layer| layer.predictor);
    let main = fitted.next().flatten();
    Ok(main.map(|main| match fitted.next() {
        Some(device) => main.with_device(device),
        None => main,
    }))
}

/// A layer, where it extends, and what is known of it beforehand.
type Known = (Layer, Ranges, Hints);

/// The layers of a map, that of the header's own ranges first.
fn layers(header: &Header) -> Vec<Known> {
    let main = (Layer::of_access(header.ranges.access), header.ranges, header.hints.clone());
    let device = header.device.map(|device| {
        (Layer::Device, device.ranges, device_hints(&header.hints, device.room_bytes))
    });
    std::iter::once(main).chain(device).collect()
}

/// What a map shows of one layer.
struct Drawn {
    findings: Vec<Finding>,
    predictor: Option<Predictor>,
    layer: Layer,
}

impl Drawn {
    fn new(
        header: &Header,
        (layer, ranges, hints): Known,
        measured: (&[Point], &[Estimate]),
        landscape: &Landscape,
    ) -> Self {
        let is_main = Layer::of_access(header.ranges.access) == layer;
        let borders = if is_main { &*landscape.borders } else { &[] };
        let part = LayerPart::pick(layer, measured, (borders, &landscape.regions));
        let is_on_graphs = |work: &Workload| !work.has_extras() && work.state == State::Warm;
        let graphs: Vec<Estimate> =
            part.estimates.iter().filter(|e| is_on_graphs(&e.workload)).cloned().collect();
        let warm = |point: &&Point| point.workload.state == State::Warm;
        let warm: Vec<Point> = part.points.iter().filter(warm).cloned().collect();
        let evidence = Evidence {
            estimates: &graphs,
            points: &warm,
            borders: &part.borders,
            regions: &part.regions,
            host: &header.host,
            target: &header.target,
            all_estimates: measured.1,
        };
        if header.is_quick {
            return Self { findings: Vec::new(), predictor: None, layer };
        }
        let mut findings = if is_main {
            finding::findings(&evidence, 0)
        } else {
            finding::of_device(&evidence, 0)
        };
        number_in_map(&mut findings, &landscape.regions, layer);
        let seen = Landscape {
            borders: part.borders.clone(),
            regions: part.regions.clone(),
            ..Landscape::default()
        };
        let mut training = training(&part.points, &seen, (&header.host, &hints, ranges));
        training.processor_borders = evidence.processor_borders();
        training.read_ahead_bytes = header.target.read_ahead_bytes;
        training.device = device_samples(layer, measured.0);
        // Canaries are those of the whole run.
        training.drift_sd = drift_sd(measured.0);
        Self { findings, predictor: Predictor::fit(training).ok(), layer }
    }

    fn models(&self, revision: u32) -> Vec<ModelLine> {
        self.predictor.as_ref().map_or_else(Vec::new, |fitted| fitted.model_lines(revision))
    }

    fn findings(&self, revision: u32) -> Vec<Finding> {
        let predictor = self.predictor.as_ref();
        let of_model = predictor.and_then(|fitted| model_finding(fitted, &self.models(revision)));
        let beyond = predictor.and_then(put_together);
        let all = self.findings.iter().cloned().chain(beyond).chain(of_model);
        all.map(|finding| Finding { layer: self.layer, revision, ..finding }).collect()
    }
}

/// Turns each finding's number of its region among those of the layer into the number among all
/// regions of the map.
fn number_in_map(findings: &mut [Finding], regions: &[Region], layer: Layer) {
    let in_map: Vec<u32> = (1..)
        .zip(regions)
        .filter(|(_, region)| Layer::of_access(region.focal.access) == layer)
        .map(|(number, _)| number)
        .collect();
    for finding in findings {
        finding.region = finding.region.map(|number| in_map[number as usize - 1]);
    }
}

/// That, and from what, answers are put together beyond the visits.
fn put_together(predictor: &Predictor) -> Option<Finding> {
    let to_bytes = predictor.put_together_to()?;
    let cache_bytes = predictor.caches().read_bytes?;
    let measured_bytes = predictor.measured().unique_bytes.max as f64;
    let text = format!(
        "Measured up to {} of data, which the page cache of {} holds; from there to {} put \
         together from reads that missed the cache and from what storage takes past it.",
        show_bytes(measured_bytes),
        show_bytes(cache_bytes),
        show_bytes(to_bytes)
    );
    let figures =
        [("measured_bytes", measured_bytes), ("cache_bytes", cache_bytes), ("to_bytes", to_bytes)];
    Some(Finding {
        code: FindingCode::PutTogether,
        text,
        figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
        region: None,
        clause: None,
        layer: Layer::default(),
        revision: 0,
    })
}

/// The parameters in words, with their figures.
fn model_finding(predictor: &Predictor, lines: &[ModelLine]) -> Option<Finding> {
    let sentences = predictor.sentences();
    let parameters = lines.first().map(|line| line.parameters.iter());
    let figures = parameters.into_iter().flatten().map(|(name, p)| (name.clone(), p.value));
    let said = sentences.join(" ");
    (!sentences.is_empty()).then(|| Finding {
        code: FindingCode::Model,
        text: match predictor.access() {
            Access::Buffered => said,
            Access::Direct => format!("Past the page cache: {said}"),
        },
        figures: figures.collect(),
        region: None,
        clause: None,
        layer: Layer::default(),
        revision: 0,
    })
}

/// Whether the typical prediction is known as well as `--precision` asks: the median of the relative
/// half-widths of the 90 % intervals within this run (without the widening for another hour), over workloads
/// spread evenly over what was reached.
pub(crate) fn is_precise(predictor: &Predictor, run: &Run<'_>, points: &[Point]) -> bool {
    let Some(precision) = run.header.limits.precision else { return false };
    let access = run.header.ranges.access;
    let largest_bytes = |process_num: u32| {
        let alike = |point: &&Point| {
            let work = &point.workload;
            (work.process_num > 1) == (process_num > 1) && work.access == access
        };
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
    let has_device_layer = run.header.device.is_some()
        && landscape.regions.iter().any(|region| region.focal.access == Access::Direct);
    // What lies beyond the cache was measured past it.
    let is_cold = |point: &Point| point.workload.state == State::Cold;
    let is_put_together = has_device_layer || progress.points.iter().any(is_cold);
    let is_open = !read_border && !is_put_together && !run.header.is_quick;
    if is_map && is_open && !progress.points.is_empty() {
        warnings.extend(border_not_reached(run, &progress.points));
    }
    warnings.extend(canary_drift(&progress.points));
    if !run.header.is_quick {
        warnings.extend(incomplete(&progress.points, is_map));
    }
    warnings
}

/// Where hardly anything was visited twice, the intervals rest on an assumption.
fn incomplete(points: &[Point], is_map: bool) -> Option<Warning> {
    let (estimates, _) = estimate::pool(points, 0);
    let repeated = estimates.iter().filter(|estimate| estimate.visits > 1).count();
    if estimates.is_empty() || repeated >= REPEATED_MIN.min(estimates.len()) {
        return None;
    }
    let sentence = match repeated {
        0 if is_map => {
            "no workload but the canary was visited more than once: intervals rest on an assumed \
             spread between visits"
        }
        0 => {
            "no workload was visited more than once: intervals rest on an assumed spread between \
             visits"
        }
        _ => {
            "{repeated} of {workloads} workloads were visited more than once: the intervals of the \
             others rest on an assumed spread between visits"
        }
    };
    let text = Words::new(sentence)
        .figure("repeated", repeated as f64)
        .figure("workloads", estimates.len() as f64);
    let remedy = if is_map {
        "run with a longer --budget, or continue this run with --resume and a longer --budget"
    } else {
        "validate again and let it end, or ask for fewer --workloads"
    };
    Some(Warning::new(Code::Incomplete, text, remedy).with_severity(Severity::Note))
}

fn border_not_reached(run: &Run<'_>, points: &[Point]) -> Option<Warning> {
    let hints = &run.header.hints;
    let cache_bytes = hints.read_cache_bytes.filter(|_| !hints.in_memory)?;
    let access = run.header.ranges.access;
    let here = points.iter().filter(|point| point.workload.access == access);
    let reached = here.map(|point| point.workload.unique_bytes).max()? as f64;
    if reached >= cache_bytes {
        return None;
    }
    let smaller_limit = smaller_limit_bytes(reached, run.header.host.memory_limit_bytes);
    let text = Words::new(
        "the map ends at {reached_bytes}, below the {cache_bytes} that the page cache could take: it \
         shows cached reads only",
    )
    .figure("reached_bytes", reached)
    .figure("cache_bytes", cache_bytes);
    let further = "a longer --budget and more free space let the map reach further";
    let remedy = smaller_limit.map_or_else(
        || further.into(),
        |bytes| {
            Words::new(
                "`--memory-limit {limit}` shows the border and what lies behind it in the same \
                 time; {further}",
            )
            .figure("limit_bytes", bytes as f64)
            .name("limit", format!("{}M", bytes / MIB))
            .name("further", further)
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
    let [slowest, fastest] = control_range(points)?;
    if slowest > 1.0 - DRIFT && fastest < 1.0 + DRIFT {
        return None;
    }
    let text = Words::new(
        "the same small cached read ran at {slowest_share:.0} to {fastest_share:.0} of its median \
         during the run",
    )
    .figure("slowest_share", slowest)
    .figure("fastest_share", fastest);
    let remedy = "something else used the machine, or its clock speed changed: run again when it \
                  is quiet, or give the run a longer --budget";
    Some(Warning::new(Code::Drift, text, remedy).with_severity(Severity::Warning))
}

#[cfg(test)]
mod tests {
    use ioscape_model::{RegionKind, RegionUniqueBytes};

    use super::*;

    #[test]
    fn findings_of_the_device_layer_carry_the_number_of_the_region_in_the_map() {
        let region = |access| Region {
            name: RegionKind::Cache.into(),
            unique_bytes: RegionUniqueBytes { from: 1e7, to: 1e9, focal: 1e8 },
            focal: Workload { access, ..Workload::default() },
            layer: Layer::default(),
            revision: 0,
        };
        let regions = [Access::Buffered, Access::Buffered, Access::Direct].map(region);
        let numbered = |layer, number| {
            let finding = Finding {
                code: FindingCode::GoodSizes,
                text: String::new(),
                region: number,
                clause: None,
                figures: std::collections::BTreeMap::new(),
                layer,
                revision: 0,
            };
            let mut findings = [finding];
            number_in_map(&mut findings, &regions, layer);
            findings[0].region
        };
        assert_eq!(numbered(Layer::Cache, Some(2)), Some(2));
        assert_eq!(numbered(Layer::Device, Some(1)), Some(3));
        assert_eq!(numbered(Layer::Device, None), None);
    }

    #[test]
    fn the_limit_that_is_in_force_is_not_recommended() {
        let reached = 200.0 * MIB as f64;
        assert_eq!(smaller_limit_bytes(reached, None), Some(64 * MIB));
        assert_eq!(smaller_limit_bytes(reached, Some(1024 * MIB)), Some(64 * MIB));
        assert_eq!(smaller_limit_bytes(reached, Some(64 * MIB)), None);
    }
}
