//! What a pair of visits to a workload takes, before one was made and after, and for how many
//! workloads a budget has room.
//!
//! Only time is looked at, never throughput: who chooses workloads by what they showed finds
//! differences that are not there.

use ioscape_analysis::compare::live::PAIRS_MIN;
use ioscape_model::{Access, Hints, Rules, State, Workload};

use crate::forecast::{LAYOUT_BYTES_PER_S, visit_s};

/// Pairs that a workload should have, A B B A twice: at the levels of a dozen tests an interval from
/// four pairs is some seven times as wide as its standard error, and one from two pairs a hundred
/// times.
pub const PAIRS_ENOUGH: usize = 4;

/// For how much there is time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Workloads that get [`PAIRS_ENOUGH`] pairs.
    pub workloads: usize,
    /// Seconds that all of them take.
    pub all_s: f64,
    /// Seconds without which none can be compared.
    pub least_s: f64,
}

/// For how many of these workloads there is time on two targets of which this much is known.
pub fn forecast(works: &[Workload], rules: &Rules, hints: [&Hints; 2], budget_s: f64) -> Forecast {
    let mut costs = Costs::new(works, rules, hints);
    let mut forecast = Forecast { workloads: 0, all_s: 0.0, least_s: costs.least_s(hints) };
    for work in costs.cheapest_first() {
        forecast.all_s += costs.layout_s(work) + PAIRS_ENOUGH as f64 * costs.pair_s(work);
        forecast.workloads += usize::from(forecast.all_s <= budget_s);
        costs.visited.push(work);
    }
    forecast
}

/// Bytes that these workloads need laid out: the files of each process, as large as any asks for.
pub fn laid_out_bytes<'a>(works: impl IntoIterator<Item = &'a Workload>) -> u64 {
    let works: Vec<&Workload> = works.into_iter().collect();
    let processes = works.iter().map(|work| work.process_num).max().unwrap_or(0);
    let of = |process: u32| {
        let users = works.iter().filter(|work| work.process_num > process);
        users.map(|work| work.share_bytes()).max().unwrap_or(0)
    };
    (0..processes).map(of).sum()
}

/// What visits take on two targets.
pub(super) struct Costs<'a> {
    works: &'a [Workload],
    visit_s: f64,
    /// By side: how fast data are laid out and read in.
    bytes_per_s: [f64; 2],
    /// By side: most data that is read in before a visit.
    cache_bytes: [f64; 2],
    /// By workload: how many pairs were made, and seconds that they took without a first layout.
    made: Vec<(usize, f64)>,
    /// Whose data is laid out.
    visited: Vec<usize>,
}

impl<'a> Costs<'a> {
    pub(super) fn new(works: &'a [Workload], rules: &Rules, hints: [&Hints; 2]) -> Self {
        let rate = |hints: &Hints| hints.layout_bytes_per_s.unwrap_or(LAYOUT_BYTES_PER_S);
        Self {
            works,
            visit_s: visit_s(rules),
            bytes_per_s: hints.map(rate),
            cache_bytes: hints.map(|hints| hints.read_cache_bytes.unwrap_or(f64::INFINITY)),
            made: vec![(0, 0.0); works.len()],
            visited: Vec::new(),
        }
    }

    /// All workloads, those first that are expected to take least.
    pub(super) fn cheapest_first(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.works.len()).collect();
        all.sort_by(|a, b| self.expected_s(*a).total_cmp(&self.expected_s(*b)));
        all
    }

    /// Complete pairs of a workload.
    pub(super) fn pairs(&self, work: usize) -> usize {
        self.made[work].0
    }

    /// Seconds of another pair: the mean of those made, or what the others let expect.
    pub(super) fn pair_s(&self, work: usize) -> f64 {
        match self.made[work] {
            (0, _) => self.expected_s(work) * self.correction(),
            (pairs, made_s) => made_s / pairs as f64,
        }
    }

    /// Seconds until the data of a workload is laid out on both sides.
    pub(super) fn layout_s(&self, work: usize) -> f64 {
        let bytes = self.missing_bytes(work) as f64;
        self.bytes_per_s.iter().map(|rate| bytes / rate).sum()
    }

    /// Whether there is time for enough pairs of one more workload beside those chosen.
    pub(super) fn has_room(&self, chosen: &[usize], work: usize, left_s: f64) -> bool {
        let owed_s =
            |work: usize| PAIRS_ENOUGH.saturating_sub(self.pairs(work)) as f64 * self.pair_s(work);
        let promised_s: f64 = chosen.iter().map(|work| owed_s(*work)).sum();
        promised_s + self.layout_s(work) + owed_s(work) <= left_s
    }

    /// Notes a pair and what of it each side's layout took.
    pub(super) fn enter(&mut self, work: usize, pair_s: f64, layout_s: [f64; 2]) {
        let laid_out_bytes = self.missing_bytes(work) as f64;
        let (pairs, made_s) = &mut self.made[work];
        *pairs += 1;
        *made_s += pair_s;
        if laid_out_bytes > 0.0 {
            *made_s -= layout_s.iter().sum::<f64>();
            let measured = self.bytes_per_s.iter_mut().zip(layout_s);
            for (rate, layout_s) in measured.filter(|(_, layout_s)| *layout_s > 0.0) {
                *rate = laid_out_bytes / layout_s;
            }
        }
        self.visited.push(work);
    }

    /// Seconds of a pair as the rules and the sizes let expect.
    fn expected_s(&self, work: usize) -> f64 {
        let work = &self.works[work];
        let is_read_in = work.access == Access::Buffered && work.state == State::Warm;
        let read_in_s = |(rate, cache_bytes): (&f64, &f64)| {
            if is_read_in { (work.unique_bytes as f64).min(*cache_bytes) / rate } else { 0.0 }
        };
        let warm_up_s: f64 = self.bytes_per_s.iter().zip(&self.cache_bytes).map(read_in_s).sum();
        2.0 * self.visit_s + warm_up_s
    }

    /// What pairs take over what was expected of them.
    fn correction(&self) -> f64 {
        let made = (0..self.works.len()).filter(|work| self.pairs(*work) > 0);
        let (took_s, expected_s) = made.fold((0.0, 0.0), |(took_s, expected_s), work| {
            (took_s + self.pair_s(work), expected_s + self.expected_s(work))
        });
        if expected_s > 0.0 { took_s / expected_s } else { 1.0 }
    }

    fn missing_bytes(&self, work: usize) -> u64 {
        let there = self.visited.iter().map(|work| &self.works[*work]);
        let wanted = there.clone().chain([&self.works[work]]);
        laid_out_bytes(wanted) - laid_out_bytes(there)
    }

    /// Seconds of the fewest pairs of the cheapest workload. What is not known costs nothing here:
    /// nobody is refused for a guess.
    fn least_s(&self, hints: [&Hints; 2]) -> f64 {
        let Some(cheapest) = self.cheapest_first().first().copied() else { return 0.0 };
        let known = hints.map(|hints| hints.layout_bytes_per_s.unwrap_or(f64::INFINITY));
        let known =
            Self { bytes_per_s: known, made: self.made.clone(), visited: Vec::new(), ..*self };
        known.layout_s(cheapest) + PAIRS_MIN as f64 * known.pair_s(cheapest)
    }
}

