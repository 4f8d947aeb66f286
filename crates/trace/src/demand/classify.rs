//! The category of an event: the word of an element where a record has one.

use std::collections::{BTreeMap, HashMap, HashSet};

use ioscape_model::ElementName as Name;
use ioscape_model::app::Category;

use super::files::{Files, Home};
use crate::caches::PAGE_BYTES;
use crate::character::dirty::{Dirty, Synced, SyncedKind};
use crate::{Event, FileKind, Flags, Op};

/// Files made in a directory from which on it counts as a large one.
const LARGE_DIRECTORY: u64 = 5_000;
/// On files that are on other devices.
pub(super) const ELSEWHERE: &str = "elsewhere";
/// Touches of mapped pages; priced by what the page cache lacks.
pub(super) const FAULT: &str = "fault";

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// An operation of a category.
    Of(&'static str),
    /// It waits for something that is no storage.
    Wait,
    /// A mark in a stream: a touch of a mapped page, a start, an end.
    Mark,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    bytes: u64,
    /// Name and inode are in memory.
    is_known: bool,
    is_listed: bool,
}

/// How much an operation is about.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    bytes: u64,
    pages: u64,
    extents: u64,
}

/// Counts operations; remembers what the kernel remembers of names and lengths.
pub(super) struct Classifier {
    files: Files,
    states: HashMap<u32, State>,
    written: HashSet<u32>,
    made_in: HashMap<u32, u64>,
    dirty: Dirty,
    counted: BTreeMap<&'static str, Category>,
}

impl Classifier {
    pub(super) fn new(files: Files) -> Self {
        Self {
            files,
            states: HashMap::new(),
            written: HashSet::new(),
            made_in: HashMap::new(),
            dirty: Dirty::default(),
            counted: BTreeMap::new(),
        }
    }

