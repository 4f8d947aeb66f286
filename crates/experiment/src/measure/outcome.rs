//! From the windows of a visit to its point: pure arithmetic, and the doubts that go with it.

use ioscape_engine::{Class, ClassCount, Finished, Window};
use ioscape_model::units::three_digits;
use ioscape_model::{
    ClassTotals, Classes, Code, Interval, Point, ResponseTime, Rules, Severity, Spent, Warning,
    Words, Workload,
};

use super::settle::{Settled, growth_of_written, longest_s, written_bytes};
use super::{Check, DRIFT_OF_PRECISION, Subject, Taken};
use super::{doubts, failures};

/// Stolen processor time above which the number is in doubt.
const STOLEN_MAX: f64 = 0.02;
/// Requests that should stand behind a 99.9th percentile.
const P999_OPS_MIN: u64 = 1000;
/// Dirty data growing by more than this share of what was written: memory, not storage, took it.
const BACKLOG_GROWTH_MAX: f64 = 0.1;
/// An open loop that makes less than this share of its requests is behind its schedule.
const RATE_KEPT_MIN: f64 = 0.99;
/// An interval this many times as wide as asked for puts the number in doubt.
const FAR_FROM_PRECISE: f64 = 2.0;
const NS_TO_S: f64 = 1e-9;

/// All that is known at the end of a visit.
pub(super) struct FinishedVisit<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) rules: &'a Rules,
    pub(super) engine: &'static str,
    pub(super) started_s: f64,
    pub(super) elapsed_s: f64,
    pub(super) spent_s: Spent,
    pub(super) earlier_warnings: Vec<Warning>,
    pub(super) settled: Settled,
    pub(super) taken: &'a Taken,
    pub(super) finished: &'a Finished,
}

