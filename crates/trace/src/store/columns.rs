//! The columns of a trace's file: names, types, encodings, and how events and entries fill them.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, GzipLevel, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use serde::Serialize;

use crate::{Event, FileEntry, Op, StreamEntry};

/// In the column `op`: the row is an entry of the table of files.
pub(super) const FILE: &str = "FILE";
/// In the column `op`: the row is an entry of the table of streams.
pub(super) const STREAM: &str = "STREAM";
/// A dictionary larger than this gives way to differences.
const DICTIONARY_BYTES: usize = 64 << 10;

/// A column of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Start,
    Duration,
    Op,
    Stream,
    Handle,
    File,
    Offset,
    Length,
    Asked,
    Error,
    Flags,
    CpuGap,
    Other,
    Kind,
    Key,
    Directory,
    Depth,
    Class,
    FirstBytes,
    LastBytes,
    DeviceMajor,
    DeviceMinor,
    ResidentBytes,
    Path,
    Process,
    Parent,
    End,
    Cpu,
}

/// How the values of a column are laid down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Each against the one before: times and offsets.
    Differences,
    /// Numbers of a dictionary, differences where that grows too large.
    Dictionary,
}

impl Column {
    /// In the order of the file.
    pub(super) const ALL: [Self; 28] = [
        Self::Start,
        Self::Duration,
        Self::Op,
        Self::Stream,
        Self::Handle,
        Self::File,
        Self::Offset,
        Self::Length,
        Self::Asked,
        Self::Error,
        Self::Flags,
        Self::CpuGap,
        Self::Other,
        Self::Kind,
        Self::Key,
        Self::Directory,
        Self::Depth,
        Self::Class,
        Self::FirstBytes,
        Self::LastBytes,
        Self::DeviceMajor,
        Self::DeviceMinor,
        Self::ResidentBytes,
        Self::Path,
        Self::Process,
        Self::Parent,
        Self::End,
        Self::Cpu,
    ];

    /// As it is called in the file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Start => "t",
            Self::Duration => "dur",
            Self::Op => "op",
            Self::Stream => "stream",
            Self::Handle => "handle",
            Self::File => "file",
            Self::Offset => "off",
            Self::Length => "len",
            Self::Asked => "req",
            Self::Error => "err",
            Self::Flags => "flags",
            Self::CpuGap => "cpu_gap",
            Self::Other => "other",
            Self::Kind => "kind",
            Self::Key => "key",
            Self::Directory => "directory",
            Self::Depth => "depth",
            Self::Class => "class",
            Self::FirstBytes => "first_bytes",
            Self::LastBytes => "last_bytes",
            Self::DeviceMajor => "device_major",
            Self::DeviceMinor => "device_minor",
            Self::ResidentBytes => "resident_bytes",
            Self::Path => "path",
            Self::Process => "process",
            Self::Parent => "parent",
            Self::End => "end",
            Self::Cpu => "cpu",
        }
    }

    fn physical(self) -> Physical {
        match self {
            Self::Op | Self::Kind | Self::Class | Self::Path => Physical::BYTE_ARRAY,
            Self::Stream
            | Self::Handle
            | Self::File
            | Self::Error
            | Self::Flags
            | Self::Directory
            | Self::Depth
            | Self::DeviceMajor
            | Self::DeviceMinor
            | Self::Process
            | Self::Parent => Physical::INT32,
            _ => Physical::INT64,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        match (self, self.physical()) {
            (_, Physical::BYTE_ARRAY) => Some(LogicalType::String),
            (Self::Error, _) => Some(LogicalType::integer(16, true)),
            (Self::Flags | Self::Depth, _) => Some(LogicalType::integer(16, false)),
            (_, Physical::INT32) => Some(LogicalType::integer(32, false)),
            (Self::Key, _) => Some(LogicalType::integer(64, false)),
            _ => None,
        }
    }

    /// Whether a row may have none.
    fn is_optional(self) -> bool {
        let of_entries = self as usize >= Self::Kind as usize;
        of_entries || matches!(self, Self::Duration | Self::Asked | Self::CpuGap)
    }

    fn layout(self) -> Layout {
        match self {
            Self::Start | Self::Duration | Self::Offset | Self::CpuGap | Self::End | Self::Cpu => {
                Layout::Differences
            }
            _ => Layout::Dictionary,
        }
    }

    fn field(self) -> Result<Type, ParquetError> {
        let repetition =
            if self.is_optional() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name(), self.physical())
            .with_repetition(repetition)
            .with_logical_type(self.logical())
            .build()
    }
}

