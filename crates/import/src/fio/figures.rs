//! What a job measured: the figures of the processes that ran together, as one visit's.

use ioscape_model::{Interval, ResponseTime, Words};
use ioscape_stats::t_two_sided;
use serde_json::Value;

/// fio counts in KiB here.
const KIB: f64 = 1024.0;
const NANOSECONDS: f64 = 1e-9;
const MILLISECONDS: f64 = 1e-3;
/// Confidence of the interval within a visit.
const CONFIDENCE: f64 = 0.95;

/// Requests of one direction by one process, or by several that fio added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Direction {
    pub(super) ops: u64,
    pub(super) bytes: u64,
    runtime_s: f64,
    /// Mean response time; `None` where it was not timed.
    mean_s: Option<f64>,
    max_s: f64,
    /// Share of the requests and the time they took at most, rising.
    quantiles: Vec<(f64, f64)>,
    bandwidth: Samples,
}

/// fio's samples of a direction's throughput, bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Samples {
    mean: f64,
    deviation: f64,
    count: u32,
}

impl Direction {
    /// The `read`, `write` or `mixed` part of a job.
    pub(super) fn parse(part: &Value) -> Result<Self, String> {
        let bytes = whole(part, "io_bytes")?;
        let ops = whole(part, "total_ios")?;
        if ops == 0 {
            return Ok(Self::default());
        }
        let runtime_s = number(part, "runtime")? * MILLISECONDS;
        let (total, completion) = (&part["lat_ns"], &part["clat_ns"]);
        let timed = |times: &Value| times["N"].as_u64().is_some_and(|count| count > 0);
        let (mean_s, max_s) = match (timed(total), timed(completion)) {
            (true, _) => (Some(number(total, "mean")? * NANOSECONDS), number(total, "max")?),
            (false, true) => {
                (Some(number(completion, "mean")? * NANOSECONDS), number(completion, "max")?)
            }
            _ => (None, 0.0),
        };
        let max_s = max_s * NANOSECONDS;
        let optional = |name: &str| part[name].as_f64().filter(|x| x.is_finite() && *x >= 0.0);
        Ok(Self {
            ops,
            bytes,
            runtime_s,
            mean_s,
            max_s,
            quantiles: quantiles(completion, total),
            bandwidth: Samples {
                mean: optional("bw_mean").unwrap_or(0.0) * KIB,
                deviation: optional("bw_dev").unwrap_or(0.0) * KIB,
                count: part["bw_samples"].as_u64().map_or(0, |n| n.min(1 << 20) as u32),
            },
        })
    }

    /// Mean time in seconds and the other figures of a class.
    pub(super) fn class(&self) -> ioscape_model::ClassTotals {
        let one = std::slice::from_ref(self);
        ioscape_model::ClassTotals {
            ops: self.ops,
            bytes: self.bytes,
            mean_s: self.mean_s.unwrap_or(0.0),
            p50_s: quantile(one, 0.5).unwrap_or(0.0),
            p99_s: quantile(one, 0.99).unwrap_or(0.0),
        }
    }

    /// Sums one direction over several processes.
    pub(super) fn sum(parts: &[Self]) -> Self {
        Self {
            ops: parts.iter().map(|part| part.ops).fold(0, u64::saturating_add),
            bytes: parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add),
            runtime_s: parts.iter().map(|part| part.runtime_s).fold(0.0, f64::max),
            mean_s: mean_s(parts),
            max_s: parts.iter().map(|part| part.max_s).fold(0.0, f64::max),
            quantiles: match parts {
                [one] => one.quantiles.clone(),
                _ => mixed(parts),
            },
            bandwidth: Samples::default(),
        }
    }
}

fn number(part: &Value, name: &str) -> Result<f64, String> {
    let value = part[name].as_f64().filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| format!("its figures have no {name}"))
}

fn whole(part: &Value, name: &str) -> Result<u64, String> {
    // Sums of all jobs must not overflow, and no disk has moved that much.
    let value = part[name].as_u64().filter(|value| *value <= 1 << 60);
    value.ok_or_else(|| format!("its figures have no {name}"))
}

