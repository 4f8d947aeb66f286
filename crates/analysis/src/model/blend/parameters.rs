//! The parameters of the law, each in one place: name, unit, where it is expected before any sample
//! is looked at and how far it may be off, and why it is there. What each brings on simulated devices
//! stands in `docs/experiments.md`, measured with `--each` of the example `laws`.

use ioscape_model::{Access, Workload};
use ioscape_stats::least_squares::Prior;
use ioscape_stats::median;

use super::caches::{CLEAR, Caches, Shape};
use crate::model::{Sample, Training};

/// A parameter that every system has, by its place in [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Common {
    ReadFixed,
    WriteFixed,
    ReadRate,
    WriteRate,
    ProcessorCache,
    MemoryCost,
    Processors,
    ReadParallel,
    WriteParallel,
    Waited,
    Requests,
    ReadBytes,
    WriteBytes,
    DepthCopy,
    DepthOverlap,
    Sync,
    SyncParallel,
}

/// Those that several requests in flight and fdatasyncs are answered by alone.
pub(super) const EXTRAS: std::ops::Range<usize> = Common::DepthCopy as usize..TABLE.len();

/// The most that storage serves.
pub(super) const LIMITS: std::ops::Range<usize> =
    Common::Requests as usize..Common::WriteBytes as usize + 1;

/// A parameter of each cache: its size, and what requests cost that miss it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfCache {
    Bytes,
    Fixed,
    Sequential,
    Rate,
}

/// How a parameter is fitted: so that every real number is a possible value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// As its natural logarithm: it is positive.
    Ln,
    /// As ln(x/(1 − x)): it is a share, from 0 to 1.
    Logit,
}

/// What is known of a parameter before it is fitted.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    /// Its name in records; of a cache, between the direction and the cache's number.
    pub(super) name: &'static str,
    /// As it stands in formulas.
    pub(super) symbol: &'static str,
    /// Its unit; 1 for a ratio or a share.
    pub(super) unit: &'static str,
    /// How it is fitted.
    pub(super) scale: Scale,
    /// Standard deviation, on its scale, of the value around the expected one.
    pub(super) sd: f64,
    /// What it is.
    pub(super) about: &'static str,
    /// Where it is expected, and why.
    pub(super) expected: &'static str,
}

