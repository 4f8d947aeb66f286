//! Records of the ring: how they are laid out, and how they become facts.
//!
//! Every record begins with the same 88 bytes; calls with paths or a file behind the result go on.

use crate::call::{Call, Calls};
use crate::observed::{
    Counts, Ended, Executed, Exited, Forked, Identity, Observed, Requested, Touch, Touched,
    device_of_kernel,
};

/// Offsets in a record, bytes.
pub(crate) mod at {
    /// Kind in the low half, number of the call in the high half.
    pub(crate) const KIND: i16 = 0;
    pub(crate) const THREAD: i16 = 4;
    pub(crate) const START: i16 = 8;
    pub(crate) const END: i16 = 16;
    pub(crate) const CPU_GAP: i16 = 24;
    pub(crate) const RESULT: i16 = 32;
    /// Six arguments of 8 bytes.
    pub(crate) const ARGUMENTS: i16 = 40;
    pub(crate) const INODE: i16 = 88;
    pub(crate) const DEVICE: i16 = 96;
    pub(crate) const MODE: i16 = 100;
    pub(crate) const SIZE: i16 = 104;
    pub(crate) const FILE_MODE: i16 = 112;
    pub(crate) const FILE_FLAGS: i16 = 116;
    /// Pages of an opened file in the page cache.
    pub(crate) const CACHED: i16 = 120;
    pub(crate) const PATH_BYTES: i16 = 128;
    pub(crate) const PATHS: i16 = 136;
}

/// Length of a record without identity and paths.
pub(crate) const SHORT_BYTES: i32 = at::INODE as i32;
/// Longest path, with its zero.
pub(crate) const PATH_BYTES_MAX: i32 = 4096;
/// Longest record.
pub(crate) const LONG_BYTES: i32 = at::PATHS as i32 + 2 * PATH_BYTES_MAX;

/// Kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    Call = 1,
    Fork,
    Exec,
    Exit,
    Inserted,
    Fault,
    Dirtied,
    Request,
}

/// The bit of `f_mode` that says that opening made the file.
const FILE_WAS_CREATED: u32 = 1 << 20;

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn word(&self, offset: i16) -> u32 {
        let offset = offset as usize;
        self.0
            .get(offset..offset + 4)
            .map_or(0, |bytes| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn double(&self, offset: i16) -> u64 {
        let offset = offset as usize;
        let bytes = self.0.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    }

    fn argument(&self, index: i16) -> u64 {
        self.double(at::ARGUMENTS + 8 * index)
    }

    /// Where the file is told in the part after the first 88 bytes.
    fn identity(&self) -> Identity {
        Identity {
            inode: self.double(at::INODE),
            device: device_of_kernel(self.word(at::DEVICE)),
            mode: self.word(at::MODE),
            bytes: self.double(at::SIZE),
            created: self.word(at::FILE_MODE) & FILE_WAS_CREATED != 0,
            flags: self.word(at::FILE_FLAGS),
            cached_pages: Some(self.double(at::CACHED)),
        }
    }

    fn thread(&self) -> u32 {
        self.word(at::THREAD)
    }

    fn start_ns(&self) -> u64 {
        self.double(at::START)
    }

    fn touched(&self) -> Touched {
        Touched {
            thread: self.thread(),
            at_ns: self.start_ns(),
            file: Identity { cached_pages: None, ..self.identity() },
            first_page: self.argument(0),
            pages: self.argument(1),
        }
    }
}

/// A record as a fact; `None` for a call that nobody asked for.
pub(crate) fn parse<'a>(record: &'a [u8], calls: &Calls) -> Option<Observed<'a>> {
    let reader = Reader(record);
    let kind = reader.word(at::KIND);
    let number = (kind >> 16) as usize;
    let (thread, at_ns) = (reader.thread(), reader.start_ns());
    Some(match (kind & 0xffff) as u16 {
        kind if kind == Kind::Call as u16 => Observed::Call(ended(record, calls.get(number)?)),
        kind if kind == Kind::Fork as u16 => Observed::Fork(Forked {
            parent: thread,
            child: reader.argument(0) as u32,
            process: reader.argument(1) as u32,
            at_ns,
            shares_descriptors: reader.argument(2) == reader.argument(3),
        }),
        kind if kind == Kind::Exec as u16 => Observed::Exec(Executed {
            thread,
            before: reader.argument(0) as u32,
            at_ns,
            // The kernel has read of it already.
            program: Some(Identity { cached_pages: None, ..reader.identity() }),
        }),
        kind if kind == Kind::Exit as u16 => Observed::Exit(Exited {
            thread,
            at_ns,
            status: reader.argument(0) as u32,
            cpu_ns: Some(reader.argument(5)),
            counted: Some(Counts {
                read: reader.argument(1),
                written: reader.argument(2),
                storage_read: reader.argument(3),
                storage_written: reader.argument(4),
            }),
        }),
        kind if kind == Kind::Inserted as u16 => Observed::Inserted(reader.touched()),
        kind if kind == Kind::Fault as u16 => Observed::Fault(reader.touched(), Touch::Load),
        kind if kind == Kind::Dirtied as u16 => Observed::Fault(reader.touched(), Touch::Store),
        kind if kind == Kind::Request as u16 => Observed::Request(Requested {
            thread,
            start_ns: at_ns,
            end_ns: reader.double(at::END),
            // Its own pages have come in.
            file: Identity { cached_pages: None, ..reader.identity() },
            opcode: reader.argument(2) as u8,
            offset: reader.argument(0),
            asked: reader.argument(1),
            result: reader.double(at::RESULT).cast_signed(),
        }),
        _ => return None,
    })
}

