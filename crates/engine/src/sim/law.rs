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
//! soft minimum of `N/L` and `1/D` that is exact for one process. With several requests in flight
//! `N` counts them all. What the page cache serves is copied by the process itself, one request at
//! a time, so buffered requests of `n` processes are bounded by `n` over that part of `L`.
//!
//! A cold workload finds none of what it reads in a cache, and what it writes as any other does.
//!
//! With an fdatasync after every `k` writes no write is absorbed: each pays for its copy, for its
//! part of the write-back (`min(k, parallel)` at a time), and for a `k`-th of the fdatasync.

use ioscape_model::{Access, State, Workload};

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
pub struct Performance {
    /// All classes at all levels; probabilities sum to 1.
    pub shares: Vec<Share>,
    /// Requests per second while it does not stall.
    pub ops_per_s: f64,
}

impl Performance {
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
    /// Performance of a workload on a device with levels, by its known law. A `[machine]` has none.
    pub fn performance(&self, work: &Workload) -> Performance {
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
                    let response_s = if !read && work.fsync_every > 0 {
                        self.synced_write_s(work, sequential)
                    } else {
                        self.levels[level].cost(read, sequential).time_s(size)
                    };
                    shares.push(Share { class, level, probability, response_s });
                }
            }
        }
        let wait_s: f64 = shares.iter().map(|share| share.probability * share.response_s).sum();
        let copied_s = self.synced_copy_s(work, &shares);
        let demand_s = self.demand_s(&shares, size, copied_s);
        let customers = f64::from(work.process_num) * f64::from(work.depth);
        let bound = customers / (wait_s.max(demand_s) + (customers - 1.0) * demand_s);
        let ops_per_s = bound.min(self.copying_bound(work, &shares, copied_s));
        // Little's law: what queueing adds is spread over all requests in proportion.
        let stretch = customers / ops_per_s / wait_s;
        for share in &mut shares {
            share.response_s *= stretch;
        }
        Performance { shares, ops_per_s }
    }

    /// On a device with levels, the truth to compare a measurement with: mean throughput in steady state, stalls included.
    pub fn expected_throughput(&self, work: &Workload) -> f64 {
        self.performance(work).ops_per_s * work.size_mean as f64 * self.running_fraction()
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
            let is_synced = !read && work.fsync_every > 0;
            let is_cold = read && work.state == State::Cold;
            let held = match (index == last, work.access) {
                (true, _) => 1.0,
                (false, Access::Direct) => 0.0,
                (false, Access::Buffered) if is_synced || is_cold => 0.0,
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

    /// What a write costs with an fdatasync after every few, that included in the mean, seconds.
    fn synced_write_s(&self, work: &Workload, sequential: bool) -> f64 {
        let size = work.size_mean as f64;
        let storage = self.storage();
        let written_s = storage.cost(false, sequential).time_s(size);
        let sync_s = self.sync_s() / f64::from(work.fsync_every);
        match (work.access, self.levels.len()) {
            (Access::Direct, _) | (_, 1) => written_s + sync_s,
            (Access::Buffered, _) => {
                let at_a_time = f64::from(work.fsync_every).min(storage.parallel).max(1.0);
                self.copy_s(work, sequential) + written_s / at_a_time + sync_s
            }
        }
    }

    /// What copying a write costs that ends on the storage all the same: as if the caches above
    /// held everything, seconds.
    fn copy_s(&self, work: &Workload, sequential: bool) -> f64 {
        let size = work.size_mean as f64;
        let absorbed = Workload { fsync_every: 0, ..work.clone() };
        let fractions = self.level_fractions(&absorbed, false, sequential);
        let slowest = self.levels.len() - 2;
        let cost = |(index, fraction): (usize, f64)| {
            fraction * self.levels[index.min(slowest)].cost(false, sequential).time_s(size)
        };
        fractions.into_iter().enumerate().map(cost).sum()
    }

    /// What of the mean request is copying of writes that are synced: the processors' work and not
    /// the storage's, seconds.
    fn synced_copy_s(&self, work: &Workload, shares: &[Share]) -> f64 {
        let is_copied = work.fsync_every > 0 && work.access == Access::Buffered;
        if !is_copied || self.levels.len() == 1 {
            return 0.0;
        }
        let copied = |share: &Share| match share.class {
            Class::WriteSeq => share.probability * self.copy_s(work, true),
            Class::WriteRand => share.probability * self.copy_s(work, false),
            Class::ReadSeq | Class::ReadRand => 0.0,
        };
        shares.iter().map(copied).sum()
    }

    /// An fdatasync with nothing left to write, seconds.
    pub(super) fn sync_s(&self) -> f64 {
        self.sync_us.unwrap_or(self.storage().cost(false, false).fixed_us) * 1e-6
    }

    fn storage(&self) -> &super::spec::Level {
        self.levels.last().expect("a performance is asked of a device with levels")
    }

    /// Requests per second that the processes can copy from and to the page cache. Binds only
    /// where they wait for more than one request at a time.
    fn copying_bound(&self, work: &Workload, shares: &[Share], copied_s: f64) -> f64 {
        if work.depth == 1 || work.access == Access::Direct {
            return f64::INFINITY;
        }
        let above = shares.iter().filter(|share| share.level + 1 < self.levels.len());
        let copy_s: f64 = above.map(|share| share.probability * share.response_s).sum();
        f64::from(work.process_num) / (copy_s + copied_s)
    }

    /// Time that the busiest level spends on a request, seconds; `copied_s` of what the storage's
    /// requests take is copying, which the cache above does.
    fn demand_s(&self, shares: &[Share], size: f64, copied_s: f64) -> f64 {
        let last = self.levels.len() - 1;
        let of_level = |(index, level): (usize, &super::spec::Level)| {
            let here = shares.iter().filter(|share| share.level == index);
            let (ops, busy_s) = here.fold((0.0, 0.0), |(ops, busy_s), share| {
                (ops + share.probability, busy_s + share.probability * share.response_s)
            });
            let busy_s = match index {
                _ if index == last => busy_s - copied_s,
                _ if index + 1 == last => busy_s + copied_s,
                _ => busy_s,
            };
            let ops_limit_s = level.ops_per_s_max.map_or(0.0, |limit| ops / limit);
            let bytes_limit_s = level.bytes_per_s_max.map_or(0.0, |limit| ops * size / limit);
            (busy_s / level.parallel).max(ops_limit_s).max(bytes_limit_s)
        };
        self.levels.iter().enumerate().map(of_level).fold(0.0, f64::max)
    }
}

fn part(fraction: f64, of_it: bool) -> f64 {
    if of_it { fraction } else { 1.0 - fraction }
}
