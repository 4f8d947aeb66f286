//! Whether a stream's request waits for the one before (a closed loop) or comes when it comes (an
//! open one).
//!
//! In a closed loop the time from start to start is the request's duration and some work: it grows
//! by one second per second of duration. In an open one it does not depend on it. So the slope of
//! the one on the other tells, pooled within streams; where durations differ too little for that,
//! the times themselves do: those of a schedule make up for each other (their correlation with the
//! next is negative), and random ones scatter as much as their mean. A schedule that is kept shows most
//! clearly over many requests: one late request does not delay those after it, so the times that 128 of
//! them take scatter as little as those of one. In a closed loop the scatter adds up, to eleven times as
//! much (the square root of 128), or more where the work drifts. This needs 2048 requests.

use std::collections::HashMap;

use ioscape_model::app::{Arriving, Loop};

use super::seen::Arrival;

/// Streams that are told apart.
const STREAMS_MAX: usize = 4096;
/// Beyond this standard error a slope says nothing.
const SLOPE_ERROR_MAX: f64 = 0.2;
/// A slope that lies so many standard errors below that of a closed loop refutes one.
const CLOSED_REFUTED: f64 = 4.0;
/// Requests that are in progress more of the time than this follow each other.
const BUSY_MIN: f64 = 0.5;
/// Requests of a stretch whose time is held against that of one.
const STRETCH: usize = 128;
/// Stretches scatter less than this many times as much as single requests where a schedule is kept: a
/// quarter of what independent times add up to. Schedules recorded by `ci/try-answers` have 0.3 to 1.2, its
/// closed loops, whose work drifts, above 25.
const KEPT_MAX: f64 = 2.5;
/// Gaps that scatter less than this are taken to scatter so much: no recorder sees the start of a call more
/// exactly. Seconds.
const SCATTER_MIN_S: f64 = 3e-8;
/// Single gaps that are kept of each stretch.
const SINGLE_PER_STRETCH: usize = 2;
/// Fewer stretches than this say nothing; of more, the first of them do.
const STRETCHES: std::ops::Range<usize> = 16..512;
/// Fewer requests than this say nothing.
const COUNT_MIN: f64 = 8.0;
/// Streams with less than this share of the requests of the busiest do something beside: they read
/// settings, wait for others, and with that say nothing of how requests arrive.
const BESIDE_SHARE: f64 = 0.1;

/// Sums over one stream.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// All requests: how many, time from start to start, its square, its product with the one
    /// before, and time in requests.
    all: [f64; 5],
    /// The first time from start to start, and the last so far.
    ends_s: Option<(f64, f64)>,
    /// `SINGLE_PER_STRETCH` times from start to start out of each of the first stretches, seconds.
    single: Vec<f64>,
    /// How long each of the first stretches took, seconds.
    stretches: Vec<f64>,
    /// Requests and seconds of the stretch that is not complete.
    stretch: (usize, f64),
    /// Those shorter than the mean time from start to start: count, x, y, xx, xy, yy.
    short: [f64; 6],
}

/// Sums over all streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    streams: HashMap<u32, Sums>,
}

/// How sure a judgement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sureness {
    Sure,
    Guess,
}

