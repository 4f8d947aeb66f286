//! What to conclude from the record of a map: what the storage is, how much data is fast, whether
//! memory or the device sets the pace, how far to trust the figures, what to do. Pure functions of
//! the record; the words are made here, so that page, terminal and `--json` cannot disagree.

mod advice;
mod trust;

pub use self::trust::control_range;

use ioscape_model::units::{
    show_iops, show_percent, show_rate, show_seconds, show_size, three_digits,
};
use ioscape_model::{
    Access, Border, Conclusion, Estimate, Interval, Layer, Record, SheetFigures, State,
};

use crate::finding::Evidence;
use crate::finding::caches::server_spot;
use crate::finding::family::{Spot, read_curve, write_curve};

/// From this share of hits on, memory answered the reads.
const HIT: f64 = 0.95;
/// Ratio of the rates before and beyond a border from which on requests beyond it are called slower.
const SLOWER: f64 = 1.1;
/// A size that is known no better than to this half-width is said by its ends.
const ROUGH: f64 = 0.3;

/// The conclusion; none for a record that holds no map, or nothing of one yet.
pub fn conclude(record: &Record) -> Option<Conclusion> {
    let seen = Basis::new(record)?;
    let (reads, writes) = (seen.reads(), seen.writes());
    let of_reads = reads.as_ref().filter(|_| seen.read_border.is_some()).map(Ends::requests);
    let mut of_writes = writes.as_ref().map(Ends::requests).unwrap_or_default();
    // Writes are told right below reads: which requests is said once where they are alike.
    if of_reads.as_ref() == Some(&of_writes) {
        "the same requests".clone_into(&mut of_writes);
    }
    let of_reads = of_reads.unwrap_or_default();
    Some(Conclusion {
        storage: storage(&seen),
        reads: fast(&seen, (seen.read_border, &READING), (reads.as_ref(), &of_reads)),
        writes: fast(&seen, (seen.write_border, &WRITING), (writes.as_ref(), &of_writes)),
        limit: limit(&seen),
        trust: trust::trust(record),
        advice: advice::advice(&seen),
    })
}

/// What conclusions are drawn from.
struct Basis<'a> {
    record: &'a Record,
    /// The workloads of the header's own layer, without those that need io_uring or fdatasync.
    estimates: Vec<Estimate>,
    /// Where reads leave the page cache.
    read_border: Option<&'a Border>,
    /// Where writers begin to wait.
    write_border: Option<&'a Border>,
    /// Where reads leave the memory of a server, behind a network.
    server_border: Option<&'a Border>,
    /// This machine's memory is on the way of requests.
    keeps_pages_here: bool,
}

impl<'a> Basis<'a> {
    fn new(record: &'a Record) -> Option<Self> {
        let map = record.map.as_ref().filter(|_| record.header.method.is_map())?;
        if map.datasheet.is_empty() && record.estimates.is_empty() {
            return None;
        }
        let access = record.header.ranges.access;
        let layer = Layer::of_access(access);
        let is_drawn = |estimate: &&Estimate| {
            let work = &estimate.workload;
            work.access == access && work.state == State::Warm && !work.has_extras()
        };
        let evidence = Evidence::from_record(record);
        let is_here = |border: &&Border| border.layer == layer;
        Some(Self {
            record,
            estimates: record.estimates.iter().filter(is_drawn).cloned().collect(),
            read_border: evidence.read_border().filter(is_here),
            write_border: evidence.write_borders().into_iter().find(is_here),
            server_border: evidence.server_border().filter(is_here),
            keeps_pages_here: access == Access::Buffered && evidence.keeps_pages_here(),
        })
    }

    /// A line of the data sheet.
    fn line(&self, name: &str) -> Option<&'a SheetFigures> {
        let map = self.record.map.as_ref()?;
        map.datasheet.iter().find(|line| line.name == name)
    }

    /// Both ends of the curve of reads.
    fn reads(&self) -> Option<Ends<'_>> {
        Ends::across(&read_curve(&self.estimates)?, self.read_border)
    }

    /// Both ends of the curve of writes.
    fn writes(&self) -> Option<Ends<'_>> {
        Ends::across(&write_curve(&self.estimates)?, self.write_border)
    }

    /// Times as fast 4 KiB reads are out of memory as from the device.
    fn memory_ratio(&self) -> Option<f64> {
        let (cached, device) = (self.line("cached_read_4k")?, self.line("read_4k_1")?);
        Some(cached.ops_per_s.value / device.ops_per_s.value).filter(|ratio| ratio.is_finite())
    }

    fn is_in_memory(&self) -> bool {
        self.record.header.target.is_in_memory()
    }

    fn is_served(&self) -> bool {
        self.record.header.target.is_served()
    }

    /// The last level, behind "the".
    fn last_level(&self) -> &'static str {
        match (self.is_served(), self.server_border) {
            (false, _) => "disk",
            (true, None) => "server",
            (true, Some(_)) => "server's disk",
        }
    }
}

