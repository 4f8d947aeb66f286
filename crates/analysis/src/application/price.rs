//! Counts times times: what each category takes on a system.

use ioscape_model::app::{Category, Demand, DirtyRung, Misses, OverlapRung};
use ioscape_model::{Element, ElementName, Figure};

use super::{System, Term};

const PAGE_BYTES: f64 = 4096.0;
/// Entries of the directories whose listing from storage is timed: a hundred files and two for itself
/// (`engine/src/elements/forgotten.rs`).
const MISSED_DIRECTORY_ENTRIES: f64 = 102.0;

/// How far the model itself is off, as standard deviations of a relative error: choices, none of them
/// fitted. Operations in memory take up to half as long again between other work as in a loop; a
/// device answers otherwise when requests come singly, and another minute (syncs of one filesystem took
/// 0.43 to 0.62 ms within half an hour); write-back chooses its own time.
pub(super) const WORK_SD: f64 = 0.05;
/// Work of a program that waits for no device here, as it may have done where it was recorded: after a
/// wait the processor's own caches are cold, and work takes up to half as long again.
const UNINTERRUPTED_WORK_SD: f64 = 0.3;
const MEMORY_SD: f64 = 0.25;
const CHANGE_SD: f64 = 0.25;
const SYNC_SD: f64 = 0.2;
pub(super) const MISS_SD: f64 = 0.2;
pub(super) const WRITE_BACK_SD: f64 = 0.3;
const RECORDED_SD: f64 = 0.3;
/// Share of these errors that is the same on every system.
const SHARED: f64 = 0.5;
/// Processor speeds known only by their names are as far apart as this where the names differ.
const OTHER_PROCESSOR_SD: f64 = 0.3;
/// Half of a 95 % interval over the standard error behind it, twice.
const SIGMAS_OF_95_BOTH: f64 = 2.0 * 1.96;

/// How an operation's time comes about: which part a faster device shortens, how far off it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Memory,
    Change,
    Sync,
    Miss,
}

impl Kind {
    fn holding(name: ElementName) -> Self {
        use ElementName as E;
        match name {
            E::SyncOverwritten | E::SyncGrown | E::SyncNew | E::SyncDirectory | E::WriteDsync => {
                Self::Sync
            }
            E::OpenMissed
            | E::StatMissed
            | E::ReaddirMissed
            | E::UnlinkMissed
            | E::DirectRead
            | E::DirectWrite => Self::Miss,
            E::Create
            | E::CreateLarge
            | E::CreateExclusive
            | E::Unlink
            | E::Rename
            | E::RenameReplace
            | E::Mkdir
            | E::Rmdir
            | E::Link
            | E::Symlink
            | E::Truncate
            | E::Fallocate
            | E::CopyRange => Self::Change,
            _ => Self::Memory,
        }
    }

    const fn model_sd(self) -> f64 {
        match self {
            Self::Memory => MEMORY_SD,
            Self::Change => CHANGE_SD,
            Self::Sync => SYNC_SD,
            Self::Miss => MISS_SD,
        }
    }

    const fn is_of_device(self) -> bool {
        matches!(self, Self::Sync | Self::Miss)
    }
}

/// All parts of the time along the critical path.
pub(super) fn terms(system: &System, demand: &Demand, warnings: &mut Vec<String>) -> Vec<Term> {
    let (speed, speed_sd) = processor_speed(system, demand, warnings);
    let work = &demand.work;
    let work_sd = if system.is_in_memory { UNINTERRUPTED_WORK_SD } else { WORK_SD };
    let mut terms = vec![
        Term {
            is_processors: true,
            ..own(WORK, work.gaps as f64, work.processor_s * speed, work_sd.hypot(speed_sd))
        },
        own("other_waits", work.streams as f64, work.other_s, RECORDED_SD),
        own("idle", work.streams as f64, work.idle_s, WORK_SD),
    ];
    for (word, category) in &demand.categories {
        if word != FAULT {
            terms.push(category_term(system, (word, category), speed));
        }
    }
    terms.extend(misses(system, demand));
    terms
}

