//! From visits to estimates: one per workload, with an interval from the variance between visits,
//! pooled over all workloads of the record.
//!
//! Workloads that write repeat less well than those that only read, so the two are pooled apart
//! where there are enough visits of each. Canaries watch the machine and are left out.

use ioscape_model::line::SPREAD_ASSUMED;
use ioscape_model::{
    Code, Estimate, Interval, Line, Map, Point, ResponseTime, Role, Severity, Warning, Words,
    Workload,
};
use ioscape_stats::{LogMeasurement, Mean, Spread, t_two_sided};

/// Confidence of the intervals, within visits and between them.
const CONFIDENCE: f64 = 0.95;
/// The spread that reports name is the spread that pooling assumes.
const _: () = assert!(SPREAD_ASSUMED.to_bits() == ioscape_stats::pool::USUAL_SD.to_bits());
/// Repeated visits of readers, and of writers, from which on each have a pool of their own.
const STRATUM_REPEATS_MIN: usize = 30;
/// Two visits this many pooled standard deviations apart do not measure the same thing ...
const BISTABLE_SIGMAS: f64 = 4.0;
/// ... if they are also apart by this factor.
const BISTABLE_RATIO: f64 = 1.2;

/// Stands for nothing at all where a logarithm is taken.
const FIGURE_MIN: f64 = 1e-9;

/// The estimates of these points, and the only revision of a map that closes them; no lines where
/// there are no points.
pub fn lines(points: &[Point], elapsed_s: f64, provisional: bool, log: Vec<String>) -> Vec<Line> {
    let (estimates, repeatability) = pool(points, 1);
    let mut lines: Vec<Line> = estimates.into_iter().map(Line::Estimate).collect();
    if !lines.is_empty() {
        lines.push(Line::Map(Map {
            revision: 1,
            provisional,
            repeatability,
            elapsed_s,
            log,
            datasheet: vec![],
        }));
    }
    lines
}

/// Estimates in the order in which their workloads were first seen, and the pooled coefficient of
/// variation between visits: the repeatability, unknown where nothing was visited twice.
pub fn pool(points: &[Point], revision: u32) -> (Vec<Estimate>, Option<f64>) {
    let groups = groups(points);
    let strata: Vec<Stratum> = if are_worth_two_pools(&groups) {
        [true, false]
            .map(|reads_only| Stratum::new(&groups, |work| reads(work) == reads_only))
            .into()
    } else {
        vec![Stratum::new(&groups, |_| true)]
    };
    let mut estimates = vec![None; groups.len()];
    for stratum in &strata {
        for (index, &group) in stratum.members.iter().enumerate() {
            estimates[group] = Some(stratum.estimate(index, &groups[group], revision));
        }
    }
    let estimates = estimates.into_iter().flatten().collect();
    (estimates, repeatability(&strata))
}

/// Visits to one workload.
type Group<'a> = Vec<&'a Point>;

fn groups(points: &[Point]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for point in points.iter().filter(|point| point.role != Role::Canary) {
        match groups.iter_mut().find(|group| group[0].workload == point.workload) {
            Some(group) => group.push(point),
            None => groups.push(vec![point]),
        }
    }
    groups
}

fn reads(work: &Workload) -> bool {
    work.read_frac >= 1.0
}

