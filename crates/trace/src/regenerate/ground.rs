//! The files of a load: as many, with as much data, as the model has; some are there at the start, some
//! will be made.

use ioscape_model::app::{App, CacheMisses, Caches, FileClass};

use super::Scale;
use super::bags::block_pages;
use super::places::{PAGE_BYTES, READ, Region, WRITE};
use super::timing::{all_transfers, transfers};
use crate::event::{FileEntry, FileKind, StreamEntry};

/// Files in a directory.
const DIRECTORY_FILES: usize = 64;
/// Files are read whole, one after another, where there are at least so many of the class of which most
/// is read (grep and git: over a thousand; databases: a few),
const MANY: usize = 8;
/// each is opened so often at least (about once, in those; some are read without being opened in time),
const MANY_OPENED: f64 = 0.8;
/// and a file that is opened has at most so many reads that do not go on where one ended (grep, git: 1;
/// `PostgreSQL`: 10; `RocksDB`: 1000).
const MANY_JUMPS: f64 = 2.0;
/// Files grow where so much of what is written first is appended: all of it in six of eight programs, a
/// thirtieth with `PostgreSQL`, whose log is laid out before.
const GROWN: f64 = 0.5;
/// Names that are only looked up, made or removed.
const SPARE_MAX: u64 = 1 << 20;
/// Calls on names, each of which takes one that no other call is about.
const NAMES: [&str; 5] = ["LOOKUP_NEG", "UNLINK", "RENAME", "MKDIR", "SYMLINK"];
const STREAMS_MAX: f64 = 4096.0;

/// A file of data: a stretch of the address space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) id: u32,
    /// Its first page, and how many there are; neither is known yet of a file that is to grow.
    pub(super) from: usize,
    pub(super) pages: usize,
    /// It is made by the load.
    pub(super) is_made: bool,
    /// Whether its data are read or written first.
    pub(super) direction: usize,
}

/// All files.
#[derive(Clone, Debug)]
pub(super) struct GeneratedFiles {
    entries: Vec<FileEntry>,
    streams: Vec<StreamEntry>,
    pub(super) data: Vec<Data>,
    pub(super) regions: [Region; 2],
    pub(super) caches: Caches,
    pub(super) directories: Vec<u32>,
    /// The first of the ids that stand for names without data, and how many there are.
    pub(super) spare: (u32, u32),
    /// Directories that are only removed, likewise.
    pub(super) spare_directories: (u32, u32),
}

/// The model's curve, or one in which all pages are as likely.
fn caches(app: &App) -> Caches {
    if let Some(caches) = app.caches.as_ref().filter(|caches| caches.curve.len() > 1) {
        return caches.clone();
    }
    let five = &app.whole.five;
    let pages = five.unique_bytes.div_ceil(PAGE_BYTES).max(1);
    let [reads, writes] = all_transfers(&app.stretches());
    let per_request = (five.size_mean / PAGE_BYTES as f64).max(1.0);
    let touches = |count: u64| (count as f64 * per_request) as u64;
    let first = |count: u64| (pages * count / (reads + writes).max(1)).min(touches(count));
    let curve = vec![
        CacheMisses { pages: 0, reads: touches(reads), writes: touches(writes) },
        CacheMisses { pages, reads: first(reads), writes: first(writes) },
    ];
    Caches { pages, reads: touches(reads), writes: touches(writes), curve, ..Caches::default() }
}

/// Pages that a load touches.
pub(super) fn pages(app: &App, data: f64) -> u64 {
    let last = caches(app).curve.last().copied().unwrap_or_default();
    ((last.reads + last.writes) as f64 * data) as u64
}

/// A class of files: how many, and how much of what is read or written.
#[derive(Clone, Copy, Debug)]
struct Share {
    files: u64,
    bytes: u64,
}

/// Classes of files by what is read of them, or written to them, with so many of their files as its share
/// of both is, one at least.
fn shares(classes: &[FileClass], bytes: impl Fn(&FileClass) -> u64) -> Vec<Share> {
    let share = |class: &FileClass| {
        let all = class.bytes_read.saturating_add(class.bytes_written).max(1);
        let files = (class.files as f64 * bytes(class) as f64 / all as f64).ceil().max(1.0);
        Share { files: files as u64, bytes: bytes(class) }
    };
    classes.iter().filter(|class| bytes(class) > 0).map(share).collect()
}

