//! The figures of the data sheet, each with an interval from the variance between visits, pooled
//! over its lines.
//!
//! What one visit says of a percentile `q` of `n` requests is off by chance: by
//! `√(q / ((1 − q) n)) / −ln(1 − q)` of itself where response times fall off like an exponential law
//! (the asymptotic variance of a sample quantile). That is added to what visits differ by.

use ioscape_model::{Figure, Point, ResponseTime, Role, SheetFigures, SheetLine, SheetTimes};
use ioscape_stats::{LogMeasurement, Spread};

use crate::estimate;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Stands for nothing at all where a logarithm is taken.
const FIGURE_MIN: f64 = 1e-12;

/// The figures of these lines, as far as they were visited.
pub fn figures(lines: &[SheetLine], points: &[Point]) -> Vec<SheetFigures> {
    let is_of = |line: &SheetLine, point: &&Point| {
        point.workload == line.workload && point.role != Role::Canary && point.throughput() > 0.0
    };
    let visited: Vec<(&SheetLine, Vec<&Point>)> = lines
        .iter()
        .map(|line| (line, points.iter().filter(|point| is_of(line, point)).collect::<Vec<_>>()))
        .filter(|(_, visits)| !visits.is_empty())
        .collect();
    let pooled = |figure: &dyn Fn(&Point) -> f64, own_sd: &dyn Fn(&Point) -> f64| {
        let visit = |point: &&Point| LogMeasurement {
            ln_value: figure(point).max(FIGURE_MIN).ln(),
            within_sd: own_sd(point),
        };
        let groups: Vec<Vec<LogMeasurement>> =
            visited.iter().map(|(_, visits)| visits.iter().map(visit).collect()).collect();
        let spread = Spread::from_groups(&groups);
        let mean = |(index, group): (usize, &Vec<LogMeasurement>)| {
            let mean = spread.mean(index, group);
            let (value, half) = (mean.value.exp(), mean.half_width(CONFIDENCE).exp());
            Figure { value, low: value / half, high: value * half }
        };
        groups.iter().enumerate().map(mean).collect::<Vec<Figure>>()
    };
    let of_mean = |point: &Point| estimate::visit(point).within_sd;
    let throughput = pooled(&Point::throughput, &of_mean);
    let ops = pooled(&|point| point.ops_per_s, &of_mean);
    let time = |figure: fn(&ResponseTime) -> f64, own_sd: &dyn Fn(&Point) -> f64| {
        pooled(&move |point: &Point| figure(&point.response_time_s), own_sd)
    };
    let quantile = |share: f64| move |point: &Point| quantile_sd(share, requests(point));
    let mean = time(|times| times.mean, &of_mean);
    let p50 = time(|times| times.p50, &quantile(0.5));
    let p99 = time(|times| times.p99, &quantile(0.99));
    let p999 = time(|times| times.p999, &quantile(0.999));
    let line = |(index, (line, visits)): (usize, &(&SheetLine, Vec<&Point>))| SheetFigures {
        name: line.name.clone(),
        workload: line.workload.clone(),
        visits: visits.len() as u32,
        ops_per_s: ops[index],
        throughput_bytes_per_s: throughput[index],
        response_time_s: SheetTimes {
            mean: mean[index],
            p50: p50[index],
            p99: p99[index],
            p999: p999[index],
        },
        warnings: estimate::worst_of_each_code(visits),
    };
    visited.iter().enumerate().map(line).collect()
}

fn requests(point: &Point) -> f64 {
    let classes = &point.classes;
    let all = [&classes.read_seq, &classes.read_rand, &classes.write_seq, &classes.write_rand];
    all.iter().map(|class| class.ops as f64).sum::<f64>().max(1.0)
}

/// How far chance puts a percentile of so many requests, as a fraction of it; at most all of it.
fn quantile_sd(share: f64, requests: f64) -> f64 {
    let absolute = (share / ((1.0 - share) * requests)).sqrt();
    (absolute / -(1.0 - share).ln()).min(1.0)
}

#[cfg(test)]
mod tests {
    use ioscape_model::{ClassTotals, Classes, Interval, datasheet};

    use super::*;

    fn visit(line: &SheetLine, factor: f64) -> Point {
        let rate = 1e6 * factor;
        let classes = Classes {
            read_rand: ClassTotals { ops: 10_000, ..ClassTotals::default() },
            ..Classes::default()
        };
        let time = 1e-4 / factor;
        let response_time_s = ResponseTime {
            mean: time,
            p50: time,
            p99: 3.0 * time,
            p999: 5.0 * time,
            ..ResponseTime::default()
        };
        let point = Point::bare(line.workload.clone(), "sim", Interval::exact(rate));
        Point { role: Role::Named, classes, response_time_s, ..point }
    }

    #[test]
    fn figures_are_means_over_visits_and_repeats_narrow_them() {
        let lines = datasheet::lines(1 << 30);
        let sheet = |factors: &[f64]| {
            let points: Vec<Point> = lines[..3]
                .iter()
                .flat_map(|line| factors.iter().map(|factor| visit(line, *factor)))
                .collect();
            figures(&lines, &points)
        };
        let (once, often) = (sheet(&[1.0]), sheet(&[0.99, 1.0, 1.01, 1.0]));
        assert_eq!(once.len(), 3, "lines that were not visited are left out");
        let width = |figure: &Figure| (figure.high / figure.low).ln();
        for (one, many) in once.iter().zip(&often) {
            assert_eq!((one.visits, many.visits), (1, 4));
            let times = [one.response_time_s, many.response_time_s];
            assert!((times[1].p99.value / 3e-4 - 1.0).abs() < 0.01);
            assert!(width(&many.ops_per_s) < width(&one.ops_per_s));
            assert!(width(&times[1].p999) > width(&times[1].p50), "tails are known less well");
        }
    }

    #[test]
    fn a_percentile_of_few_requests_is_known_badly() {
        assert!(quantile_sd(0.999, 1e3) > 0.1 && quantile_sd(0.999, 1e6) < 0.01);
        assert!(quantile_sd(0.5, 1e4) < 0.02);
        assert!(quantile_sd(0.999, 1.0) <= 1.0);
    }
}