impl FinishedVisit<'_> {
    /// Says what was seen. Counts, means and shares are those of the windows kept; quantiles those
    /// of all requests since the windows began to count.
    pub(super) fn into_point(mut self) -> Point {
        let check = Check::new(&self.taken.series);
        let kept = &self.taken.windows[check.cut..];
        let totals = Totals::from_windows(kept);
        let unsteady = self.steadiness_doubts(&check);
        let throughput = interval(&check);
        let mut warnings = std::mem::take(&mut self.earlier_warnings);
        let steady = unsteady.is_empty();
        warnings.extend(unsteady);
        warnings.extend(self.precision_doubt(&throughput));
        warnings.extend(stolen_doubt(kept));
        warnings.extend(self.behind_schedule(&totals));
        let (hit_fraction, read_amplification) = (hit_fraction(kept), read_amplification(kept));
        let shown = doubts::Shown {
            lengths_s: [
                (self.rules.window_s, self.settled.longest_s),
                (self.taken.asked_s, longest_s(&self.taken.windows)),
            ],
            hit_fraction,
            read_amplification,
        };
        warnings.extend(shown.doubts(self.subject.work, &self.taken.series[check.cut..]));
        warnings.extend(failures::doubts(&self.finished.failed, &self.taken.windows));
        warnings.extend(self.finished.warnings.iter().cloned());
        let responses = self.all_responses();
        warnings.extend(few_requests(responses.len()));
        let last = self.taken.windows.last();
        Point {
            workload: self.subject.work.clone(),
            round: self.subject.round,
            role: self.subject.role,
            engine: self.engine.to_owned(),
            seed: self.subject.seed,
            started_s: self.started_s,
            throughput_bytes_per_s: throughput,
            durable_bytes_per_s: self
                .finished
                .sync_s
                .map(|sync_s| throughput.mean * self.durable_fraction(kept, sync_s)),
            ops_per_s: share(totals.all.ops as f64, totals.length_s).unwrap_or(0.0),
            response_time_s: quantiles(&responses, mean_response_s(&totals.all)),
            latency_s: self
                .finished
                .latency_ns
                .as_ref()
                .map(|latencies| quantiles(latencies, latencies.mean() * NS_TO_S)),
            classes: self.classes(&totals),
            failed: self.finished.failed.clone(),
            verified_bytes: self.finished.verified_bytes,
            hit_fraction,
            resident_bytes: last.and_then(|window| window.resident_bytes),
            read_amplification,
            write_absorbed_fraction: write_absorbed_fraction(kept),
            dirty_bytes: last.and_then(|window| window.dirty_bytes),
            writeback_bytes: last.and_then(|window| window.writeback_bytes),
            cpu_s_per_op: cpu_s_per_op(kept),
            io_time_fraction: io_time_fraction(self.subject.work, &totals),
            steady,
            windows: kept.len() as u32,
            windows_cut: check.cut as u32,
            elapsed_s: self.elapsed_s,
            spent_s: self.spent_s,
            ranks: self.finished.ranks.clone(),
            warnings,
        }
    }

    /// What of the throughput is left once the final fdatasync is counted in. It flushes what was
    /// written since the start, so the windows kept bear their part of its time: the part of those
    /// bytes that was written in them. A beginning that ran at another speed counts in neither
    /// figure, and durable throughput cannot be above the absorbed one.
    fn durable_fraction(&self, kept: &[Window], sync_s: f64) -> f64 {
        let written = |windows: &[Window]| windows.iter().map(written_bytes).sum::<u64>() as f64;
        let since_start = written(&self.taken.windows) + self.settled.written_bytes as f64;
        let borne_s = sync_s * share(written(kept), since_start).unwrap_or(0.0);
        let length_s: f64 = kept.iter().map(|window| window.length_s).sum();
        share(length_s, length_s + borne_s).unwrap_or(1.0)
    }

    fn drift_allowed(&self) -> f64 {
        DRIFT_OF_PRECISION * self.rules.precision
    }

    /// Why this was no steady state; nothing where it was one.
    fn steadiness_doubts(&self, check: &Check) -> Vec<Warning> {
        let mut doubts = Vec::new();
        let doubt = |text: Words, remedy: &str| Warning::new(Code::NotSteady, text, remedy);
        let measuring_s = self.spent_s.measuring;
        if check.mean.value <= 0.0 {
            let text = Words::new("no request was completed in {measuring_s} of measuring")
                .figure("measuring_s", measuring_s);
            doubts.push(
                doubt(text, "lower size_mean or process_num, or measure longer")
                    .with_severity(Severity::Serious),
            );
        } else if check.drift.is_certain(self.drift_allowed()) {
            let direction = if check.drift.relative > 0.0 { "higher" } else { "lower" };
            let text = Words::new(
                "after {measuring_s} of measuring, throughput was still {percent} % {direction} in \
                 the second half than in the first",
            )
            .figure("measuring_s", measuring_s)
            .figure("drift_share", check.drift.relative)
            .name("percent", three_digits(check.drift.relative.abs() * 100.0))
            .name("direction", direction);
            doubts.push(doubt(text, "measure longer, or find out what is changing"));
        }
        let growth = growth_of_written(&self.taken.windows).unwrap_or(0.0);
        if !self.settled.calm && growth > BACKLOG_GROWTH_MAX {
            let text = Words::new(
                "{percent} % of what was written was added to the dirty data: memory absorbed it, \
                 and storage cannot keep up this throughput",
            )
            .figure("growth_share", growth)
            .name("percent", three_digits(growth * 100.0));
            doubts.push(doubt(text, "look at the durable throughput, or measure longer"));
        }
        doubts
    }

    fn precision_doubt(&self, throughput: &Interval) -> Option<Warning> {
        let half_width = throughput.relative_half_width();
        (throughput.mean > 0.0 && half_width > self.rules.precision).then(|| {
            let text = Words::new(
                "±{percent} % after {measuring_s} of measuring, not the ±{asked_percent} % asked for",
            )
            .figure("half_width_share", half_width)
            .figure("measuring_s", self.spent_s.measuring)
            .figure("precision_share", self.rules.precision)
            .name("percent", three_digits(half_width * 100.0))
            .name("asked_percent", three_digits(self.rules.precision * 100.0));
            let far = half_width > FAR_FROM_PRECISE * self.rules.precision;
            Warning::new(Code::NotPrecise, text, "measure longer, or on a quieter machine")
                .with_severity(if far { Severity::Warning } else { Severity::Note })
        })
    }

    /// An open loop whose requests are not all made: latencies grow for as long as one waits.
    fn behind_schedule(&self, totals: &Totals) -> Option<Warning> {
        let asked = self.subject.work.rate;
        let made = share(totals.all.ops as f64, totals.length_s).unwrap_or(0.0);
        (asked > 0.0 && made < RATE_KEPT_MIN * asked).then(|| {
            let text = Words::new(
                "{made} requests per second were made of the {asked} that the schedule asked for: \
                 latencies grow with the time measured",
            )
            .figure("made_per_s", made)
            .figure("asked_per_s", asked)
            .name("made", three_digits(made))
            .name("asked", three_digits(asked));
            let remedy = "lower rate, or raise depth or process_num";
            Warning::new(Code::BehindSchedule, text, remedy)
        })
    }

    fn classes(&self, totals: &Totals) -> Classes {
        let of = |class: Class| {
            let count = &totals.classes[class as usize];
            let responses = &self.finished.response_ns[class as usize];
            ClassTotals {
                ops: count.ops,
                bytes: count.bytes,
                mean_s: mean_response_s(count),
                p50_s: responses.value_at_quantile(0.5) as f64 * NS_TO_S,
                p99_s: responses.value_at_quantile(0.99) as f64 * NS_TO_S,
            }
        };
        Classes {
            read_seq: of(Class::ReadSeq),
            read_rand: of(Class::ReadRand),
            write_seq: of(Class::WriteSeq),
            write_rand: of(Class::WriteRand),
        }
    }

    fn all_responses(&self) -> hdrhistogram::Histogram<u64> {
        let [first, rest @ ..] = &self.finished.response_ns;
        let mut all = first.clone();
        all.auto(true);
        for responses in rest {
            all.add(responses).expect("a histogram that grows holds what another held");
        }
        all
    }
}

