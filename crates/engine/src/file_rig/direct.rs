//! Direct access: whether a file has it, at which alignment, and whether it was direct in the end.
//!
//! A filesystem may take the flag and go through the page cache all the same (for a copy-on-write
//! file, for compressed data). What bypasses the cache leaves no pages in it, and storage delivers
//! every byte that is read: both are looked at after each visit.

use std::fs::File;

use ioscape_model::{Access, Code, Warning, Words, Workload};
use rustix::fs::{AtFlags, StatxFlags};

use crate::counters::ProcessIo;
use crate::error::{Error, Result};
use crate::files::{OpenAccess, TestFiles};

/// Where the kernel does not say what it wants (before Linux 6.1), and no device does.
const ALIGNMENT_USUAL_BYTES: u64 = 512;
/// Less than this was read or found resident by chance.
const SEEN_MIN_BYTES: u64 = 1 << 20;
/// Storage delivered at least this share of what was read, if it was read directly.
const DELIVERED_MIN: f64 = 0.9;
/// Pages of more than this share of what was moved: it went through the cache.
const RESIDENT_MAX: f64 = 0.05;

pub(super) fn open_access(work: &Workload) -> OpenAccess {
    match work.access {
        Access::Buffered => OpenAccess::Buffered,
        Access::Direct => OpenAccess::Direct,
    }
}

/// What offsets and sizes of direct requests on `file` have to be multiples of, bytes; `None`
/// where the file has no direct access. Memory of requests is aligned to pages, which is enough.
fn alignment_bytes(file: &File, sector_bytes: Option<u64>) -> Option<u64> {
    let usual = Some(sector_bytes.unwrap_or(ALIGNMENT_USUAL_BYTES));
    let Ok(status) = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
        return usual;
    };
    if status.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return usual;
    }
    match u64::from(status.stx_dio_offset_align) {
        0 => None,
        bytes => Some(bytes),
    }
}

/// Refuses a workload that direct access to `file` cannot serve.
pub(super) fn check(work: &Workload, file: &File, sector_bytes: Option<u64>) -> Result<()> {
    let refused = |text: String| Err(Error::Refused(text));
    match alignment_bytes(file, sector_bytes) {
        None => refused(
            "access=direct: this filesystem has no direct access to its files; leave the key out \
             or name another directory"
                .to_owned(),
        ),
        Some(bytes) if !work.align.is_multiple_of(bytes) => refused(format!(
            "access=direct needs offsets and sizes in multiples of {bytes} here, and align is {}: \
             take align={bytes} or more",
            work.align
        )),
        Some(_) => Ok(()),
    }
}

/// Why no workload can go around the page cache here, as far as what is laid out tells.
pub(super) fn refusal(files: &TestFiles, sector_bytes: Option<u64>) -> Option<String> {
    if files.ground().is_memory() {
        return Some("files live in memory here".to_owned());
    }
    if files.count() == 0 {
        return None;
    }
    let Ok(file) = files.open_again(0, OpenAccess::Direct) else {
        return Some("this filesystem refuses O_DIRECT".to_owned());
    };
    match alignment_bytes(&file, sector_bytes) {
        None => Some("this filesystem has no direct access to its files".to_owned()),
        Some(bytes) if !Workload::default().align.is_multiple_of(bytes) => {
            Some(format!("direct access takes multiples of {bytes} bytes here"))
        }
        Some(_) => None,
    }
}

/// What was seen of the page cache and of storage over a visit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_field_names, reason = "all are bytes, and say so")]
pub(super) struct VisitTraffic {
    /// Read and written by the workers.
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// By how much the resident part of their files grew.
    pub(super) resident_grown_bytes: Option<u64>,
    /// What storage delivered to this process.
    pub(super) delivered_bytes: Option<u64>,
}

impl VisitTraffic {
    /// Delivered between two readings of the counters.
    pub(super) fn delivered(before: Option<ProcessIo>, now: Option<ProcessIo>) -> Option<u64> {
        Some(now?.device_read_bytes.saturating_sub(before?.device_read_bytes))
    }

    /// Why this was not direct.
    pub(super) fn doubt(&self) -> Option<Warning> {
        let moved_bytes = self.read_bytes + self.written_bytes;
        let resident = self.resident_grown_bytes.filter(|grown| {
            *grown > SEEN_MIN_BYTES && *grown as f64 > RESIDENT_MAX * moved_bytes as f64
        });
        let delivered = self.delivered_bytes.filter(|delivered| {
            self.read_bytes > SEEN_MIN_BYTES
                && (*delivered as f64) < DELIVERED_MIN * self.read_bytes as f64
        });
        let text = match (resident, delivered) {
            (Some(grown), _) => Words::new(
                "{grown_bytes} came into the page cache although requests were to bypass it",
            )
            .figure("grown_bytes", grown as f64),
            (None, Some(delivered)) => Words::new(
                "storage delivered {delivered_bytes} of the {read_bytes} that were read directly",
            )
            .figure("delivered_bytes", delivered as f64)
            .figure("read_bytes", self.read_bytes as f64),
            (None, None) => return None,
        };
        let remedy = "this filesystem takes the flag and caches all the same (copy-on-write or \
                      compressed files do): measure with access=buffered, or elsewhere";
        Some(Warning::new(Code::DirectNotDirect, text, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_stays_in_the_cache_or_does_not_come_from_storage_was_not_direct() {
        let read = VisitTraffic { read_bytes: 100 * MIB, ..VisitTraffic::default() };
        assert_eq!(read.doubt(), None);
        let all = VisitTraffic {
            delivered_bytes: Some(100 * MIB),
            resident_grown_bytes: Some(0),
            ..read
        };
        assert_eq!(all.doubt(), None);
        let cached = VisitTraffic { resident_grown_bytes: Some(64 * MIB), ..all };
        assert!(cached.doubt().unwrap().text.contains("64.0 MiB came into the page cache"));
        let hits = VisitTraffic { delivered_bytes: Some(10 * MIB), ..all };
        let Warning { text, figures, .. } = hits.doubt().unwrap();
        assert!(text.contains("10.0 MiB of the 100 MiB"), "{text}");
        let figures = ["delivered_bytes", "read_bytes"].map(|name| figures[name] as u64);
        assert_eq!(figures, [10 * MIB, 100 * MIB]);
        let little =
            VisitTraffic { read_bytes: MIB, delivered_bytes: Some(0), ..VisitTraffic::default() };
        assert_eq!(little.doubt(), None);
    }

    #[test]
    fn an_alignment_below_that_of_the_file_is_refused() {
        let file = tempfile::tempfile().unwrap();
        let Some(bytes) = alignment_bytes(&file, None) else {
            ioscape_test_support::skipped("the temporary directory has no direct access");
            return;
        };
        let work = |align: u64| {
            let text = format!("align={align},size_mean={}", 16 * align);
            Workload::parse(&text).unwrap()
        };
        assert!(check(&work(bytes), &file, None).is_ok());
        let message = check(&work(bytes / 2), &file, None).unwrap_err().to_string();
        assert!(message.contains(&format!("take align={bytes} or more")), "{message}");
    }
}