/// The parameters that every system has, in the order of [`Common`].
#[rustfmt::skip]
pub(super) const TABLE: [Parameter; 17] = [
    Parameter { name: "read_fixed_s", symbol: "a_r", unit: "s", scale: Scale::Ln, sd: 1.5,
        about: "processor time of a cached read, whatever its size",
        expected: "half of the quickest read seen" },
    Parameter { name: "write_fixed_s", symbol: "a_w", unit: "s", scale: Scale::Ln, sd: 1.5,
        about: "processor time of an absorbed write, whatever its size",
        expected: "half of the quickest write seen" },
    Parameter { name: "read_bytes_per_s", symbol: "b_r", unit: "B/s", scale: Scale::Ln, sd: 1.5,
        about: "rate at which one process copies data it reads",
        expected: "the highest throughput seen" },
    Parameter { name: "write_bytes_per_s", symbol: "b_w", unit: "B/s", scale: Scale::Ln, sd: 1.5,
        about: "rate at which one process copies data it writes",
        expected: "half of the highest throughput seen" },
    Parameter { name: "processor_cache_bytes", symbol: "L", unit: "B", scale: Scale::Ln, sd: 1.5,
        about: "data below this is copied from the processor's cache",
        expected: "the border found to be the processor's, else a third of the last-level cache, which others share" },
    Parameter { name: "memory_cost", symbol: "κ", unit: "1", scale: Scale::Ln, sd: 1.0,
        about: "by how much copying takes longer from memory",
        expected: "a half" },
    Parameter { name: "processors", symbol: "P", unit: "1", scale: Scale::Ln, sd: 0.5,
        about: "processes that copy at a time",
        expected: "the processors of the host, else 2" },
    Parameter { name: "read_parallel", symbol: "m_r", unit: "1", scale: Scale::Ln, sd: 1.2,
        about: "reads that storage serves at a time",
        expected: "1.5: most seen was 1 to 4 without requests in flight" },
    Parameter { name: "write_parallel", symbol: "m_w", unit: "1", scale: Scale::Ln, sd: 1.0,
        about: "writes that storage serves at a time",
        expected: "1" },
    Parameter { name: "write_waited", symbol: "ω", unit: "1", scale: Scale::Logit, sd: 1.5,
        about: "share of write-back that its writer waits for",
        expected: "a half; nearly all with direct access" },
    Parameter { name: "storage_requests_per_s", symbol: "R", unit: "1/s", scale: Scale::Ln, sd: 1.0,
        about: "most requests that storage serves",
        expected: "3 times the most seen: a limit not reached changes nothing" },
    Parameter { name: "storage_read_bytes_per_s", symbol: "B_r", unit: "B/s", scale: Scale::Ln, sd: 1.0,
        about: "most bytes that storage reads",
        expected: "3 times the most seen" },
    Parameter { name: "storage_write_bytes_per_s", symbol: "B_w", unit: "B/s", scale: Scale::Ln, sd: 1.0,
        about: "most bytes that storage writes",
        expected: "3 times the most seen" },
    Parameter { name: "depth_copy_cost", symbol: "ξ", unit: "1", scale: Scale::Ln, sd: 0.7,
        about: "processor time of a request among many in flight, over one alone",
        expected: "1" },
    Parameter { name: "depth_overlap", symbol: "μ", unit: "1", scale: Scale::Ln, sd: 1.5,
        about: "by how much more storage serves at a time with many in flight",
        expected: "1: as many as processes alone ask for" },
    Parameter { name: "sync_s", symbol: "Y", unit: "s", scale: Scale::Ln, sd: 2.0,
        about: "an fdatasync with nothing left to write",
        expected: "half of what a synced write took" },
    Parameter { name: "sync_parallel", symbol: "m_f", unit: "1", scale: Scale::Ln, sd: 1.0,
        about: "writes that storage takes at a time on their way to an fdatasync",
        expected: "1" },
];

/// The parameters of each cache, in the order of [`OfCache`].
#[rustfmt::skip]
pub(super) const PER_CACHE: [Parameter; 4] = [
    Parameter { name: "cache_bytes", symbol: "C", unit: "B", scale: Scale::Ln, sd: 0.05,
        about: "size of the cache",
        expected: "the border found, to 5 %" },
    Parameter { name: "beyond_fixed_s", symbol: "A", unit: "s", scale: Scale::Ln, sd: 2.0,
        about: "time of a random request beyond it, whatever its size",
        expected: "half of the median request seen there" },
    Parameter { name: "beyond_sequential_over_random", symbol: "ρ", unit: "1", scale: Scale::Ln, sd: 1.0,
        about: "time of a sequential request beyond it, over that of a random one",
        expected: "0.2 for buffered reads, which are read ahead; else 1" },
    Parameter { name: "beyond_bytes_per_s", symbol: "B", unit: "B/s", scale: Scale::Ln, sd: 2.0,
        about: "rate beyond it",
        expected: "twice the median rate seen there" },
];

/// Where a cache's parameters begin, of the direction 0 for reads and 1 for writes.
pub(super) fn cache_at(shape: Shape, direction: usize, index: usize) -> usize {
    TABLE.len() + PER_CACHE.len() * (direction * shape.caches[0] + index)
}

/// All parameters of a law of this shape, in their order, with their names in full.
pub(super) fn all(shape: Shape) -> Vec<(String, Parameter)> {
    let common = TABLE.iter().map(|parameter| (parameter.name.to_owned(), *parameter));
    let of_caches =
        ["read", "write"].into_iter().zip(shape.caches).flat_map(|(direction, count)| {
            (1..=count).flat_map(move |index| {
                let full = move |p: &Parameter| (format!("{direction}_{}_{index}", p.name), *p);
                PER_CACHE.iter().map(full)
            })
        });
    common.chain(of_caches).collect()
}