/// The mean comes from exact sums where there are any: a histogram would round it.
fn quantiles(times_ns: &hdrhistogram::Histogram<u64>, mean: f64) -> ResponseTime {
    let at = |quantile: f64| times_ns.value_at_quantile(quantile) as f64 * NS_TO_S;
    ResponseTime {
        mean,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: times_ns.max() as f64 * NS_TO_S,
    }
}

fn interval(check: &Check) -> Interval {
    let mean = check.mean.value;
    // One window alone says nothing about its error: as wide as the mean itself.
    let half = Some(check.half_width() * mean).filter(|half| half.is_finite()).unwrap_or(mean);
    Interval { mean, low: (mean - half).max(0.0), high: mean + half }
}

/// Requests of the windows kept.
struct Totals {
    length_s: f64,
    classes: [ClassCount; 4],
    all: ClassCount,
}

impl Totals {
    fn from_windows(windows: &[Window]) -> Self {
        let mut classes = [ClassCount::default(); 4];
        for window in windows {
            for (sum, count) in classes.iter_mut().zip(&window.classes) {
                *sum = plus(sum, count);
            }
        }
        Self {
            length_s: windows.iter().map(|window| window.length_s).sum(),
            classes,
            all: classes.iter().fold(ClassCount::default(), |sum, count| plus(&sum, count)),
        }
    }
}

fn plus(sum: &ClassCount, count: &ClassCount) -> ClassCount {
    ClassCount {
        ops: sum.ops + count.ops,
        bytes: sum.bytes + count.bytes,
        time_s: sum.time_s + count.time_s,
    }
}