/// A curve before it falls and at its end.
struct Ends<'a> {
    near: Spot<'a>,
    far: Spot<'a>,
}

impl<'a> Ends<'a> {
    /// The median in throughput of the amounts of data from a quarter of the border up to it, or
    /// the largest before it, or the smallest of all; and the largest of all. A single visit just
    /// before the border may have met write-back: on ext4 under 512 MiB the last of six had a p99
    /// of 309 µs, the others 7 to 24 µs.
    fn across(curve: &[Spot<'a>], border: Option<&Border>) -> Option<Self> {
        let onset =
            border.map_or(0.0, |border| border.unique_bytes.onset.min(border.unique_bytes.low));
        let is_close = |spot: &&Spot<'a>| spot.value <= onset && spot.value >= onset / 4.0;
        let mut close: Vec<&Spot<'a>> = curve.iter().filter(is_close).collect();
        close.sort_by(|a, b| a.throughput().mean.total_cmp(&b.throughput().mean));
        let before = close.get(close.len() / 2).copied();
        let before = before.or_else(|| curve.iter().rfind(|spot| spot.value <= onset));
        Some(Self { near: *before.or(curve.first())?, far: *curve.last()? })
    }

    /// `buffered random 16 KiB, 1 process`.
    fn requests(&self) -> String {
        let work = &self.far.estimate.workload;
        let order = match work.seq_frac {
            ..=0.0 => "random".to_owned(),
            1.0.. => "sequential".to_owned(),
            part => format!("{} sequential", show_percent(part)),
        };
        let many = if work.process_num == 1 { "process" } else { "processes" };
        let layer = if work.access == Access::Buffered { "buffered " } else { "" };
        let size = show_size(work.size_mean as f64);
        format!("{layer}{order} {size}, {} {many}", work.process_num)
    }

    /// Times as fast before the fall as at the end.
    fn ratio(&self) -> f64 {
        self.near.throughput().mean / self.far.throughput().mean
    }
}

/// `4.12 GB/s, 251k IOPS, p99 5.12 µs`.
fn pace(spot: &Spot<'_>) -> String {
    format!(
        "{}, {} IOPS, p99 {}",
        show_rate(spot.throughput().mean),
        show_iops(spot.estimate.ops_per_s.mean),
        show_seconds(spot.estimate.response_time_s.p99)
    )
}

/// Words that stand before the speed at the largest data set. Reads are partly served from memory:
/// `27 % cached, `. Writes are measured after memory has filled: `falls to a sustained `, or `once
/// steady, ` where they do not fall.
fn kind_of_figure(ends: &Ends<'_>) -> String {
    /// Less changes no figure that is shown.
    const LITTLE: f64 = 0.005;
    let reads = ends.far.estimate.workload.read_frac > 0.0;
    let hits = ends.far.estimate.hit_fraction.filter(|hits| reads && *hits >= LITTLE);
    match hits {
        Some(hits) => format!("{} cached, ", show_percent(hits)),
        None if reads => String::new(),
        None if ends.ratio() > SLOWER => "falls to a sustained ".to_owned(),
        None => "once steady, ".to_owned(),
    }
}

/// What kind of device answers a random 4 KiB read so soon (the median, so that a tail does not
/// decide): flash needs some 50 to 150 µs, a network some 500 µs, an arm that moves several ms.
fn character(median_s: f64) -> &'static str {
    match median_s {
        ..15e-6 => "Answers faster than flash can: a cache below the operating system, or memory",
        ..350e-6 => "Behaves like flash (SSD)",
        ..2.5e-3 => "Behaves like a network volume or a slow SSD",
        _ => "Behaves like a spinning disk",
    }
}