impl Arrivals {
    pub(super) fn add(&mut self, stream: u32, arrival: Arrival) {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&stream) {
            return;
        }
        self.streams.entry(stream).or_default().add(arrival);
    }

    /// Judges; `is_full` says whether requests in flight are kept at their number, where several
    /// are.
    pub(super) fn judge(
        &self,
        requests: u64,
        elapsed_s: f64,
        is_full: Option<bool>,
    ) -> (Loop, Arriving) {
        let slope = self.slope();
        let arriving = Arriving {
            slope: slope.map(|(slope, _)| slope),
            rate_per_s: if elapsed_s > 0.0 { requests as f64 / elapsed_s } else { 0.0 },
            variation: self.variation(),
        };
        let (kind, _) = self.kind(slope, is_full);
        (kind, arriving)
    }

    /// How sure the judgement is.
    pub(super) fn sureness(&self, is_full: Option<bool>) -> Sureness {
        self.kind(self.slope(), is_full).1
    }

    fn kind(&self, slope: Option<(f64, f64)>, is_full: Option<bool>) -> (Loop, Sureness) {
        let judged = |is_open: bool| if is_open { Loop::Open } else { Loop::Closed };
        if let Some(is_full) = is_full {
            return (judged(!is_full), Sureness::Sure);
        }
        let [count, gaps, _, _, busy] = self.pooled();
        if count < COUNT_MIN {
            return (Loop::Closed, Sureness::Guess);
        }
        match slope {
            _ if busy <= BUSY_MIN * gaps && self.keeps_a_schedule() => (Loop::Open, Sureness::Sure),
            Some((slope, error)) if error < SLOPE_ERROR_MAX => {
                (judged(slope < 0.5), Sureness::Sure)
            }
            _ if busy > BUSY_MIN * gaps => (Loop::Closed, Sureness::Sure),
            _ if self.next_correlation() < -0.25 => (Loop::Open, Sureness::Sure),
            Some((slope, error)) if 1.0 - slope > CLOSED_REFUTED * error => {
                (Loop::Open, Sureness::Guess)
            }
            _ if (0.85..1.15).contains(&self.variation()) => (Loop::Open, Sureness::Guess),
            _ => (Loop::Closed, Sureness::Guess),
        }
    }

    /// The streams that count.
    fn main_streams(&self) -> impl Iterator<Item = &Sums> {
        let most = self.streams.values().map(|stream| stream.all[0]).fold(0.0, f64::max);
        self.streams.values().filter(move |stream| stream.all[0] >= BESIDE_SHARE * most)
    }

    /// Tells whether the busiest stream keeps a schedule: the time that 128 of its requests take scatters no
    /// more than that of one. A closed loop that does longer work every few requests may scatter as little,
    /// but its mean time from start to start lies above the median.
    fn keeps_a_schedule(&self) -> bool {
        let by_count = |one: &(&u32, &Sums), two: &(&u32, &Sums)| {
            one.1.all[0].total_cmp(&two.1.all[0]).then(two.0.cmp(one.0))
        };
        let Some((_, busiest)) = self.streams.iter().max_by(by_count) else { return false };
        if busiest.stretches.len() < STRETCHES.start {
            return false;
        }
        let (gap_s, scatter_s) = median_and_scatter(&busiest.single);
        let (_, over_many_s) = median_and_scatter(&busiest.stretches);
        let count = (busiest.stretches.len() * STRETCH) as f64;
        let mean_s = busiest.stretches.iter().sum::<f64>() / count;
        let is_even = (0.8..1.25).contains(&(mean_s / gap_s));
        is_even && over_many_s < KEPT_MAX * scatter_s.max(SCATTER_MIN_S)
    }

    fn pooled(&self) -> [f64; 5] {
        let add = |sum: [f64; 5], stream: &Sums| std::array::from_fn(|i| sum[i] + stream.all[i]);
        self.main_streams().fold([0.0; 5], add)
    }

    /// Slope and its standard error, centred per stream.
    fn slope(&self) -> Option<(f64, f64)> {
        let (mut xx, mut xy, mut yy, mut freedom) = (0.0, 0.0, 0.0, -1.0);
        for Sums { short: [n, x, y, sxx, sxy, syy], .. } in self.main_streams() {
            if *n >= COUNT_MIN {
                xx += sxx - x * x / n;
                xy += sxy - x * y / n;
                yy += syy - y * y / n;
                freedom += n - 1.0;
            }
        }
        if freedom < 1.0 || xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let left = (yy - slope * xy).max(0.0);
        Some((slope, (left / freedom / xx).sqrt()))
    }

    /// Variance of the times from start to start within streams, and its covariance with the next.
    fn spread(&self) -> (f64, f64, f64) {
        let (mut variance, mut covariance, mut count) = (0.0, 0.0, 0.0);
        for Sums { all: [n, y, yy, products, _], ends_s, .. } in self.main_streams() {
            if *n >= COUNT_MIN {
                variance += yy - y * y / n;
                // The mean is that of all, the pairs leave out one end each.
                let pairs = ends_s.map_or(0.0, |(first, last)| 2.0 * y - first - last);
                let mean = y / n;
                covariance += products - mean * pairs + (n - 1.0) * mean * mean;
                count += n;
            }
        }
        (variance, covariance, count)
    }

    fn next_correlation(&self) -> f64 {
        let (variance, covariance, _) = self.spread();
        if variance > 0.0 { covariance / variance } else { 0.0 }
    }

    fn variation(&self) -> f64 {
        let (variance, _, count) = self.spread();
        let [n, gaps, ..] = self.pooled();
        if count < 1.0 || gaps <= 0.0 {
            return 0.0;
        }
        (variance.max(0.0) / count).sqrt() / (gaps / n)
    }
}

