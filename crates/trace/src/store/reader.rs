//! Reads a trace, whole or cut, some ten thousand rows at a time.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::statistics::Statistics;

use super::columns::{Column, Entry, FILE, STREAM};
use super::rows::{self, EntryRows, EventRows};
use super::{Names, StoreError, VERSION, segment};
use crate::{Event, FileEntry, Sink, StreamEntry, TraceInfo};

/// Events between two looks at the progress.
const LOOK_EVENTS: u64 = 1 << 16;

/// A trace that can be read.
pub struct Store<R: ChunkReader> {
    reader: Arc<R>,
    info: TraceInfo,
    names: Names,
    is_cut: bool,
    events: Vec<RowGroupMetaData>,
    entries: Vec<RowGroupMetaData>,
}

/// The tables of files and streams, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// What events mean by `file`.
    pub files: Vec<FileEntry>,
    /// What events mean by `stream`.
    pub streams: Vec<StreamEntry>,
}

impl<R: ChunkReader + 'static> Store<R> {
    /// Opens a trace. One that was cut is read as far as it was whole, and its `limits` say so.
    ///
    /// # Errors
    /// When it is no trace, or a later version's, or cannot be read.
    pub fn open(reader: R) -> Result<Self, StoreError> {
        let footers = segment::read(&reader)?;
        if footers.whole.version > VERSION {
            return Err(StoreError::Newer(footers.whole.version));
        }
        let reader = Arc::new(reader);
        let (mut events, mut entries) = (Vec::new(), Vec::new());
        for group in footers.groups {
            match rows::first_op(&reader, &group)? {
                Some(op) if op == FILE || op == STREAM => entries.push(group),
                Some(_) => events.push(group),
                None => {}
            }
        }
        let mut info = footers.whole.info;
        if footers.is_cut {
            let last_ns = events.iter().filter_map(newest_ns).max().unwrap_or(0);
            info.elapsed_s = last_ns as f64 / 1e9;
            info.limits.push(
                "the trace was cut: what came after its last whole part is missing".to_owned(),
            );
        }
        let names = footers.whole.names;
        Ok(Self { reader, info, names, is_cut: footers.is_cut, events, entries })
    }

    /// What is known of the whole; of a cut trace, what was known at its start.
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// Whether paths stand in it.
    pub fn names(&self) -> Names {
        self.names
    }

    /// Whether its end is missing.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// How many events it holds.
    pub fn events_count(&self) -> u64 {
        self.events.iter().map(|group| group.num_rows().unsigned_abs()).sum()
    }

    /// The tables of files and streams.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tables(&self) -> Result<Tables, StoreError> {
        let (mut files, mut streams) = (BTreeMap::new(), BTreeMap::new());
        for group in &self.entries {
            let mut rows = EntryRows::open(&self.reader, group)?;
            while let Some(entries) = rows.read()? {
                for entry in entries {
                    match entry {
                        Entry::File(file) => drop(files.insert(file.id, file)),
                        Entry::Stream(stream) => drop(streams.insert(stream.id, stream)),
                    }
                }
            }
        }
        let (files, streams) = (files.into_values().collect(), streams.into_values().collect());
        Ok(Tables { files, streams })
    }

    /// Shows each event, in the order of their starts but for a second or so.
    ///
    /// # Errors
    /// When they cannot be read, or `see` fails.
    pub fn for_each_event(
        &self,
        mut see: impl FnMut(&Event) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        for group in &self.events {
            let mut rows = EventRows::open(&self.reader, group)?;
            while let Some(events) = rows.read()? {
                events.iter().try_for_each(&mut see)?;
            }
        }
        Ok(())
    }

    /// Shows each event as [`Store::for_each_event`] does; `watch` is called now and then with the share
    /// that is done.
    ///
    /// # Errors
    /// When they cannot be read, or `see` fails.
    pub fn for_each_watched(
        &self,
        watch: &mut dyn FnMut(f64),
        mut see: impl FnMut(&Event) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let (total, mut done) = (self.events_count().max(1) as f64, 0_u64);
        self.for_each_event(|event| {
            done += 1;
            if done.is_multiple_of(LOOK_EVENTS) {
                watch(done as f64 / total);
            }
            see(event)
        })
    }

    /// Events one after another, in the order of [`Store::for_each_event`]: for those who read several
    /// traces in step.
    pub fn events(&self) -> Events<'_, R> {
        Events { store: self, groups: 0, rows: None, batch: Vec::new().into_iter() }
    }

    /// Pours it all into a sink: the tables, the events, the end.
    ///
    /// # Errors
    /// When it cannot be read, or the sink fails.
    pub fn pour(&self, sink: &mut dyn Sink) -> Result<(), StoreError> {
        self.pour_watched(sink, &mut |_| ())
    }

    /// Pours it all into a sink; `see` is called now and then with the share that is done.
    ///
    /// # Errors
    /// When it cannot be read, or the sink fails.
    pub fn pour_watched(
        &self,
        sink: &mut dyn Sink,
        see: &mut dyn FnMut(f64),
    ) -> Result<(), StoreError> {
        let Tables { files, streams } = self.tables()?;
        files.into_iter().try_for_each(|file| sink.file(file))?;
        streams.into_iter().try_for_each(|stream| sink.stream(stream))?;
        self.for_each_watched(see, |event| sink.event(event))?;
        Ok(sink.finish(&self.info)?)
    }
}

/// Events of a trace, read as they are asked for.
pub struct Events<'a, R: ChunkReader> {
    store: &'a Store<R>,
    /// Row groups that were begun.
    groups: usize,
    rows: Option<EventRows>,
    batch: std::vec::IntoIter<Event>,
}

impl<R: ChunkReader + 'static> Events<'_, R> {
    /// The next event; `None` after the last.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self) -> Result<Option<Event>, StoreError> {
        loop {
            if let Some(event) = self.batch.next() {
                return Ok(Some(event));
            }
            if let Some(rows) = &mut self.rows {
                match rows.read()? {
                    Some(events) => self.batch = Vec::from(events).into_iter(),
                    None => self.rows = None,
                }
                continue;
            }
            let Some(group) = self.store.events.get(self.groups) else { return Ok(None) };
            self.groups += 1;
            self.rows = Some(EventRows::open(&self.store.reader, group)?);
        }
    }
}

/// When the last event of a row group began.
fn newest_ns(group: &RowGroupMetaData) -> Option<u64> {
    let is_start =
        |column: &&ColumnChunkMetaData| column.column_path().string() == Column::Start.name();
    match group.columns().iter().find(is_start)?.statistics()? {
        Statistics::Int64(values) => values.max_opt().map(|ns| ns.unsigned_abs()),
        _ => None,
    }
}
