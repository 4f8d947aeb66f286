//! Rows of a row group, from columns that are read in step. Columns are found by name: a file that
//! another program wrote anew, with other columns beside them or in another order, is read all the
//! same, and a column that an older version did not have is empty.

use std::collections::HashMap;
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use super::StoreError;
use super::columns::{Column, Entry, STREAM};
use super::pages::Checked;
use crate::{Event, FileEntry, FileKind, Flags, Op, StreamEntry};

/// Rows that are decoded at a time.
const ROWS: usize = 1 << 15;

/// One column.
struct Cells<T: DataType> {
    reader: Option<ColumnReaderImpl<T>>,
    name: &'static str,
    values: Vec<T::T>,
    levels: Vec<i16>,
    /// The level of a row that has a value; 0 where all have.
    full_level: i16,
    at: usize,
}

type Longs = Cells<Int64Type>;
type Ints = Cells<Int32Type>;
type Words = Cells<ByteArrayType>;

impl<T: DataType> Cells<T> {
    fn open<R: ChunkReader + 'static>(
        reader: &Arc<R>,
        group: &RowGroupMetaData,
        column: Column,
    ) -> Result<Self, StoreError> {
        let (mut pages, mut full_level) = (None, 0);
        let name = column.name();
        if let Some(chunk) = group.columns().iter().find(|c| c.column_path().string() == name) {
            let descriptor = chunk.column_descr_ptr();
            let physical: Physical = T::get_physical_type();
            if descriptor.physical_type() != physical || descriptor.max_rep_level() > 0 {
                return Err(StoreError::Damaged(format!("column `{name}` is of another type")));
            }
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            let of_chunk = SerializedPageReader::new(reader.clone(), chunk, rows, None)?;
            let of_chunk = Checked::new(of_chunk, &descriptor);
            full_level = descriptor.max_def_level();
            pages = Some(ColumnReaderImpl::new(descriptor, Box::new(of_chunk)));
        }
        let (values, levels) = (Vec::new(), Vec::new());
        Ok(Self { reader: pages, name, values, levels, full_level, at: 0 })
    }

    /// The value of a row; to be asked of one row after the other, and once.
    fn next(&mut self, row: usize) -> Option<T::T> {
        if self.full_level > 0 && self.levels.get(row).copied() != Some(self.full_level) {
            return None;
        }
        let value = self.values.get(self.at)?;
        self.at += 1;
        Some(value.clone())
    }
}

impl Longs {
    fn unsigned(&mut self, row: usize) -> Option<u64> {
        self.next(row).map(|value| value as u64)
    }
}

impl Ints {
    fn unsigned(&mut self, row: usize) -> u32 {
        self.next(row).unwrap_or(0) as u32
    }
}

impl Words {
    fn text(&mut self, row: usize) -> Option<String> {
        let bytes = self.next(row)?;
        Some(String::from_utf8_lossy(bytes.data()).into_owned())
    }
}

/// A column of whatever type.
trait Step {
    /// Reads the next rows; `None` where there is no such column.
    fn step(&mut self) -> Result<Option<usize>, StoreError>;
    fn name(&self) -> &'static str;
}

impl<T: DataType> Step for Cells<T> {
    fn step(&mut self) -> Result<Option<usize>, StoreError> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        self.values.clear();
        self.levels.clear();
        self.at = 0;
        let levels = (self.full_level > 0).then_some(&mut self.levels);
        let (rows, values, _) = reader.read_records(ROWS, levels, None, &mut self.values)?;
        if values != self.values.len() {
            return Err(StoreError::Damaged(format!("column `{}` is torn", self.name)));
        }
        Ok(Some(rows))
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

/// Reads the next rows of all columns, `first` of which must be there.
fn step_all(first: &mut dyn Step, others: &mut [&mut dyn Step]) -> Result<usize, StoreError> {
    let missing = || StoreError::Damaged(format!("there is no column `{}`", Column::Op.name()));
    let count = first.step()?.ok_or_else(missing)?;
    for column in others {
        if column.step()?.is_some_and(|rows| rows != count) {
            let name = column.name();
            return Err(StoreError::Damaged(format!("column `{name}` has another length")));
        }
    }
    Ok(count)
}

/// The word in the column `op` of a group's first row.
pub(super) fn first_op<R: ChunkReader + 'static>(
    reader: &Arc<R>,
    group: &RowGroupMetaData,
) -> Result<Option<String>, StoreError> {
    let mut op = Words::open(reader, group, Column::Op)?;
    let count = match &mut op.reader {
        Some(pages) => {
            let levels = (op.full_level > 0).then_some(&mut op.levels);
            pages.read_records(1, levels, None, &mut op.values)?.0
        }
        None => 0,
    };
    Ok(if count > 0 { op.text(0) } else { None })
}