/// The class of files of which most is read.
fn main_class(classes: &[FileClass]) -> Option<&FileClass> {
    classes.iter().max_by_key(|class| class.bytes_read)
}

/// Reads that do not go on where the one before of their handle ended.
fn jumps(app: &App) -> f64 {
    let reads = transfers(&app.whole)[READ] as f64;
    let sequential = sequential_share(app).unwrap_or(app.whole.five.seq_frac);
    reads * (1.0 - sequential).max(0.0)
}

/// Share of the bytes read that go on where the read before ended; `None` where nobody counted.
pub(super) fn sequential_share(app: &App) -> Option<f64> {
    let demand = app.demand.as_ref()?;
    Some(demand.sequential_bytes as f64 / app.whole.bytes_read.max(1) as f64)
}

/// True if most of the pages that are written first are appended to files. The model's count of appended
/// bytes decides; where it has none, its syncs of files that grew; where it has no syncs, whether the
/// program makes files.
fn grows(app: &App, pages: u64, made: usize) -> bool {
    let counted = app.demand.as_ref().filter(|demand| !demand.categories.is_empty());
    if let Some(demand) = counted {
        let appended = ["append", "append_unaligned"].map(|name| demand.categories.get(name));
        let bytes: f64 = appended.into_iter().flatten().map(|category| category.bytes as f64).sum();
        return bytes >= GROWN * pages as f64 * PAGE_BYTES as f64;
    }
    if app.whole.syncs.by_kind.is_empty() {
        return made > 0;
    }
    let kind = |name: &str| app.whole.syncs.by_kind.get(name).map_or(0, |kind| kind.count);
    kind("grown") + kind("new") > kind("overwritten")
}

impl GeneratedFiles {
    pub(super) fn new(app: &App, scale: &Scale) -> Self {
        let caches = caches(app);
        let last = caches.curve.last().copied().unwrap_or_default();
        let scaled = |pages: u64| (pages as f64 * scale.data).round() as usize;
        let (read, written) = (scaled(last.reads), scaled(last.writes));
        let mut ground = Self {
            entries: Vec::new(),
            streams: Vec::new(),
            data: Vec::new(),
            regions: [Region::default(); 2],
            caches,
            directories: Vec::new(),
            spare: (0, 0),
            spare_directories: (0, 0),
        };
        let count = |name: &str| app.whole.operations.get(name).copied().unwrap_or(0);
        let files: u64 = app.whole.files.iter().map(|class| class.files).sum();
        let made = count("CREATE").min(files).min(written as u64) as usize;
        let old = (files as usize).saturating_sub(made).max(1);
        // Without a file that is made, what is written first lies in files that are there.
        let (of_read, of_written) = match (read, written, made) {
            (0, _, 0) => (0, old),
            (_, 0, _) => (old, 0),
            (_, _, 0) => (old.div_ceil(2), (old / 2).max(1)),
            _ => (if read == 0 { 0 } else { old }, made),
        };
        let grows = grows(app, last.writes, made);
        let blocks = [&app.whole.sizes.read, &app.whole.sizes.write].map(block_pages);
        let runs = (app.whole.sequence.run_bytes_mean / PAGE_BYTES as f64).ceil().max(1.0) as usize;
        // Files that are opened one after another are as long as what is read of each.
        let opened = count("OPEN") as f64;
        let is_many = of_read >= MANY
            && opened >= MANY_OPENED * of_read as f64
            && jumps(app) <= MANY_JUMPS * opened
            && main_class(&app.whole.files).is_none_or(|class| class.files >= MANY as u64);
        if is_many {
            ground.regions[READ] = Region::growing(0, read);
            // Files that are mapped alone are not among those read.
            let mapped = if app.whole.unique.mapped_bytes > 0 { count("MMAP") as usize } else { 0 };
            ground.announce(READ, (of_read + mapped).min(read), false);
        } else {
            let runs = runs.max((read as f64 / jumps(app).max(1.0)) as usize);
            ground.regions[READ] = Region::new(0, read, runs.next_multiple_of(blocks[READ]));
            let shares = shares(&app.whole.files, |class| class.bytes_read);
            ground.lay(READ, (of_read, blocks[READ]), &shares);
        }
        let from = ground.regions[READ].pages;
        if made > 0 && grows {
            ground.regions[WRITE] = Region::growing(from, written);
            ground.announce(WRITE, of_written.min(written), true);
        } else {
            let runs = runs.next_multiple_of(blocks[WRITE]);
            ground.regions[WRITE] = Region::new(from, written, runs);
            ground.regions[WRITE].is_empty = grows;
            let shares = shares(&app.whole.files, |class| class.bytes_written);
            ground.lay(WRITE, (of_written, blocks[WRITE]), &shares);
        }
        ground.cool(app.demand.as_ref().and_then(|demand| demand.warm_frac));
        let times = |count: u64| ((count as f64 * scale.users) as u64).min(SPARE_MAX) as u32;
        ground.add_spare(times(NAMES.map(count).iter().sum()), times(count("RMDIR")));
        let streams = (f64::from(app.whole.five.process_num.max(1)) * scale.users).round();
        for id in 1..=streams.clamp(1.0, STREAMS_MAX) as u32 {
            ground.streams.push(StreamEntry { id, process: id, ..StreamEntry::default() });
        }
        ground
    }

