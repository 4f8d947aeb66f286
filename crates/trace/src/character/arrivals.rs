//! Whether a stream's request waits for the one before (a closed loop) or comes when it comes (an
//! open one).
//!
//! In a closed loop the time from start to start is the request's duration and some work: it grows
//! by one second per second of duration. In an open one it does not depend on it. So the slope of
//! the one on the other tells, pooled within streams; where durations differ too little for that,
//! the times themselves do: those of a schedule make up for each other (their correlation with the
//! next is negative), and random ones scatter as much as their mean.

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
    before_s: Option<f64>,
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
        for Sums { all: [n, y, yy, products, _], .. } in self.main_streams() {
            if *n >= COUNT_MIN {
                variance += yy - y * y / n;
                covariance += products - y * y / n * (n - 1.0) / n;
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

impl Sums {
    fn add(&mut self, arrival: Arrival) {
        let x = arrival.duration_ns as f64 / 1e9;
        let y = arrival.gap_ns as f64 / 1e9;
        let [n, gaps, ..] = self.all;
        if n >= COUNT_MIN && x * n <= gaps {
            let terms = [1.0, x, y, x * x, x * y, y * y];
            self.short.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
        let product = self.before_s.map_or(0.0, |before| before * y);
        let terms = [1.0, y, y * y, product, x];
        self.all.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        self.before_s = Some(y);
    }
}