/// A part that the recording alone says.
fn own(category: &str, count: f64, seconds: f64, model_sd: f64) -> Term {
    let category = category.to_owned();
    let (measured_sd, shared, is_processors) = (0.0, 1.0, false);
    Term { category, count, seconds, measured_sd, model_sd, shared, is_processors }
}

/// Category of the processor time that a program spends between its calls.
pub(super) const WORK: &str = "work";
/// Touches of mapped pages, as the trace counts them.
const FAULT: &str = "fault";
/// Operations on other devices: they stay there.
const ELSEWHERE: &str = "elsewhere";

fn name_of(word: &str) -> Option<ElementName> {
    ElementName::ALL.iter().copied().find(|name| name.word() == word)
}

fn category_term(system: &System, (word, category): (&str, &Category), speed: f64) -> Term {
    let count = category.count as f64;
    let element = name_of(word).and_then(|name| Some((name, system.element(name)?)));
    let Some((name, element)) = element else {
        let seconds = count * category.mean_s.unwrap_or(0.0) * speed * category.critical_frac;
        return own(word, count, seconds, RECORDED_SD);
    };
    // A miss that is none where files live in memory is an operation of another kind.
    let kind = Kind::holding(if system.is_in_memory { element.name } else { name });
    let mut seconds = seconds_of(system, name, element, category).max(0.0);
    let mut measured_sd = measured_sd(element);
    if kind.is_of_device() {
        seconds /= system.device_factor;
    } else if let Some(recorded_s) = category.mean_s.filter(|mean_s| *mean_s > 0.0) {
        let sure = sureness(measured_sd);
        seconds = weighted(seconds, count * recorded_s * speed, sure);
        measured_sd *= sure.sqrt();
    }
    Term {
        category: word.to_owned(),
        count,
        seconds: seconds * category.critical_frac,
        measured_sd,
        model_sd: kind.model_sd(),
        shared: SHARED,
        is_processors: !kind.is_of_device(),
    }
}

/// Operations that no device takes part in differ between systems by about this, as a standard
/// deviation of a logarithm: a choice, wide enough that an element of usual precision stands as it is.
const BETWEEN_SYSTEMS_SD: f64 = 1.0;

/// Weight of an element against what the recording saw: near 1 unless the element was disturbed.
fn sureness(measured_sd: f64) -> f64 {
    let (prior, measured) = (BETWEEN_SYSTEMS_SD.powi(2), measured_sd.powi(2));
    prior / (prior + measured)
}

/// Mean of two times by their logarithms.
fn weighted(seconds: f64, recorded_s: f64, weight: f64) -> f64 {
    if seconds <= 0.0 || recorded_s <= 0.0 {
        return seconds.max(0.0);
    }
    (weight * seconds.ln() + (1.0 - weight) * recorded_s.ln()).exp()
}

/// Time of all operations of a category on the system, one after the other, seconds.
fn seconds_of(system: &System, name: ElementName, element: &Element, category: &Category) -> f64 {
    let (count, bytes) = (category.count as f64, category.bytes as f64);
    let (pages, extents) = (category.pages as f64, category.extents as f64);
    let terms = &element.terms;
    match name {
        // Each directory is a read of its own, however few entries it has.
        ElementName::ReaddirMissed if element.name == name => {
            pages.max(count * MISSED_DIRECTORY_ENTRIES) * element.time_s.value
        }
        // An entry is an operation.
        ElementName::ReaddirEntry | ElementName::ReaddirMissed => pages * element.time_s.value,
        // Measured at one size: bytes beyond that cost what aligned ones do.
        ElementName::AppendUnaligned | ElementName::WritePartialCached => {
            let own_bytes = if name == ElementName::AppendUnaligned { 4120.0 } else { 100.0 };
            let whole = if name == ElementName::AppendUnaligned {
                ElementName::Append
            } else {
                ElementName::WriteCached
            };
            let per_byte_s = system.element(whole).map_or(0.0, |e| e.terms.per_byte_s);
            count * element.time_s.value + (bytes - own_bytes * count) * per_byte_s
        }
        ElementName::SyncGrown | ElementName::SyncNew | ElementName::WriteDsync
            if terms.per_extent_s == 0.0 =>
        {
            let further = (extents - count).max(0.0) * extent_s(system);
            if !has_amount(element) {
                return count * element.time_s.value + further;
            }
            count * terms.per_call_s + pages * terms.per_page_s + bytes * terms.per_byte_s + further
        }
        _ if has_amount(element) => {
            count * terms.per_call_s
                + bytes * terms.per_byte_s
                + pages * terms.per_page_s
                + extents * terms.per_extent_s
        }
        _ => count * element.time_s.value,
    }
}

