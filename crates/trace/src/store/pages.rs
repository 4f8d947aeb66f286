//! Pages of a column, looked at before the library decodes them. It believes what a page says of itself,
//! and panics if that is not so.

use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// Before a text stands its length, before a page's levels theirs: four bytes.
const LENGTH_BYTES: usize = 4;

/// Pages that can be decoded; the first that cannot is an error.
pub(super) struct Checked<P> {
    pages: P,
    has_levels: bool,
    is_text: bool,
    /// Of a value that is no text.
    value_bytes: u64,
    has_dictionary: bool,
}

impl<P: PageReader> Checked<P> {
    pub(super) fn new(pages: P, column: &ColumnDescriptor) -> Self {
        let physical = column.physical_type();
        let value_bytes = if physical == Physical::INT32 { 4 } else { 8 };
        Self {
            pages,
            has_levels: column.max_def_level() > 0,
            is_text: physical == Physical::BYTE_ARRAY,
            value_bytes,
            has_dictionary: false,
        }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let (levels, values) = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                self.has_dictionary = true;
                let held =
                    if self.is_text { texts(buf) } else { buf.len() as u64 / self.value_bytes };
                let is_whole = held >= u64::from(*num_values);
                return is_whole.then_some(()).ok_or_else(|| damaged("a dictionary is cut"));
            }
            Page::DataPage { buf, def_level_encoding, .. } if self.has_levels => {
                let is_known = *def_level_encoding == Encoding::RLE;
                let prefix = is_known.then(|| buf.split_first_chunk::<LENGTH_BYTES>()).flatten();
                prefix.and_then(|(length, rest)| {
                    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
                })
            }
            Page::DataPage { buf, .. } => Some((&[][..], &buf[..])),
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => buf
                .get(*rep_levels_byte_len as usize..)
                .and_then(|rest| rest.split_at_checked(*def_levels_byte_len as usize)),
        }
        .ok_or_else(|| damaged("a page is shorter than its levels"))?;
        let is_dictionary =
            matches!(page.encoding(), Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
        if is_dictionary && !self.has_dictionary {
            return Err(damaged("a page's dictionary is missing"));
        }
        if self.is_text && page.encoding() == Encoding::PLAIN {
            let rows = u64::from(page.num_values());
            let filled = if self.has_levels { ones(levels, rows) } else { rows };
            if texts(values) < filled {
                return Err(damaged("a page is cut"));
            }
        }
        Ok(())
    }
}

impl<P: PageReader> PageReader for Checked<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl<P: PageReader> Iterator for Checked<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

/// How many whole texts stand in bytes: each is a length and as many bytes.
fn texts(mut bytes: &[u8]) -> u64 {
    let mut count = 0;
    while let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>()
        && let Some(rest) = rest.get(u32::from_le_bytes(*length) as usize..)
    {
        count += 1;
        bytes = rest;
    }
    count
}

/// How many of the first `left` levels are 1, in the format's mixture of runs and packed bits
/// (Parquet's "RLE / bit-packing hybrid", one bit wide).
fn ones(mut bytes: &[u8], mut left: u64) -> u64 {
    let mut count = 0;
    while left > 0
        && let Some(header) = varint(&mut bytes)
    {
        if header % 2 == 0 {
            let Some((value, rest)) = bytes.split_first() else { break };
            let run = (header / 2).min(left);
            count += run * u64::from(value % 2);
            (bytes, left) = (rest, left - run);
            continue;
        }
        let groups = usize::try_from(header / 2).unwrap_or(usize::MAX).min(bytes.len());
        let (packed, rest) = bytes.split_at(groups);
        for byte in packed {
            let bits = left.min(8);
            count += u64::from((u32::from(*byte) & ((1 << bits) - 1)).count_ones());
            left -= bits;
        }
        bytes = rest;
    }
    count
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
