//! The order of last touches: one bit for each page, at the time of its last touch.

/// Words of 64 slots in a group.
const WORDS: usize = 32;
/// Groups in a range: its slots can be counted in 16 bits.
const GROUPS: usize = 16;
/// Ranges in a span.
const RANGES: usize = 32;
/// Slots of a group, of a range and of a span.
const GROUP: usize = WORDS * 64;
const RANGE: usize = GROUP * GROUPS;
const SPAN: usize = RANGE * RANGES;
/// Slots at the start.
const SLOTS_MIN: usize = 1 << 20;

/// Slots of time, one for each page touched, live while that is the page's last touch.
///
/// How many slots before one are live is a sum of five numbers: the live slots of the spans before its
/// own, in its span those of the ranges before, in its range those of the groups before, in its group
/// those of the words before, in its word those before. All but the last are kept: a query is loads
/// that do not wait for each other. A slot that dies is taken off what lies behind it on each level, in
/// loops of fixed length without a branch, which compilers turn into vectors. A Fenwick tree (Software:
/// Practice and Experience 24(3), 1994) looks at fewer numbers, but at every step of it the processor
/// has to guess whether there is another: it was a tenth slower.
#[derive(Debug)]
pub(super) struct Slots {
    words: Vec<u64>,
    groups: Vec<[u16; WORDS]>,
    ranges: Vec<[u16; GROUPS]>,
    spans: Vec<[u32; RANGES]>,
    before_spans: Vec<u32>,
    /// The next slot to be given out. Counts behind it mean nothing yet.
    next: usize,
    live: u64,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self::with_capacity(SLOTS_MIN)
    }

    fn with_capacity(slots: usize) -> Self {
        let groups = slots.div_ceil(GROUP);
        Self {
            words: vec![0; groups * WORDS],
            groups: vec![[0; WORDS]; groups],
            ranges: vec![[0; GROUPS]; slots.div_ceil(RANGE)],
            spans: vec![[0; RANGES]; slots.div_ceil(SPAN)],
            before_spans: vec![0; slots.div_ceil(SPAN)],
            next: 0,
            live: 0,
        }
    }

    /// The slot that the next touch gets.
    pub(super) const fn next(&self) -> usize {
        self.next
    }

    /// Live slots: distinct pages.
    pub(super) const fn live(&self) -> u64 {
        self.live
    }

    /// Whether `count` more touches have slots.
    pub(super) const fn has_room(&self, count: u64) -> bool {
        self.next as u64 + count <= (self.words.len() * 64) as u64
    }

    /// Live slots after this one.
    #[inline]
    pub(super) fn live_after(&self, slot: usize) -> u64 {
        let until = self.words[slot / 64] & (u64::MAX >> (63 - slot % 64));
        let before = self.before_word(slot).wrapping_add(until.count_ones());
        self.live - u64::from(before)
    }

    /// Reads what `live_after` and `clear` of a slot will read, so that it is near.
    #[inline]
    pub(super) fn fetch(&self, slot: usize) -> u64 {
        self.words[slot / 64] ^ u64::from(self.groups[slot / GROUP][slot / 64 % WORDS])
    }

    /// Live slots before the word of this one.
    #[inline]
    fn before_word(&self, slot: usize) -> u32 {
        let in_range = u32::from(self.ranges[slot / RANGE][slot / GROUP % GROUPS]);
        let in_group = u32::from(self.groups[slot / GROUP][slot / 64 % WORDS]);
        let in_span = self.spans[slot / SPAN][slot / RANGE % RANGES];
        let in_range = in_range.wrapping_add(in_group);
        self.before_spans[slot / SPAN].wrapping_add(in_span).wrapping_add(in_range)
    }

    /// Takes the life of `count` slots, all live.
    #[inline]
    pub(super) fn clear(&mut self, first: usize, count: usize) {
        self.live -= count as u64;
        let (mut slot, end) = (first, first + count);
        while slot < end {
            let bits = (64 - slot % 64).min(end - slot);
            self.words[slot / 64] &= !((u64::MAX >> (64 - bits)) << (slot % 64));
            self.take_off(slot, bits as u16);
            slot += bits;
        }
    }

    /// Takes so many, at most 64, off the counts behind a slot.
    #[inline]
    fn take_off(&mut self, slot: usize, count: u16) {
        take_off_behind(&mut self.groups[slot / GROUP], slot / 64 % WORDS, count);
        take_off_behind(&mut self.ranges[slot / RANGE], slot / GROUP % GROUPS, count);
        let in_span = &mut self.spans[slot / SPAN];
        let range = (slot / RANGE % RANGES) as u32;
        for (at, before) in (0..).zip(in_span) {
            *before = before.wrapping_sub(if at > range { u32::from(count) } else { 0 });
        }
        for before in &mut self.before_spans[slot / SPAN + 1..] {
            *before = before.wrapping_sub(u32::from(count));
        }
    }

    /// Gives out the next `count` slots, live.
    #[inline]
    pub(super) fn append(&mut self, count: usize) {
        let end = self.next + count;
        while self.next < end {
            let slot = self.next;
            if slot.is_multiple_of(64) {
                self.enter_word(slot);
            }
            let bits = (64 - slot % 64).min(end - slot);
            self.words[slot / 64] |= (u64::MAX >> (64 - bits)) << (slot % 64);
            self.next += bits;
            self.live += bits as u64;
        }
    }

    /// Time reaches a word: all that lives was there before it.
    fn enter_word(&mut self, slot: usize) {
        let live = self.live as u32;
        if slot.is_multiple_of(SPAN) {
            self.before_spans[slot / SPAN] = live;
        }
        let in_span = live.wrapping_sub(self.before_spans[slot / SPAN]);
        if slot.is_multiple_of(RANGE) {
            self.spans[slot / SPAN][slot / RANGE % RANGES] = in_span;
        }
        let in_range = in_span.wrapping_sub(self.spans[slot / SPAN][slot / RANGE % RANGES]) as u16;
        if slot.is_multiple_of(GROUP) {
            self.ranges[slot / RANGE][slot / GROUP % GROUPS] = in_range;
        }
        let before_group = self.ranges[slot / RANGE][slot / GROUP % GROUPS];
        self.groups[slot / GROUP][slot / 64 % WORDS] = in_range.wrapping_sub(before_group);
    }

    /// Starts time anew with the live slots in their order, with room for at least `count` more and
    /// three times as many as live. `renumber` is handed how an old slot becomes a new one.
    pub(super) fn compact(&mut self, count: u64, renumber: impl FnOnce(&dyn Fn(usize) -> usize)) {
        renumber(&|slot| {
            let below = self.words[slot / 64] & !(u64::MAX << (slot % 64));
            self.before_word(slot).wrapping_add(below.count_ones()) as usize
        });
        let live = self.live as usize;
        let wanted = (live + count as usize).saturating_mul(4);
        *self = Self::with_capacity(wanted.next_power_of_two().max(SLOTS_MIN));
        self.append(live);
    }
}