/// Time of a further piece of dirty data in one sync: told where pieces far apart are overwritten.
fn extent_s(system: &System) -> f64 {
    system.element(ElementName::SyncOverwritten).map_or(0.0, |element| element.terms.per_extent_s)
}

fn has_amount(element: &Element) -> bool {
    let terms = &element.terms;
    [terms.per_byte_s, terms.per_page_s, terms.per_extent_s].iter().any(|term| *term != 0.0)
}

/// Relative standard error of an element, from its 95 % interval.
fn measured_sd(element: &Element) -> f64 {
    let Figure { value, low, high } = element.time_s;
    if value > 0.0 { (high - low).max(0.0) / (value * SIGMAS_OF_95_BOTH) } else { 0.0 }
}

/// Time of reads from the device, beyond what a read of cached data takes.
fn misses(system: &System, demand: &Demand) -> Vec<Term> {
    let missing = at_memory(demand, system.memory_bytes);
    let frac = |word: &str| demand.categories.get(word).map_or(1.0, |c| c.critical_frac);
    let hit = system.element(ElementName::ReadHit);
    let (hit_call_s, hit_byte_s) =
        hit.map_or((0.0, 0.0), |hit| (hit.terms.per_call_s, hit.terms.per_byte_s));
    let term = |name: ElementName, count: f64, seconds: f64, critical_frac: f64| {
        let element = system.element(name)?;
        Some(Term {
            category: name.word().to_owned(),
            count,
            seconds: seconds.max(0.0) * critical_frac / system.device_factor,
            measured_sd: measured_sd(element),
            model_sd: MISS_SD,
            shared: SHARED,
            is_processors: false,
        })
    };
    let mut terms = Vec::new();
    if let Some(miss) = system.element(ElementName::ReadRandomMiss) {
        let (requests, bytes) = (missing.random_requests, missing.random_pages * PAGE_BYTES);
        let seconds = requests * (call_s(miss) - hit_call_s)
            + bytes * (miss.terms.per_byte_s - hit_byte_s).max(0.0);
        terms.extend(term(ElementName::ReadRandomMiss, requests, seconds, frac("read_hit")));
    }
    let byte_s = sequential_byte_s(system);
    if let Some(byte_s) = byte_s {
        let bytes = missing.sequential_pages * PAGE_BYTES;
        let share = (bytes / (demand.sequential_bytes as f64).max(1.0)).min(1.0);
        let read_s = bytes * (byte_s - hit_byte_s).max(0.0) / system.device_factor;
        let window_s = system.read_ahead_bytes * byte_s / system.device_factor;
        let waited_s = read_s - hidden_s(&demand.overlap, window_s) * share;
        let name = ElementName::ReadSequentialMiss;
        let seconds = waited_s.max(0.0) * system.device_factor;
        terms.extend(term(name, missing.sequential_pages, seconds, frac("read_hit")));
    }
    if let Some(fault) = system.element(ElementName::FaultMissed) {
        let more = (missing.mapped_pages - missing.mapped_requests).max(0.0) * PAGE_BYTES;
        let requests = missing.mapped_requests;
        let seconds = requests * fault.time_s.value + more * byte_s.unwrap_or(0.0);
        terms.extend(term(ElementName::FaultMissed, requests, seconds, frac(FAULT)));
    }
    if let Some(partial) = system.element(ElementName::WritePartialMiss) {
        let cached = system.element(ElementName::WritePartialCached);
        let more_s = partial.time_s.value - cached.map_or(0.0, |cached| cached.time_s.value);
        let pages = missing.partial_pages;
        let frac = frac(ElementName::WritePartialCached.word());
        terms.extend(term(ElementName::WritePartialMiss, pages, pages * more_s, frac));
    }
    terms
}

