//! The parameters in words: what a request costs and where, with the error of each figure.

use ioscape_model::units::{KIB, show_bytes, show_rate, show_seconds, three_digits};
use ioscape_model::{Access, Workload};

use super::caches::{READ, WRITE};
use super::law::Law;
use super::parameters::{Common, OfCache, PER_CACHE, Parameter, Scale, TABLE};
use super::{Blend, Coverage};

/// The request that costs are given for.
const SIZE_BYTES: u64 = 16 * KIB;
/// Figures of a miss, of depth and of fdatasyncs whose relative error is larger are left out: the record
/// does not know them.
const ERROR_MAX: f64 = 1.0;
/// Limits whose relative error is larger were not reached.
const LIMIT_ERROR_MAX: f64 = 0.3;

/// The parameters as rows of a table in Markdown: symbol, name, unit, what it is, why it is there, mean
/// of its prior, by which factor (one standard deviation) it may be off, shares apart, and what it brings.
pub fn table() -> String {
    let row = |prefix: &str, it: &Parameter| {
        let Parameter { name, symbol, unit, about, why, expected, sd, brings, .. } = it;
        let off = match it.scale {
            Scale::Ln => format!("× {:.2}", sd.exp()),
            Scale::Logit => format!("{sd} on the logit"),
        };
        let brings: Vec<String> =
            brings.iter().map(|it| format!("{it:.3}").replace('-', "−")).collect();
        format!(
            "| *{symbol}* | `{prefix}{name}` | {unit} | {about} | {why} | {expected} | {off} | {} |\n",
            brings.join(", ")
        )
    };
    let common = TABLE.iter().map(|it| row("", it));
    common.chain(PER_CACHE.iter().map(|it| row("read_, write_", it))).collect()
}

/// A figure drawn from the parameters, with its relative standard error.
struct Told {
    value: f64,
    error: f64,
}

impl Told {
    fn is_known(&self) -> bool {
        self.error < ERROR_MAX
    }

    fn seconds(&self) -> String {
        format!("{} (±{:.0} %)", show_seconds(self.value), 100.0 * self.error)
    }

    fn rate(&self) -> String {
        let rate = SIZE_BYTES as f64 / self.value;
        format!("{} (±{:.0} %)", show_rate(rate), 100.0 * self.error)
    }
}

impl Blend {
    /// A figure and its relative error.
    fn told(&self, figure: &dyn Fn(&Law) -> f64) -> Told {
        let error = self.variance_of(&|law| figure(law).ln()).sqrt();
        Told { value: figure(&self.law), error }
    }