/// Median, and median distance from it.
fn median_and_scatter(values: &[f64]) -> (f64, f64) {
    let median = |mut values: Vec<f64>| {
        let middle = values.len() / 2;
        *values.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    let middle = median(values.to_vec());
    (middle, median(values.iter().map(|value| (value - middle).abs()).collect()))
}

impl Sums {
    fn add(&mut self, arrival: Arrival) {
        let x = arrival.duration_ns as f64 / 1e9;
        let y = arrival.gap_ns as f64 / 1e9;
        self.add_to_stretch(y);
        let [n, gaps, ..] = self.all;
        if n >= COUNT_MIN && x * n <= gaps {
            let terms = [1.0, x, y, x * x, x * y, y * y];
            self.short.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
        let product = self.ends_s.map_or(0.0, |(_, before)| before * y);
        let terms = [1.0, y, y * y, product, x];
        self.all.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        self.ends_s = Some((self.ends_s.map_or(y, |(first, _)| first), y));
    }

    fn add_to_stretch(&mut self, gap_s: f64) {
        if self.stretches.len() >= STRETCHES.end {
            return;
        }
        let (count, seconds) = (self.stretch.0 + 1, self.stretch.1 + gap_s);
        if count % (STRETCH / SINGLE_PER_STRETCH) == 0 {
            self.single.push(gap_s);
        }
        self.stretch = (count, seconds);
        if count == STRETCH {
            self.stretches.push(seconds);
            self.stretch = (0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt as _, SeedableRng as _};

    fn judged(gaps_and_durations_ns: impl Iterator<Item = (u64, u64)>) -> Loop {
        let mut arrivals = Arrivals::default();
        for (gap_ns, duration_ns) in gaps_and_durations_ns {
            arrivals.add(1, Arrival { duration_ns, gap_ns });
        }
        arrivals.judge(2000, 1.0, None).0
    }

    /// Late by some, now and then by a lot, and slower when late: durations say nothing, or the wrong thing.
    #[test]
    fn a_schedule_is_told_though_durations_go_with_lateness() {
        for seed in 0..100 {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut late = Vec::new();
            for _ in 0..4000 {
                let stall = if random.random_bool(0.003) { 2_000_000 } else { 0 };
                let before = late.last().copied().unwrap_or(0_u64).saturating_sub(333_000);
                late.push(before.max(random.random_range(0..5_000) + stall));
            }
            let rows =
                late.windows(2).map(|pair| (333_000 + pair[1] - pair[0], 2_000 + pair[0] / 50));
            assert_eq!(judged(rows), Loop::Open, "seed {seed}");
        }
    }

    /// The scatter of a closed loop adds up, be its work ever so even.
    #[test]
    fn even_work_between_short_requests_is_no_schedule() {
        for seed in 0..100 {
            for scatter_ns in [200, 3_000] {
                let mut random = SmallRng::seed_from_u64(seed);
                let rows = (0..4000).map(|_| (330_000 + random.random_range(0..scatter_ns), 2_000));
                assert_eq!(judged(rows), Loop::Closed, "seed {seed}, {scatter_ns} ns");
            }
        }
    }

    #[test]
    fn a_schedule_that_is_kept_to_the_nanosecond_is_one() {
        assert_eq!(judged((0..4000).map(|at| (330_000, 2_000 + at % 7))), Loop::Open);
    }

    /// Requests that take more than half of the time follow each other, be their times ever so regular.
    #[test]
    fn a_loop_that_is_busy_is_no_schedule() {
        let regular =
            (0..4000_u64).map(|at| (330_000 + at % 2 * 20_000, 300_000 + at % 2 * 20_000));
        assert_eq!(judged(regular), Loop::Closed);
    }
}
