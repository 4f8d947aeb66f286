//! Writes a trace of what happens now or is long over: events are held back as long as earlier ones may still
//! come, sorted, and laid down in row groups.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use super::columns::{self, Column, Entry};
use super::segment::{self, Segment};
use super::{INFO_KEY, Names, StoreError, VERSION, Whole};
use crate::classes::{self, class_of};
use crate::{Event, FileEntry, Sink, StreamEntry, TraceInfo};

/// Events of a row group; twice as many are held at most.
const GROUP_EVENTS: usize = 1 << 15;
/// Entries of the tables that are held at most.
const ENTRIES_MAX: usize = 1 << 14;
/// So much of the trace may be lost when the recorder is killed.
const GROUP_NS: u64 = 10_000_000_000;
/// Fewer events than this wait longer, for a row group costs some kilobytes.
const GROUP_EVENTS_MIN: usize = 4096;
/// They wait so long.
const SLOW_GROUP_NS: u64 = 120_000_000_000;
/// In its first minutes a trace loses no more than half of what was recorded, and this.
const FIRST_GROUP_NS: u64 = 2_000_000_000;
/// An event that began earlier may come so much later.
const DISORDER_NS: u64 = 1_000_000_000;

/// Writes a trace; a [`Sink`].
pub struct StoreWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    names: Names,
    /// The key of the hashes; nobody sees it, and it dies with the writer.
    key: RandomState,
    words: Vec<ByteArray>,
    events: Vec<Event>,
    newest_ns: u64,
    /// When the first event of all began.
    began_ns: Option<u64>,
    entries: Vec<Entry>,
    chain: Chain,
    /// Whether the writer closes a row group early, once its events have waited for seconds or minutes.
    is_live: bool,
}

/// The footers of row groups, each of which says where the one before it ended.
struct Chain {
    schema: SchemaDescPtr,
    segments: u64,
    ends_before: u64,
}