#[cfg(test)]
mod tests {
    use ioscape_model::units::MIB;

    use super::*;

    fn works(sizes_mib: &[u64]) -> Vec<Workload> {
        let work = |mib: &u64| Workload { unique_bytes: mib * MIB, ..Workload::default() };
        sizes_mib.iter().map(work).collect()
    }

    fn hints(layout_bytes_per_s: Option<f64>) -> Hints {
        Hints { layout_bytes_per_s, ..Hints::default() }
    }

    fn costs<'a>(works: &'a [Workload], hints: &Hints) -> Costs<'a> {
        Costs::new(works, &Rules::brief(), [hints, hints])
    }

    #[test]
    fn more_time_has_room_for_more_workloads_and_the_cheapest_come_first() {
        let (works, hints) = (works(&[1024, 16, 256, 64]), hints(Some(100e6)));
        assert_eq!(costs(&works, &hints).cheapest_first(), [1, 3, 2, 0]);
        let at = |budget_s| forecast(&works, &Rules::brief(), [&hints; 2], budget_s);
        let all_s = at(0.0).all_s;
        let fitting: Vec<usize> =
            (0..=10).map(|tenth| at(all_s * f64::from(tenth) / 10.0).workloads).collect();
        assert!(fitting.is_sorted() && fitting[0] == 0 && fitting[10] == 4, "{fitting:?}");
        assert!(at(0.0).least_s > 10.0 && at(0.0).least_s < all_s / 8.0, "{:?}", at(0.0));
    }

    #[test]
    fn what_pairs_took_replaces_what_was_expected_of_them_and_of_the_others() {
        let (works, hints) = (works(&[16, 64, 256]), hints(Some(1e9)));
        let mut costs = costs(&works, &hints);
        let [first_s, other_s] = [costs.pair_s(0), costs.pair_s(1)];
        let layout_s = costs.layout_s(0);
        assert!(layout_s > 0.0);
        costs.enter(0, 3.0 * first_s + layout_s, [layout_s / 2.0; 2]);
        assert!((costs.pair_s(0) / first_s - 3.0).abs() < 1e-9);
        assert!((costs.pair_s(1) / other_s - 3.0).abs() < 1e-9);
        assert!(costs.layout_s(0).abs() < 1e-9, "it is there");
        // A layout that was ten times as slow says what the next ones take.
        let before_s = costs.layout_s(1);
        costs.enter(1, 10.0, [5.0 * before_s; 2]);
        let rate = 48.0 * MIB as f64 / (5.0 * before_s);
        assert!((costs.layout_s(2) - 2.0 * 192.0 * MIB as f64 / rate).abs() < 1e-6);
    }

    #[test]
    fn room_for_one_more_is_what_the_chosen_ones_leave() {
        let (works, hints) = (works(&[16, 16]), hints(Some(1e9)));
        let mut costs = costs(&works, &hints);
        costs.enter(0, 6.0, [0.0; 2]);
        // Three pairs of the first and four of the second are to come.
        let needed_s = 7.0 * 6.0 + costs.layout_s(1);
        assert!(
            costs.has_room(&[0], 1, needed_s + 0.1) && !costs.has_room(&[0], 1, needed_s - 0.1)
        );
    }

    #[test]
    fn nobody_is_refused_for_a_speed_that_is_not_known() {
        let works = works(&[100_000]);
        let least_s = |rate| {
            let hints = hints(rate);
            forecast(&works, &Rules::brief(), [&hints; 2], 60.0).least_s
        };
        assert!(least_s(None) < 15.0 && least_s(Some(100e6)) > 1000.0);
    }

    #[test]
    fn files_are_shared_by_workloads_and_each_is_as_large_as_any_needs_it() {
        let of = |unique_mib: u64, process_num: u32| Workload {
            unique_bytes: unique_mib * MIB,
            process_num,
            ..Workload::default()
        };
        for (works, mib) in [
            (vec![], 0),
            (vec![of(64, 1)], 64),
            (vec![of(64, 1), of(64, 4)], 64 + 3 * 16),
            (vec![of(64, 1), of(32, 2), of(256, 4)], 4 * 64),
        ] {
            assert_eq!(laid_out_bytes(works.iter()), mib * MIB, "{works:?}");
        }
    }
}
