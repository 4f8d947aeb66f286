//! Twelve workloads that go by a name: a ladder from a compiler's few megabytes to a backup.
//!
//! The papers' own set (Chen and Patterson 1994, Fig. 16) is lost but for a few figures; image
//! processing keeps them (250 kB requests, half reads, 0.8 sequential). The sizes are absolute,
//! so that one name means the same on every machine.

use crate::units::{GIB, KIB, MIB};
use crate::{Access, SizeDist, Workload, datasheet};

/// Name, `unique_bytes`, `size_mean`, `read_frac`, `seq_frac`, `process_num`.
type Row = (&'static str, u64, u64, f64, f64, u32);

const NAMED: [Row; 12] = [
    ("compile", 24 * MIB, 12 * KIB, 0.8, 0.7, 2),
    ("desktop", 64 * MIB, 16 * KIB, 0.65, 0.4, 1),
    ("home-server", 192 * MIB, 32 * KIB, 0.75, 0.5, 2),
    ("mail", 256 * MIB, 16 * KIB, 0.5, 0.3, 4),
    ("image-processing", 384 * MIB, 244 * KIB, 0.5, 0.8, 1),
    ("scan", 768 * MIB, 512 * KIB, 1.0, 1.0, 1),
    ("checkpoint", 512 * MIB, MIB, 0.0, 1.0, 2),
    ("oltp", 480 * MIB, 8 * KIB, 0.7, 0.1, 4),
    ("decision-support", GIB, 256 * KIB, 0.95, 0.8, 2),
    ("log-append", 128 * MIB, 8 * KIB, 0.0, 1.0, 1),
    ("shuffle-read", GIB, 128 * KIB, 1.0, 0.0, 4),
    ("backup", GIB, 512 * KIB, 0.5, 0.9, 1),
];

/// filebench's personalities of these names at their default sizes, as far as five parameters go:
/// files become places, whole files single requests. Its `oltp` has a neighbour above.
const NEIGHBOURS: [Row; 3] = [
    // 1000 files of 16 KiB, 16 threads: each mail is read whole or appended to.
    ("varmail", 16 * MIB, 16 * KIB, 0.5, 0.0, 16),
    // 10 000 files of 128 KiB, 50 threads: written whole, appended to by 16 KiB, read whole.
    ("fileserver", 1250 * MIB, 88 * KIB, 0.33, 0.0, 50),
    // 1000 files of 16 KiB, 100 threads: ten pages read, then one record to a log.
    ("webserver", 16 * MIB, 16 * KIB, 0.91, 0.09, 100),
];

/// How an application's requests pass, besides the five parameters.
struct Manner {
    row: Row,
    depth: u32,
    fsync_every: u32,
    access: Access,
}

/// What applications do by their own defaults, with requests in flight, fdatasyncs and direct access
/// as they have them. Where each figure comes from stands in `docs/workloads.md`.
const APPLICATIONS: [Manner; 7] = [
    // InnoDB: pages of 16 KiB, `innodb_flush_method=O_DIRECT`, four threads that read.
    Manner {
        row: ("innodb-pages", 8 * GIB, 16 * KIB, 0.8, 0.0, 4),
        depth: 4,
        fsync_every: 0,
        access: Access::Direct,
    },
    // PostgreSQL: blocks of 8 KiB through the page cache.
    Manner {
        row: ("postgres-pages", GIB, 8 * KIB, 0.9, 0.0, 4),
        depth: 1,
        fsync_every: 0,
        access: Access::Buffered,
    },
    // PostgreSQL's write-ahead log: blocks of 8 KiB, `wal_sync_method=fdatasync` at each commit.
    Manner {
        row: ("postgres-log", GIB, 8 * KIB, 0.0, 1.0, 1),
        depth: 1,
        fsync_every: 1,
        access: Access::Buffered,
    },
    // Kafka: batches of 16 KiB appended to segments of 1 GiB; flushing is left to the kernel.
    Manner {
        row: ("broker-log", GIB, 16 * KIB, 0.0, 1.0, 4),
        depth: 1,
        fsync_every: 0,
        access: Access::Buffered,
    },
    // A container image's layers: three at a time, copied by 32 KiB.
    Manner {
        row: ("image-pull", 512 * MIB, 32 * KIB, 0.0, 1.0, 3),
        depth: 1,
        fsync_every: 0,
        access: Access::Buffered,
    },
    // A virtual machine's disk with `cache=none`.
    Manner {
        row: ("vm-disk", 8 * GIB, 4 * KIB, 0.7, 0.0, 1),
        depth: 32,
        fsync_every: 0,
        access: Access::Direct,
    },
    // A backup that reads past the page cache, as its authors advise for what is read once.
    Manner {
        row: ("backup-direct", 8 * GIB, MIB, 1.0, 1.0, 1),
        depth: 4,
        fsync_every: 0,
        access: Access::Direct,
    },
];

/// Jobs of fio whose names begin so fill its page cache and measure nothing: written by the export,
/// left out by the import.
pub const WARM_UP: &str = "ioscape-warm-up";

/// The workload of that name.
pub fn named(name: &str) -> Option<Workload> {
    let ladder = NAMED.iter().chain(&NEIGHBOURS).find(|row| row.0 == name);
    let application = || APPLICATIONS.iter().find(|manner| manner.row.0 == name);
    ladder
        .map(five)
        .or_else(|| application().map(Manner::workload))
        .or_else(|| datasheet::named(name))
}

impl Manner {
    fn workload(&self) -> Workload {
        let Self { row, depth, fsync_every, access } = self;
        Workload { depth: *depth, fsync_every: *fsync_every, access: *access, ..five(row) }
    }
}

fn five(row: &Row) -> Workload {
    let (_, unique_bytes, size_mean, read_frac, seq_frac, process_num) = *row;
    Workload { unique_bytes, size_mean, read_frac, seq_frac, process_num, ..Workload::default() }
}

/// The name of a workload, where it has one.
pub fn name_of(work: &Workload) -> Option<&'static str> {
    let mut all = names().chain(neighbours());
    all.find(|name| named(name).as_ref() == Some(work)).or_else(|| sheet_name(work))
}

/// A line of the data sheet keeps its name over any span.
fn sheet_name(work: &Workload) -> Option<&'static str> {
    if work.size_dist != SizeDist::Fixed {
        return None;
    }
    datasheet::names().find(|name| {
        let over_its_span =
            datasheet::named(name).map(|line| Workload { unique_bytes: work.unique_bytes, ..line });
        over_its_span.as_ref() == Some(work)
    })
}

/// The twelve names, smallest data first but for the streams at the end.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|row| row.0)
}

/// Names that stand beside the twelve: too many processes for most maps, or an application's own
/// depth, fdatasyncs and access.
pub fn neighbours() -> impl Iterator<Item = &'static str> {
    let applications = APPLICATIONS.iter().map(|manner| manner.row.0);
    NEIGHBOURS.iter().map(|row| row.0).chain(applications)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_for_a_workload_that_can_be() {
        assert_eq!(names().count(), 12);
        for name in names().chain(neighbours()) {
            let work = named(name).unwrap();
            work.check().unwrap();
            assert_eq!(name_of(&work), Some(name));
        }
        assert_eq!(name_of(&Workload::default()), None);
        assert_eq!(named("nothing"), None);
    }
}
