//! Making room by generations: the multi-generational LRU of Linux ("MGLRU"), by its description in
//! `Documentation/mm/multigen_lru.rst` and by mm/vmscan.c, `include/linux/mm_inline.h` and
//! mm/workingset.c of Linux 6.16. It was not held against a kernel that runs it.
//!
//! Pages of files lie in up to four generations. A page that is read comes into the oldest of them; a
//! generation is evicted from its end. How often a page was touched by calls is its tier. Where pages
//! of a tier come back more often than those of the first one, pages of that tier are moved to the next
//! generation when their turn comes. Simplified: page tables are not walked when a generation is made, a
//! page that was touched through a mapping is found when its turn comes; there is no anonymous memory.

use super::folios::{Folio, FolioId, PageSlot, flag};
use super::memory::Memory;
use super::tiers::{EVICTED_MIN, KEPT_MAX, KEPT_MIN, TIERS, Tier};

/// Touches that a folio counts beside the first, as long as it is not called working set
/// (`LRU_REFS_MASK`, two bits).
const REFERENCES_MAX: u8 = 3;

/// Folios that are looked at for pages to evict (`MAX_LRU_BATCH`).
const LOOKED_AT_MAX: u64 = 64 * 64;

/// The first scan looks at all pages shifted by this much (`DEF_PRIORITY`).
const PRIORITY: u32 = 12;

/// Where a generation's folios are.
const fn list_of(generation: u64) -> u8 {
    (generation % KEPT_MAX) as u8
}

/// Touches of a folio by calls since it came into its generation (`folio_lru_refs`).
const fn touches(folio: &Folio) -> u8 {
    if folio.has(flag::REFERENCED) { folio.references + 1 } else { 0 }
}

/// `lru_tier_from_refs`.
const fn tier_of(touches: u8, is_workingset: bool) -> usize {
    match touches {
        _ if is_workingset => TIERS - 1,
        0 | 1 => 0,
        2 => 1,
        _ => 2,
    }
}

impl Memory {
    /// The generation that a folio comes into (`lru_gen_folio_seq`): the oldest, or the one after if it
    /// was working set before; where a mapping asked for it, the second youngest or the youngest.
    pub(super) fn join_generation(&mut self, id: FolioId, is_mapped: bool) {
        let generations = &self.generations;
        let is_workingset = self.folios.get(id).has(flag::WORKINGSET);
        let back = if is_mapped { KEPT_MIN } else { KEPT_MAX } - u64::from(is_workingset);
        let number = (generations.youngest + 1).saturating_sub(back).max(generations.oldest);
        self.folios.get_mut(id).list = list_of(number);
    }

    /// A folio that was written back goes first (`folio_rotate_reclaimable`).
    pub(super) fn join_oldest(&mut self, id: FolioId) {
        self.folios.get_mut(id).list = list_of(self.generations.oldest);
    }

    /// A call touched a folio (mm/swap.c, `lru_gen_inc_refs`).
    pub(super) fn count_touch(&mut self, id: FolioId) {
        let folio = self.folios.get_mut(id);
        if !folio.has(flag::REFERENCED) {
            folio.references = 0;
            folio.flags |= flag::REFERENCED;
        } else if folio.references < REFERENCES_MAX {
            folio.references += 1;
        } else {
            folio.flags |= flag::WORKINGSET;
        }
    }

    /// A folio comes back (mm/workingset.c, `lru_gen_refault`).
    pub(super) fn come_back(&mut self, id: FolioId, token: u64, is_workingset: bool) {
        let generations = &mut self.generations;
        if generations.youngest - token / KEPT_MAX >= KEPT_MAX {
            return;
        }
        let references = (token % KEPT_MAX) as u8;
        let folio = self.folios.get_mut(id);
        generations.tiers[tier_of(references + 1, is_workingset)].came_back += folio.pages();
        if is_workingset {
            folio.flags |= flag::WORKINGSET;
        } else {
            folio.references = references;
        }
    }

    /// `do_try_to_free_pages` with `try_to_shrink_lruvec`: larger and larger parts of all pages until
    /// enough is free.
    pub(super) fn reclaim_generations(&mut self, wanted: u64) {
        let mut reclaimed = 0;
        for priority in (0..=PRIORITY).rev() {
            let mut looked_at = 0;
            while let Some(most) = self.pages_to_look_at(priority) {
                let (some, evicted) = self.evict_some();
                looked_at += some;
                reclaimed += evicted;
                if some == 0 || looked_at >= most {
                    break;
                }
            }
            if reclaimed >= wanted {
                return;
            }
        }
    }