fn storage(seen: &Basis<'_>) -> String {
    let target = &seen.record.header.target;
    let simulated = if target.is_simulated() { "Simulated. " } else { "" };
    if seen.is_in_memory() {
        let filesystem = &target.filesystem;
        return format!("Lives in memory ({filesystem}): no disk is behind it.{}", cached(seen));
    }
    let Some(one) = seen.line("read_4k_1") else {
        let levels = match (seen.reads(), seen.read_border) {
            (Some(ends), Some(_)) => format!(
                "Reads run at {} from memory and at {} over {} of data.",
                show_rate(ends.near.throughput().mean),
                show_rate(ends.far.throughput().mean),
                show_size(ends.far.value)
            ),
            (None, Some(border)) => format!(
                "A cache of {}, and storage beyond it.",
                show_size(border.unique_bytes.capacity)
            ),
            _ => "One level: no end of a cache was found.".to_owned(),
        };
        return simulated.to_owned() + &levels;
    };
    let mean = show_seconds(one.response_time_s.mean.value);
    if seen.is_served() {
        let filesystem = &target.filesystem;
        return format!(
            "Files of another machine ({filesystem}): a random 4 KiB read takes {mean} on average, out of \
             that machine's memory or from its disk."
        );
    }
    let character = character(one.response_time_s.p50.value);
    format!("{simulated}{character}: a random 4 KiB read takes {mean} on average.")
}

/// ` From memory a 4 KiB read takes 1.39 µs (720k IOPS).`
fn cached(seen: &Basis<'_>) -> String {
    seen.line("cached_read_4k").map_or_else(String::new, |line| {
        format!(
            " From memory a 4 KiB read takes {} ({} IOPS).",
            show_seconds(line.response_time_s.mean.value),
            show_iops(line.ops_per_s.value)
        )
    })
}

/// The words for one direction.
struct Way {
    /// The visit's requests go to one data set, which is `read` or `rewritten`.
    again: &'static str,
    /// Reads come `from` memory, writes go `into` it.
    preposition: &'static str,
    /// The line of the data sheet that is served from memory as well, by requests of another size.
    memory_line: Option<&'static str>,
}

const READING: Way =
    Way { again: "read", preposition: "from", memory_line: Some("cached_read_4k") };
const WRITING: Way = Way { again: "rewritten", preposition: "into", memory_line: None };

