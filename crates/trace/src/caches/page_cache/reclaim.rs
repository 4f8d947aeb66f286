//! Making room: the group's reclaim, as mm/vmscan.c does it for a group without swap.

use super::Policy;
use super::folios::{ACTIVE, FolioId, INACTIVE, PageSlot, flag};
use super::memory::Memory;

/// Pages that are reclaimed at least, and scanned at a time (include/linux/swap.h).
const SWAP_CLUSTER_MAX: u64 = 32;

/// The first scan looks at lists shifted by this much (include/linux/mmzone.h).
const DEF_PRIORITY: u32 = 12;

/// Reclaims for one charge before it gives up (mm/memcontrol.c).
const MAX_RECLAIM_RETRIES: u32 = 16;

/// Pages of a gibibyte, for the ratio of the lists.
const GIB_PAGES: u64 = 1 << 18;

impl Memory {
    /// Makes room for more pages (mm/memcontrol.c, `try_charge_memcg`). Where all is in use, memory
    /// grows beyond its limit: the kernel would wait.
    pub(super) fn make_room(&mut self, pages: u64) {
        let wanted = pages.max(SWAP_CLUSTER_MAX);
        let mut tries = 0;
        while self.used() + pages > self.limit && tries < MAX_RECLAIM_RETRIES {
            match self.policy {
                Policy::Lru | Policy::Fifo => return self.evict_oldest(pages),
                Policy::PageCache => self.reclaim(wanted),
                Policy::Mglru => self.reclaim_generations(wanted),
            }
            tries += 1;
        }
    }

    /// Of the simple policies: from the end of the only list.
    fn evict_oldest(&mut self, pages: u64) {
        while self.used() + pages > self.limit {
            let Some(id) = self.folios.isolate(1, INACTIVE).pop() else { return };
            self.folios.push_tail(id);
            if self.folios.get(id).has(flag::DIRTY) {
                self.write_back_folio(id);
            }
            self.remove(id, PageSlot::Empty);
        }
    }

    /// `do_try_to_free_pages`: larger and larger parts of the lists until enough is free.
    fn reclaim(&mut self, wanted: u64) {
        let mut reclaimed = 0;
        for deactivate_at_last in [false, true] {
            let mut kept_active = false;
            for priority in (0..=DEF_PRIORITY).rev() {
                self.count_if_exact();
                let deactivates = deactivate_at_last || self.may_deactivate();
                kept_active |= !deactivates;
                reclaimed += self.shrink(priority, wanted, deactivates);
                if reclaimed >= wanted {
                    break;
                }
            }
            self.activated_before = self.seen.activated;
            if reclaimed > 0 || !kept_active {
                return;
            }
        }
    }

    /// Whether active pages may become inactive (`prepare_scan_control`): pages came back and were made
    /// active since the reclaim before, or the inactive list is short.
    const fn may_deactivate(&self) -> bool {
        self.seen.activated != self.activated_before
            || inactive_is_low(self.seen.inactive, self.seen.active)
    }

    /// `shrink_lruvec`: both lists in turn, 32 pages at a time; without swap, only lists of files.
    fn shrink(&mut self, priority: u32, wanted: u64, deactivates: bool) -> u64 {
        let mut inactive = self.folios.pages_on(INACTIVE) >> priority;
        let mut active = self.folios.pages_on(ACTIVE) >> priority;
        let mut reclaimed = 0;
        while inactive > 0 || active > 0 {
            if inactive > 0 {
                let pages = inactive.min(SWAP_CLUSTER_MAX);
                inactive -= pages;
                reclaimed += self.shrink_inactive(pages);
            }
            if active > 0 {
                let pages = active.min(SWAP_CLUSTER_MAX);
                active -= pages;
                if deactivates {
                    self.shrink_active(pages);
                }
            }
            if reclaimed >= wanted {
                break;
            }
        }
        reclaimed
    }

    /// `shrink_inactive_list` with `shrink_folio_list`.
    fn shrink_inactive(&mut self, pages: u64) -> u64 {
        let taken = self.folios.isolate(pages, INACTIVE);
        let (mut reclaimed, mut dirty) = (0, 0);
        let mut kept = Vec::new();
        for id in taken.iter().copied() {
            match self.fate(id) {
                Fate::Kept => kept.push(id),
                Fate::Activated => {
                    dirty += usize::from(self.folios.get(id).has(flag::DIRTY));
                    self.folios.set(id, flag::ACTIVE);
                    kept.push(id);
                }
                Fate::Evicted => {
                    reclaimed += self.folios.get(id).pages();
                    self.evict(id);
                }
            }
        }
        self.put_back(&kept);
        if dirty > 0 && dirty == taken.len() {
            // Nothing but dirty pages that nobody writes: the flusher is woken.
            self.write_back_all();
        }
        reclaimed
    }

    /// `folio_check_references` and what `shrink_folio_list` makes of it. A read touch does not save a
    /// page of a file; one through a mapping does, the first time. Dirty pages go once they are written,
    /// and are out of the way, on the active list, until then.
    fn fate(&mut self, id: FolioId) -> Fate {
        let folio = *self.folios.get(id);
        if folio.has(flag::PINNED) {
            return Fate::Kept;
        }
        self.folios.clear(id, flag::REFERENCED);
        if folio.has(flag::YOUNG) {
            self.folios.clear(id, flag::YOUNG);
            self.folios.set(id, flag::REFERENCED);
            return if folio.has(flag::REFERENCED) { Fate::Activated } else { Fate::Kept };
        }
        if folio.has(flag::DIRTY) {
            self.folios.set(id, flag::RECLAIM);
            return Fate::Activated;
        }
        Fate::Evicted
    }

    /// `__remove_mapping` with `workingset_eviction`; the folio is on no list.
    fn evict(&mut self, id: FolioId) {
        let folio = *self.folios.get(id);
        let shadow =
            PageSlot::Shadow { age: self.nonresident_age, workingset: folio.has(flag::WORKINGSET) };
        self.nonresident_age += folio.pages();
        self.folios.push_tail(id);
        self.remove(id, shadow);
    }

    /// `move_folios_to_lru`: the oldest first, so that the order stays.
    fn put_back(&mut self, folios: &[FolioId]) {
        for id in folios {
            self.folios.push_head(*id);
            let folio = self.folios.get(*id);
            if folio.has(flag::ACTIVE) {
                self.nonresident_age += folio.pages();
            }
        }
    }

    /// `shrink_active_list`: from the end of the active list to the head of the inactive one. Whether
    /// they were read meanwhile makes no difference, but is kept: the next touch makes them active.
    fn shrink_active(&mut self, pages: u64) {
        let taken = self.folios.isolate(pages, ACTIVE);
        for id in &taken {
            self.folios.clear(*id, flag::ACTIVE | flag::YOUNG);
            self.folios.set(*id, flag::WORKINGSET);
        }
        self.put_back(&taken);
    }
}

/// What becomes of a folio at the end of the inactive list.
enum Fate {
    Kept,
    Activated,
    Evicted,
}

/// `inactive_is_low`: below a gibibyte half of the pages are to be inactive, above it fewer.
const fn inactive_is_low(inactive: u64, active: u64) -> bool {
    let gib = (inactive + active) / GIB_PAGES;
    let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
    inactive * ratio < active
}