    /// The parameters in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut said =
            vec![if self.access == Access::Direct { self.direct() } else { self.copying() }];
        said.extend(
            (self.caches.first_real..self.caches.read.len()).map(|index| self.missing(index)),
        );
        said.extend(self.writing());
        said.extend(self.limited());
        said.extend(self.in_flight());
        said.extend(self.synced());
        said
    }

    fn copying(&self) -> String {
        let small = |read_frac| Workload {
            unique_bytes: self.unique_bytes.min,
            size_mean: SIZE_BYTES,
            read_frac,
            seq_frac: 0.0,
            ..Workload::default()
        };
        let cost = |read_frac: f64| {
            let work = small(read_frac);
            self.told(&move |law| law.copy_time_s(&work))
        };
        let (read, write) = (cost(1.0), cost(0.0));
        format!(
            "A cached request of 16 KiB takes {} when it reads and {} when it writes; for one \
             process that is {} and {}.",
            read.seconds(),
            write.seconds(),
            read.rate(),
            write.rate()
        )
    }

    fn direct(&self) -> String {
        let work = |read_frac| Workload {
            unique_bytes: self.unique_bytes.max,
            size_mean: SIZE_BYTES,
            read_frac,
            seq_frac: 0.0,
            access: Access::Direct,
            ..Workload::default()
        };
        let cost = |read_frac: f64| {
            let work = work(read_frac);
            self.told(&move |law| SIZE_BYTES as f64 / law.ln_throughput(&work).exp())
        };
        let (read, write) = (cost(1.0), cost(0.0));
        format!(
            "A direct request of 16 KiB at random takes {} when it reads and {} when it writes; \
             for one process that is {} and {}.",
            read.seconds(),
            write.seconds(),
            read.rate(),
            write.rate()
        )
    }

    /// How much faster reads are with the most requests in flight that were measured.
    fn in_flight(&self) -> Option<String> {
        let Coverage { depth, .. } = self.coverage;
        let reads = |depth: u64| Workload {
            unique_bytes: self.unique_bytes.max,
            size_mean: SIZE_BYTES,
            read_frac: 1.0,
            seq_frac: 0.0,
            depth: depth as u32,
            access: self.access,
            ..Workload::default()
        };
        let (one, many) = (reads(1), reads(depth.max));
        let told = self.told(&|law| (law.ln_throughput(&many) - law.ln_throughput(&one)).exp());
        (depth.max > 1 && told.is_known()).then(|| {
            format!(
                "With {} requests in flight, one process reads {} times (±{:.0} %) as fast as with \
                 one (random 16 KiB, {} of data).",
                depth.max,
                three_digits(told.value),
                100.0 * told.error,
                show_bytes(self.unique_bytes.max as f64)
            )
        })
    }

    fn synced(&self) -> Option<String> {
        let told = self.told(&|law| law.get(Common::Sync));
        (self.coverage.fsync_every.max > 0 && told.is_known()).then(|| {
            let cost = told.seconds();
            format!("An fdatasync costs {cost}, shared by the writes since the last one.")
        })
    }

    fn missing(&self, index: usize) -> String {
        let capacity = self.law.cache(READ, index, OfCache::Size);
        let mut parts = vec![format!("A cache holds {} for reads", show_bytes(capacity))];
        for (streamed, name) in [(0.0, "random"), (1.0, "sequential")] {
            let told = self.told(&move |law| law.miss_s(READ, index, SIZE_BYTES as f64, streamed));
            if told.is_known() {
                parts.push(format!("a {name} 16 KiB read that misses it costs {}", told.seconds()));
            }
        }
        parts.join("; ") + "."
    }

    /// The limits that were reached.
    fn limited(&self) -> Option<String> {
        let limit = |which: Common| self.told(&move |law| law.get(which));
        let [requests, read, written] =
            [Common::RequestLimit, Common::ReadLimit, Common::WriteLimit].map(limit);
        let is_apart = self.law.get(Common::LimitShared) < 0.5;
        let kind = if is_apart { " of each kind (reads, writes)" } else { "" };
        let parts = [
            (&requests, format!("{} requests/s{kind}", three_digits(requests.value))),
            (&read, format!("{} read", show_rate(read.value))),
            (&written, format!("{} written", show_rate(written.value))),
        ];
        let known = parts.into_iter().filter(|(told, _)| told.error < LIMIT_ERROR_MAX);
        let known: Vec<String> =
            known.map(|(told, most)| format!("{most} (±{:.0} %)", 100.0 * told.error)).collect();
        (!known.is_empty()).then(|| format!("Storage serves no more than {}.", known.join(", ")))
    }

    fn writing(&self) -> Option<String> {
        let (_, absorbed_bytes) = self.caches_bytes();
        let absorbed_bytes = absorbed_bytes?;
        let last = self.caches.write.len().checked_sub(1)?;
        let beyond = self.told(&|law| law.miss_s(WRITE, last, SIZE_BYTES as f64, 0.0));
        let mut parts =
            vec![format!("Writes are absorbed until {} are dirty", show_bytes(absorbed_bytes))];
        if beyond.is_known() {
            let cost = beyond.seconds();
            parts.push(format!("far beyond, storage takes {cost} for a random 16 KiB write"));
        }
        Some(parts.join("; ") + ".")
    }
}