/// `buffered random 16 KiB, 1 process. Data set up to 256 MiB, read over and over: from memory, 4 GB/s. Data set of
/// 1 GiB: 100 MB/s`
fn fast(
    seen: &Basis<'_>,
    (border, way): (Option<&Border>, &Way),
    (ends, requests): (Option<&Ends<'_>>, &str),
) -> String {
    if seen.record.header.is_read_only {
        return "not mapped: with --read-only there is only the data sheet".to_owned();
    }
    if seen.record.header.is_quick || seen.estimates.is_empty() {
        return "not measured: only the data sheet was asked for".to_owned();
    }
    match (border, ends) {
        (Some(border), Some(ends)) => format!(
            "{requests}. Data set up {}, {} over and over: {} {}, {}{}{}. Data set of {}: {}{}",
            capacity(border),
            way.again,
            way.preposition,
            cache_of(seen, border),
            pace(&ends.near),
            other_size(seen, way, border, &ends.near),
            from_server(seen, way, border),
            show_size(ends.far.value),
            kind_of_figure(ends),
            pace(&ends.far),
        ),
        (Some(border), None) => format!("fast for a data set up {}", capacity(border)),
        (None, Some(ends)) => {
            let most = show_size(ends.far.value);
            format!("no limit found: {most}, the most that was tried, at {}", pace(&ends.far))
        }
        (None, None) => "too few measurements to say".to_owned(),
    }
}

/// `. Data set up to 256 MiB (±3.2 %): the rest from the server's memory, 82.1 MB/s`, or nothing.
fn from_server(seen: &Basis<'_>, way: &Way, border: &Border) -> String {
    let told = || {
        let server = seen.server_border.filter(|_| way.memory_line.is_some())?;
        let spot = server_spot(&read_curve(&seen.estimates)?, border, server)?;
        let (up, pace) = (capacity(server), pace(&spot));
        Some(format!(". Data set up {up}: the rest from the server's memory, {pace}"))
    };
    told().unwrap_or_default()
}

/// ` (2.43 GB/s in 4 KiB requests)`: the other speed from memory that stands on the page.
fn other_size(seen: &Basis<'_>, way: &Way, border: &Border, near: &Spot<'_>) -> String {
    let is_other = |line: &&SheetFigures| {
        border.layer == Layer::Cache && line.workload.size_mean != near.estimate.workload.size_mean
    };
    let line = way.memory_line.and_then(|name| seen.line(name)).filter(is_other);
    line.map_or_else(String::new, |line| {
        let (rate, size) = (line.throughput_bytes_per_s.value, line.workload.size_mean as f64);
        format!(" ({} in {} requests)", show_rate(rate), show_size(size))
    })
}

/// `to 4.00 GiB (±1.3 %)`; `to somewhere between 200 MiB and 1.00 GiB` where it is known no better.
fn capacity(border: &Border) -> String {
    let at = border.unique_bytes;
    let width = half_width(at.low, at.capacity, at.high);
    if width > ROUGH {
        let (low, high) = (show_size(at.low), show_size(at.high));
        return format!("to somewhere between {low} and {high}");
    }
    format!("to {} (±{})", show_size(at.capacity), show_percent(width))
}

/// The cache that serves requests for less data than this border.
fn cache_of(seen: &Basis<'_>, border: &Border) -> &'static str {
    match border.layer {
        _ if seen.is_served() && !seen.keeps_pages_here => "the server's memory",
        Layer::Device => "a cache of the device",
        Layer::Cache => "memory",
    }
}

fn limit(seen: &Basis<'_>) -> String {
    if seen.is_in_memory() {
        return "Memory and the processor: there is no disk.".to_owned();
    }
    if seen.record.header.ranges.access == Access::Direct {
        let last = if seen.is_served() { "server" } else { "device" };
        return format!("The {last}: direct I/O bypasses the page cache.");
    }
    if let Some(border) = seen.read_border {
        let capacity = show_size(border.unique_bytes.capacity);
        let last = seen.last_level();
        let Some(ends) = seen.reads() else { return format!("The {last}, beyond {capacity}.") };
        if ends.ratio() <= SLOWER {
            let writes = slow_writes(seen).map_or_else(String::new, |slow| {
                let SlowWrites { capacity, ratio, far } = slow;
                format!(
                    "; writes at {far} of data are {ratio} times slower than into memory, which serves \
                     data sets up to {capacity}"
                )
            });
            return format!(
                "The {last}. Reads keep their speed beyond {capacity} of data, measured up to {}{writes}.",
                show_size(ends.far.value)
            );
        }
        let far = show_size(ends.far.value);
        let writes = slow_writes(seen).map_or_else(String::new, |slow| {
            let at = if slow.far == far { String::new() } else { format!(" at {}", slow.far) };
            format!(", writes {} times{at}", slow.ratio)
        });
        return format!(
            "The {last}: at {far} of data reads are {} times slower than from memory{writes}.",
            three_digits(ends.ratio())
        );
    }
    let hits =
        seen.reads().and_then(|ends| Some((ends.far.value, ends.far.estimate.hit_fraction?)));
    let ratio = seen.memory_ratio().map_or_else(String::new, |ratio| {
        format!(" The device itself answers {} times as slowly.", three_digits(ratio))
    });
    match hits {
        Some((bytes, share)) if share >= HIT => {
            format!(
                "None met: memory answered all reads of up to {}, the most that was tried.{ratio}",
                show_size(bytes)
            )
        }
        Some((bytes, _)) => {
            let last = seen.last_level();
            format!("The {last}: over {} reads miss the cache.{ratio}", show_size(bytes))
        }
        None if ratio.is_empty() => {
            "Not known: no border was found and no hits were counted.".to_owned()
        }
        None => format!(
            "Memory while data fit into it, the {} beyond; where that is was not measured.{ratio}",
            seen.last_level()
        ),
    }
}

/// How much slower writes are beyond their border, as shown: from which amount of data on, how many
/// times, and at which amount that was measured.
struct SlowWrites {
    capacity: String,
    ratio: String,
    far: String,
}

/// None where the border of writes is not known, or writes beyond it are as fast.
fn slow_writes(seen: &Basis<'_>) -> Option<SlowWrites> {
    let border = seen.write_border?;
    let ends = seen.writes().filter(|ends| ends.ratio() > SLOWER)?;
    Some(SlowWrites {
        capacity: show_size(border.unique_bytes.capacity),
        ratio: three_digits(ends.ratio()),
        far: show_size(ends.far.value),
    })
}

/// One figure over another, as far as that is a number.
fn ratio(a: f64, b: f64) -> Option<f64> {
    Some(a / b).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

/// Half of an interval's width over the figure.
fn half_width(low: f64, mean: f64, high: f64) -> f64 {
    Interval { mean, low, high }.relative_half_width()
}

#[cfg(test)]
mod tests;
