//! The memory that a group's files take: insertion, touches, refaults.

use super::dirty::Dirty;
use super::folios::{ACTIVE, FolioId, Folios, INACTIVE, PageSlot, flag};
use super::tiers::Generations;
use super::{Policy, Settings};

/// Why pages come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// To be read.
    Read,
    /// To be written: such pages are not made active however recently they left
    /// (mm/filemap.c, `filemap_add_folio`: `__GFP_WRITE`).
    Write,
}

/// The group's counters (`lruvec_page_state`), as reclaim sees them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) inactive: u64,
    pub(super) active: u64,
    /// Pages that were made active as they came back.
    pub(super) activated: u64,
}

/// Folios in memory and what decides which of them go.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) policy: Policy,
    pub(super) limit: u64,
    used: u64,
    used_at_most: u64,
    pub(super) folios: Folios,
    pub(super) dirty: Dirty,
    pub(super) generations: Generations,
    /// A page that is touched through a mapping is being read, with those around it
    /// (`current->in_lru_fault`).
    pub(super) in_fault: bool,
    /// Evictions and activations so far (mm/workingset.c, `nonresident_age`).
    pub(super) nonresident_age: u64,
    pub(super) activated: u64,
    pub(super) seen: Counters,
    /// `seen.activated` at the end of the reclaim before (mm/vmscan.c, `snapshot_refaults`).
    pub(super) activated_before: u64,
    counters_ns: u64,
    counted_ns: u64,
    inserted: u64,
}