/// Time between reads in which read-ahead works, where it takes `window_s` for what it fetches before
/// it waits for the reader.
fn hidden_s(rungs: &[OverlapRung], window_s: f64) -> f64 {
    let above = rungs.iter().position(|rung| rung.limit_s >= window_s);
    match above {
        None => rungs.last().map_or(0.0, |last| last.seconds),
        Some(0) if window_s <= 0.0 => 0.0,
        Some(0) => rungs[0].seconds * (window_s / rungs[0].limit_s),
        Some(at) => {
            let (low, high) = (&rungs[at - 1], &rungs[at]);
            let weight = (window_s - low.limit_s) / (high.limit_s - low.limit_s);
            low.seconds + weight * (high.seconds - low.seconds)
        }
    }
}

/// Time of a call without its bytes; all of it where nothing was asked about bytes.
fn call_s(element: &Element) -> f64 {
    if has_amount(element) { element.terms.per_call_s } else { element.time_s.value }
}

fn sequential_byte_s(system: &System) -> Option<f64> {
    const PIECE_BYTES: f64 = 131_072.0;
    let element = system.element(ElementName::ReadSequentialMiss)?;
    let per_byte_s = element.terms.per_byte_s;
    Some(if per_byte_s > 0.0 { per_byte_s } else { element.time_s.value / PIECE_BYTES })
}

/// Misses of a cache of this size: between two rungs along the logarithm of the size.
pub(super) fn at_memory(demand: &Demand, memory_bytes: f64) -> Misses {
    let rungs = &demand.caches;
    let above = rungs.iter().position(|rung| rung.memory_bytes as f64 >= memory_bytes);
    let (low, high, weight) = match above {
        _ if rungs.is_empty() => return Misses::default(),
        None => return rungs[rungs.len() - 1].as_recorded,
        Some(0) => return rungs[0].as_recorded,
        Some(at) => {
            let (low, high) = (&rungs[at - 1], &rungs[at]);
            let (from, to) = (low.memory_bytes as f64, high.memory_bytes as f64);
            (low.as_recorded, high.as_recorded, (memory_bytes / from).ln() / (to / from).ln())
        }
    };
    let mix = |low: f64, high: f64| low + weight * (high - low);
    Misses {
        random_requests: mix(low.random_requests, high.random_requests),
        random_pages: mix(low.random_pages, high.random_pages),
        sequential_pages: mix(low.sequential_pages, high.sequential_pages),
        mapped_requests: mix(low.mapped_requests, high.mapped_requests),
        mapped_pages: mix(low.mapped_pages, high.mapped_pages),
        partial_pages: mix(low.partial_pages, high.partial_pages),
    }
}

/// The device's work.
pub(super) struct DeviceBound {
    pub(super) seconds: f64,
    /// Pages that must be written back before the end.
    pub(super) pages: f64,
}

/// Time of the device for what it reads and syncs, and for what must be written back before the end,
/// because more would be dirty than may be.
pub(super) fn device_bound(system: &System, demand: &Demand, terms: &[Term]) -> DeviceBound {
    let (background, limit) = system.dirty_bytes;
    let written = written_back(&demand.write_back, background);
    let pages = (written - (limit - background).max(0.0) / PAGE_BYTES).max(0.0);
    let page_s = page_written_s(system, demand);
    let is_of_device = |term: &&Term| {
        let name = name_of(&term.category);
        name.is_some_and(|name| Kind::holding(name).is_of_device())
            || term.category == ElementName::ReadRandomMiss.word()
            || term.category == ElementName::ReadSequentialMiss.word()
            || term.category == ElementName::FaultMissed.word()
    };
    let others_s: f64 = terms.iter().filter(is_of_device).map(|term| term.seconds).sum();
    let seconds = if pages > 0.0 { pages * page_s + others_s } else { 0.0 };
    DeviceBound { seconds, pages }
}

