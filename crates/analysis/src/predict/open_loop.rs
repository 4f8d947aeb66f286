//! Latency where requests come at a rate of their own, from what closed loops were predicted to do.
//!
//! A closed loop with `n` requests in flight says how long a request takes when `n` are served at
//! once, and how many are done per second. An open loop of a lower rate keeps as many in service as
//! the closed loop that does this rate (Little's law); what arrives while all are busy waits
//! besides: on average by Sakasegawa's formula for several servers (1977), which is exact for
//! Poisson arrivals at one exponential server (`docs/method.md`, section 9). Where a map holds open
//! loops, latencies are corrected by what those differ (`rates.rs`).

use ioscape_model::{
    Arrivals, Code, Figure, PredictedTime, Prediction, Severity, Warning, Words, Workload,
};
use ioscape_stats::normal_quantile;

use super::Predictor;
use super::rates::Rates;

/// A 99th percentile over the mean of exponential times is ln 100; times that vary less or more
/// have the square of the ratio's share of it as squared coefficient of variation.
const LN_100: f64 = 4.605_170_185_988_092;
/// Quantiles that a distribution is held as.
const QUANTILES: usize = 1000;
/// Steps of the search for a rate, each halving what is not known of its logarithm.
const HALVINGS: usize = 30;
/// No rate below this part of the highest is looked at.
const LEAST_SHARE: f64 = 1e-3;

/// Requests that come at a rate of their own: how many can, and how long they take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Open {
    /// Requests per second that a closed loop of this workload does: no higher rate can be kept.
    pub(super) most_per_s: f64,
    /// Latency from when a request was due; at the highest rate where more were asked for.
    pub(super) latency_s: PredictedTime,
}

/// Closed loops of a workload, from one request in flight up to as many as it has.
struct ClosedLoops<'a> {
    /// Requests in flight, and how long each takes.
    steps: Vec<(f64, PredictedTime)>,
    /// Corrections learnt from the map's open loops, if it has enough.
    rates: Option<&'a Rates>,
}

impl ClosedLoops<'_> {
    fn done_per_s((in_flight, time): &(f64, PredictedTime)) -> f64 {
        in_flight / time.mean.value
    }

    fn most_per_s(&self) -> f64 {
        self.steps.iter().map(Self::done_per_s).fold(0.0, f64::max)
    }

    /// Latency of requests that come at this rate.
    fn at(&self, rate: f64, arrivals: Arrivals) -> Open {
        let steps = &self.steps;
        let most_per_s = self.most_per_s();
        let rate = rate.min(most_per_s);
        let (servers, last) = steps[steps.len() - 1];
        let enough = steps.iter().find(|step| Self::done_per_s(step) >= rate);
        let service = enough.map_or(last, |(_, time)| *time);
        let scale = |figure: Figure, value: f64| {
            let Figure { value: center, low, high } = figure;
            Figure { value, low: value * low / center, high: value * high / center }
        };
        let queue = Queue::new(rate / most_per_s, servers, &service, arrivals);
        let [mean, p50, p99, p999] = queue.latency(service.mean.value);
        let queued = PredictedTime {
            mean: scale(service.mean, mean),
            p50: service.p50.map(|figure| scale(figure, p50)),
            p99: service.p99.map(|figure| scale(figure, p99)),
            p999: service.p999.map(|figure| scale(figure, p999)),
        };
        let as_measured = |rates: &Rates| rates.correct(&queued, rate / most_per_s);
        Open { most_per_s, latency_s: self.rates.map_or(queued, as_measured) }
    }
}

impl Predictor {
    /// Latency at the workload's rate.
    pub(super) fn open_loop(&self, work: &Workload) -> Open {
        self.closed_loops(work).at(work.rate, work.arrivals)
    }

    /// Latency at this share of the highest rate.
    pub(super) fn latency_at_share(&self, work: &Workload, share: f64) -> PredictedTime {
        let loops = self.closed_loops(work);
        loops.at(share * loops.most_per_s(), work.arrivals).latency_s
    }

