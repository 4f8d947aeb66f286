//! A system that applications are asked of, from its record.

use std::collections::BTreeMap;

use ioscape_model::{Element, ElementName, READ_AHEAD_BYTES, Record};

use crate::model::Training;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The record has no elements.
    #[error(
        "the record holds no system vector, so that nothing can be said of applications: \
         `ioscape vector TARGET` measures one, and so does `ioscape run`"
    )]
    NoVector,
    /// The model has no demand.
    #[error(
        "the model says nothing of single operations: make it anew from its trace by `ioscape trace \
         model`"
    )]
    NoDemand,
    /// A change that cannot be.
    #[error("{0}")]
    Change(String),
}

/// Supposed changes of a system.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// Memory for files, bytes.
    pub memory_bytes: Option<f64>,
    /// Memory for files as a multiple of what was found.
    pub memory_factor: Option<f64>,
    /// How many times as fast the device is.
    pub device_factor: Option<f64>,
}

/// A system: its vector, its memory, its processors.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    pub(super) elements: BTreeMap<ElementName, Element>,
    /// Memory that files may take, bytes.
    pub memory_bytes: f64,
    /// Dirty data above which the kernel writes back, and above which writers wait, bytes.
    pub dirty_bytes: (f64, f64),
    /// Processors that run at once: fewer than there are, also a part of one, under a quota.
    pub cpus: f64,
    /// The processor, as it names itself.
    pub cpu_model: String,
    /// How many times as fast the device is as it was found.
    pub device_factor: f64,
    /// The kernel's read-ahead window, bytes.
    pub read_ahead_bytes: f64,
    /// The most that the device reads, where the data sheet says it.
    pub most_read: Option<MostRead>,
    /// Files live in memory: no page and no name of them can be missing.
    pub is_in_memory: bool,
}

/// The most that a device reads, however many ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MostRead {
    /// Requests of 4 KiB per second, 32 in flight.
    pub requests_per_s: f64,
    /// Bytes per second, in sequence.
    pub bytes_per_s: f64,
}

impl MostRead {
    fn from_record(record: &Record) -> Option<Self> {
        let sheet = &record.map.as_ref()?.datasheet;
        let line = |name: &str| sheet.iter().find(|line| line.name == name);
        let requests_per_s = line("read_4k_32")?.ops_per_s.value;
        let bytes_per_s = line("read_1m_8")?.throughput_bytes_per_s.value;
        (requests_per_s > 0.0 && bytes_per_s > 0.0).then_some(Self { requests_per_s, bytes_per_s })
    }
}

/// The kernel limits dirty data to this share of the memory that a group may have, and begins to write
/// back at half of that (mm/page-writeback.c, `vm_dirty_ratio` and `dirty_background_ratio`).
const DIRTY_SHARE: f64 = 0.2;

impl System {
    /// A system of which nothing is known but its vector and its memory for files: one processor, of
    /// no name, and as much dirty data as the kernel allows by itself.
    pub fn new(elements: Vec<Element>, memory_bytes: f64) -> Self {
        Self {
            elements: elements.into_iter().map(|element| (element.name, element)).collect(),
            memory_bytes,
            dirty_bytes: (memory_bytes * DIRTY_SHARE / 2.0, memory_bytes * DIRTY_SHARE),
            cpus: 1.0,
            cpu_model: String::new(),
            device_factor: 1.0,
            read_ahead_bytes: READ_AHEAD_BYTES as f64,
            most_read: None,
            is_in_memory: false,
        }
    }

    /// The system of a record.
    ///
    /// # Errors
    /// Where the record holds no vector.
    pub fn from_record(record: &Record) -> Result<Self, NoAnswer> {
        if record.elements.is_empty() {
            return Err(NoAnswer::NoVector);
        }
        let host = &record.header.host;
        let memory_bytes = memory_bytes(record);
        // A group of version 2 has its part of the limit, too.
        let group_bytes = host.memory_limit_bytes.filter(|_| host.cgroup_version == Some(2));
        let of_group = group_bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
        let least = |limit_bytes: u64, share: f64| match limit_bytes {
            0 => memory_bytes * share,
            bytes => (bytes as f64).min(of_group * share),
        };
        let background_bytes = least(host.dirty_background_bytes, DIRTY_SHARE / 2.0);
        let limit_bytes = least(host.dirty_limit_bytes, DIRTY_SHARE);
        Ok(Self {
            dirty_bytes: (background_bytes, limit_bytes),
            cpus: f64::from(host.cpus.max(1)).min(host.cpu_limit.unwrap_or(f64::INFINITY)),
            cpu_model: host.cpu_model.clone(),
            read_ahead_bytes: record.header.target.reads_ahead_bytes() as f64,
            most_read: MostRead::from_record(record),
            is_in_memory: record.header.target.is_in_memory(),
            ..Self::new(record.elements.clone(), memory_bytes)
        })
    }