fn are_worth_two_pools(groups: &[Group<'_>]) -> bool {
    let repeats = |reads_only: bool| -> usize {
        let stratum = groups.iter().filter(|group| reads(&group[0].workload) == reads_only);
        stratum.map(|group| group.len() - 1).sum()
    };
    repeats(true) >= STRATUM_REPEATS_MIN && repeats(false) >= STRATUM_REPEATS_MIN
}

/// Workloads whose visits are taken to scatter alike.
struct Stratum {
    /// Their places among all groups.
    members: Vec<usize>,
    visits: Vec<Vec<LogMeasurement>>,
    spread: Spread,
}

impl Stratum {
    fn new(groups: &[Group<'_>], belongs: impl Fn(&Workload) -> bool) -> Self {
        let members: Vec<usize> =
            (0..groups.len()).filter(|&index| belongs(&groups[index][0].workload)).collect();
        let visits: Vec<Vec<LogMeasurement>> =
            members.iter().map(|&index| counted(&groups[index]).map(visit).collect()).collect();
        Self { members, spread: Spread::from_groups(&visits), visits }
    }

    fn estimate(&self, index: usize, group: &Group<'_>, revision: u32) -> Estimate {
        let mean = self.spread.mean(index, &self.visits[index]);
        let throughput = around(group, &mean, Point::throughput);
        let mut warnings = worst_of_each_code(group);
        warnings.extend(self.bistable(index));
        warnings.extend(dead(group));
        Estimate {
            workload: group[0].workload.clone(),
            visits: group.len() as u32,
            throughput_bytes_per_s: throughput,
            durable_bytes_per_s: durable_fraction(group).map(|durable| throughput.mean * durable),
            ops_per_s: around(group, &mean, |point| point.ops_per_s),
            response_time_s: average_response(group, |point| Some(point.response_time_s))
                .unwrap_or_default(),
            latency_s: average_response(group, |point| point.latency_s),
            hit_fraction: average(group, |point| point.hit_fraction),
            steady: group.iter().all(|point| point.steady),
            warnings,
            revision,
        }
    }

    fn bistable(&self, index: usize) -> Option<Warning> {
        let visits = &self.visits[index];
        let by_value = |a: &&LogMeasurement, b: &&LogMeasurement| a.ln_value.total_cmp(&b.ln_value);
        let (low, high) = (visits.iter().min_by(by_value)?, visits.iter().max_by(by_value)?);
        let apart = high.ln_value - low.ln_value;
        let sd = self.spread.visit_sd(low).max(self.spread.visit_sd(high));
        let far = apart > BISTABLE_SIGMAS * sd && apart > BISTABLE_RATIO.ln();
        (far && self.spread.is_strange(index)).then(|| {
            let text = Words::new(
                "{visits} visits differ by a factor of {factor:.2}, where visits usually differ by \
                 {usual_share:.1}",
            )
            .figure("visits", visits.len() as f64)
            .figure("factor", apart.exp())
            .figure("usual_share", sd);
            Warning::new(
                Code::Bistable,
                text,
                "read the visits one by one: the state of the system decides, not chance",
            )
        })
    }
}

fn is_dead(point: &Point) -> bool {
    point.throughput() <= FIGURE_MIN
}

/// The visits that a mean is taken of. One in which nothing was completed has no logarithm: it
/// would drag the mean of the others to nothing, and it is named in a warning instead.
fn counted<'a>(group: &Group<'a>) -> impl Iterator<Item = &'a Point> {
    let all_dead = group.iter().all(|point| is_dead(point));
    group.clone().into_iter().filter(move |point| all_dead || !is_dead(point))
}

fn dead(group: &Group<'_>) -> Option<Warning> {
    let count = group.iter().filter(|point| is_dead(point)).count();
    (count > 0).then(|| {
        let sentence = "in {dead_visits} of {visits} visits not one request was completed";
        let text = Words::new(sentence)
            .figure("dead_visits", count as f64)
            .figure("visits", group.len() as f64);
        let remedy = "find out what held the requests up, or measure longer";
        Warning::new(Code::FewRequests, text, remedy).with_severity(Severity::Serious)
    })
}

/// A visit's logarithm and its own error.
pub(crate) fn visit(point: &Point) -> LogMeasurement {
    let interval = &point.throughput_bytes_per_s;
    let half_width = (interval.relative_half_width()).clamp(0.0, 1.0);
    LogMeasurement {
        ln_value: interval.mean.max(FIGURE_MIN).ln(),
        within_sd: half_width / t_two_sided(CONFIDENCE, f64::from(point.windows.max(2)) - 1.0),
    }
}

/// The geometric mean of a figure over the visits, with the relative interval of `mean`.
fn around(group: &Group<'_>, mean: &Mean, figure: impl Fn(&Point) -> f64) -> Interval {
    let half_width = mean.half_width(CONFIDENCE);
    let logarithms: Vec<f64> =
        counted(group).map(|point| figure(point).max(FIGURE_MIN).ln()).collect();
    let value = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    Interval { mean: value, low: value * (-half_width).exp(), high: value * half_width.exp() }
}

/// What of the throughput is durable: the geometric mean over the visits that timed it, as that of
/// the throughput is. Another kind of mean would set the two apart where visits differ.
fn durable_fraction(group: &Group<'_>) -> Option<f64> {
    let ln_fraction = |point: &Point| {
        let durable = point.durable_bytes_per_s?.max(FIGURE_MIN);
        Some(durable.ln() - point.throughput().max(FIGURE_MIN).ln())
    };
    let known: Vec<f64> = counted(group).filter_map(ln_fraction).collect();
    (!known.is_empty()).then(|| (known.iter().sum::<f64>() / known.len() as f64).exp())
}

