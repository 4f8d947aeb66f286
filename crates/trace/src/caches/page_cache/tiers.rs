//! Which pages of the generations are protected: how often pages of each tier came back.

use super::folios::GENERATIONS;

/// Generations that are kept at least, and the most (include/linux/mmzone.h, `MIN_NR_GENS`,
/// `MAX_NR_GENS`).
pub(super) const KEPT_MIN: u64 = 2;
pub(super) const KEPT_MAX: u64 = GENERATIONS as u64;

/// Tiers of pages (`MAX_NR_TIERS`).
pub(super) const TIERS: usize = 4;

/// Pages that are evicted at a time (`MIN_LRU_BATCH`), too few to tell anything from.
pub(super) const EVICTED_MIN: u64 = 64;

/// What became of pages of a tier: in the generation at hand, and before, each generation counting for
/// half of the next (`refaulted`, `evicted` and `protected`, `avg_refaulted`, `avg_total`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tier {
    pub(super) came_back: u64,
    pub(super) had_their_turn: u64,
    came_back_before: u64,
    had_their_turn_before: u64,
}

impl Tier {
    /// `reset_ctrl_pos`: the next generation is at hand.
    pub(super) const fn carry_over(&mut self) {
        self.came_back_before = u64::midpoint(self.came_back_before, self.came_back);
        self.had_their_turn_before = u64::midpoint(self.had_their_turn_before, self.had_their_turn);
        self.came_back = 0;
        self.had_their_turn = 0;
    }

    /// Pages that came back, and all.
    const fn sums(&self) -> (u64, u64) {
        (self.came_back_before + self.came_back, self.had_their_turn_before + self.had_their_turn)
    }
}

/// The generations of a group's files, by their numbers since the start.
#[derive(Debug)]
pub(super) struct Generations {
    /// `min_seq` and `max_seq`.
    pub(super) oldest: u64,
    pub(super) youngest: u64,
    pub(super) tiers: [Tier; TIERS],
}

impl Generations {
    /// `lru_gen_init_lruvec`.
    pub(super) fn new() -> Self {
        Self { oldest: 0, youngest: KEPT_MIN + 1, tiers: [Tier::default(); TIERS] }
    }

    pub(super) const fn kept(&self) -> u64 {
        self.youngest - self.oldest + 1
    }

    /// The last tier that is not protected (`get_tier_idx`, `positive_ctrl_err`): of those behind it
    /// pages come back more often than of the first, with a margin of a half.
    pub(super) fn last_evicted(&self) -> usize {
        let (first_back, first_all) = self.tiers[0].sums();
        let is_as_good = |tier: &Tier| {
            let (back, all) = tier.sums();
            back < EVICTED_MIN || back * (first_all + EVICTED_MIN) * 2 <= (first_back + 1) * all * 3
        };
        (1..TIERS).find(|tier| !is_as_good(&self.tiers[*tier])).unwrap_or(TIERS) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_protected_once_its_pages_come_back_more_often_than_those_of_the_first() {
        let mut generations = Generations::new();
        let tier =
            |came_back, had_their_turn| Tier { came_back, had_their_turn, ..Tier::default() };
        assert_eq!(generations.last_evicted(), 3, "nothing is known");
        generations.tiers = [tier(100, 1000), tier(100, 900), tier(600, 1000), tier(0, 0)];
        assert_eq!(generations.last_evicted(), 1);
        generations.tiers[1] = tier(300, 1000);
        assert_eq!(generations.last_evicted(), 0);
        generations.tiers[1] = tier(60, 60);
        assert_eq!(generations.last_evicted(), 1, "too few came back to tell");
    }

    #[test]
    fn each_generation_counts_for_half_of_the_next() {
        let mut tier = Tier { came_back: 80, had_their_turn: 100, ..Tier::default() };
        tier.carry_over();
        assert_eq!(tier.sums(), (40, 50));
        tier.came_back = 10;
        tier.carry_over();
        assert_eq!(tier.sums(), (25, 25));
    }
}