impl<W: Write + Send> StoreWriter<W> {
    /// Begins a trace. `info` is what is known already: a trace that is cut says no more.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(out: W, names: Names, info: &TraceInfo) -> Result<Self, StoreError> {
        let properties = columns::properties()?;
        let schema = columns::schema()?;
        let mut file = SerializedFileWriter::new(out, schema.clone(), Arc::new(properties))?;
        let whole = Whole { version: VERSION, names, info: info.clone() };
        let first = Segment { number: 0, ends_before: 0, whole: Some(whole) };
        let schema = Arc::new(SchemaDescriptor::new(schema));
        file.write_all(&segment::footer(&first, &schema, None)?)?;
        file.flush()?;
        Ok(Self {
            chain: Chain { schema, segments: 1, ends_before: file.bytes_written() as u64 },
            file,
            names,
            key: RandomState::new(),
            words: columns::op_words(),
            events: Vec::new(),
            newest_ns: 0,
            began_ns: None,
            entries: Vec::new(),
            is_live: true,
        })
    }

    /// Waits until there are events enough for a row group, however far apart they are: for a trace that is of no use
    /// before it is whole. A web site's log of months would otherwise have a row group for each visitor.
    #[must_use]
    pub fn with_full_groups(mut self) -> Self {
        self.is_live = false;
        self
    }

    /// Bytes written so far; what is held in memory is not among them.
    pub fn bytes_written(&self) -> u64 {
        self.file.bytes_written() as u64
    }

    /// About how many bytes there would be if everything held were written now.
    pub fn bytes_expected(&self) -> u64 {
        /// Four to eight, as measured; more where a trace has few.
        const EVENT_BYTES: u64 = 6;
        self.bytes_written() + self.events.len() as u64 * EVENT_BYTES
    }

    /// Writes out everything that is held.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.write_entries()?;
        self.write_events(self.events.len())?;
        Ok(self.file.flush()?)
    }

    /// Writes the footer and gives back what was written to.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn close(mut self, info: &TraceInfo) -> Result<W, StoreError> {
        self.say(info)?;
        Ok(self.file.into_inner()?)
    }

    /// Writes out everything and has the footer say what is known of the whole.
    fn say(&mut self, info: &TraceInfo) -> Result<(), StoreError> {
        self.flush()?;
        let whole = Whole { version: VERSION, names: self.names, info: info.clone() };
        let said = serde_json::to_string(&whole).map_err(io::Error::other)?;
        self.file.append_key_value_metadata(KeyValue::new(INFO_KEY.to_owned(), said));
        Ok(())
    }

    /// Writes what no event still to come is likely to precede, where it is time to.
    fn write_due(&mut self) -> Result<(), StoreError> {
        let held = self.events.len();
        let Some(first) = self.events.first() else { return Ok(()) };
        let age_ns = self.newest_ns.saturating_sub(first.start_ns);
        let recorded_ns = first.start_ns.saturating_sub(self.began_ns.unwrap_or(0));
        let is_old = age_ns > recorded_ns.clamp(FIRST_GROUP_NS, SLOW_GROUP_NS)
            || (age_ns > GROUP_NS && held >= GROUP_EVENTS_MIN);
        if held < 2 * GROUP_EVENTS && !(self.is_live && is_old) {
            return Ok(());
        }
        self.events.sort_by_key(|event| event.start_ns);
        let settled_ns = self.newest_ns.saturating_sub(DISORDER_NS);
        let settled = self.events.partition_point(|event| event.start_ns <= settled_ns);
        let full = if held >= 2 * GROUP_EVENTS { GROUP_EVENTS } else { 0 };
        self.write_entries()?;
        self.write_sorted(settled.max(full))?;
        Ok(self.file.flush()?)
    }

    fn write_events(&mut self, count: usize) -> Result<(), StoreError> {
        self.events.sort_by_key(|event| event.start_ns);
        self.write_sorted(count)
    }

    fn write_sorted(&mut self, count: usize) -> Result<(), StoreError> {
        let (file, words) = (&mut self.file, &self.words);
        for rows in self.events[..count].chunks(2 * GROUP_EVENTS) {
            write_group(file, |column, to| columns::write_events(column, rows, words, to))?;
            self.chain.seal(file)?;
        }
        self.events.drain(..count);
        Ok(())
    }

    fn write_entries(&mut self) -> Result<(), StoreError> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.entries);
        let file = &mut self.file;
        write_group(file, |column, to| columns::write_entries(column, &rows, to))?;
        self.chain.seal(file)
    }

    /// An entry as it may stand in the trace.
    fn named(&self, mut file: FileEntry) -> FileEntry {
        match &file.path {
            Some(path) => {
                file.key = self.key.hash_one(path);
                if file.class.is_empty() {
                    class_of(path).clone_into(&mut file.class);
                }
            }
            None if file.key != 0 => file.key = self.key.hash_one(file.key),
            None => {}
        }
        if self.names == Names::Hashed {
            file.path = None;
            if !classes::is_known(&file.class) {
                file.class.clear();
            }
        }
        file
    }

    fn entry(&mut self, entry: Entry) -> io::Result<()> {
        self.entries.push(entry);
        if self.entries.len() >= ENTRIES_MAX {
            self.write_entries()?;
        }
        Ok(())
    }
}

/// A row group, column by column.
fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    write: impl Fn(Column, &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError>,
) -> Result<(), StoreError> {
    let mut group = file.next_row_group()?;
    for column in Column::ALL {
        let mut to = group.next_column()?.expect("the schema has a field for each column");
        write(column, &mut to)?;
        to.close()?;
    }
    group.close()?;
    Ok(())
}

impl Chain {
    /// Writes the footer of the row group that was written last.
    fn seal<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), StoreError> {
        let segment = Segment { number: self.segments, ends_before: self.ends_before, whole: None };
        let footer = segment::footer(&segment, &self.schema, file.flushed_row_groups().last())?;
        file.write_all(&footer)?;
        self.segments += 1;
        self.ends_before = file.bytes_written() as u64;
        Ok(())
    }
}

impl<W: Write + Send> Sink for StoreWriter<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.newest_ns = self.newest_ns.max(event.start_ns);
        self.began_ns.get_or_insert(event.start_ns);
        self.events.push(*event);
        Ok(self.write_due()?)
    }

    fn file(&mut self, file: FileEntry) -> io::Result<()> {
        let file = self.named(file);
        self.entry(Entry::File(file))
    }

    fn stream(&mut self, stream: StreamEntry) -> io::Result<()> {
        self.entry(Entry::Stream(stream))
    }

    fn finish(&mut self, info: &TraceInfo) -> io::Result<()> {
        self.say(info)?;
        self.file.finish().map_err(StoreError::from)?;
        Ok(())
    }
}
