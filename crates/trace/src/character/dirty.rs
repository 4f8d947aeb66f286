//! Which data a sync has to make durable: pages written since the one before, and the pieces they
//! lie in. The kernel writes pages back by itself after some 30 s; these are counted all the same.

use std::collections::{BTreeMap, HashMap};

use super::pages::PAGE_BYTES;

/// Pieces of one file that are kept apart; beyond that the count is a lower bound.
const EXTENTS_MAX: usize = 1 << 16;

/// What the file was that was synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SyncedKind {
    New,
    Grown,
    Overwritten,
    Directory,
    Clean,
}

impl SyncedKind {
    /// The word in a model.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Grown => "grown",
            Self::Overwritten => "overwritten",
            Self::Directory => "directory",
            Self::Clean => "clean",
        }
    }
}

/// A sync and what it had to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) kind: SyncedKind,
    pub(crate) pages: u64,
    pub(crate) extents: u64,
    /// Writes to the file since the sync before.
    pub(crate) writes: u64,
    /// One piece holds pages that the file had before as well as new ones. The kernel writes each part
    /// with a request of its own: only the new one needs blocks (`ext4_writepages` in fs/ext4/inode.c
    /// goes over mapped pages first; in iomap each kind of extent has its own request).
    pub(crate) spans_end: bool,
}

#[derive(Debug, Default)]
struct DirtyFile {
    /// First dirty page and the page after the last, of each piece.
    dirty: BTreeMap<u64, u64>,
    pages: u64,
    writes: u64,
    length: u64,
    length_synced: u64,
    is_new: bool,
}

/// Dirty data of all files.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    files: HashMap<u32, DirtyFile>,
    /// Whether some file had more pieces than are kept apart.
    pub(crate) is_bounded: bool,
}

impl Dirty {
    /// A file was made, or cut to nothing.
    pub(crate) fn created(&mut self, file: u32) {
        self.files.insert(file, DirtyFile { is_new: true, ..DirtyFile::default() });
    }

    /// A file went away, and what was dirty of it.
    pub(crate) fn gone(&mut self, file: u32) {
        self.files.remove(&file);
    }

    /// A file was written; `length` is how long it was when it was first seen.
    pub(crate) fn written(&mut self, file: u32, offset: u64, bytes: u64, length: u64) {
        let entry = self.files.entry(file);
        let file = entry.or_insert_with(|| DirtyFile {
            length,
            length_synced: length,
            ..DirtyFile::default()
        });
        let end = offset.saturating_add(bytes);
        file.writes += 1;
        file.length = file.length.max(end);
        if file.dirty.len() >= EXTENTS_MAX {
            self.is_bounded = true;
            return;
        }
        file.add(offset / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
    }

    /// Takes what a sync writes out.
    pub(crate) fn synced(&mut self, file: u32, is_directory: bool) -> Synced {
        let clean =
            Synced { kind: SyncedKind::Clean, pages: 0, extents: 0, writes: 0, spans_end: false };
        if is_directory {
            return Synced { kind: SyncedKind::Directory, ..clean };
        }
        let Some(file) = self.files.get_mut(&file) else { return clean };
        let kind = match () {
            () if file.is_new => SyncedKind::New,
            () if file.pages == 0 => SyncedKind::Clean,
            () if file.length > file.length_synced => SyncedKind::Grown,
            () => SyncedKind::Overwritten,
        };
        let (pages, extents) = (file.pages, file.dirty.len() as u64);
        let spans_end = kind == SyncedKind::Grown && file.spans(file.length_synced);
        let synced = Synced { kind, pages, extents, writes: file.writes, spans_end };
        let length = file.length;
        *file = DirtyFile { length, length_synced: length, ..DirtyFile::default() };
        synced
    }
}

impl DirtyFile {
    /// Whether a piece begins before the end of a file of this length and reaches beyond its last page.
    fn spans(&self, length: u64) -> bool {
        let end = length.div_ceil(PAGE_BYTES);
        self.dirty.range(..end).next_back().is_some_and(|(_, &to)| to > end)
    }

    fn add(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to);
        self.pages += to - from;
        while let Some((&start, &end)) = self.dirty.range(..=to).next_back() {
            if end < from {
                break;
            }
            self.pages -= end.min(to).saturating_sub(start.max(from));
            from = from.min(start);
            to = to.max(end);
            self.dirty.remove(&start);
        }
        self.dirty.insert(from, to);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_and_pieces_are_those_of_a_bitmap(
            writes in prop::collection::vec((0_u64..400, 1_u64..20), 1..60)
        ) {
            let (mut dirty, mut truth) = (Dirty::default(), vec![false; 500]);
            for (page, pages) in &writes {
                dirty.written(1, page * PAGE_BYTES, pages * PAGE_BYTES, 1 << 30);
                truth[*page as usize..(page + pages) as usize].fill(true);
            }
            let synced = dirty.synced(1, false);
            let starts = truth.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            prop_assert_eq!(synced.pages, truth.iter().filter(|page| **page).count() as u64);
            prop_assert_eq!(synced.extents, (starts + usize::from(truth[0])) as u64);
            prop_assert_eq!(synced.kind, SyncedKind::Overwritten);
            prop_assert_eq!(dirty.synced(1, false).kind, SyncedKind::Clean);
        }
    }

    #[test]
    fn the_kind_of_a_file_is_known() {
        let mut dirty = Dirty::default();
        dirty.created(1);
        dirty.written(1, 0, 2300, 0);
        assert_eq!(dirty.synced(1, false).kind, SyncedKind::New);
        dirty.written(1, 2300, 2300, 0);
        let grown = dirty.synced(1, false);
        assert_eq!(
            (grown.kind, grown.pages, grown.extents, grown.writes, grown.spans_end),
            (SyncedKind::Grown, 2, 1, 1, true)
        );
        dirty.written(1, 4600, 2300, 0);
        let within = dirty.synced(1, false);
        assert_eq!((within.kind, within.pages, within.spans_end), (SyncedKind::Grown, 1, false));
        dirty.written(1, 8192, 4096, 0);
        let beyond = dirty.synced(1, false);
        assert_eq!((beyond.kind, beyond.pages, beyond.spans_end), (SyncedKind::Grown, 1, false));
        dirty.written(1, 0, 10, 0);
        assert_eq!(dirty.synced(1, false).kind, SyncedKind::Overwritten);
        assert_eq!(dirty.synced(2, true).kind, SyncedKind::Directory);
        dirty.written(1, 0, 10, 0);
        dirty.gone(1);
        assert_eq!(dirty.synced(1, false).kind, SyncedKind::Clean);
    }
}