impl Memory {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            policy: settings.policy,
            limit: settings.memory_pages.max(1),
            used: 0,
            used_at_most: 0,
            folios: Folios::new(),
            dirty: Dirty::new(settings.dirty_pages_background),
            generations: Generations::new(),
            in_fault: false,
            nonresident_age: 0,
            activated: 0,
            seen: Counters::default(),
            activated_before: 0,
            counters_ns: settings.counters_ns,
            counted_ns: 0,
            inserted: 0,
        }
    }

    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    pub(super) const fn used_at_most(&self) -> u64 {
        self.used_at_most
    }

    pub(super) const fn inserted(&self) -> u64 {
        self.inserted
    }

    pub(super) const fn written_back(&self) -> u64 {
        self.dirty.written_back()
    }

    /// Time goes by.
    pub(super) fn tick(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.counted_ns) >= self.counters_ns {
            self.count();
            self.counted_ns = now_ns;
        }
        if let Some(old) = self.dirty.expired(now_ns) {
            for file in old {
                self.write_back_file(file);
            }
        }
    }

    fn count(&mut self) {
        self.seen = Counters {
            inactive: self.folios.pages_on(INACTIVE),
            active: self.folios.pages_on(ACTIVE),
            activated: self.activated,
        };
    }

    /// Brings the counters up to date where that takes no time.
    pub(super) fn count_if_exact(&mut self) {
        if self.counters_ns == 0 {
            self.count();
        }
    }

    pub(super) fn folio_at(&self, file: u32, page: u64) -> Option<FolioId> {
        match self.folios.place(file, page) {
            PageSlot::Held(id) => Some(id),
            PageSlot::Empty | PageSlot::Shadow { .. } => None,
        }
    }

    /// Puts a folio into memory, on the inactive list unless it left but recently (mm/filemap.c,
    /// `filemap_add_folio`).
    pub(super) fn insert(&mut self, file: u32, first: u64, order: u8, why: Why) -> FolioId {
        let pages = 1 << order;
        self.make_room(pages);
        let shadow =
            (first..first + pages).rev().find_map(|page| match self.folios.place(file, page) {
                PageSlot::Shadow { age, workingset } => Some((age, workingset)),
                PageSlot::Empty | PageSlot::Held(_) => None,
            });
        let id = self.folios.make(file, first, order);
        if let (Some((age, workingset)), Why::Read) = (shadow, why) {
            match self.policy {
                Policy::PageCache => self.refault(id, age, workingset),
                Policy::Mglru => self.come_back(id, age, workingset),
                Policy::Lru | Policy::Fifo => {}
            }
        }
        if self.policy == Policy::Mglru {
            self.join_generation(id, self.in_fault);
        }
        self.folios.push_head(id);
        self.used += pages;
        self.used_at_most = self.used_at_most.max(self.used);
        self.inserted += pages;
        id
    }

    /// A page comes back. It is active at once if it would not have left had the active pages' room
    /// been its own (mm/workingset.c, `workingset_refault`; without swap, anonymous memory does not
    /// count in `workingset_test_recent`).
    fn refault(&mut self, id: FolioId, age: u64, workingset: bool) {
        self.count_if_exact();
        if self.nonresident_age - age > self.seen.active {
            return;
        }
        let pages = self.folios.get(id).pages();
        self.folios.set(id, flag::ACTIVE);
        self.nonresident_age += pages;
        self.activated += pages;
        if workingset {
            self.folios.set(id, flag::WORKINGSET);
        }
    }

    /// A page was read (mm/swap.c, `folio_mark_accessed`): the first touch is remembered, the second
    /// makes an inactive page active. Writes do not touch.
    pub(super) fn mark_accessed(&mut self, id: FolioId) {
        let folio = *self.folios.get(id);
        match self.policy {
            Policy::Lru => self.move_to_head(id),
            Policy::Mglru => self.count_touch(id),
            Policy::PageCache if !folio.has(flag::REFERENCED) => {
                self.folios.set(id, flag::REFERENCED);
            }
            Policy::PageCache if !folio.has(flag::ACTIVE) => {
                self.folios.unlink(id);
                self.folios.set(id, flag::ACTIVE);
                self.folios.clear(id, flag::REFERENCED);
                self.folios.push_head(id);
                // `workingset_activation`.
                self.nonresident_age += folio.pages();
            }
            Policy::PageCache | Policy::Fifo => {}
        }
    }

    /// A page was written: of the policies, only LRU takes note.
    pub(super) fn mark_written(&mut self, id: FolioId) {
        if self.policy == Policy::Lru {
            self.move_to_head(id);
        }
    }

    fn move_to_head(&mut self, id: FolioId) {
        self.folios.unlink(id);
        self.folios.push_head(id);
    }

    /// Takes a folio out of memory: evicted, which leaves a shadow, or dropped with its file.
    pub(super) fn remove(&mut self, id: FolioId, left: PageSlot) {
        let folio = *self.folios.get(id);
        if folio.has(flag::DIRTY) {
            self.dirty.forget(folio.file, folio.first, folio.pages());
        }
        self.folios.remove(id, left);
        self.used -= folio.pages();
    }

    /// Drops the pages of a file in a range, as truncation and deletion do: without a shadow. A folio
    /// that reaches beyond goes as a whole (the kernel splits it; mm/truncate.c,
    /// `truncate_inode_partial_folio`).
    pub(super) fn drop_range(&mut self, file: u32, pages: std::ops::Range<u64>) {
        for range in self.folios.ranges(file, pages.start) {
            for page in range.start..range.end.min(pages.end) {
                if let Some(id) = self.folio_at(file, page) {
                    self.remove(id, PageSlot::Empty);
                }
            }
        }
    }

    /// Drops clean folios that lie wholly within a range (mm/truncate.c, `mapping_try_invalidate`).
    pub(super) fn invalidate(&mut self, file: u32, pages: std::ops::Range<u64>) {
        for range in self.folios.ranges(file, pages.start) {
            for page in range.start..range.end.min(pages.end) {
                let Some(id) = self.folio_at(file, page) else { continue };
                let folio = self.folios.get(id);
                let within = pages.start <= folio.first && folio.end() <= pages.end;
                if within && !folio.has(flag::DIRTY | flag::YOUNG) {
                    self.remove(id, PageSlot::Empty);
                }
            }
        }
    }
}