/// The percentiles in the document, with the shortest and the longest at the ends. Those that do
/// not rise are no percentiles.
fn quantiles(completion: &Value, total: &Value) -> Vec<(f64, f64)> {
    let listed = |times: &Value| times["percentile"].as_object().cloned();
    let (listed, times) = match (listed(completion), listed(total)) {
        (Some(listed), _) => (listed, completion),
        (None, Some(listed)) => (listed, total),
        (None, None) => return vec![],
    };
    let time = |value: &Value| value.as_f64().filter(|ns| ns.is_finite() && *ns >= 0.0);
    let ends = [(0.0, &times["min"]), (1.0, &times["max"])];
    let inner = listed.iter().filter_map(|(percent, value)| {
        let share = percent.parse::<f64>().ok()? / 100.0;
        (share > 0.0 && share < 1.0).then_some((share, value))
    });
    let mut all: Vec<(f64, f64)> = inner
        .chain(ends)
        .filter_map(|(share, value)| Some((share, time(value)? * NANOSECONDS)))
        .collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    // Percentiles are the upper ends of bins: the last one may lie beyond the longest.
    for index in 1..all.len() {
        all[index].1 = all[index].1.max(all[index - 1].1);
    }
    if all.len() > 2 { all } else { vec![] }
}

/// Mean over all requests.
fn mean_s(parts: &[Direction]) -> Option<f64> {
    let timed = parts.iter().filter_map(|part| Some((part.ops as f64, part.mean_s?)));
    let (ops, sum) = timed.fold((0.0, 0.0), |(n, sum), (ops, mean)| (n + ops, sum + ops * mean));
    (ops > 0.0).then(|| sum / ops)
}

/// The time that this share of all requests took at most. Exact for one direction of one job
/// where fio lists it; for several the distributions are drawn between the percentiles they list
/// and added up.
fn quantile(parts: &[Direction], share: f64) -> Option<f64> {
    let parts: Vec<&Direction> = parts.iter().filter(|part| part.ops > 0).collect();
    if parts.is_empty() || parts.iter().any(|part| part.quantiles.is_empty()) {
        return None;
    }
    if let [one] = parts[..] {
        return Some(between(&one.quantiles, share));
    }
    let ops: f64 = parts.iter().map(|part| part.ops as f64).sum();
    let below = |time: f64| -> f64 {
        parts.iter().map(|part| part.ops as f64 / ops * share_below(&part.quantiles, time)).sum()
    };
    let (mut low, mut high) = (0.0, 0.0_f64);
    for part in &parts {
        high = high.max(part.quantiles.last().map_or(0.0, |last| last.1));
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if below(middle) < share { low = middle } else { high = middle }
    }
    Some(high)
}

/// The time at a share, on straight lines between the points.
fn between(points: &[(f64, f64)], share: f64) -> f64 {
    let above = points.iter().position(|point| point.0 >= share).unwrap_or(points.len() - 1);
    let (to, from) = (points[above], points[above.saturating_sub(1)]);
    if to.0 <= from.0 {
        return to.1;
    }
    from.1 + (to.1 - from.1) * ((share - from.0) / (to.0 - from.0)).clamp(0.0, 1.0)
}

/// The share at a time: the other way round.
fn share_below(points: &[(f64, f64)], time: f64) -> f64 {
    let above = points.iter().position(|point| point.1 > time);
    let Some(above) = above else { return 1.0 };
    let Some(from) = above.checked_sub(1).map(|index| points[index]) else { return 0.0 };
    let to = points[above];
    from.0 + (to.0 - from.0) * (time - from.1) / (to.1 - from.1)
}

/// A distribution of several, at the shares we ask for.
fn mixed(parts: &[Direction]) -> Vec<(f64, f64)> {
    const SHARES: [f64; 7] = [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0];
    let all = SHARES.map(|share| Some((share, quantile(parts, share)?)));
    all.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// All directions of all processes together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) ops: u64,
    pub(crate) bytes: u64,
    /// The common wall time of the processes.
    pub(crate) runtime_s: f64,
    pub(crate) throughput_bytes_per_s: Interval,
    pub(crate) ops_per_s: f64,
    pub(crate) response_time_s: ResponseTime,
    /// Samples that the interval rests on.
    pub(crate) windows: u32,
    /// Standard deviation of the samples over their mean, where there are some.
    pub(crate) variation: Option<f64>,
    /// Requests under way, by Little's law; `None` where nothing was timed.
    pub(crate) in_flight: Option<f64>,
    /// What could not be known.
    pub(crate) notes: Vec<Words>,
}