fn ended(record: &[u8], call: Call) -> Ended<'_> {
    let reader = Reader(record);
    let wanted = call.wanted();
    let result = reader.double(at::RESULT).cast_signed();
    let is_long = record.len() > SHORT_BYTES as usize;
    let (path, second_path) = if is_long { paths(&reader) } else { (&[][..], &[][..]) };
    Ended {
        thread: reader.thread(),
        call,
        start_ns: reader.start_ns(),
        end_ns: reader.double(at::END),
        cpu_gap_ns: Some(reader.double(at::CPU_GAP)),
        result,
        arguments: [0, 1, 2, 3, 4, 5].map(|index| reader.argument(index)),
        path,
        second_path,
        made: (is_long && wanted.made && result >= 0).then(|| reader.identity()),
        pointed: (is_long && wanted.pointed.is_some()).then(|| reader.double(at::INODE)),
    }
}

/// Both paths, without their zeros.
fn paths<'a>(reader: &Reader<'a>) -> (&'a [u8], &'a [u8]) {
    let both = reader.0.get(at::PATHS as usize..).unwrap_or_default();
    let first = (reader.word(at::PATH_BYTES) as usize).min(both.len());
    let (first, second) = both.split_at(first);
    (until_zero(first), until_zero(second))
}

fn until_zero(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: Kind, number: u32, bytes: usize) -> Vec<u8> {
        let mut record = vec![0; bytes];
        put(&mut record, at::KIND, &(kind as u32 | number << 16).to_ne_bytes());
        put(&mut record, at::THREAD, &7_u32.to_ne_bytes());
        put(&mut record, at::START, &100_u64.to_ne_bytes());
        put(&mut record, at::END, &150_u64.to_ne_bytes());
        record
    }

    fn put(record: &mut [u8], offset: i16, bytes: &[u8]) {
        let offset = offset as usize;
        record[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn a_rename_has_two_paths() {
        let mut bytes = record(Kind::Call, libc::SYS_renameat2 as u32, at::PATHS as usize + 9);
        put(&mut bytes, at::PATH_BYTES, &4_u32.to_ne_bytes());
        put(&mut bytes, at::PATHS, b"old\0new0\0");
        let Some(Observed::Call(ended)) = parse(&bytes, &Calls::native()) else { panic!() };
        assert_eq!((ended.path, ended.second_path), (&b"old"[..], &b"new0"[..]));
        assert_eq!((ended.thread, ended.start_ns, ended.end_ns), (7, 100, 150));
        assert_eq!(ended.made, None);
    }

    #[test]
    fn records_that_are_cut_short_are_not_fatal() {
        let whole = record(Kind::Call, libc::SYS_openat as u32, at::PATHS as usize + 3);
        for length in 0..whole.len() {
            parse(&whole[..length], &Calls::native());
        }
    }
}