    fn closed_loops(&self, work: &Workload) -> ClosedLoops<'_> {
        let step = |closed: &Workload| {
            let throughput = self.throughput(closed, self.outside(closed).0);
            (closed.in_flight(), self.response_time(closed, throughput))
        };
        let steps = closed_loops(work).iter().map(step).collect();
        ClosedLoops { steps, rates: self.rates.as_ref() }
    }

    /// The workload at the highest rate at which 99 of 100 requests are done within `p99_max_s` of
    /// when they were due; as a closed loop, with a warning, where no rate keeps that.
    pub fn predict_within(&self, name: &str, work: &Workload, p99_max_s: f64) -> Prediction {
        if let Some(other) = self.other_layer(work) {
            return other.predict_within(name, work, p99_max_s);
        }
        let Some(rate) = self.highest_rate(work, p99_max_s) else {
            let mut closed = self.predict(name, &work.closed_loop());
            closed.warnings.push(never_within(p99_max_s));
            return closed;
        };
        let open = self.predict(name, &Workload { rate: rate.value, ..work.clone() });
        Prediction { highest_rate_per_s: Some(rate), ..open }
    }

    /// The highest rate at which 99 of 100 requests are done within `p99_max_s` of when they were
    /// due, requests per second; `None` where not even a thousandth of the highest keeps it, or
    /// where the record knows no percentiles.
    fn highest_rate(&self, work: &Workload, p99_max_s: f64) -> Option<Figure> {
        // Beyond what is done for sure latency may grow without end: no such rate is the answer.
        let closed = work.closed_loop();
        let sure = self.throughput(&closed, self.outside(&closed).0).low;
        let most = sure / work.size_mean as f64;
        let loops = self.closed_loops(work);
        let find = |end: &dyn Fn(Figure) -> f64| {
            let keeps = |rate: f64| {
                let p99 = loops.at(rate, work.arrivals).latency_s.p99;
                p99.is_some_and(|p99| end(p99) <= p99_max_s)
            };
            let (mut low, mut high) = (most * LEAST_SHARE, most);
            if !keeps(low) {
                return None;
            }
            for _ in 0..HALVINGS {
                let middle = (low * high).sqrt();
                if keeps(middle) { low = middle } else { high = middle }
            }
            Some(low)
        };
        let value = find(&|figure| figure.value)?;
        let low = find(&|figure| figure.high).unwrap_or(most * LEAST_SHARE);
        Some(Figure { value, low, high: find(&|figure| figure.low).unwrap_or(value) })
    }
}

fn never_within(p99_max_s: f64) -> Warning {
    let sentence =
        "no rate keeps the 99th percentile within {p99_max_s}: it is longer at low rates, too";
    let text = Words::new(sentence).figure("p99_max_s", p99_max_s);
    let remedy = "ask for a longer --p99-max; the figures shown are those of a closed loop";
    Warning::new(Code::OutOfRange, text, remedy).with_severity(Severity::Warning)
}

/// Closed loops with one request in flight and up, doubled, the workload's own last.
fn closed_loops(work: &Workload) -> Vec<Workload> {
    let alone = work.closed_loop();
    let mut all = Vec::new();
    let mut processes = 1;
    while processes < work.process_num {
        all.push(Workload { process_num: processes, depth: 1, ..alone.clone() });
        processes *= 2;
    }
    let mut depth = 1;
    while depth < work.depth {
        all.push(Workload { depth, ..alone.clone() });
        depth *= 2;
    }
    all.push(alone);
    all
}

/// Requests that are served by several servers, and wait where all are busy.
struct Queue {
    /// Quantiles of the time in service, seconds.
    service_s: Vec<f64>,
    /// Share of requests that wait, and for how long on average, seconds.
    waiting: f64,
    wait_s: f64,
}

impl Queue {
    fn new(busy: f64, servers: f64, service: &PredictedTime, arrivals: Arrivals) -> Self {
        let mean = service.mean.value;
        let service_s = quantiles(service);
        // A workload that is asked for more than it does waits ever longer: said elsewhere.
        let busy = busy.min(0.999);
        let p99_over_mean = service.p99.map_or(LN_100, |p99| p99.value / mean);
        let service_variation = (p99_over_mean / LN_100).powi(2);
        let arrival_variation = match arrivals {
            Arrivals::Poisson => 1.0,
            Arrivals::Fixed => 0.0,
        };
        let variation = f64::midpoint(arrival_variation, service_variation);
        let waiting = busy.powf((2.0 * (servers + 1.0)).sqrt() - 1.0);
        let mean_wait_s = mean * waiting / (servers * (1.0 - busy)) * variation;
        Self { service_s, waiting, wait_s: mean_wait_s / waiting.max(f64::MIN_POSITIVE) }
    }