impl Figures {
    /// Of all parts, directions and processes alike.
    pub(super) fn from_parts(parts: &[Direction]) -> Result<Self, String> {
        let all = Direction::sum(parts);
        if all.ops == 0 || all.bytes == 0 {
            return Err("not one request was completed".to_owned());
        }
        if all.runtime_s <= 0.0 {
            return Err("its runtime is below a millisecond".to_owned());
        }
        let mut notes = Vec::new();
        let ops_per_s = all.ops as f64 / all.runtime_s;
        let (relative, windows, variation) = spread(parts);
        if windows < 2 {
            notes.push("too short for an interval within the visit".into());
        }
        let rate = all.bytes as f64 / all.runtime_s;
        let at = |share| quantile(parts, share).unwrap_or(0.0);
        let response_time_s = ResponseTime {
            mean: all.mean_s.unwrap_or(0.0),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: all.max_s,
        };
        if all.mean_s.is_none() {
            notes.push("response times were not recorded: those that are zero are unknown".into());
        } else if response_time_s.p50 == 0.0 {
            notes.push("percentiles were not recorded: those that are zero are unknown".into());
        }
        let low = rate * (1.0 - relative).max(0.0);
        Ok(Self {
            ops: all.ops,
            bytes: all.bytes,
            runtime_s: all.runtime_s,
            throughput_bytes_per_s: Interval { mean: rate, low, high: rate * (1.0 + relative) },
            ops_per_s,
            response_time_s,
            windows,
            variation,
            in_flight: all.mean_s.map(|mean| mean * ops_per_s),
            notes,
        })
    }
}

/// Half of the relative 95 % interval, samples, and their coefficient of variation. The samples
/// of all parts are taken as independent.
fn spread(parts: &[Direction]) -> (f64, u32, Option<f64>) {
    let used = || parts.iter().filter(|part| part.ops > 0).map(|part| part.bandwidth);
    let windows = used().map(|samples| samples.count).min().unwrap_or(0);
    let mean: f64 = used().map(|samples| samples.mean).sum();
    if windows < 2 || mean <= 0.0 {
        return (0.0, windows.min(1), None);
    }
    let variance: f64 = used().map(|samples| samples.deviation.powi(2)).sum();
    let variation = variance.sqrt() / mean;
    let t = t_two_sided(CONFIDENCE, f64::from(windows) - 1.0);
    ((t * variation / f64::from(windows).sqrt()).min(1.0), windows, Some(variation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(ops: u64, scale: f64) -> Direction {
        let listed = [(0.0, 1.0), (0.5, 2.0), (0.9, 5.0), (0.99, 9.0), (1.0, 20.0)];
        Direction {
            ops,
            bytes: ops * 4096,
            runtime_s: 2.0,
            mean_s: Some(3.0 * scale),
            max_s: 20.0 * scale,
            quantiles: listed.map(|(share, time)| (share, time * scale)).to_vec(),
            bandwidth: Samples { mean: 100.0, deviation: 10.0, count: 5 },
        }
    }

    #[test]
    fn a_percentile_that_is_listed_is_taken_as_it_is() {
        let figures = Figures::from_parts(&[part(100, 1.0)]).unwrap();
        let times = figures.response_time_s;
        assert_eq!((times.mean, times.p50, times.p90, times.p99), (3.0, 2.0, 5.0, 9.0));
        assert!(times.p999 > 9.0 && times.p999 < 20.0);
        assert_eq!(figures.in_flight, Some(150.0));
        assert!((figures.ops_per_s - 50.0).abs() < 1e-12);
    }

    #[test]
    fn distributions_of_several_are_added_up_by_their_requests() {
        let alike = Figures::from_parts(&[part(100, 1.0), part(300, 1.0)]).unwrap().response_time_s;
        assert!((alike.p50 - 2.0).abs() < 1e-9 && (alike.p99 - 9.0).abs() < 1e-9, "{alike:?}");
        // One request in a hundred takes a hundred times as long: the 99th percentile is where
        // the quick ones end.
        let apart =
            Figures::from_parts(&[part(9900, 1.0), part(100, 100.0)]).unwrap().response_time_s;
        assert!((apart.p50 - 2.0).abs() < 0.2, "{apart:?}");
        assert!((19.0..=100.0).contains(&apart.p99), "{apart:?}");
        assert!((apart.mean - 5.97).abs() < 1e-9 && (apart.max - 2000.0).abs() < 1e-9);
    }

    #[test]
    fn the_interval_comes_from_the_samples() {
        // t(0.975, 4) = 2.776; 10 % over the square root of five.
        let figures = Figures::from_parts(&[part(100, 1.0)]).unwrap();
        let relative = figures.throughput_bytes_per_s.relative_half_width();
        assert!((relative - 2.776 * 0.1 / 5f64.sqrt()).abs() < 1e-3, "{relative}");
        let mut short = part(100, 1.0);
        short.bandwidth.count = 1;
        let figures = Figures::from_parts(&[short]).unwrap();
        assert!(figures.throughput_bytes_per_s.relative_half_width() < 1e-12);
        assert!(figures.notes[0].to_string().contains("too short"));
    }
}