/// The schema of a trace.
pub(super) fn schema() -> Result<TypePtr, ParquetError> {
    let fields = Column::ALL.iter().map(|column| Ok(Arc::new(column.field()?)));
    let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
    Ok(Arc::new(Type::group_type_builder("trace").with_fields(fields).build()?))
}

/// How a trace is encoded and compressed.
pub(super) fn properties() -> Result<WriterProperties, ParquetError> {
    let made_by = concat!("ioscape ", env!("CARGO_PKG_VERSION")).to_owned();
    let mut builder = WriterProperties::builder()
        .set_created_by(made_by)
        .set_compression(Compression::GZIP(GzipLevel::try_new(4)?))
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for column in Column::ALL {
        let path = || ColumnPath::from(column.name());
        if column.physical() == Physical::BYTE_ARRAY {
            continue;
        }
        builder = builder.set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
        if column.layout() == Layout::Differences {
            builder = builder.set_column_dictionary_enabled(path(), false);
        }
    }
    let start = ColumnPath::from(Column::Start.name());
    Ok(builder.set_column_statistics_enabled(start, EnabledStatistics::Chunk).build())
}

/// An entry of one of the tables.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    File(FileEntry),
    Stream(StreamEntry),
}

type Written = Result<(), ParquetError>;

/// Writes one column of rows that are events.
pub(super) fn write_events(
    column: Column,
    events: &[Event],
    words: &[ByteArray],
    to: &mut SerializedColumnWriter<'_>,
) -> Written {
    let all = events.iter();
    match column {
        Column::Start => required::<Int64Type>(to, all.map(|e| e.start_ns.cast_signed())),
        Column::Duration => optional::<Int64Type>(to, all.map(|e| e.duration_ns.map(signed))),
        Column::Op => required::<ByteArrayType>(to, all.map(|e| words[e.op as usize].clone())),
        Column::Stream => required::<Int32Type>(to, all.map(|e| e.stream.cast_signed())),
        Column::Handle => required::<Int32Type>(to, all.map(|e| e.handle.cast_signed())),
        Column::File => required::<Int32Type>(to, all.map(|e| e.file.cast_signed())),
        Column::Offset => required::<Int64Type>(to, all.map(|e| e.offset.cast_signed())),
        Column::Length => required::<Int64Type>(to, all.map(|e| e.length.cast_signed())),
        Column::Asked => optional::<Int64Type>(to, all.map(|e| e.asked.map(signed))),
        Column::Error => required::<Int32Type>(to, all.map(|e| i32::from(e.error))),
        Column::Flags => required::<Int32Type>(to, all.map(|e| i32::from(e.flags.0))),
        Column::CpuGap => optional::<Int64Type>(to, all.map(|e| e.cpu_gap_ns.map(signed))),
        Column::Other => required::<Int64Type>(to, all.map(|e| e.other.cast_signed())),
        Column::Kind | Column::Class | Column::Path => {
            optional::<ByteArrayType>(to, all.map(|_| None))
        }
        of_entries if of_entries.physical() == Physical::INT32 => {
            optional::<Int32Type>(to, all.map(|_| None))
        }
        _ => optional::<Int64Type>(to, all.map(|_| None)),
    }
}