    /// Mean, p50, p99 and p99.9 of service and waiting together.
    fn latency(&self, mean_s: f64) -> [f64; 4] {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| self.quantile(share));
        [mean_s + self.waiting * self.wait_s, p50, p99, p999]
    }

    /// The time that this share of the requests is done within.
    fn quantile(&self, share: f64) -> f64 {
        let longest = self.service_s.last().copied().unwrap_or(0.0);
        let (mut low, mut high) = (0.0, longest + self.wait_s * 20.0);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.done_within(middle) < share { low = middle } else { high = middle }
        }
        high
    }

    /// Share of requests that are done within a time. Waiting is exponential among those who wait
    /// (Kingman's limit for busy servers).
    fn done_within(&self, time_s: f64) -> f64 {
        let within = |left_s: f64| match left_s {
            left_s if left_s < 0.0 => 0.0,
            left_s => 1.0 - self.waiting * (-left_s / self.wait_s.max(f64::MIN_POSITIVE)).exp(),
        };
        let sum: f64 = self.service_s.iter().map(|service| within(time_s - service)).sum();
        sum / self.service_s.len() as f64
    }
}

/// Equally likely service times, shortest first: through the percentiles that are known, straight
/// lines of the logarithm over the normal law's quantiles; exponential where none are.
fn quantiles(service: &PredictedTime) -> Vec<f64> {
    let shares = (0..QUANTILES).map(|index| (index as f64 + 0.5) / QUANTILES as f64);
    let mean = service.mean.value;
    let (Some(p50), Some(p99), Some(p999)) = (service.p50, service.p99, service.p999) else {
        return shares.map(|share| -mean * (1.0 - share).ln()).collect();
    };
    let [z99, z999] = [0.99, 0.999].map(normal_quantile);
    let [ln50, ln99, ln999] = [p50, p99, p999].map(|figure| figure.value.ln());
    let at = |share: f64| {
        let z = normal_quantile(share);
        let ln = if z < z99 {
            ln50 + (ln99 - ln50) * z / z99
        } else {
            ln99 + (ln999 - ln99) * (z - z99) / (z999 - z99)
        };
        ln.exp()
    };
    shares.map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(mean: f64) -> PredictedTime {
        let exactly = |value: f64| Figure { value, low: value, high: value };
        PredictedTime { mean: exactly(mean), ..PredictedTime::default() }
    }

    #[test]
    fn one_exponential_server_with_poisson_arrivals_is_as_in_the_textbook() {
        // The time in an M/M/1 queue is exponential with the mean S/(1 − ρ).
        for busy in [0.1, 0.5, 0.8, 0.95] {
            let queue = Queue::new(busy, 1.0, &exponential(1e-3), Arrivals::Poisson);
            let [mean, p50, p99, p999] = queue.latency(1e-3);
            let expected = 1e-3 / (1.0 - busy);
            let near = |found: f64, expected: f64, slack: f64| {
                assert!((found / expected - 1.0).abs() < slack, "{busy}: {found} not {expected}");
            };
            near(mean, expected, 1e-9);
            near(p50, expected * 2.0_f64.ln(), 0.05);
            near(p99, expected * 100.0_f64.ln(), 0.05);
            near(p999, expected * 1000.0_f64.ln(), 0.08);
        }
    }

    #[test]
    fn nobody_waits_long_where_many_serve_and_few_come() {
        let queue = Queue::new(0.3, 32.0, &exponential(1e-3), Arrivals::Poisson);
        assert!(queue.latency(1e-3)[0] < 1.001e-3);
    }

    #[test]
    fn closed_loops_double_up_to_the_workload() {
        let work = Workload { process_num: 3, depth: 5, rate: 10.0, ..Workload::default() };
        let loops = closed_loops(&work);
        let all: Vec<(u32, u32)> = loops.iter().map(|w| (w.process_num, w.depth)).collect();
        assert_eq!(all, [(1, 1), (2, 1), (3, 1), (3, 2), (3, 4), (3, 5)]);
        assert!(loops.iter().all(|closed| closed.rate == 0.0));
    }
}