/// Rows that are events.
pub(super) struct EventRows {
    op: Words,
    start: Longs,
    duration: Longs,
    stream: Ints,
    handle: Ints,
    file: Ints,
    offset: Longs,
    length: Longs,
    asked: Longs,
    error: Ints,
    flags: Ints,
    cpu_gap: Longs,
    other: Longs,
    names: HashMap<&'static [u8], Op>,
    events: Vec<Event>,
}

impl EventRows {
    pub(super) fn open<R: ChunkReader + 'static>(
        reader: &Arc<R>,
        group: &RowGroupMetaData,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            op: Cells::open(reader, group, Column::Op)?,
            start: Cells::open(reader, group, Column::Start)?,
            duration: Cells::open(reader, group, Column::Duration)?,
            stream: Cells::open(reader, group, Column::Stream)?,
            handle: Cells::open(reader, group, Column::Handle)?,
            file: Cells::open(reader, group, Column::File)?,
            offset: Cells::open(reader, group, Column::Offset)?,
            length: Cells::open(reader, group, Column::Length)?,
            asked: Cells::open(reader, group, Column::Asked)?,
            error: Cells::open(reader, group, Column::Error)?,
            flags: Cells::open(reader, group, Column::Flags)?,
            cpu_gap: Cells::open(reader, group, Column::CpuGap)?,
            other: Cells::open(reader, group, Column::Other)?,
            names: Op::ALL.iter().map(|op| (op.name().as_bytes(), *op)).collect(),
            events: Vec::new(),
        })
    }

    /// The next events; `None` after the last.
    pub(super) fn read(&mut self) -> Result<Option<&[Event]>, StoreError> {
        let others: &mut [&mut dyn Step] = &mut [
            &mut self.start,
            &mut self.duration,
            &mut self.stream,
            &mut self.handle,
            &mut self.file,
            &mut self.offset,
            &mut self.length,
            &mut self.asked,
            &mut self.error,
            &mut self.flags,
            &mut self.cpu_gap,
            &mut self.other,
        ];
        let count = step_all(&mut self.op, others)?;
        self.events.clear();
        for row in 0..count {
            let event = self.event(row)?;
            self.events.push(event);
        }
        Ok((count > 0).then_some(&self.events))
    }

    fn event(&mut self, row: usize) -> Result<Event, StoreError> {
        let word = self.op.next(row).unwrap_or_else(|| ByteArray::from(""));
        let op = self.names.get(word.data()).copied().ok_or_else(|| {
            let word = String::from_utf8_lossy(word.data()).into_owned();
            StoreError::Damaged(format!("no operation is called `{word}`"))
        })?;
        Ok(Event {
            start_ns: self.start.unsigned(row).unwrap_or(0),
            duration_ns: self.duration.unsigned(row),
            op,
            stream: self.stream.unsigned(row),
            handle: self.handle.unsigned(row),
            file: self.file.unsigned(row),
            offset: self.offset.unsigned(row).unwrap_or(0),
            length: self.length.unsigned(row).unwrap_or(0),
            asked: self.asked.unsigned(row),
            error: self.error.next(row).unwrap_or(0) as i16,
            flags: Flags(self.flags.unsigned(row) as u16),
            cpu_gap_ns: self.cpu_gap.unsigned(row),
            other: self.other.unsigned(row).unwrap_or(0),
        })
    }
}

