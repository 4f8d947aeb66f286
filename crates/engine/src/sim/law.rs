//! The law of a simulated device: what a workload's requests cost in the mean, exactly.
//!
//! A request is read or written, sequential or not, and served at one level. Uniform access to
//! `U` bytes finds a cache of `C` bytes holding the right ones with probability `min(1, C/U)`,
//! whatever the replacement policy, so the mean time is a mixture *in time*:
//!
//! ```text
//! L = Σ_class P(class) Σ_level P(level | class) (a + s/b)        seconds one process waits
//! D = max over levels of  Σ P t / parallel,  misses / ops_max,  bytes / bytes_max
//! X = N / (max(L, D) + (N − 1) D)                                requests per second
//! ```
//!
//! `X` is the balanced-job bound for `N` customers in a closed network (Zahorjan et al. 1982): a
//! soft minimum of `N/L` and `1/D` that is exact for one process.

use ioscape_model::{Access, Workload};

use super::spec::SimSpec;
use crate::rig::Class;

/// Requests of one class that are served at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The class.
    pub class: Class,
    /// The level, counted from the fastest.
    pub level: usize,
    /// Which part of all requests this is.
    pub probability: f64,
    /// Mean response time, queueing included, seconds.
    pub response_s: f64,
}

/// What a workload gives on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    /// All classes at all levels; probabilities sum to 1.
    pub shares: Vec<Share>,
    /// Requests per second while it does not stall.
    pub ops_per_s: f64,
}

impl Law {
    /// Mean response time of a class, seconds; `None` where it has no requests.
    pub fn class_response_s(&self, class: Class) -> Option<f64> {
        let of_class = self.shares.iter().filter(|share| share.class == class);
        let (weight, time_s) = of_class.fold((0.0, 0.0), |(weight, time_s), share| {
            (weight + share.probability, time_s + share.probability * share.response_s)
        });
        (weight > 0.0).then(|| time_s / weight)
    }

    /// Mean response time of all requests, seconds.
    pub fn response_s(&self) -> f64 {
        self.shares.iter().map(|share| share.probability * share.response_s).sum()
    }

    /// Part of the requests of one direction that end at a level.
    pub fn level_fraction(&self, read: bool, level: usize) -> f64 {
        let direction =
            |share: &&Share| matches!(share.class, Class::ReadSeq | Class::ReadRand) == read;
        let all: f64 = self.shares.iter().filter(direction).map(|share| share.probability).sum();
        let here = self.shares.iter().filter(direction).filter(|share| share.level == level);
        if all > 0.0 { here.map(|share| share.probability).sum::<f64>() / all } else { 0.0 }
    }
}

impl SimSpec {
    /// The law for a workload.
    pub fn law(&self, work: &Workload) -> Law {
        let size = work.size_mean as f64;
        let mut shares = Vec::with_capacity(4 * self.levels.len());
        for class in Class::ALL {
            let read = matches!(class, Class::ReadSeq | Class::ReadRand);
            let sequential = matches!(class, Class::ReadSeq | Class::WriteSeq);
            let weight = part(work.read_frac, read) * part(work.seq_frac, sequential);
            let fractions = self.level_fractions(work, read, sequential);
            for (level, fraction) in fractions.into_iter().enumerate() {
                let probability = weight * fraction;
                if probability > 0.0 {
                    let response_s = self.levels[level].cost(read, sequential).time_s(size);
                    shares.push(Share { class, level, probability, response_s });
                }
            }
        }
        let wait_s: f64 = shares.iter().map(|share| share.probability * share.response_s).sum();
        let demand_s = self.demand_s(&shares, size);
        let customers = customers(work);
        let ops_per_s = customers / (wait_s.max(demand_s) + (customers - 1.0) * demand_s);
        // Little's law: what queueing adds is spread over all requests in proportion.
        let stretch = customers / ops_per_s / wait_s;
        for share in &mut shares {
            share.response_s *= stretch;
        }
        Law { shares, ops_per_s }
    }

    /// The truth to hold a measurement against: mean throughput in steady state, stalls included.
    pub fn expected_throughput(&self, work: &Workload) -> f64 {
        self.law(work).ops_per_s * work.size_mean as f64 * self.running_fraction()
    }

    /// Part of the time that the device does not stall.
    pub fn running_fraction(&self) -> f64 {
        let noise = &self.noise;
        if noise.stall_every_s > 0.0 {
            noise.stall_every_s / (noise.stall_every_s + noise.stall_s)
        } else {
            1.0
        }
    }

    /// Which part of the requests of a class each level serves.
    fn level_fractions(&self, work: &Workload, read: bool, sequential: bool) -> Vec<f64> {
        let last = self.levels.len() - 1;
        let mut above = 0.0_f64;
        let mut fractions = Vec::with_capacity(self.levels.len());
        for (index, level) in self.levels.iter().enumerate() {
            let size = if read { level.read_bytes } else { level.write_bytes.or(level.read_bytes) };
            let held = match (index == last, work.access) {
                (true, _) => 1.0,
                (false, Access::Direct) => 0.0,
                (false, Access::Buffered) => {
                    let random = (size.unwrap_or(0) as f64 / work.unique_bytes as f64).min(1.0);
                    if read && sequential { random.powf(self.sequential_exponent) } else { random }
                }
            };
            let held = held.max(above);
            fractions.push(held - above);
            above = held;
        }
        fractions
    }

    /// Time that the busiest level spends on a request, seconds.
    fn demand_s(&self, shares: &[Share], size: f64) -> f64 {
        let of_level = |(index, level): (usize, &super::spec::Level)| {
            let here = shares.iter().filter(|share| share.level == index);
            let (ops, busy_s) = here.fold((0.0, 0.0), |(ops, busy_s), share| {
                (ops + share.probability, busy_s + share.probability * share.response_s)
            });
            let ops_limit_s = level.ops_per_s_max.map_or(0.0, |limit| ops / limit);
            let bytes_limit_s = level.bytes_per_s_max.map_or(0.0, |limit| ops * size / limit);
            (busy_s / level.parallel).max(ops_limit_s).max(bytes_limit_s)
        };
        self.levels.iter().enumerate().map(of_level).fold(0.0, f64::max)
    }
}

/// Requests in flight, all processes together. Through the page cache, each process waits for
/// its one request whatever the depth.
fn customers(work: &Workload) -> f64 {
    let depth = if work.access == Access::Direct { work.depth } else { 1 };
    f64::from(work.process_num) * f64::from(depth)
}

fn part(fraction: f64, of_it: bool) -> f64 {
    if of_it { fraction } else { 1.0 - fraction }
}