/// Writes one column of rows that are entries.
pub(super) fn write_entries(
    column: Column,
    entries: &[Entry],
    to: &mut SerializedColumnWriter<'_>,
) -> Written {
    let all = entries.iter();
    let files = || {
        entries.iter().map(|entry| match entry {
            Entry::File(file) => Some(file),
            Entry::Stream(_) => None,
        })
    };
    let streams = || {
        entries.iter().map(|entry| match entry {
            Entry::File(_) => None,
            Entry::Stream(stream) => Some(stream),
        })
    };
    match column {
        Column::Op => {
            let word = |entry: &Entry| match entry {
                Entry::File(_) => FILE,
                Entry::Stream(_) => STREAM,
            };
            required::<ByteArrayType>(to, all.map(|entry| ByteArray::from(word(entry))))
        }
        Column::Start => {
            required::<Int64Type>(to, streams().map(|s| s.map_or(0, |s| signed(s.start_ns))))
        }
        Column::Stream => {
            let id = |stream: Option<&StreamEntry>| stream.map_or(0, |s| s.id);
            required::<Int32Type>(to, streams().map(|stream| id(stream).cast_signed()))
        }
        Column::File => {
            let id = |file: Option<&FileEntry>| file.map_or(0, |f| f.id);
            required::<Int32Type>(to, files().map(|file| id(file).cast_signed()))
        }
        Column::Handle | Column::Error | Column::Flags => required::<Int32Type>(to, all.map(|_| 0)),
        Column::Offset | Column::Length | Column::Other => {
            required::<Int64Type>(to, all.map(|_| 0))
        }
        Column::Duration | Column::Asked | Column::CpuGap => {
            optional::<Int64Type>(to, all.map(|_| None))
        }
        Column::Kind | Column::Class | Column::Path => {
            optional::<ByteArrayType>(to, files().map(|file| text(column, file?)))
        }
        Column::Directory | Column::Depth | Column::DeviceMajor | Column::DeviceMinor => {
            optional::<Int32Type>(to, files().map(|file| file.map(|f| small(column, f))))
        }
        Column::Key | Column::FirstBytes | Column::LastBytes | Column::ResidentBytes => {
            optional::<Int64Type>(to, files().map(|file| large(column, file?)))
        }
        Column::Process => {
            optional::<Int32Type>(to, streams().map(|s| s.map(|s| s.process.cast_signed())))
        }
        Column::Parent => {
            optional::<Int32Type>(to, streams().map(|s| s.map(|s| s.parent.cast_signed())))
        }
        Column::End => {
            let end = |stream: &StreamEntry| stream.end_ns.cast_signed();
            optional::<Int64Type>(to, streams().map(|stream| stream.map(end)))
        }
        Column::Cpu => {
            optional::<Int64Type>(to, streams().map(|stream| stream?.cpu_ns.map(signed)))
        }
    }
}

fn text(column: Column, file: &FileEntry) -> Option<ByteArray> {
    match column {
        Column::Kind => Some(ByteArray::from(word(file.kind).as_str())),
        Column::Class => Some(ByteArray::from(file.class.as_str())),
        _ => file.path.as_deref().map(ByteArray::from),
    }
}

fn small(column: Column, file: &FileEntry) -> i32 {
    match column {
        Column::Directory => file.directory.cast_signed(),
        Column::Depth => i32::from(file.depth),
        Column::DeviceMajor => file.device.0.cast_signed(),
        _ => file.device.1.cast_signed(),
    }
}

fn large(column: Column, file: &FileEntry) -> Option<i64> {
    match column {
        Column::Key => Some(file.key.cast_signed()),
        Column::FirstBytes => Some(file.first_bytes.cast_signed()),
        Column::LastBytes => Some(file.last_bytes.cast_signed()),
        _ => file.resident_bytes.map(signed),
    }
}

/// The words of the column `op`, in the order of [`Op::ALL`], so that each is made once.
pub(super) fn op_words() -> Vec<ByteArray> {
    Op::ALL.iter().map(|op| ByteArray::from(op.name())).collect()
}

/// The word of a value that serialises as one.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn signed(value: u64) -> i64 {
    value.cast_signed()
}

fn required<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = T::T>,
) -> Written {
    let values: Vec<T::T> = values.collect();
    to.typed::<T>().write_batch(&values, None, None)?;
    Ok(())
}

fn optional<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Written {
    let (mut known, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        known.extend(value);
    }
    to.typed::<T>().write_batch(&known, Some(&levels), None)?;
    Ok(())
}