/// Rows that are entries of the tables.
pub(super) struct EntryRows {
    op: Words,
    start: Longs,
    stream: Ints,
    file: Ints,
    kind: Words,
    key: Longs,
    directory: Ints,
    depth: Ints,
    class: Words,
    first_bytes: Longs,
    last_bytes: Longs,
    device_major: Ints,
    device_minor: Ints,
    resident_bytes: Longs,
    path: Words,
    process: Ints,
    parent: Ints,
    end: Longs,
    cpu: Longs,
}

impl EntryRows {
    pub(super) fn open<R: ChunkReader + 'static>(
        reader: &Arc<R>,
        group: &RowGroupMetaData,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            op: Cells::open(reader, group, Column::Op)?,
            start: Cells::open(reader, group, Column::Start)?,
            stream: Cells::open(reader, group, Column::Stream)?,
            file: Cells::open(reader, group, Column::File)?,
            kind: Cells::open(reader, group, Column::Kind)?,
            key: Cells::open(reader, group, Column::Key)?,
            directory: Cells::open(reader, group, Column::Directory)?,
            depth: Cells::open(reader, group, Column::Depth)?,
            class: Cells::open(reader, group, Column::Class)?,
            first_bytes: Cells::open(reader, group, Column::FirstBytes)?,
            last_bytes: Cells::open(reader, group, Column::LastBytes)?,
            device_major: Cells::open(reader, group, Column::DeviceMajor)?,
            device_minor: Cells::open(reader, group, Column::DeviceMinor)?,
            resident_bytes: Cells::open(reader, group, Column::ResidentBytes)?,
            path: Cells::open(reader, group, Column::Path)?,
            process: Cells::open(reader, group, Column::Process)?,
            parent: Cells::open(reader, group, Column::Parent)?,
            end: Cells::open(reader, group, Column::End)?,
            cpu: Cells::open(reader, group, Column::Cpu)?,
        })
    }

    /// The next entries; `None` after the last.
    pub(super) fn read(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        let others: &mut [&mut dyn Step] = &mut [
            &mut self.start,
            &mut self.stream,
            &mut self.file,
            &mut self.kind,
            &mut self.key,
            &mut self.directory,
            &mut self.depth,
            &mut self.class,
            &mut self.first_bytes,
            &mut self.last_bytes,
            &mut self.device_major,
            &mut self.device_minor,
            &mut self.resident_bytes,
            &mut self.path,
            &mut self.process,
            &mut self.parent,
            &mut self.end,
            &mut self.cpu,
        ];
        let count = step_all(&mut self.op, others)?;
        let entries: Vec<Entry> = (0..count).map(|row| self.entry(row)).collect();
        Ok((count > 0).then_some(entries))
    }

    /// All columns are asked for each row, for each keeps its place by being asked.
    fn entry(&mut self, row: usize) -> Entry {
        let is_stream = self.op.text(row).as_deref() == Some(STREAM);
        let file = FileEntry {
            id: self.file.unsigned(row),
            kind: self.kind.text(row).map_or_else(FileKind::default, |word| kind(&word)),
            key: self.key.unsigned(row).unwrap_or(0),
            directory: self.directory.unsigned(row),
            depth: self.depth.unsigned(row) as u16,
            class: self.class.text(row).unwrap_or_default(),
            first_bytes: self.first_bytes.unsigned(row).unwrap_or(0),
            last_bytes: self.last_bytes.unsigned(row).unwrap_or(0),
            device: (self.device_major.unsigned(row), self.device_minor.unsigned(row)),
            resident_bytes: self.resident_bytes.unsigned(row),
            path: self.path.text(row),
        };
        let stream = StreamEntry {
            id: self.stream.unsigned(row),
            process: self.process.unsigned(row),
            parent: self.parent.unsigned(row),
            start_ns: self.start.unsigned(row).unwrap_or(0),
            end_ns: self.end.unsigned(row).unwrap_or(0),
            cpu_ns: self.cpu.unsigned(row),
        };
        if is_stream { Entry::Stream(stream) } else { Entry::File(file) }
    }
}

/// The kind that a word names; a later version's is like none of ours.
fn kind(word: &str) -> FileKind {
    let quoted = serde_json::Value::String(word.to_owned());
    serde_json::from_value(quoted).unwrap_or(FileKind::Other)
}