    /// Adds names without data, and directories that are only removed.
    fn add_spare(&mut self, names: u32, directories: u32) {
        self.spare = (self.entries.len() as u32 + 1, names);
        let directory = self.directories.last().copied().unwrap_or(0);
        for _ in 0..names {
            self.add_entry(FileKind::Regular, directory, 0);
        }
        self.spare_directories = (self.entries.len() as u32 + 1, directories);
        for _ in 0..directories {
            self.add_entry(FileKind::Directory, 0, 0);
        }
    }

    pub(super) fn entries(&self) -> &[FileEntry] {
        &self.entries
    }

    pub(super) fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }

    /// Lays the pages of a region out in files, those of a class of one length; in so many `files` of one
    /// length where no class is known. Each file begins at a multiple of `block` pages from the region's start.
    fn lay(&mut self, direction: usize, (files, block): (usize, usize), shares: &[Share]) {
        let Region { from, pages, is_empty, .. } = self.regions[direction];
        let even = [Share { files: files as u64, bytes: 1 }];
        let shares = if shares.is_empty() { &even } else { shares };
        let all: f64 = shares.iter().map(|share| share.bytes as f64).sum();
        let (mut start, mut bytes) = (0, 0.0);
        for share in shares {
            bytes += share.bytes as f64;
            let end = (pages as f64 * bytes / all).round() as usize;
            let end = end.next_multiple_of(block).clamp(start, pages);
            let files = (share.files as usize).min((end - start).div_ceil(block));
            for number in 0..files {
                let place = |number: usize| {
                    let place = start + (end - start) * number / files;
                    if number == files { place } else { place.next_multiple_of(block).min(end) }
                };
                let (first, next) = (place(number), place(number + 1));
                let bytes = if is_empty { 0 } else { (next - first) as u64 * PAGE_BYTES };
                let id = self.add(bytes);
                let (from, pages) = (from + first, next - first);
                self.data.push(Data { id, from, pages, is_made: false, direction });
            }
            start = end;
        }
    }

    /// Marks files as not cached at the start, all but the share `warm_frac` of those with data; none where
    /// the model does not tell that share.
    fn cool(&mut self, warm_frac: Option<f64>) {
        let Some(warm_frac) = warm_frac else { return };
        let warm = |files: usize| (files as f64 * warm_frac).round();
        for (number, data) in self.data.iter().enumerate() {
            if warm(number + 1) <= warm(number) {
                self.entries[data.id as usize - 1].resident_bytes = Some(0);
            }
        }
    }

    /// Files whose places will be known when they begin.
    fn announce(&mut self, direction: usize, files: usize, is_made: bool) {
        for _ in 0..files {
            let id = self.add(0);
            self.data.push(Data { id, from: 0, pages: 0, is_made, direction });
        }
    }

    /// A file of data, in a directory that has room for it.
    fn add(&mut self, first_bytes: u64) -> u32 {
        if self.data.len().is_multiple_of(DIRECTORY_FILES) {
            let directory = self.add_entry(FileKind::Directory, 0, 0);
            self.directories.push(directory);
        }
        let directory = self.directories.last().copied().unwrap_or(0);
        self.add_entry(FileKind::Regular, directory, first_bytes)
    }

    fn add_entry(&mut self, kind: FileKind, directory: u32, first_bytes: u64) -> u32 {
        let id = self.entries.len() as u32 + 1;
        let depth = u16::from(directory != 0);
        let last_bytes = first_bytes;
        let entry = FileEntry {
            id,
            kind,
            directory,
            depth,
            first_bytes,
            last_bytes,
            ..FileEntry::default()
        };
        self.entries.push(entry);
        id
    }
}
