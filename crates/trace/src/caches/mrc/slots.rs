//! The order of last touches: one bit for each page, at the time of its last touch.

/// 64-bit words of a block, over which sums are kept.
const BLOCK_WORDS: usize = 4;
/// Slots of a block.
const BLOCK: usize = BLOCK_WORDS * 64;
/// Slots at the start.
const SLOTS_MIN: usize = 1 << 20;

/// Slots of time, one for each page touched, live while that is the page's last touch. A Fenwick
/// tree (Software: Practice and Experience 24(3), 1994) holds the live slots of complete blocks; a
/// block enters it when time has passed it, so that a touch changes the tree only where the page was.
#[derive(Debug)]
pub(super) struct Slots {
    words: Vec<u64>,
    /// 1-based; over blocks before that of `next`.
    sums: Vec<u32>,
    /// The next slot to be given out.
    next: usize,
    live: u64,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self::with_capacity(SLOTS_MIN)
    }

    fn with_capacity(slots: usize) -> Self {
        let blocks = slots.div_ceil(BLOCK);
        Self { words: vec![0; blocks * BLOCK_WORDS], sums: vec![0; blocks + 1], next: 0, live: 0 }
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
        let block = slot / BLOCK;
        let mut before = 0;
        let mut at = block;
        while at > 0 {
            before += self.sums[at];
            at &= at - 1;
        }
        let last = slot / 64;
        for word in &self.words[block * BLOCK_WORDS..last] {
            before += word.count_ones();
        }
        before += (self.words[last] & (u64::MAX >> (63 - slot % 64))).count_ones();
        self.live - u64::from(before)
    }

    /// Takes the life of `count` slots, all live.
    #[inline]
    pub(super) fn clear(&mut self, first: usize, count: usize) {
        self.live -= count as u64;
        let (mut slot, end) = (first, first + count);
        while slot < end {
            let block = slot / BLOCK;
            let block_end = end.min((block + 1) * BLOCK);
            if block < self.next / BLOCK {
                self.add(block, (block_end - slot) as u32, u32::wrapping_sub);
            }
            while slot < block_end {
                let bits = (64 - slot % 64).min(block_end - slot);
                self.words[slot / 64] &= !((u64::MAX >> (64 - bits)) << (slot % 64));
                slot += bits;
            }
        }
    }

    /// Gives out the next `count` slots, live.
    #[inline]
    pub(super) fn append(&mut self, count: usize) {
        self.live += count as u64;
        let end = self.next + count;
        while self.next < end {
            let slot = self.next;
            let bits = (64 - slot % 64).min(end - slot);
            self.words[slot / 64] |= (u64::MAX >> (64 - bits)) << (slot % 64);
            self.next += bits;
            if self.next.is_multiple_of(BLOCK) {
                self.complete(self.next / BLOCK - 1);
            }
        }
    }

    fn complete(&mut self, block: usize) {
        let words = &self.words[block * BLOCK_WORDS..(block + 1) * BLOCK_WORDS];
        let live = words.iter().map(|word| word.count_ones()).sum();
        self.add(block, live, u32::wrapping_add);
    }

    #[inline]
    fn add(&mut self, block: usize, count: u32, change: fn(u32, u32) -> u32) {
        let mut at = block + 1;
        while at < self.sums.len() {
            self.sums[at] = change(self.sums[at], count);
            at += at & at.wrapping_neg();
        }
    }

    /// Starts time anew with the live slots in their order, with room for at least `count` more and
    /// three times as many as live. `renumber` is handed how an old slot becomes a new one.
    pub(super) fn compact(&mut self, count: u64, renumber: impl FnOnce(&dyn Fn(usize) -> usize)) {
        let before: Vec<u32> = std::iter::once(0)
            .chain(self.words.iter().scan(0, |sum, word| {
                *sum += word.count_ones();
                Some(*sum)
            }))
            .collect();
        let words = &self.words;
        renumber(&|slot| {
            let below = words[slot / 64] & !(u64::MAX << (slot % 64));
            (before[slot / 64] + below.count_ones()) as usize
        });
        let live = self.live as usize;
        let wanted = (live + count as usize).saturating_mul(4);
        *self = Self::with_capacity(wanted.next_power_of_two().max(SLOTS_MIN));
        self.append(live);
    }
}
