//! Sentences for a storage engineer, each with the figures it rests on: cache sizes, write
//! policy, good request sizes, what reads, sequence and concurrency bring (Chen and Patterson
//! 1994, sections 7 and 8.1). Drawn from the data only: where data are missing there is no
//! sentence, and where a difference is within its interval the sentence says so.

mod bounds;
pub(crate) mod caches;
pub(crate) mod family;
mod levels;
mod policy;
mod rates;
mod shapes;
mod sustained;

use ioscape_model::{
    Access, Border, Curve, Estimate, Finding, FindingCode, FoundBy, Host, Layer, Point, Record,
    Region, State, Target,
};

pub use rates::rate_latency;
pub use sustained::first_and_sustained;

use crate::border::MEMORY_HIT;
use crate::region::CLEAR_OF_BORDER;

/// A border this close to one of the kernel's limits, by this factor, is that limit's.
const NEAR_LIMIT: f64 = 1.4;

/// From so many times a cache's capacity on, most requests miss it.
const FAR_BEYOND: f64 = 1.5;

/// What findings are drawn from: one closed map and what is known of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Pooled workloads.
    pub estimates: &'a [Estimate],
    /// The visits behind them.
    pub points: &'a [Point],
    /// Smallest first.
    pub borders: &'a [Border],
    /// Smallest first.
    pub regions: &'a [Region],
    /// The machine.
    pub host: &'a Host,
    /// What was measured.
    pub target: &'a Target,
    /// The pooled workloads of both layers.
    pub all_estimates: &'a [Estimate],
}

/// All that can be said, the landscape first, then region by region. Regions are numbered among those of the evidence;
/// a map of two layers numbers the device layer's after them.
pub fn findings(evidence: &Evidence<'_>, revision: u32) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(caches::memory_filesystem(evidence));
    found.extend(levels::levels(evidence));
    found.extend(caches::processor_cache(evidence));
    found.extend(caches::read_cache(evidence));
    found.extend(caches::server_cache(evidence));
    found.extend(caches::write_cache(evidence));
    found.extend(policy::write_policy(evidence));
    found.extend(bounds::peak_rates(evidence));
    for (region, number) in evidence.regions.iter().zip(1..) {
        let bound = bounds::bound(evidence, region);
        found.extend(bound.map(|finding| Finding { region: Some(number), ..finding }));
        found.extend(shapes(evidence, region, number));
    }
    found.extend(levels::declining_tail(evidence));
    for finding in &mut found {
        finding.revision = revision;
    }
    found
}

/// What can be said of a device layer: its shapes, region by region, and nothing of caches.
pub fn of_device(evidence: &Evidence<'_>, revision: u32) -> Vec<Finding> {
    let mut found = Vec::new();
    for (region, number) in evidence.regions.iter().zip(1..) {
        found.extend(shapes(evidence, region, number));
    }
    for finding in &mut found {
        finding.layer = Layer::Device;
        finding.revision = revision;
    }
    found
}

/// What the graphs of a region show; the region has this number among those of the evidence.
fn shapes(evidence: &Evidence<'_>, region: &Region, number: u32) -> Vec<Finding> {
    let shown = [
        shapes::read_write_ratio(evidence, region),
        shapes::sequentiality(evidence, region),
        shapes::good_sizes(evidence, region),
        shapes::saturation(evidence, region),
        shapes::concurrency(evidence, region),
    ];
    let shown = shown.into_iter().flatten();
    shown.map(|finding| Finding { region: Some(number), ..finding }).collect()
}

impl<'a> Evidence<'a> {
    /// What a record says of its last map.
    pub fn from_record(record: &'a Record) -> Self {
        Self {
            estimates: &record.estimates,
            points: &record.points,
            borders: &record.borders,
            regions: &record.regions,
            host: &record.header.host,
            target: &record.header.target,
            all_estimates: &record.estimates,
        }
    }

