//! Where a program begins to behave differently: rates, sizes and mix in short windows of time, cut
//! where their level changes.

use ioscape_stats::changes::changes;

use super::seen::{Class, Direction, Seen};

/// Windows that are kept; twice as many are joined in pairs.
const WINDOWS: usize = 400;
/// The first windows are so short, ns.
const WINDOW_NS: u64 = 1_000_000;
/// Requests and calls on names that a window should hold on average.
const CALLS_MIN: u64 = 24;
/// Fewer windows than this are not worth cutting.
const WINDOWS_MIN: usize = 24;
/// No program is told in more phases.
const PHASES_MAX: usize = 12;
/// A phase lasts at least this share of the time.
const SHARE_MIN: f64 = 0.05;
/// The price of a further phase, in terms of `changes`.
const PENALTY: f64 = 2.0;
/// Noise that does not count, per quantity: rates, sizes and syncs in doublings, shares.
const NOISE_MIN: [f64; 6] = [0.25, 0.05, 0.2, 0.06, 0.3, 0.3];
/// Differences between neighbouring phases below all of these are none.
const STEP_MIN: [f64; 6] = [0.8, 0.12, 0.5, 0.15, 1.0, 1.0];

/// A stretch of time, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    requests: u64,
    reads: u64,
    follows: u64,
    bytes: u64,
    syncs: u64,
    names: u64,
}

impl Window {
    fn with(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            reads: self.reads + other.reads,
            follows: self.follows + other.follows,
            bytes: self.bytes + other.bytes,
            syncs: self.syncs + other.syncs,
            names: self.names + other.names,
        }
    }

    /// The quantities that phases differ in; where there are no requests, those of the window
    /// before stand for what cannot be known.
    fn quantities(self, before: Option<&Vec<f64>>) -> Vec<f64> {
        let level = |count: u64| (1.0 + count as f64).log2();
        let requests = self.requests as f64;
        let [reads, size, follows] = if self.requests > 0 {
            let mean = self.bytes as f64 / requests;
            [self.reads as f64 / requests, mean.log2(), self.follows as f64 / requests]
        } else {
            before.map_or([0.0; 3], |before| [before[1], before[2], before[3]])
        };
        vec![level(self.requests), reads, size, follows, level(self.syncs), level(self.names)]
    }
}

/// Counts in windows, which grow with the trace.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    width_ns: u64,
    windows: Vec<Window>,
}

impl Default for Windows {
    fn default() -> Self {
        Self { width_ns: WINDOW_NS, windows: Vec::new() }
    }
}

impl Windows {
    pub(super) fn add(&mut self, seen: &Seen<'_>) {
        let mut at = seen.event.start_ns / self.width_ns;
        while at >= 2 * WINDOWS as u64 {
            self.join_pairs();
            at = seen.event.start_ns / self.width_ns;
        }
        let at = at as usize;
        if self.windows.len() <= at {
            self.windows.resize(at + 1, Window::default());
        }
        let window = &mut self.windows[at];
        for request in seen.requests.iter().flatten() {
            window.requests += 1;
            window.reads += u64::from(request.direction == Direction::Read);
            window.bytes += request.bytes;
            window.follows +=
                u64::from(matches!(request.place, super::seen::RelativePosition::Follows { .. }));
        }
        window.syncs += u64::from(seen.synced.is_some());
        let is_of_names = matches!(seen.class, Class::Open | Class::Look | Class::Change);
        window.names += u64::from(is_of_names && seen.is_storage);
    }

    fn join_pairs(&mut self) {
        let pairs = self.windows.chunks(2);
        self.windows =
            pairs.map(|pair| pair.iter().copied().fold(Window::default(), Window::with)).collect();
        self.width_ns *= 2;
    }

    /// When phases after the first begin, ns.
    pub(super) fn cuts_ns(&self) -> Vec<u64> {
        let mut grown = self.clone();
        let calls: u64 = self.windows.iter().map(|window| window.requests + window.names).sum();
        while grown.windows.len() > WINDOWS
            || (grown.windows.len() >= 2 * WINDOWS_MIN
                && calls < CALLS_MIN * grown.windows.len() as u64)
        {
            grown.join_pairs();
        }
        if grown.windows.len() < WINDOWS_MIN {
            return Vec::new();
        }
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for window in &grown.windows {
            let row = window.quantities(rows.last());
            rows.push(row);
        }
        let length_min = ((rows.len() as f64 * SHARE_MIN).ceil() as usize).max(3);
        let mut penalty = PENALTY;
        loop {
            let cuts = changes(&rows, &NOISE_MIN, length_min, penalty);
            let cuts = without_small_steps(&rows, cuts);
            if cuts.len() < PHASES_MAX {
                return cuts.into_iter().map(|at| at as u64 * grown.width_ns).collect();
            }
            penalty *= 2.0;
        }
    }
}

/// Cuts between pieces that differ by something that matters.
fn without_small_steps(rows: &[Vec<f64>], mut cuts: Vec<usize>) -> Vec<usize> {
    loop {
        let mut edges = vec![0];
        edges.extend(&cuts);
        edges.push(rows.len());
        let means: Vec<Vec<f64>> =
            edges.windows(2).map(|edge| mean(&rows[edge[0]..edge[1]])).collect();
        let size = |pair: &[Vec<f64>]| {
            let steps = pair[0].iter().zip(&pair[1]).zip(STEP_MIN);
            steps.map(|((a, b), least)| (a - b).abs() / least).fold(0.0, f64::max)
        };
        let steps = means.windows(2).map(size).enumerate();
        match steps.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((at, step)) if step < 1.0 => drop(cuts.remove(at)),
            _ => return cuts,
        }
    }
}

fn mean(rows: &[Vec<f64>]) -> Vec<f64> {
    let sum = |quantity: usize| rows.iter().map(|row| row[quantity]).sum::<f64>();
    (0..NOISE_MIN.len()).map(|quantity| sum(quantity) / rows.len() as f64).collect()
}