    /// The system changed.
    ///
    /// # Errors
    /// Where a change cannot be.
    pub fn changed(&self, change: &WhatIf) -> Result<Self, NoAnswer> {
        let factor = change.memory_factor.unwrap_or(1.0);
        let memory_bytes = change.memory_bytes.unwrap_or(self.memory_bytes) * factor;
        let device_factor = self.device_factor * change.device_factor.unwrap_or(1.0);
        if !(memory_bytes > 0.0 && device_factor > 0.0 && device_factor.is_finite()) {
            let what = "--set: sizes and factors are above zero, as in memory=1GiB,device=2x";
            return Err(NoAnswer::Change(what.to_owned()));
        }
        Ok(Self { memory_bytes, device_factor, ..self.clone() })
    }

    /// The element of a kind of operation, or of the nearest kind that was measured.
    pub fn element(&self, name: ElementName) -> Option<&Element> {
        let name = if self.is_in_memory { in_memory(name) } else { name };
        let direct = self.elements.get(&name);
        direct.or_else(|| nearest(name).iter().find_map(|other| self.elements.get(other)))
    }
}

/// Memory for files: up to the last border of reads, which is the page cache's; else what the limit or
/// the machine leaves.
fn memory_bytes(record: &Record) -> f64 {
    use ioscape_model::Curve;
    let training = Training::from_record(record);
    let is_processors = |place: &usize| training.processor_borders.contains(place);
    let borders = training.borders.iter().enumerate();
    let of_reads = borders.filter(|(place, border)| {
        !is_processors(place) && matches!(border.curve, Curve::Read | Curve::Mixed)
    });
    let host = &record.header.host;
    let limit = host.memory_limit().map_or(f64::INFINITY, |limit| limit as f64);
    let found = of_reads.map(|(_, border)| border.unique_bytes.capacity).fold(0.0, f64::max);
    if found > 0.0 {
        return found.min(limit);
    }
    let available = host.memory_available_bytes.max(1 << 20) as f64;
    limit.min(available)
}

/// The cached kind of an operation: files that live in memory are never missed.
fn in_memory(name: ElementName) -> ElementName {
    use ElementName as E;
    match name {
        E::OpenMissed => E::OpenCached,
        E::StatMissed => E::StatCached,
        E::ReaddirMissed => E::ReaddirEntry,
        E::UnlinkMissed => E::Unlink,
        name => name,
    }
}

/// Kinds of operations that stand in for one that was not measured, the nearest first.
fn nearest(name: ElementName) -> &'static [ElementName] {
    use ElementName as E;
    match name {
        E::CreateExclusive | E::CreateLarge => &[E::Create, E::CreateExclusive],
        E::OpenMissed => &[E::StatMissed],
        E::StatMissed => &[E::OpenMissed],
        E::ReaddirMissed => &[E::ReaddirEntry],
        E::UnlinkMissed => &[E::Unlink],
        E::AppendUnaligned => &[E::Append],
        E::WritePartialCached => &[E::WriteCached],
        E::SyncNew | E::SyncDirectory => &[E::SyncGrown, E::SyncOverwritten],
        E::SyncGrown => &[E::SyncNew, E::SyncOverwritten],
        E::CloseWritten => &[E::Close],
        E::Access => &[E::StatCached],
        E::RingReadHit | E::Sendfile => &[E::ReadHit],
        E::RenameReplace => &[E::Rename],
        E::DirectRead | E::FaultMissed => &[E::ReadRandomMiss],
        E::WriteDsync => &[E::SyncOverwritten],
        _ => &[],
    }
}