    /// Which of the borders are the processor's last-level cache, as places in `borders`.
    pub fn processor_borders(&self) -> Vec<usize> {
        let places = self.borders.iter().enumerate();
        places.filter(|(_, border)| self.is_processor_cache(border)).map(|(at, _)| at).collect()
    }

    /// The border that reads run into when the page cache is full: of those on the read curve that
    /// are not the processor's cache the one that was counted, else the one with the largest step. Before a
    /// server the smallest.
    pub(crate) fn read_border(&self) -> Option<&'a Border> {
        let reads = self.borders.iter().filter(|border| border.curve != Curve::Write);
        let counted = |border: &Border| border.found_by == FoundBy::Counters;
        let mut reads = reads.filter(|border| !self.is_processor_cache(border));
        if self.target.is_served() {
            // The server's comes behind it, with a step that may be the larger.
            return reads.next();
        }
        reads.max_by(|a, b| counted(a).cmp(&counted(b)).then(a.step.total_cmp(&b.step)))
    }

    /// The border that reads run into where the memory of a server is full as well: the largest beyond
    /// that of this machine's page cache.
    pub(crate) fn server_border(&self) -> Option<&'a Border> {
        let ours = self.read_border().filter(|_| self.has_server_behind())?;
        let behind = self
            .borders
            .iter()
            .filter(|border| border.curve != Curve::Write && border.layer == ours.layer)
            .filter(|border| border.unique_bytes.low > ours.unique_bytes.high);
        let capacity = |border: &Border| border.unique_bytes.capacity;
        behind.max_by(|a, b| capacity(a).total_cmp(&capacity(b)))
    }

    /// True if a server answers what the pages of this machine do not.
    pub(crate) fn has_server_behind(&self) -> bool {
        self.target.is_served() && self.keeps_pages_here()
    }

    /// True if this machine keeps pages of the target. A server's cache is the only one on the way of
    /// direct requests, and of all requests where the mount caches nothing.
    pub(crate) fn keeps_pages_here(&self) -> bool {
        let mut options = self.target.mount_options.split(',');
        let mode = options.find_map(|option| option.strip_prefix("cache="));
        let is_off = match self.target.filesystem.as_str() {
            "9p" => mode.is_none_or(|mode| mode == "none"),
            _ => mode == Some("none") || mode == Some("never"),
        };
        let is_direct = |estimate: &Estimate| estimate.workload.access == Access::Direct;
        let is_past = !self.estimates.is_empty() && self.estimates.iter().all(is_direct);
        !self.target.is_served() || !(is_off || is_past)
    }

    /// Those that writes run into, smallest first. The paper's plan sees one curve of reads and
    /// writes mixed, which says nothing about writes alone.
    pub(crate) fn write_borders(&self) -> Vec<&'a Border> {
        let writes = self.borders.iter().filter(|border| {
            border.curve == Curve::Write
                || (border.curve == Curve::Mixed && border.found_by != FoundBy::Slope)
        });
        writes.filter(|border| !self.is_processor_cache(border)).collect()
    }

    /// Copying gets dearer by a small factor where data no longer fit the last-level cache, but
    /// memory still answers. A cache that could hold all the memory there is has no such border.
    /// Where the counters show that memory answers, the border may lie far below that cache's size and the
    /// factor may be larger: virtual machines have as little of the last level as they are given (63 of 300
    /// MiB were seen), and writes got 4.3 times as slow.
    fn is_processor_cache(&self, border: &Border) -> bool {
        const STEP_MAX: f64 = 4.0;
        /// Buffers, the kernel and other guests of the machine leave this part of it.
        const SHARED_BY: f64 = 4.0;
        let capacity = border.unique_bytes.capacity;
        let llc_bytes = self.host.llc_bytes.filter(|bytes| *bytes < self.memory_bytes());
        let Some(llc_bytes) = llc_bytes.map(|bytes| bytes as f64) else { return false };
        let near = capacity >= llc_bytes / SHARED_BY;
        // Writers do wait for storage at the kernel's limit on dirty data.
        let at_limit = |limit_bytes: u64| {
            border.curve == Curve::Write
                && (capacity / limit_bytes as f64).ln().abs() <= NEAR_LIMIT.ln()
        };
        let is_counted =
            !at_limit(self.host.dirty_background_bytes) && self.counts_memory_behind(border);
        (near && border.step < STEP_MAX || is_counted)
            && capacity <= llc_bytes * 2.0
            && !at_limit(self.host.dirty_limit_bytes)
            && border.found_by != FoundBy::Counters
            && self.is_memory_behind(border)
    }

    /// True if memory answered most visits between a border and the next, by the counters: reads found
    /// their pages, and pages were written again before storage had them.
    fn counts_memory_behind(&self, border: &Border) -> bool {
        let from_bytes = border.unique_bytes.capacity * CLEAR_OF_BORDER;
        let others = self.borders.iter().filter(|other| other.curve == border.curve);
        let next = others.map(|other| other.unique_bytes.low).filter(|low| *low > from_bytes);
        let to_bytes = next.fold(f64::INFINITY, f64::min);
        let is_behind = |point: &&Point| {
            let work = &point.workload;
            let is_cached = work.access == Access::Buffered && work.state == State::Warm;
            let is_plain = work.fsync_every == 0 && work.rate <= 0.0;
            is_cached && is_plain && (from_bytes..to_bytes).contains(&(work.unique_bytes as f64))
        };
        let counted = |point: &Point| match border.curve {
            Curve::Write => {
                point.write_absorbed_fraction.filter(|_| point.workload.read_frac < 1.0)
            }
            Curve::Read => point.hit_fraction.filter(|_| point.workload.read_frac > 0.0),
            Curve::Mixed => None,
        };
        let shares: Vec<f64> = self.points.iter().filter(is_behind).filter_map(counted).collect();
        let all = shares.iter().filter(|share| **share >= MEMORY_HIT).count();
        // More than half are enough: in a short visit many writes are the first to their page and do not
        // count as absorbed.
        2 * all > shares.len()
    }

    /// Whether what was measured next behind a border ran at a speed that only memory has.
    fn is_memory_behind(&self, border: &Border) -> bool {
        const MEMORY_BYTES_PER_S: f64 = 1e9;
        let behind = |curve: &Vec<family::Spot<'_>>| {
            let beyond = |spot: &&family::Spot<'_>| {
                spot.value >= border.unique_bytes.capacity * CLEAR_OF_BORDER
            };
            let next = curve.iter().find(beyond);
            next.is_some_and(|spot| spot.throughput().mean > MEMORY_BYTES_PER_S)
        };
        let curves = family::border_curves(self.estimates, border.curve);
        !curves.is_empty() && curves.iter().all(behind)
    }

    /// The memory this process may use: its limit where there is one below what the machine has.
    /// A control group without a limit shows a number far above the memory.
    fn memory_limit_bytes(&self) -> Option<u64> {
        self.host.memory_limit().filter(|limit| (1..self.host.memory_bytes).contains(limit))
    }

    fn memory_bytes(&self) -> u64 {
        match self.memory_limit_bytes().unwrap_or(self.host.memory_bytes) {
            0 => u64::MAX, // unknown
            bytes => bytes,
        }
    }
}

/// A finding; figures that are not numbers are left out. The revision is filled in at the end.
fn finding(code: FindingCode, text: String, figures: &[(&str, f64)]) -> Finding {
    let figures = figures
        .iter()
        .filter(|(_, value)| value.is_finite())
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect();
    Finding {
        code,
        text,
        region: None,
        clause: None,
        figures,
        layer: Layer::default(),
        revision: 0,
    }
}

/// A finding about a region, from what is said of it: `reads run faster`. The region's number is
/// filled in by who counts the regions.
fn finding_in(
    region: &Region,
    code: FindingCode,
    clause: &str,
    figures: &[(&str, f64)],
) -> Finding {
    let figures = [figures, &family::place_figures(region)].concat();
    Finding { clause: Some(clause.to_owned()), ..finding(code, region.sentence(clause), &figures) }
}

#[cfg(test)]
mod tests;
