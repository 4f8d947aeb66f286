//! How a cut trace stays readable: after each row group stands its own footer, of the form that a
//! footer at the end of a Parquet file has, with the place where the footer before it ended.
//!
//! ```text
//! PAR1 │ footer 0 │ rows 1 │ footer of 1 │ rows 2 │ footer of 2 │ … │ footer of all │
//!                                ▲───────────────────────┘ ends_before
//! ```
//!
//! Each footer ends, as Parquet's do, with its length and `PAR1`. A reader of a cut file looks from
//! its end backwards for the last such footer that is whole and follows the chain.

use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader,
    ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescPtr;
use serde::{Deserialize, Serialize};

use super::{StoreError, Whole};

const SEGMENT_KEY: &str = "ioscape.segment";
const MAGIC: &[u8] = b"PAR1";
/// Length and magic.
const TAIL_BYTES: u64 = 8;
/// No footer of ours is larger.
const FOOTER_BYTES_MAX: u64 = 1 << 30;
/// A cut file is searched in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// What a row group's own footer says of its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Segment {
    /// Counted from 0.
    pub(super) number: u64,
    /// Where the footer before this one ended; 0 for the first.
    pub(super) ends_before: u64,
    /// What was known at the start; only in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) whole: Option<Whole>,
}

/// The bytes of a row group's own footer; the first stands before all row groups.
pub(super) fn footer(
    segment: &Segment,
    schema: &SchemaDescPtr,
    group: Option<&RowGroupMetaData>,
) -> Result<Vec<u8>, StoreError> {
    let said = serde_json::to_string(segment).map_err(std::io::Error::other)?;
    let pairs = vec![KeyValue::new(SEGMENT_KEY.to_owned(), said)];
    let rows = group.map_or(0, RowGroupMetaData::num_rows);
    let file = FileMetaData::new(1, rows, None, Some(pairs), schema.clone(), None);
    let metadata = ParquetMetaData::new(file, group.into_iter().cloned().collect());
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish()?;
    Ok(bytes)
}

/// What the footers of a file say.
pub(super) struct Footers {
    /// The row groups, in the file's order.
    pub(super) groups: Vec<RowGroupMetaData>,
    /// What is known of the whole.
    pub(super) whole: Whole,
    /// Whether the file was cut: then `whole` is what was known at the start.
    pub(super) is_cut: bool,
}

/// Reads the footer of a whole file, or the chain of a cut one.
pub(super) fn read<R: ChunkReader>(reader: &R) -> Result<Footers, StoreError> {
    let footers = read_any(reader)?;
    let lies_inside = |group: &RowGroupMetaData| {
        group.num_rows() >= 0
            && group.columns().iter().all(|chunk| lies_inside(chunk, reader.len()))
    };
    if !footers.groups.iter().all(lies_inside) {
        return Err(StoreError::Damaged("a footer names a place outside the file".to_owned()));
    }
    Ok(footers)
}

/// Whether a column's bytes stand in a file of this length. The library that decodes them takes it
/// for granted, and panics on a negative place.
fn lies_inside(chunk: &ColumnChunkMetaData, length: u64) -> bool {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let (Ok(start), Ok(bytes)) = (u64::try_from(start), u64::try_from(chunk.compressed_size()))
    else {
        return false;
    };
    chunk.data_page_offset() >= 0
        && chunk.num_values() >= 0
        && start.checked_add(bytes).is_some_and(|end| end <= length)
}

/// What the footers say, wherever they point.
fn read_any<R: ChunkReader>(reader: &R) -> Result<Footers, StoreError> {
    let length = reader.len();
    if length < 4 || &reader.get_bytes(0, 4)?[..] != MAGIC {
        return Err(StoreError::NotATrace);
    }
    match footer_before(reader, length)? {
        Some(last) => match value_of::<Whole>(&last, super::INFO_KEY) {
            Some(whole) => Ok(Footers { groups: last.row_groups().to_vec(), whole, is_cut: false }),
            None if segment_of(&last).is_some() => chain(reader, last),
            None => Err(StoreError::NotATrace),
        },
        None => chain(reader, last_whole(reader, length)?.ok_or(StoreError::NotATrace)?),
    }
}

/// Follows the chain from its last footer to its first.
fn chain<R: ChunkReader>(reader: &R, last: ParquetMetaData) -> Result<Footers, StoreError> {
    let broken = || StoreError::Damaged("a row group's footer leads nowhere".to_owned());
    let mut groups = Vec::new();
    let mut at = last;
    loop {
        let segment = segment_of(&at).ok_or_else(broken)?;
        groups.extend(at.row_groups().iter().cloned());
        if segment.number == 0 {
            groups.reverse();
            let whole = segment.whole.ok_or_else(broken)?;
            return Ok(Footers { groups, whole, is_cut: true });
        }
        let before = footer_before(reader, segment.ends_before)?.ok_or_else(broken)?;
        let number = segment_of(&before).map(|before| before.number);
        if number != Some(segment.number - 1) {
            return Err(broken());
        }
        at = before;
    }
}

/// The last footer of a row group that is whole.
fn last_whole<R: ChunkReader>(
    reader: &R,
    length: u64,
) -> Result<Option<ParquetMetaData>, StoreError> {
    let mut to = length;
    while to > TAIL_BYTES {
        let from = to.saturating_sub(PIECE_BYTES);
        let piece = reader.get_bytes(from, (to - from) as usize)?;
        let magics = (0..piece.len().saturating_sub(MAGIC.len() - 1)).rev();
        for at in magics.filter(|at| piece[*at..].starts_with(MAGIC)) {
            let end = from + (at + MAGIC.len()) as u64;
            if let Some(found) = footer_before(reader, end)?
                && segment_of(&found).is_some()
            {
                return Ok(Some(found));
            }
        }
        if from == 0 {
            break;
        }
        to = from + MAGIC.len() as u64 - 1; // a magic may lie across two pieces
    }
    Ok(None)
}

/// The footer that ends at `end`, if one does.
fn footer_before<R: ChunkReader>(
    reader: &R,
    end: u64,
) -> Result<Option<ParquetMetaData>, StoreError> {
    if end < TAIL_BYTES + MAGIC.len() as u64 || end > reader.len() {
        return Ok(None);
    }
    let tail = reader.get_bytes(end - TAIL_BYTES, TAIL_BYTES as usize)?;
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    let start = (end - TAIL_BYTES).checked_sub(length);
    let Some(start) = start.filter(|start| *start >= MAGIC.len() as u64) else { return Ok(None) };
    if &tail[4..] != MAGIC || length > FOOTER_BYTES_MAX {
        return Ok(None);
    }
    let bytes = reader.get_bytes(start, length as usize)?;
    Ok(ParquetMetaDataReader::decode_metadata(&bytes).ok())
}

fn segment_of(metadata: &ParquetMetaData) -> Option<Segment> {
    value_of(metadata, SEGMENT_KEY)
}

/// A value of the footer that is JSON.
fn value_of<T: for<'a> Deserialize<'a>>(metadata: &ParquetMetaData, key: &str) -> Option<T> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    let pair = pairs.iter().find(|pair| pair.key == key)?;
    serde_json::from_str(pair.value.as_deref()?).ok()
}
