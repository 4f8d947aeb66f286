//! Which pages are dirty, since when, and how many may be.

use std::collections::{BTreeMap, BTreeSet};

use super::folios::FolioId;

/// Share of the memory that may be dirty before the flusher starts, in percent
/// (mm/page-writeback.c, `dirty_background_ratio`).
const BACKGROUND_PERCENT: u64 = 10;

/// Age at which dirty pages are written anyway (`dirty_expire_interval`, 30 s) and how often that is
/// looked after (`dirty_writeback_interval`, 5 s).
const EXPIRE_NS: u64 = 30_000_000_000;
const LOOK_NS: u64 = 5_000_000_000;

/// Dirty pages above which the flusher starts, in this much memory.
pub(super) const fn background_pages(memory_pages: u64) -> u64 {
    memory_pages * BACKGROUND_PERCENT / 100
}

/// Dirty folios of a file by their first page.
#[derive(Debug, Default)]
struct DirtyFile {
    since_ns: u64,
    folios: BTreeMap<u64, FolioId>,
    /// Where the flusher goes on (`writeback_index`).
    cursor: u64,
}

/// What must be written back.
#[derive(Debug)]
pub(super) struct Dirty {
    files: BTreeMap<u32, DirtyFile>,
    /// When files became dirty, and which.
    by_age: BTreeSet<(u64, u32)>,
    pages: u64,
    background: u64,
    written_back: u64,
    now_ns: u64,
    looked_ns: u64,
}

impl Dirty {
    pub(super) const fn new(background: u64) -> Self {
        Self {
            files: BTreeMap::new(),
            by_age: BTreeSet::new(),
            pages: 0,
            background,
            written_back: 0,
            now_ns: 0,
            looked_ns: 0,
        }
    }

    pub(super) const fn written_back(&self) -> u64 {
        self.written_back
    }

    /// Files with pages that have been dirty for too long, when it is time to look.
    pub(super) fn expired(&mut self, now_ns: u64) -> Option<Vec<u32>> {
        self.now_ns = now_ns;
        if now_ns.saturating_sub(self.looked_ns) < LOOK_NS {
            return None;
        }
        self.looked_ns = now_ns;
        let is_old = |file: &DirtyFile| now_ns.saturating_sub(file.since_ns) >= EXPIRE_NS;
        Some(self.files.iter().filter(|(_, file)| is_old(file)).map(|(id, _)| *id).collect())
    }

    /// Whether the flusher starts.
    pub(super) const fn is_over(&self) -> bool {
        self.pages > self.background
    }

    /// A folio became dirty.
    pub(super) fn add(&mut self, file: u32, first: u64, pages: u64, id: FolioId) {
        let now_ns = self.now_ns;
        let of_file = self.files.entry(file).or_default();
        if of_file.folios.is_empty() {
            of_file.since_ns = now_ns;
            self.by_age.insert((now_ns, file));
        }
        of_file.folios.insert(first, id);
        self.pages += pages;
    }

    /// A dirty folio is clean or gone.
    pub(super) fn forget(&mut self, file: u32, first: u64, pages: u64) {
        let Some(of_file) = self.files.get_mut(&file) else { return };
        if of_file.folios.remove(&first).is_some() {
            self.pages -= pages;
        }
        if of_file.folios.is_empty() {
            self.by_age.remove(&(of_file.since_ns, file));
            self.files.remove(&file);
        }
    }

    /// A folio was written back.
    pub(super) fn written(&mut self, file: u32, first: u64, pages: u64) {
        self.forget(file, first, pages);
        self.written_back += pages;
    }

    /// The flusher goes on here when it comes back to the file. What is left of it is taken for newly
    /// dirty, so that the other files have their turn.
    pub(super) fn go_on(&mut self, file: u32, page: u64) {
        let now_ns = self.now_ns;
        if let Some(of_file) = self.files.get_mut(&file) {
            of_file.cursor = page;
            self.by_age.remove(&(of_file.since_ns, file));
            self.by_age.insert((now_ns, file));
            of_file.since_ns = now_ns;
        }
    }

    /// The file that has been dirty for longest.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.by_age.first().map(|(_, file)| *file)
    }

    /// Folios of a file from where the flusher stopped, then those before.
    pub(super) fn next_of(&self, file: u32) -> Vec<FolioId> {
        let Some(of_file) = self.files.get(&file) else { return Vec::new() };
        let (before, after) = (0..of_file.cursor, of_file.cursor..);
        of_file.folios.range(after).chain(of_file.folios.range(before)).map(|(_, id)| *id).collect()
    }
}
