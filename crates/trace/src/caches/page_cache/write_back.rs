//! Write-back. Writing takes no time here: what the kernel's flusher would start to write is clean at
//! once.

use super::Policy;
use super::folios::{FolioId, flag};
use super::memory::Memory;

/// Pages that the flusher writes of a file before it turns to the next (fs/fs-writeback.c,
/// `MIN_WRITEBACK_PAGES`: 4 MiB).
const CHUNK_PAGES: u64 = 1024;

impl Memory {
    /// A folio was written to; more than the limit of dirty pages are written back
    /// (mm/page-writeback.c, `balance_dirty_pages`).
    pub(super) fn mark_dirty(&mut self, id: FolioId) {
        let folio = *self.folios.get(id);
        if folio.has(flag::DIRTY) {
            return;
        }
        self.folios.set(id, flag::DIRTY);
        self.dirty.add(folio.file, folio.first, folio.pages(), id);
        while self.dirty.is_over() {
            let Some(file) = self.dirty.oldest() else { return };
            self.write_back_chunk(file);
        }
    }

    fn write_back_chunk(&mut self, file: u32) {
        let mut written = 0;
        for id in self.dirty.next_of(file) {
            let folio = *self.folios.get(id);
            self.write_back_folio(id);
            written += folio.pages();
            self.dirty.go_on(file, folio.end());
            if written >= CHUNK_PAGES {
                return;
            }
        }
    }

    /// All dirty pages of a file, as fsync writes them.
    pub(super) fn write_back_file(&mut self, file: u32) {
        for id in self.dirty.next_of(file) {
            self.write_back_folio(id);
        }
    }

    /// All dirty pages there are.
    pub(super) fn write_back_all(&mut self) {
        while let Some(file) = self.dirty.oldest() {
            self.write_back_file(file);
        }
    }

    /// Writes a folio back where it must be.
    pub(super) fn write_back_if_dirty(&mut self, id: FolioId) {
        if self.folios.get(id).has(flag::DIRTY) {
            self.write_back_folio(id);
        }
    }

    /// Writes a folio back. One that reclaim waited for goes to the end of the inactive list
    /// (mm/swap.c, `folio_rotate_reclaimable`).
    pub(super) fn write_back_folio(&mut self, id: FolioId) {
        let folio = *self.folios.get(id);
        self.folios.clear(id, flag::DIRTY);
        self.dirty.written(folio.file, folio.first, folio.pages());
        if folio.has(flag::RECLAIM) {
            self.folios.unlink(id);
            self.folios.clear(id, flag::RECLAIM | flag::ACTIVE);
            if self.policy == Policy::Mglru {
                self.join_oldest(id);
            }
            self.folios.push_tail(id);
        }
    }
}