/// The parameters as rows of a table in Markdown: symbol, name, unit, what it is, where it is expected and by
/// which factor (one standard deviation) it may be off, shares apart.
pub fn table() -> String {
    let row = |prefix: &str, it: &Parameter| {
        let Parameter { name, symbol, unit, about, expected, sd, .. } = it;
        let off = match it.scale {
            Scale::Ln => format!("× {:.2}", sd.exp()),
            Scale::Logit => format!("{sd} on the logit"),
        };
        format!("| *{symbol}* | `{prefix}{name}` | {unit} | {about} | {expected} | {off} |\n")
    };
    let common = TABLE.iter().map(|it| row("", it));
    common.chain(PER_CACHE.iter().map(|it| row("read_, write_", it))).collect()
}

/// The scales of all parameters of a law of this shape.
pub(super) fn scales(shape: Shape) -> impl Iterator<Item = Scale> {
    let of_caches =
        PER_CACHE.iter().cycle().take(PER_CACHE.len() * shape.caches.iter().sum::<usize>());
    TABLE.iter().chain(of_caches).map(|parameter| parameter.scale)
}

impl Scale {
    /// A value from how it is fitted.
    pub(super) fn value(self, at: f64) -> f64 {
        match self {
            Self::Ln => at.exp(),
            Self::Logit => 1.0 / (1.0 + (-at).exp()),
        }
    }

    /// The derivative of a value by how it is fitted.
    pub(super) fn slope(self, value: f64) -> f64 {
        match self {
            Self::Ln => value,
            Self::Logit => value * (1.0 - value),
        }
    }
}

/// A limit that was not reached is expected at so many times the most that was seen ...
pub(super) const BEYOND_SEEN: f64 = 3.0;
/// ... and one that nothing came near at so many times the highest throughput.
const OUT_OF_REACH: f64 = 1e3;
/// Reads or writes count as such from this share on.
const MOSTLY: f64 = 0.9;

/// Where the parameters are expected, on their scales, in the order of [`all`].
pub(super) fn priors(training: &Training, caches: &Caches) -> Vec<Prior> {
    let shape = caches.shape();
    let seen = Seen { training, caches };
    let common = TABLE.iter().zip(seen.common());
    let of_caches = [0, 1].into_iter().flat_map(|direction| {
        let seen = &seen;
        (0..shape.caches[direction])
            .flat_map(move |index| PER_CACHE.iter().zip(seen.cache(direction, index)))
    });
    let mut priors: Vec<Prior> =
        common.chain(of_caches).map(|(parameter, mean)| Prior { mean, sd: parameter.sd }).collect();
    let names: Vec<String> = all(shape).into_iter().map(|(name, _)| name).collect();
    training.hold(&names, &mut priors);
    priors
}

/// What a first look at the samples says.
struct Seen<'a> {
    training: &'a Training,
    caches: &'a Caches,
}