fn average(group: &Group<'_>, figure: impl Fn(&Point) -> Option<f64>) -> Option<f64> {
    let known: Vec<f64> = group.iter().filter_map(|point| figure(point)).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// Means over the visits that have it, and the longest of all.
fn average_response(
    group: &Group<'_>,
    of_point: fn(&Point) -> Option<ResponseTime>,
) -> Option<ResponseTime> {
    let visits: Vec<ResponseTime> = counted(group).filter_map(of_point).collect();
    if visits.is_empty() {
        return None;
    }
    let count = visits.len() as f64;
    let mean_of = |figure: fn(&ResponseTime) -> f64| -> f64 {
        visits.iter().map(figure).sum::<f64>() / count
    };
    let longest = group.iter().filter_map(|point| of_point(point));
    Some(ResponseTime {
        mean: mean_of(|response| response.mean),
        p50: mean_of(|response| response.p50),
        p90: mean_of(|response| response.p90),
        p99: mean_of(|response| response.p99),
        p999: mean_of(|response| response.p999),
        max: longest.map(|response| response.max).fold(0.0, f64::max),
    })
}

/// What was doubtful in any visit, once per code, at its worst. That a visit was not precise is
/// no doubt about several: their interval speaks for itself.
pub(crate) fn worst_of_each_code(group: &Group<'_>) -> Vec<Warning> {
    let mut worst: Vec<Warning> = Vec::new();
    let several = group.len() > 1;
    let doubts = group.iter().flat_map(|point| &point.warnings);
    for warning in doubts.filter(|doubt| !(several && doubt.code == Code::NotPrecise)) {
        match worst.iter_mut().find(|seen| seen.code == warning.code) {
            Some(seen) if seen.severity < warning.severity => *seen = warning.clone(),
            Some(_) => {}
            None => worst.push(warning.clone()),
        }
    }
    worst
}

fn repeatability(strata: &[Stratum]) -> Option<f64> {
    let (mut squares, mut repeats) = (0.0, 0.0);
    for stratum in strata {
        if let Some((sd, degrees_of_freedom)) = stratum.spread.repeatability() {
            squares += sd * sd * degrees_of_freedom;
            repeats += degrees_of_freedom;
        }
    }
    // The coefficient of variation of what is log-normal with this variance.
    (repeats > 0.0).then(|| (squares / repeats).exp_m1().sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visit::visit;

    /// A visit to the workload with `unique_mib`, that gave so many MB/s.
    fn point(unique_mib: u64, megabytes_per_s: f64) -> Point {
        let mean = megabytes_per_s * 1e6;
        let work =
            Workload { unique_bytes: unique_mib << 20, read_frac: 1.0, ..Workload::default() };
        Point {
            role: Role::Calibration,
            throughput_bytes_per_s: Interval { mean, low: 0.99 * mean, high: 1.01 * mean },
            response_time_s: ResponseTime {
                mean: 16384.0 / mean,
                max: 1.0 / megabytes_per_s,
                ..ResponseTime::default()
            },
            ..visit(work, mean)
        }
    }

    #[test]
    fn visits_to_one_workload_become_one_estimate_in_the_order_first_seen() {
        let points = [point(32, 50.0), point(16, 100.0), point(32, 50.0), point(8, 1.0)];
        let (estimates, _) = pool(&points, 7);
        let seen: Vec<(u64, u32, u32)> = estimates
            .iter()
            .map(|estimate| {
                (estimate.workload.unique_bytes >> 20, estimate.visits, estimate.revision)
            })
            .collect();
        assert_eq!(seen, [(32, 2, 7), (16, 1, 7), (8, 1, 7)]);
    }

    #[test]
    fn figures_are_means_over_the_visits_and_the_longest_is_the_longest_of_all() {
        let mut twice = [point(8, 100.0), point(8, 104.0)];
        twice[0].hit_fraction = Some(0.5);
        twice[0].steady = false;
        twice[1].durable_bytes_per_s = Some(26e6);
        let (estimates, repeatability) = pool(&twice, 0);
        let estimate = &estimates[0];
        let mean = (100e6f64 * 104e6).sqrt();
        assert!((estimate.throughput_bytes_per_s.mean / mean - 1.0).abs() < 1e-9);
        assert!((estimate.ops_per_s.mean * 16384.0 / mean - 1.0).abs() < 1e-9);
        assert_eq!(estimate.hit_fraction, Some(0.5));
        assert!((estimate.durable_bytes_per_s.unwrap() * 4.0 / mean - 1.0).abs() < 1e-9);
        assert!(!estimate.steady);
        assert!((estimate.response_time_s.max - 0.01).abs() < 1e-12);
        // Two visits 4 % apart: a standard deviation of 4 %/√2.
        assert!((repeatability.unwrap() - 0.0277).abs() < 1e-3);
    }

    #[test]
    fn durable_throughput_is_not_above_the_absorbed_one_where_visits_differ() {
        let synced = |megabytes_per_s: f64| Point {
            durable_bytes_per_s: Some(0.9e6 * megabytes_per_s),
            ..point(8, megabytes_per_s)
        };
        let estimate = pool(&[synced(1500.0), synced(7200.0)], 0).0.remove(0);
        let durable = estimate.durable_bytes_per_s.unwrap();
        assert!((durable / estimate.throughput_bytes_per_s.mean - 0.9).abs() < 1e-9, "{durable}");
    }

    #[test]
    fn the_order_of_visits_does_not_matter() {
        let points = [point(8, 100.0), point(8, 107.0), point(8, 98.0), point(16, 40.0)];
        let back: Vec<Point> = points.iter().rev().cloned().collect();
        let (forth, back) = (pool(&points, 0).0, pool(&back, 0).0);
        assert!(
            (forth[0].throughput_bytes_per_s.low / back[1].throughput_bytes_per_s.low - 1.0).abs()
                < 1e-12
        );
        assert!(
            (forth[1].throughput_bytes_per_s.high / back[0].throughput_bytes_per_s.high - 1.0)
                .abs()
                < 1e-12
        );
    }

    #[test]
    fn visits_that_jump_are_called_bistable_and_the_others_keep_their_intervals() {
        let mut points: Vec<Point> =
            (0..20).flat_map(|i| [point(8 + i, 100.0), point(8 + i, 103.0)]).collect();
        let (calm, repeatability) = pool(&points, 0);
        points.extend([point(120, 280.0), point(120, 5000.0)]);
        let (estimates, after) = pool(&points, 0);
        assert_eq!(repeatability, after);
        let jumping = estimates.last().unwrap();
        let doubt = &jumping.warnings[0];
        assert_eq!((doubt.code, doubt.figures.get("visits")), (Code::Bistable, Some(&2.0)));
        assert!((doubt.figures["factor"] - 5000.0 / 280.0).abs() < 1e-9, "{doubt:?}");
        assert!(doubt.text.starts_with("2 visits differ by a factor of 17.86"), "{}", doubt.text);
        assert!(jumping.throughput_bytes_per_s.low < 280e6);
        assert!(jumping.throughput_bytes_per_s.high > 5000e6);
        assert!(estimates[..20].iter().all(|estimate| estimate.warnings.is_empty()));
        assert_eq!(calm[0].throughput_bytes_per_s, estimates[0].throughput_bytes_per_s);
    }

    #[test]
    fn writers_that_repeat_badly_do_not_blur_the_readers() {
        let mut points = Vec::new();
        for i in 0..40 {
            points.extend([point(8 + i, 100.0), point(8 + i, 101.0)]);
            for value in [100.0, 120.0] {
                let mut writer = point(8 + i, value);
                writer.workload.read_frac = 0.5;
                points.push(writer);
            }
        }
        let (estimates, _) = pool(&points, 0);
        let half_width = |reads_only: bool| {
            let of = |estimate: &&Estimate| reads(&estimate.workload) == reads_only;
            estimates.iter().find(of).unwrap().throughput_bytes_per_s.relative_half_width()
        };
        assert!(half_width(true) < 0.025 && half_width(false) > 0.15);
    }

    #[test]
    fn canaries_are_left_out_and_nothing_comes_of_nothing() {
        let canary = Point { role: Role::Canary, ..point(8, 100.0) };
        assert_eq!(pool(&[canary], 0), (Vec::new(), None));
        assert_eq!(pool(&[], 0), (Vec::new(), None));
    }

    #[test]
    fn a_visit_in_which_nothing_was_completed_is_named_and_left_out_of_the_mean() {
        let mut dead = point(8, 0.0);
        dead.response_time_s = ResponseTime::default();
        let estimates = pool(&[dead.clone(), point(8, 100.0), point(9, 100.0)], 0).0;
        assert!((estimates[0].throughput_bytes_per_s.mean / 100e6 - 1.0).abs() < 1e-9);
        let doubt = &estimates[0].warnings[0];
        assert_eq!(doubt.severity, Severity::Serious);
        assert_eq!(doubt.text, "in 1 of 2 visits not one request was completed");
        assert_eq!(doubt.figures.get("dead_visits"), Some(&1.0));
        assert!(pool(&[dead], 0).0[0].throughput_bytes_per_s.mean < 1.0);
        for estimate in &estimates {
            let interval = &estimate.throughput_bytes_per_s;
            assert!(interval.low >= 0.0 && interval.high.is_finite());
        }
    }

    #[test]
    fn doubts_of_visits_are_named_once_at_their_worst() {
        let doubt = |severity| Warning::new(Code::NotSteady, "text", "").with_severity(severity);
        let mut visits = [point(8, 100.0), point(8, 101.0)];
        visits[0].warnings =
            vec![doubt(Severity::Note), Warning::new(Code::NotPrecise, "of one visit", "")];
        visits[1].warnings = vec![doubt(Severity::Serious), doubt(Severity::Warning)];
        let warnings = pool(&visits, 0).0.remove(0).warnings;
        assert_eq!(warnings, [doubt(Severity::Serious)]);
    }
}
