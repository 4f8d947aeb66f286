//! Pages in the order of their last touches: how many others were touched since (the stack distance),
//! and which page lies at a distance.
//!
//! One bit for each page at the time of its last touch, counted by a Fenwick tree over words of 64.

/// Pages in the order of their last touches.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    words: Vec<u64>,
    tree: Vec<u32>,
    /// The slot of each page's last touch and one more; 0 before the first.
    slots: Vec<u32>,
    pages: Vec<u32>,
    next: usize,
    live: usize,
}

impl Stack {
    pub(super) fn new(pages: usize) -> Self {
        let words = (2 * pages + 4096).div_ceil(64);
        Self {
            words: vec![0; words],
            tree: vec![0; words + 1],
            slots: vec![0; pages],
            pages: vec![0; words * 64],
            next: 0,
            live: 0,
        }
    }

    /// Pages that were touched.
    pub(super) fn live(&self) -> u64 {
        self.live as u64
    }

    pub(super) fn is_touched(&self, page: usize) -> bool {
        self.slots[page] != 0
    }

    /// Touches a page; how many others were since its last touch, `None` for its first.
    pub(super) fn touch(&mut self, page: usize) -> Option<u64> {
        if self.next == self.pages.len() {
            self.compact();
        }
        let before = self.slots[page].checked_sub(1).map(|slot| slot as usize);
        let distance = before.map(|slot| (self.live - self.live_until(slot)) as u64);
        if let Some(slot) = before {
            self.words[slot / 64] &= !(1 << (slot % 64));
            self.add(slot / 64, u32::MAX);
            self.live -= 1;
        }
        let slot = self.next;
        self.next += 1;
        self.words[slot / 64] |= 1 << (slot % 64);
        self.add(slot / 64, 1);
        self.live += 1;
        self.slots[page] = slot as u32 + 1;
        self.pages[slot] = page as u32;
        distance
    }

    /// The page that so many others were touched after.
    pub(super) fn at_distance(&self, distance: u64) -> Option<usize> {
        let mut left = (self.live as u64).checked_sub(distance).filter(|rank| *rank > 0)? as u32;
        let (mut word, mut step) = (0, self.words.len().next_power_of_two());
        while step > 0 {
            if word + step <= self.words.len() && self.tree[word + step] < left {
                word += step;
                left -= self.tree[word];
            }
            step /= 2;
        }
        let mut bits = self.words[word];
        for _ in 1..left {
            bits &= bits - 1;
        }
        Some(self.pages[word * 64 + bits.trailing_zeros() as usize] as usize)
    }

    /// Live slots up to this one, it included.
    fn live_until(&self, slot: usize) -> usize {
        let within = self.words[slot / 64] & (u64::MAX >> (63 - slot % 64));
        let (mut at, mut sum) = (slot / 64, 0);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum as usize + within.count_ones() as usize
    }

    fn add(&mut self, word: usize, count: u32) {
        let mut at = word + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(count);
            at += at & at.wrapping_neg();
        }
    }

    /// Starts time anew.
    fn compact(&mut self) {
        let is_live = |slot: &usize| self.words[slot / 64] >> (slot % 64) & 1 == 1;
        let order: Vec<u32> = (0..self.next).filter(is_live).map(|slot| self.pages[slot]).collect();
        self.words.fill(0);
        self.tree.fill(0);
        self.next = order.len();
        for (slot, page) in order.into_iter().enumerate() {
            self.pages[slot] = page;
            self.slots[page as usize] = slot as u32 + 1;
            self.words[slot / 64] |= 1 << (slot % 64);
            self.add(slot / 64, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn distances_are_those_of_a_list(touches in prop::collection::vec(0_usize..50, 1..12_000)) {
            let mut stack = Stack::new(50);
            let mut list: Vec<usize> = Vec::new();
            for page in touches {
                let place = list.iter().rev().position(|other| *other == page);
                prop_assert_eq!(stack.is_touched(page), place.is_some());
                if let Some(place) = place {
                    prop_assert_eq!(stack.at_distance(place as u64), Some(page));
                    list.remove(list.len() - 1 - place);
                }
                list.push(page);
                prop_assert_eq!(stack.touch(page), place.map(|place| place as u64));
                prop_assert_eq!(stack.live(), list.len() as u64);
                prop_assert_eq!(stack.at_distance(stack.live()), None);
            }
        }
    }
}