fn read_bytes(window: &Window) -> u64 {
    window.bytes() - written_bytes(window)
}

/// From the exact sums: a histogram would round it.
fn mean_response_s(count: &ClassCount) -> f64 {
    share(count.time_s, count.ops as f64).unwrap_or(0.0)
}

/// `part` of `whole`; none of nothing.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Sums over the windows in which `part` is known, `part` over `whole`.
fn known_share(
    windows: &[Window],
    part: impl Fn(&Window) -> Option<f64>,
    whole: impl Fn(&Window) -> f64,
) -> Option<f64> {
    let (mut parts, mut wholes) = (0.0, 0.0);
    for window in windows {
        if let Some(part) = part(window) {
            parts += part;
            wholes += whole(window);
        }
    }
    share(parts, wholes)
}

/// Weighted by the bytes asked for.
fn hit_fraction(windows: &[Window]) -> Option<f64> {
    let bytes = |window: &Window| window.bytes() as f64;
    known_share(windows, |window| Some(window.hit_fraction? * bytes(window)), bytes)
}

fn read_amplification(windows: &[Window]) -> Option<f64> {
    let fetched = |window: &Window| Some(window.device_read_bytes? as f64);
    known_share(windows, fetched, |window| read_bytes(window) as f64)
}

fn write_absorbed_fraction(windows: &[Window]) -> Option<f64> {
    let dirtied = |window: &Window| Some(window.dirtied_bytes? as f64);
    let share = known_share(windows, dirtied, |window| written_bytes(window) as f64)?;
    Some((1.0 - share).clamp(0.0, 1.0))
}

fn cpu_s_per_op(windows: &[Window]) -> Option<f64> {
    known_share(windows, |window| window.cpu_s, |window| window.ops() as f64)
}

/// The time of all requests over the time in which they could have been in flight.
fn io_time_fraction(work: &Workload, totals: &Totals) -> Option<f64> {
    let possible_s = work.in_flight() * totals.length_s;
    let is_known = work.rate <= 0.0 && totals.all.ops > 0;
    share(totals.all.time_s, possible_s).filter(|_| is_known).map(|part| part.min(1.0))
}

fn stolen_doubt(windows: &[Window]) -> Option<Warning> {
    let length_s = |window: &Window| window.length_s;
    let stolen =
        known_share(windows, |window| Some(window.stolen_fraction? * length_s(window)), length_s)?;
    (stolen > STOLEN_MAX).then(|| {
        let text = Words::new("the hypervisor gave {percent} % of the processors' time to others")
            .figure("stolen_share", stolen)
            .name("percent", three_digits(stolen * 100.0));
        Warning::new(Code::StolenTime, text, "measure again when the host is quieter")
    })
}

fn few_requests(ops: u64) -> Option<Warning> {
    (ops < P999_OPS_MIN).then(|| {
        let text = Words::new("only {requests} requests stand behind the 99.9th percentile")
            .figure("requests", ops as f64);
        Warning::new(Code::FewRequests, text, "measure longer for the tail")
            .with_severity(Severity::Note)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_time_in_requests_is_of_all_that_could_be_in_flight() {
        let totals = |ops, time_s| {
            let all = ClassCount { ops, bytes: 0, time_s };
            Totals { length_s: 2.0, classes: [ClassCount::default(); 4], all }
        };
        let work = Workload { process_num: 3, depth: 5, ..Workload::default() };
        let of = |work: &Workload, ops, time_s| io_time_fraction(work, &totals(ops, time_s));
        assert!((of(&work, 60, 6.0).unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(of(&work, 60, 31.0), Some(1.0));
        // Nothing was completed: all of it may have been I/O.
        assert_eq!(of(&work, 0, 0.0), None);
        assert_eq!(of(&Workload { rate: 100.0, ..work }, 60, 6.0), None);
    }
}
