//! Drawing without putting back from counts that may be large: like cards dealt from a shuffled deck, so
//! that what is dealt to the end has exactly the counts that it was made of. Nothing is shuffled: the
//! place of each card is worked out when it is its turn.

/// Things with counts, in an order that looks like chance.
#[derive(Clone, Debug, Default)]
pub(super) struct Deck {
    /// Cards up to and with each thing's.
    ends: Vec<u64>,
    key: u64,
    /// Cards dealt so far.
    dealt: u64,
}

/// A card: the thing, and which of its cards it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) thing: usize,
    pub(super) number: u64,
}

impl Deck {
    /// As many cards of each thing as its count says; `key` decides their order.
    pub(super) fn new(counts: impl IntoIterator<Item = u64>, key: u64) -> Self {
        let ends = counts.into_iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        });
        Self { ends: ends.collect(), key, dealt: 0 }
    }

    /// Cards of the whole deck.
    pub(super) fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The next card; after the last one all are shuffled anew. `None` where there never was one.
    pub(super) fn deal(&mut self) -> Option<Card> {
        let total = self.total();
        let (pass, turn) = (self.dealt.checked_div(total)?, self.dealt % total);
        self.dealt += 1;
        let at = permuted(turn, total, mixed(self.key ^ mixed(pass)));
        let thing = self.ends.partition_point(|end| *end <= at);
        let below = thing.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(Card { thing, number: at - below })
    }
}

/// Place of `turn` among `total`: a permutation, for each key another one. Four rounds of a
/// Feistel network over the next power of four, gone through again where the result lies beyond.
fn permuted(turn: u64, total: u64, key: u64) -> u64 {
    let half = (64 - (total - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut at = turn;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ (mixed(right ^ mixed(key ^ round)) & mask));
        }
        at = left << half | right;
        if at < total {
            return at;
        }
    }
}

/// Scatters the bits of a number (the finalizer of `SplitMix64`).
pub(super) fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_deck_dealt_to_the_end_has_its_counts(
            counts in prop::collection::vec(0_u64..40, 1..30), key: u64
        ) {
            let total: u64 = counts.iter().sum();
            let mut deck = Deck::new(counts.iter().copied(), key);
            prop_assert_eq!(deck.total(), total);
            for _ in 0..2 {
                let mut seen = std::collections::BTreeSet::new();
                for _ in 0..total {
                    let card = deck.deal().unwrap();
                    prop_assert!(card.number < counts[card.thing]);
                    prop_assert!(seen.insert((card.thing, card.number)), "dealt twice");
                }
            }
        }
    }

    #[test]
    fn an_empty_deck_deals_nothing() {
        assert_eq!(Deck::new([], 1).deal(), None);
        assert_eq!(Deck::new([0, 0], 1).deal(), None);
    }

    #[test]
    fn the_order_looks_like_chance() {
        let mut deck = Deck::new([5000, 5000], 7);
        let things: Vec<usize> = (0..10_000).map(|_| deck.deal().unwrap().thing).collect();
        let firsts = things[..1000].iter().sum::<usize>();
        let changes = things.windows(2).filter(|two| two[0] != two[1]).count();
        // Six standard deviations around the mean of a fair coin.
        assert!((405..=595).contains(&firsts), "{firsts} of the first 1000");
        assert!((4700..=5300).contains(&changes), "{changes} changes");
    }
}
