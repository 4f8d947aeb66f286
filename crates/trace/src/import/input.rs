//! Files as they come: plain, gzip or zstd, told by their first bytes.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file to import.
pub struct Input<'a> {
    /// How it is called in messages.
    pub name: String,
    /// Its bytes, compressed or not.
    pub bytes: Box<dyn Read + 'a>,
}

/// The bytes of a file, unpacked.
///
/// # Errors
/// When it cannot be read, or is no zstd although it begins so.
pub(crate) fn unpacked<'a>(mut bytes: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut head = Vec::with_capacity(ZSTD.len());
    bytes.by_ref().take(ZSTD.len() as u64).read_to_end(&mut head)?;
    let (is_gzip, is_zstd) = (head.starts_with(&GZIP), head == ZSTD);
    let whole = Cursor::new(head).chain(bytes);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(whole))
    } else if is_zstd {
        Box::new(Frames::new(Box::new(whole))?)
    } else {
        Box::new(whole)
    })
}

/// All frames of a zstd file: it may have several, as `cat a.zst b.zst` makes it.
struct Frames<'a> {
    decoder: Option<Decoder<'a>>,
}

type Decoder<'a> = StreamingDecoder<Box<dyn Read + 'a>, ruzstd::decoding::FrameDecoder>;

impl<'a> Frames<'a> {
    fn new(bytes: Box<dyn Read + 'a>) -> io::Result<Self> {
        Ok(Self { decoder: Some(StreamingDecoder::new(bytes).map_err(io::Error::other)?) })
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let count = decoder.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let Some(decoder) = self.decoder.take() else { return Ok(0) };
            let mut bytes = decoder.into_inner();
            let mut next = [0; 1];
            if bytes.read(&mut next)? == 0 {
                return Ok(0);
            }
            let rest = Box::new(Cursor::new(next).chain(bytes));
            *self = Self::new(rest)?;
        }
    }
}