impl Seen<'_> {
    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.training.samples.iter().chain(&self.training.extras)
    }

    fn least_s(&self, direction: usize) -> f64 {
        let least = |is: &dyn Fn(&Workload) -> bool| {
            let of = self.training.samples.iter().filter(|sample| is(&sample.workload));
            of.map(request_s).fold(f64::INFINITY, f64::min)
        };
        let chosen = least(&|work| is_mostly(work, direction));
        if chosen.is_finite() { chosen } else { least(&|_| true) }
    }

    fn highest(&self) -> f64 {
        self.samples().map(|sample| sample.ln_throughput.exp()).fold(1.0, f64::max)
    }

    /// In the order of [`Common`], on their scales.
    fn common(&self) -> [f64; TABLE.len()] {
        let Training { host, ranges, .. } = self.training;
        let is_direct = ranges.access == Access::Direct;
        let highest = self.highest();
        let from_host = host.llc_bytes.map(|bytes| bytes as f64 / std::f64::consts::E);
        let processor_cache = self.caches.processor_bytes.or(from_host).unwrap_or(1e6);
        let processors = if host.cpus > 0 { f64::from(host.cpus) } else { 2.0 };
        let limit =
            |most: f64| if most > 0.0 { BEYOND_SEEN * most } else { OUT_OF_REACH * highest };
        // Requests per second, bytes read and bytes written per second that surely got to storage.
        let mut most = [0.0_f64; 3];
        for sample in self.samples() {
            let bytes_per_s = sample.ln_throughput.exp();
            let [read, written] = self.beyond(&sample.workload);
            let requests = (read + written) * bytes_per_s / sample.workload.size_mean as f64;
            let here = [requests, read * bytes_per_s, written * bytes_per_s];
            most = std::array::from_fn(|index| most[index].max(here[index]));
        }
        let [requests, read, written] = most;
        let synced = self.samples().filter(|sample| sample.workload.fsync_every > 0);
        let synced_s = synced.map(|sample| {
            let writes = (1.0 - sample.workload.read_frac).max(0.1);
            request_s(sample) * f64::from(sample.workload.depth) / writes
        });
        [
            (self.least_s(0) / 2.0).ln(),
            (self.least_s(1) / 2.0).ln(),
            highest.ln(),
            (highest / 2.0).ln(),
            processor_cache.ln(),
            0.5_f64.ln(),
            processors.ln(),
            1.5_f64.ln(),
            0.0,
            if is_direct { 4.0 } else { 0.0 },
            limit(requests).ln(),
            limit(read).ln(),
            limit(written).ln(),
            0.0,
            0.0,
            (median(synced_s).unwrap_or(1e-3) / 2.0).ln(),
            0.0,
        ]
    }

    /// Shares of requests that surely read from storage and write to it.
    fn beyond(&self, work: &Workload) -> [f64; 2] {
        let share = |sizes: &[f64], asked_from: usize| {
            let held = sizes.get(asked_from).map_or(1.0, |bytes| bytes / work.unique_bytes as f64);
            if CLEAR * held < 1.0 { 1.0 - held } else { 0.0 }
        };
        let [read_from, write_from] = self.caches.shape().asked_from;
        let is_synced = work.fsync_every > 0;
        let written = if is_synced { 1.0 } else { share(&self.caches.write, write_from) };
        let read = share(&self.caches.read, read_from);
        [work.read_frac * read, (1.0 - work.read_frac) * written]
    }

    /// In the order of [`OfCache`], on their scales.
    fn cache(&self, direction: usize, index: usize) -> [f64; PER_CACHE.len()] {
        let sizes = if direction == 0 { &self.caches.read } else { &self.caches.write };
        let size = sizes[index];
        let until = sizes.get(index + 1).map_or(f64::INFINITY, |next| *next);
        let is_there = |sample: &&Sample| {
            let unique = sample.workload.unique_bytes as f64;
            is_mostly(&sample.workload, direction)
                && (size * CLEAR..until * CLEAR).contains(&unique)
        };
        let there = || self.training.samples.iter().filter(is_there);
        let fixed_s = median(there().map(request_s)).unwrap_or(20.0 * self.least_s(direction));
        let rate = |sample: &Sample| sample.workload.size_mean as f64 / request_s(sample);
        let rate = median(there().map(rate)).unwrap_or(self.highest() / 20.0);
        let is_read_ahead = direction == 0 && self.training.ranges.access == Access::Buffered;
        let sequential = if is_read_ahead { 0.2_f64.ln() } else { 0.0 };
        [size.ln(), (fixed_s / 2.0).ln(), sequential, (2.0 * rate).ln()]
    }
}

fn is_mostly(work: &Workload, direction: usize) -> bool {
    let share = if direction == 0 { work.read_frac } else { 1.0 - work.read_frac };
    share >= MOSTLY
}

/// Seconds per request of one process.
fn request_s(sample: &Sample) -> f64 {
    let work = &sample.workload;
    f64::from(work.process_num) * work.size_mean as f64 / sample.ln_throughput.exp()
}