#[inline]
fn take_off_behind<const N: usize>(counts: &mut [u16; N], place: usize, count: u16) {
    let place = place as u16;
    for (at, before) in (0..).zip(counts) {
        *before = before.wrapping_sub(if at > place { count } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 33) as usize % below
    }

    /// Live slots up to each one, this one included.
    fn counted(live: &[bool]) -> Vec<u64> {
        let sums = live.iter().scan(0, |sum, live| {
            *sum += u64::from(*live);
            Some(*sum)
        });
        sums.collect()
    }

    #[test]
    fn live_slots_are_counted_over_words_groups_ranges_and_spans() {
        let (mut state, count) = (1, 2 * SPAN + RANGE + GROUP + 77);
        let mut slots = Slots::with_capacity(count);
        let mut live = Vec::new();
        while live.len() < count {
            let pages = (1 + random(&mut state, 5000)).min(count - live.len());
            slots.append(pages);
            live.resize(live.len() + pages, true);
            let first = random(&mut state, live.len());
            let most = 1 + random(&mut state, 3000);
            let run = live[first..].iter().take(most).take_while(|live| **live).count();
            if run > 0 {
                slots.clear(first, run);
                live[first..first + run].fill(false);
            }
        }
        let until = counted(&live);
        assert_eq!(slots.live(), until[count - 1]);
        assert!(slots.live() < count as u64 / 2 + count as u64 / 3, "enough died");
        let edges = (0..count).filter(|slot| slot % 64 < 2 || slot % 64 == 63);
        for slot in edges {
            assert_eq!(slots.live_after(slot), slots.live() - until[slot], "slot {slot}");
        }
        let lived = live.iter().zip(&until).enumerate().filter(|(_, (live, _))| **live);
        slots.compact(1, |renumber| {
            for (slot, (_, until)) in lived {
                assert_eq!(renumber(slot) as u64, until - 1);
            }
        });
        assert_eq!((slots.next() as u64, slots.live()), (until[count - 1], until[count - 1]));
        assert_eq!(slots.live_after(0), slots.live() - 1);
    }
}