    /// `get_nr_to_scan` with `should_run_aging`: a new generation is made where but three are left, and
    /// then nothing is evicted this time.
    fn pages_to_look_at(&mut self, priority: u32) -> Option<u64> {
        let kept = self.generations.kept();
        if kept <= KEPT_MIN + 1 && priority < PRIORITY {
            self.generations.youngest += 1;
            return None;
        }
        let pages = if kept < KEPT_MIN + 1 { 0 } else { self.used() };
        Some(pages >> priority).filter(|pages| *pages > 0)
    }

    /// `evict_folios`: how many pages were looked at, and how many went.
    fn evict_some(&mut self) -> (u64, u64) {
        let (mut looked_at, taken) = self.take_oldest();
        let before = self.generations.oldest;
        while self.generations.kept() > KEPT_MIN
            && self.folios.pages_on(list_of(self.generations.oldest)) == 0
        {
            self.generations.oldest += 1;
        }
        if self.generations.oldest > before {
            self.generations.tiers.iter_mut().for_each(Tier::carry_over);
            looked_at += 1;
        }
        if self.generations.kept() == KEPT_MIN {
            looked_at = 0;
        }
        let mut evicted = 0;
        for id in taken {
            let folio = *self.folios.get(id);
            if folio.has(flag::PINNED | flag::YOUNG) {
                self.keep(id);
            } else {
                evicted += folio.pages();
                self.evict_from_generation(id);
            }
        }
        (looked_at, evicted)
    }

    /// `scan_folios`: folios from the end of the oldest generation, on no list any more, and how many
    /// pages were looked at for them.
    fn take_oldest(&mut self) -> (u64, Vec<FolioId>) {
        let (mut looked_at, mut pages_taken, mut dirty) = (0, 0, 0);
        let mut taken = Vec::new();
        if self.generations.kept() == KEPT_MIN {
            return (0, taken);
        }
        let last_evicted = self.generations.last_evicted();
        let oldest = list_of(self.generations.oldest);
        for _ in 0..LOOKED_AT_MAX {
            let Some(id) = self.folios.isolate(1, oldest).pop() else { break };
            let folio = *self.folios.get(id);
            looked_at += folio.pages();
            if self.move_on(id, last_evicted) {
                dirty += u64::from(folio.has(flag::DIRTY));
                continue;
            }
            pages_taken += folio.pages();
            taken.push(id);
            if pages_taken >= EVICTED_MIN {
                break;
            }
        }
        if dirty > 0 && taken.is_empty() {
            // Nothing but dirty pages that nobody writes: the flusher is woken.
            self.write_back_all();
        }
        (looked_at, taken)
    }

    /// `sort_folio`: a folio whose tier is protected, and a dirty one, is moved to the next generation.
    fn move_on(&mut self, id: FolioId, last_evicted: usize) -> bool {
        let folio = *self.folios.get(id);
        let touches = touches(&folio);
        let tier = tier_of(touches, folio.has(flag::WORKINGSET));
        let is_full = folio.has(flag::WORKINGSET) && touches == REFERENCES_MAX + 1;
        let is_protected = tier > last_evicted || is_full;
        if !is_protected && !folio.has(flag::DIRTY) {
            return false;
        }
        if is_protected && !is_full {
            self.generations.tiers[tier].had_their_turn += folio.pages();
        }
        let next = list_of(self.generations.oldest + 1);
        let folio = self.folios.get_mut(id);
        // `folio_inc_gen`.
        folio.list = next;
        folio.references = 0;
        folio.flags &= !flag::REFERENCED;
        if !is_protected {
            folio.flags |= flag::RECLAIM;
        }
        self.folios.push_head(id);
        true
    }

    /// A folio that is in use, or was touched through a mapping (`folio_check_references`,
    /// `lru_gen_set_refs`): not into the oldest generation.
    fn keep(&mut self, id: FolioId) {
        let folio = self.folios.get_mut(id);
        if folio.has(flag::YOUNG) {
            let is_known = folio.has(flag::REFERENCED | flag::WORKINGSET);
            folio.flags &= !(flag::YOUNG | flag::REFERENCED);
            folio.flags |= if is_known { flag::WORKINGSET } else { flag::REFERENCED };
            folio.references = 0;
        }
        self.join_generation(id, true);
        self.folios.push_head(id);
    }

    /// `lru_gen_eviction`; the folio is on no list.
    fn evict_from_generation(&mut self, id: FolioId) {
        let folio = *self.folios.get(id);
        let (touches, workingset) = (touches(&folio), folio.has(flag::WORKINGSET));
        self.generations.tiers[tier_of(touches, workingset)].had_their_turn += folio.pages();
        let age = self.generations.oldest * KEPT_MAX + u64::from(touches.saturating_sub(1));
        self.folios.push_tail(id);
        self.remove(id, PageSlot::Shadow { age, workingset });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_of_one_two_and_more_touches_and_of_the_working_set() {
        for (touches, tier) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2)] {
            assert_eq!(tier_of(touches, false), tier, "{touches}");
            assert_eq!(tier_of(touches, true), 3);
        }
    }
}