    /// All categories with their counts.
    pub(super) fn categories(&mut self) -> BTreeMap<&'static str, Category> {
        std::mem::take(&mut self.counted)
    }

    /// Counts an event.
    pub(super) fn classify(&mut self, event: &Event) -> Operation {
        match event.op {
            Op::Wait => return Operation::Wait,
            Op::Fork | Op::Exit | Op::Exec => return Operation::Mark,
            Op::FaultR | Op::FaultW => {
                self.fault(event);
                return Operation::Mark;
            }
            _ => {}
        }
        let is_of_all = matches!(event.op, Op::Sync | Op::Dsync) && event.file == 0;
        let name = match self.files.home(event.file) {
            _ if is_of_all => self.count("sync_all", NOTHING),
            Home::Nowhere => return Operation::Wait,
            Home::Elsewhere => self.count(ELSEWHERE, Amount { bytes: event.length, ..NOTHING }),
            Home::Storage if event.error != 0 => self.failed(event),
            Home::Storage => self.storage(event),
        };
        Operation::Of(name)
    }

    fn storage(&mut self, event: &Event) -> &'static str {
        match event.op {
            Op::Read | Op::Get | Op::Sendfile => self.read(event),
            Op::Write | Op::Set => self.write(event),
            Op::Copy => self.copy(event),
            Op::Sync | Op::Dsync | Op::Msync => self.sync(event),
            Op::Open => self.open(event),
            Op::Create => self.create(event),
            Op::Close => self.close(event),
            Op::Readdir => self.readdir(event),
            Op::Stat if event.handle != 0 => self.plain(Name::Fstat),
            Op::Stat | Op::Readlink => {
                let names = (Name::StatCached, Name::StatMissed);
                self.looked_up(event, names)
            }
            Op::LookupNeg => self.plain(Name::StatNegative),
            Op::Unlink => self.unlink(event),
            Op::Rename => self.rename(event),
            Op::Mkdir => self.made(event, Name::Mkdir),
            Op::Symlink => self.made(event, Name::Symlink),
            Op::Link => self.plain(Name::Link),
            Op::Rmdir => self.plain(Name::Rmdir),
            Op::Trunc => self.truncate(event.file, event.offset.max(event.length)),
            Op::Falloc => {
                self.count(Name::Fallocate.word(), Amount { bytes: event.length, ..NOTHING })
            }
            Op::Chattr => self.plain(Name::SetAttribute),
            Op::Lock => self.plain(Name::Lock),
            Op::Advise => self.plain(Name::Descriptor),
            Op::Mmap | Op::Munmap => self.plain(Name::Map),
            Op::Rsync => self.count("sync_range", NOTHING),
            Op::Xattr => self.count("extended_attribute", NOTHING),
            Op::Punch => self.count("punch_hole", NOTHING),
            _ => self.count("other", NOTHING),
        }
    }

    fn count(&mut self, name: &'static str, amount: Amount) -> &'static str {
        let counted = self.counted.entry(name).or_default();
        counted.count += 1;
        counted.bytes += amount.bytes;
        counted.pages += amount.pages;
        counted.extents += amount.extents;
        name
    }

    fn plain(&mut self, name: Name) -> &'static str {
        self.count(name.word(), NOTHING)
    }

    /// A call that failed: most look up a name in vain.
    fn failed(&mut self, event: &Event) -> &'static str {
        match event.op {
            Op::Read | Op::Write | Op::Lock | Op::Advise | Op::Sendfile | Op::Copy => {
                self.plain(Name::Descriptor)
            }
            _ => self.plain(Name::StatNegative),
        }
    }

    /// The state of a file, and whether its name had to be read for that.
    fn touch(&mut self, file: u32) -> (State, bool) {
        let files = &self.files;
        let state = self.states.entry(file).or_insert_with(|| State {
            bytes: files.get(file).map_or(0, |facts| facts.bytes),
            is_known: !files.is_cold(file),
            is_listed: !files.is_cold(file),
        });
        let missed = !state.is_known;
        state.is_known = true;
        (*state, missed)
    }

    fn state(&mut self, file: u32) -> &mut State {
        let _ = self.touch(file);
        self.states.entry(file).or_default()
    }

    fn looked_up(&mut self, event: &Event, (hit, miss): (Name, Name)) -> &'static str {
        let (_, missed) = self.touch(event.file);
        self.plain(if missed { miss } else { hit })
    }

    fn read(&mut self, event: &Event) -> &'static str {
        let name = match event.op {
            Op::Sendfile => Name::Sendfile,
            _ if event.flags.has(Flags::DIRECT) => Name::DirectRead,
            _ if event.flags.has(Flags::ASYNC) => Name::RingReadHit,
            _ => Name::ReadHit,
        };
        let state = self.state(event.file);
        state.bytes = state.bytes.max(event.offset.saturating_add(event.length));
        self.count(name.word(), Amount { bytes: event.length, ..NOTHING })
    }

    fn write(&mut self, event: &Event) -> &'static str {
        let length = self.files.get(event.file).map_or(0, |facts| facts.bytes);
        self.dirty.written(event.file, event.offset, event.length, length);
        self.written.insert(event.handle);
        let end = event.offset.saturating_add(event.length);
        let state = self.state(event.file);
        let grows = end > state.bytes;
        let is_whole = |byte: u64| byte.is_multiple_of(PAGE_BYTES);
        let aligned = is_whole(event.offset) && (is_whole(end) || end >= state.bytes);
        state.bytes = state.bytes.max(end);
        if event.flags.has(Flags::SYNC) {
            let synced = self.dirty.synced(event.file, false);
            let amount = Amount { bytes: event.length, ..amount_of(&synced) };
            return self.count(Name::WriteDsync.word(), amount);
        }
        let name = match () {
            () if event.flags.has(Flags::DIRECT) => Name::DirectWrite,
            () if grows && is_whole(event.offset) => Name::Append,
            () if grows => Name::AppendUnaligned,
            () if aligned => Name::WriteCached,
            () => Name::WritePartialCached,
        };
        self.count(name.word(), Amount { bytes: event.length, ..NOTHING })
    }

    fn copy(&mut self, event: &Event) -> &'static str {
        if event.length == 0 {
            return self.plain(Name::Descriptor); // the end of the file
        }
        let to = u32::try_from(event.other).unwrap_or(0);
        let state = self.state(to);
        let at = state.bytes;
        state.bytes += event.length;
        self.dirty.written(to, at, event.length, 0);
        self.count(Name::CopyRange.word(), Amount { bytes: event.length, ..NOTHING })
    }

    fn sync(&mut self, event: &Event) -> &'static str {
        let is_directory =
            self.files.get(event.file).is_some_and(|facts| facts.kind == FileKind::Directory);
        let synced = self.dirty.synced(event.file, is_directory);
        let name = match synced.kind {
            SyncedKind::New => Name::SyncNew,
            SyncedKind::Grown => Name::SyncGrown,
            SyncedKind::Overwritten => Name::SyncOverwritten,
            SyncedKind::Directory => Name::SyncDirectory,
            SyncedKind::Clean => Name::SyncClean,
        };
        self.count(name.word(), amount_of(&synced))
    }

    fn open(&mut self, event: &Event) -> &'static str {
        if event.flags.has(Flags::TRUNC) && self.state(event.file).bytes > 0 {
            self.truncate(event.file, 0);
        }
        self.looked_up(event, (Name::OpenCached, Name::OpenMissed))
    }

    fn create(&mut self, event: &Event) -> &'static str {
        self.dirty.created(event.file);
        self.states.insert(event.file, State { bytes: 0, is_known: true, is_listed: true });
        let directory = self.files.get(event.file).map_or(0, |facts| facts.directory);
        let made = self.made_in.entry(directory).or_default();
        *made += 1;
        let name = match () {
            () if *made > LARGE_DIRECTORY => Name::CreateLarge,
            () if event.flags.has(Flags::EXCL) => Name::CreateExclusive,
            () => Name::Create,
        };
        self.plain(name)
    }

    fn made(&mut self, event: &Event, name: Name) -> &'static str {
        self.states.insert(event.file, State { bytes: 0, is_known: true, is_listed: true });
        self.plain(name)
    }

    fn close(&mut self, event: &Event) -> &'static str {
        let is_written = self.written.remove(&event.handle);
        self.plain(if is_written { Name::CloseWritten } else { Name::Close })
    }

    fn readdir(&mut self, event: &Event) -> &'static str {
        let state = self.state(event.file);
        let missed = !std::mem::replace(&mut state.is_listed, true);
        let name = if missed { Name::ReaddirMissed } else { Name::ReaddirEntry };
        self.count(name.word(), Amount { pages: event.length, ..NOTHING })
    }

    fn unlink(&mut self, event: &Event) -> &'static str {
        let (state, missed) = self.touch(event.file);
        self.dirty.gone(event.file);
        self.states.remove(&event.file);
        if missed {
            return self.plain(Name::UnlinkMissed);
        }
        let pages = state.bytes.div_ceil(PAGE_BYTES);
        self.count(Name::Unlink.word(), Amount { pages, ..NOTHING })
    }

    fn rename(&mut self, event: &Event) -> &'static str {
        let replaced = u32::try_from(event.other).unwrap_or(0);
        let replaces = replaced != 0 && replaced != event.file;
        if replaces {
            self.states.remove(&replaced);
            self.dirty.gone(replaced);
        }
        self.plain(if replaces { Name::RenameReplace } else { Name::Rename })
    }

    fn truncate(&mut self, file: u32, bytes: u64) -> &'static str {
        let state = self.state(file);
        let pages = state.bytes.saturating_sub(bytes).div_ceil(PAGE_BYTES);
        state.bytes = bytes;
        self.count(Name::Truncate.word(), Amount { pages, ..NOTHING })
    }

    /// Pages touched through mappings. Their processor time is part of the work between calls; what
    /// they wait for is said by the page cache.
    fn fault(&mut self, event: &Event) {
        if self.files.home(event.file) != Home::Storage {
            return;
        }
        if event.op == Op::FaultW {
            let length = self.files.get(event.file).map_or(0, |facts| facts.bytes);
            self.dirty.written(event.file, event.offset, event.length.max(1), length);
        }
        let pages = event.length.max(1).div_ceil(PAGE_BYTES);
        self.count(FAULT, Amount { bytes: event.length, pages, extents: 0 });
    }
}

/// What a sync has to write: a piece that reaches beyond the old end of its file counts as two.
fn amount_of(synced: &Synced) -> Amount {
    let extents = synced.extents + u64::from(synced.spans_end);
    Amount { pages: synced.pages, extents, ..NOTHING }
}

const NOTHING: Amount = Amount { bytes: 0, pages: 0, extents: 0 };