/// Time of the device for all that must be read from it, and how many requests that is: threads that wait
/// side by side still share it. A name that is missing takes the part of a request that its time is of
/// a page's.
pub(super) fn device_reads(system: &System, demand: &Demand) -> Option<(f64, f64)> {
    let most = system.most_read.filter(|_| !system.is_in_memory)?;
    let missing = at_memory(demand, system.memory_bytes);
    let page_s = system.element(ElementName::ReadRandomMiss)?.time_s.value;
    let names = [ElementName::StatMissed, ElementName::OpenMissed, ElementName::UnlinkMissed];
    let of_names = |name: ElementName| {
        let count = demand.categories.get(name.word()).map_or(0, |category| category.count);
        let name_s = system.element(name).map_or(0.0, |element| element.time_s.value);
        count as f64 * (name_s / page_s).clamp(0.0, 1.0)
    };
    let names: f64 = names.into_iter().map(of_names).sum();
    let requests = missing.random_requests + missing.mapped_requests + names;
    let pages = missing.random_pages + missing.sequential_pages + missing.mapped_pages;
    let seconds = (requests / most.requests_per_s).max(pages * PAGE_BYTES / most.bytes_per_s);
    Some((seconds / system.device_factor, requests))
}

/// Time of the device for a page that is written back: in sequence as far as files were appended to.
fn page_written_s(system: &System, demand: &Demand) -> f64 {
    let bytes = |name: ElementName| {
        demand.categories.get(name.word()).map_or(0.0, |category| category.bytes as f64)
    };
    let grown = bytes(ElementName::Append)
        + bytes(ElementName::AppendUnaligned)
        + bytes(ElementName::CopyRange);
    let over = bytes(ElementName::WriteCached) + bytes(ElementName::WritePartialCached);
    let random = if over > 0.0 { over / (over + grown) } else { 0.0 };
    let time = |name| system.element(name).map(|element| element.time_s.value);
    let sequential_s = time(ElementName::WriteBack).unwrap_or(0.0);
    let random_s = time(ElementName::WriteBackRandom).unwrap_or(sequential_s);
    (sequential_s * (1.0 - random) + random_s * random) / system.device_factor
}

/// Pages written back in the background where so much may be dirty.
fn written_back(rungs: &[DirtyRung], dirty_bytes: f64) -> f64 {
    let above = rungs.iter().position(|rung| rung.dirty_bytes as f64 >= dirty_bytes);
    match above {
        // More may be dirty than the highest rung has, which is more than all that is written.
        None => 0.0,
        Some(0) => rungs[0].pages as f64,
        Some(at) => {
            let (low, high) = (&rungs[at - 1], &rungs[at]);
            let (from, to) = (low.dirty_bytes as f64, high.dirty_bytes as f64);
            let weight = (dirty_bytes - from) / (to - from);
            low.pages as f64 + weight * (high.pages as f64 - low.pages as f64)
        }
    }
}

/// Processor time of the work of all streams on the system, and of their calls along the critical path,
/// seconds.
pub(super) fn processor_s(system: &System, demand: &Demand, terms: &[Term]) -> f64 {
    let of_calls = |term: &&Term| term.is_processors && term.category != WORK;
    let calls_s: f64 = terms.iter().filter(of_calls).map(|term| term.seconds).sum();
    calls_s + demand.work.processor_total_s * processor_speed(system, demand, &mut Vec::new()).0
}

/// How long the processor takes compared with the one of the recording, and how unsure that is. By
/// the same loop timed on both; else alike where both have one name.
fn processor_speed(system: &System, demand: &Demand, warnings: &mut Vec<String>) -> (f64, f64) {
    let here = system.element(ElementName::Processor);
    match (here, demand.machine.processor_s) {
        (Some(here), Some(there_s)) if there_s > 0.0 => {
            (here.time_s.value / there_s, measured_sd(here))
        }
        _ if demand.machine.cpu_model == system.cpu_model => (1.0, 0.0),
        _ => {
            warnings.push(
                "recorded on another kind of processor whose speed is not known: taken for as fast"
                    .to_owned(),
            );
            (1.0, OTHER_PROCESSOR_SD)
        }
    }
}

/// Share of the calls on the storage asked about that no element prices.
pub(super) fn unclassified(system: &System, demand: &Demand) -> f64 {
    let (mut all, mut without) = (0, 0);
    for (word, category) in &demand.categories {
        if word == ELSEWHERE || word == FAULT {
            continue;
        }
        all += category.count;
        if name_of(word).and_then(|name| system.element(name)).is_none() {
            without += category.count;
        }
    }
    if all == 0 { 0.0 } else { without as f64 / all as f64 }
}
