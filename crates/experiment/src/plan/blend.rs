//! The default plan: find the borders, then measure every region along every parameter, then
//! fill the space between and refine where a model is least sure, in randomised rounds until the
//! budget ends (`docs/method.md`).

use std::ops::Range;

use ioscape_analysis::border::{self, Search, Step};
use ioscape_analysis::region;
use ioscape_model::units::show_bytes;
use ioscape_model::{
    Border, Curve, Header, Hints, Host, Point, Ranges, Region, RegionUniqueBytes, Role, Workload,
};
use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::extent::{self, Extent};
use super::extras;
use super::filling::{Filling, SHARE_REQUESTS, log_between, whole_blocks};
use super::refine::{self, Choice};
use super::{Landscape, Plan, Seen, Visit, curve, training};

/// The search for borders ends at the latest when this share of the budget is used.
const SEARCH_SHARE: f64 = 0.4;
/// A curve that has taken so many visits holds no border that is worth more.
const CURVE_VISITS_MAX: usize = 14;
/// Space-filling points that are new in every round.
const CALIBRATION_PER_ROUND: u64 = 24;
/// And points where the model is least sure: fewer, for they help its worst predictions and not
/// the typical one.
const REFINEMENT_PER_ROUND: usize = 12;
/// In a later round one workload in so many of those measured before is visited again.
const AGAIN_EVERY: usize = 3;
/// What visits of one workload are expected to differ by, before any were repeated.
const NOISE_PRIOR: f64 = 0.05;
/// A region's behaviour shows from this many times its lower border on.
const CLEAR_OF_BORDER: f64 = 1.25;
/// Corners of the map lie so far along the last region, its data as a logarithm.
const CORNER_SHARE: f64 = 0.8;
/// Values on the graphs of the fractions; the first two are measured first.
const FRACTIONS: [f64; 4] = [0.0, 1.0, 0.25, 0.75];

/// What the plan knows beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the map extends.
    pub ranges: Ranges,
    /// What is known about the target.
    pub hints: Hints,
    /// The machine.
    pub host: Host,
    /// Where chance comes from.
    pub seed: u64,
    /// Workloads that write are kept below this, bytes: beyond it writers would stall in reclaim.
    pub writes_max_bytes: Option<f64>,
    /// The map may never reach further, bytes.
    pub most_bytes: f64,
    /// Workloads that were asked for when the run began.
    pub asked: Vec<Workload>,
}

impl Settings {
    /// From the first line of a record, and nothing else: a run that is gone on with decides as
    /// it did before.
    pub fn of(header: &Header) -> Self {
        Self {
            ranges: header.ranges,
            hints: header.hints.clone(),
            host: header.host.clone(),
            seed: header.seed,
            writes_max_bytes: header.limits.writes_max_bytes,
            most_bytes: extent::most_bytes(&header.hints, &header.limits, header.budget_s),
            asked: header.asked.clone(),
        }
    }
}

/// The plan.
#[derive(Clone, Debug)]
pub struct BlendPlan {
    settings: Settings,
    extent: Extent,
    /// The regions whose families are measured: decided once, when the search has ended.
    families: Option<Vec<Family>>,
    /// What each round from 1 on refines, decided when it began.
    refinements: Vec<Vec<Workload>>,
    refinement_per_round: usize,
}

/// A region and the focal vector of its graphs.
#[derive(Clone, Debug, PartialEq)]
struct Family {
    focal: Workload,
    from_bytes: f64,
    to_bytes: f64,
}

impl BlendPlan {
    /// A plan that has decided nothing yet.
    pub fn new(settings: Settings) -> Self {
        let max_bytes = settings.ranges.unique_bytes.max as f64;
        let extent = Extent::within(0.0, 0.0, 1);
        let mut plan = Self {
            settings,
            extent,
            families: None,
            refinements: Vec::new(),
            refinement_per_round: REFINEMENT_PER_ROUND,
        };
        plan.extent = plan.extent_to(max_bytes);
        plan
    }

    /// The same plan with another number of points where the model is least sure.
    #[must_use]
    pub fn refining(mut self, points_per_round: usize) -> Self {
        self.refinement_per_round = points_per_round;
        self
    }

    fn extent_to(&self, wanted_bytes: f64) -> Extent {
        let Settings { hints, ranges, most_bytes, .. } = &self.settings;
        let wanted_bytes = wanted_bytes.min(*most_bytes);
        Extent::within(wanted_bytes, hints.room_bytes as f64, ranges.process_num.max)
    }

    /// The next step of the search for borders; the curve with fewer points goes first.
    fn search_step(&self, seen: &Seen<'_>) -> Option<Visit> {
        if seen.elapsed_s > seen.budget_s * SEARCH_SHARE {
            return None;
        }
        let mut curves = [(Curve::Read, Role::ReadBorder), (Curve::Write, Role::WriteBorder)];
        let count = |role: Role| seen.points.iter().filter(|p| p.role == role).count();
        curves.sort_by_key(|(_, role)| count(*role));
        for (curve, role) in curves.into_iter().filter(|(_, role)| count(*role) < CURVE_VISITS_MAX)
        {
            let samples = curve::samples(seen.points, role);
            if let Step::Measure(unique_bytes) = border::next(&self.search(curve), curve, &samples)
            {
                return Some(Visit {
                    workload: self.curve_workload(curve, unique_bytes),
                    role,
                    round: 0,
                });
            }
        }
        None
    }

    fn search(&self, curve: Curve) -> Search {
        let Settings { hints, ranges, writes_max_bytes, .. } = &self.settings;
        let largest = self.extent.max_bytes;
        let (hint, max_bytes) = match curve {
            Curve::Write => {
                (hints.write_cache_bytes, largest.min(writes_max_bytes.unwrap_or(largest)))
            }
            _ => (hints.read_cache_bytes, largest),
        };
        Search {
            min_bytes: ranges.unique_bytes.min as f64,
            max_bytes,
            hints_bytes: hint.into_iter().collect(),
            noise: NOISE_PRIOR,
            in_memory: hints.in_memory,
            memory_s_per_byte: self.settings.host.memory_copy_bytes_per_s.map(f64::recip),
        }
    }

    /// Read-only or write-only, at random: one class, one cost, one cache.
    fn curve_workload(&self, curve: Curve, unique_bytes: f64) -> Workload {
        let read_frac = if curve == Curve::Write { 0.0 } else { 1.0 };
        Workload { read_frac, seq_frac: 0.0, ..self.focal(unique_bytes) }
    }

    /// The focal vector at this `unique_bytes`.
    fn focal(&self, unique_bytes: f64) -> Workload {
        let ranges = &self.settings.ranges;
        let size_mean =
            Workload::default().size_mean.clamp(ranges.size_mean.min, ranges.size_mean.max);
        let (unique_bytes, access) = (whole_blocks(unique_bytes), ranges.access);
        Workload { unique_bytes, size_mean, access, ..Workload::default() }
    }

    fn borders(&self, points: &[Point]) -> Vec<Border> {
        let on = |curve, role| {
            border::borders(&self.search(curve), curve, &curve::samples(points, role))
        };
        let (read, write) =
            (on(Curve::Read, Role::ReadBorder), on(Curve::Write, Role::WriteBorder));
        border::merge(&read, &write)
    }

    fn regions(&self, borders: &[Border], max_bytes: f64) -> Vec<Region> {
        let range = &self.settings.ranges.unique_bytes;
        region::regions_from(borders, range.min as f64, max_bytes)
            .into_iter()
            .map(|stretch| {
                let focal = self.allowed(&self.focal(self.focal_bytes(&stretch.unique_bytes)));
                let at = focal.unique_bytes as f64;
                let unique_bytes = RegionUniqueBytes { focal: at, ..stretch.unique_bytes };
                Region { name: stretch.name, unique_bytes, focal, revision: 0 }
            })
            .collect()
    }

    /// Where a region's graphs are taken: at its focal value, or a little below where the files of
    /// several processes would not fit there.
    fn focal_bytes(&self, region: &RegionUniqueBytes) -> f64 {
        let fits = self.extent.max_bytes_shared_out;
        let is_clear_of_the_border = fits >= region.from * CLEAR_OF_BORDER;
        if is_clear_of_the_border { region.focal.min(fits) } else { region.focal }
    }

    /// Ends the search: lets the map reach beyond the largest border and fixes the families.
    fn decide(&mut self, points: &[Point]) -> Vec<Family> {
        let borders = self.borders(points);
        if let Some(largest) = borders.last() {
            let beyond_bytes = extent::beyond(largest.unique_bytes.capacity);
            self.extent = self.extent_to(beyond_bytes.max(self.extent.max_bytes));
        }
        let family = |region: Region| Family {
            focal: region.focal,
            from_bytes: region.unique_bytes.from,
            to_bytes: region.unique_bytes.to,
        };
        self.regions(&borders, self.extent.max_bytes).into_iter().map(family).collect()
    }

    /// The same workload where it may be run, the nearest one that may be where not.
    fn allowed(&self, work: &Workload) -> Workload {
        let most = self.extent.largest(work.process_num);
        let unique_bytes = whole_blocks((work.unique_bytes as f64).min(most));
        let most = self.settings.writes_max_bytes.unwrap_or(f64::INFINITY);
        let read_frac = if unique_bytes as f64 > most { 1.0 } else { work.read_frac };
        Workload { unique_bytes, read_frac, ..work.clone() }
    }

    fn process_nums(&self) -> Vec<u32> {
        let range = self.settings.ranges.process_num;
        let mut nums: Vec<u32> = (0..13).map(|power| 1_u32 << power).collect();
        nums.retain(|num| u64::from(*num) >= range.min && u64::from(*num) < range.max);
        nums.push(range.max as u32);
        nums
    }

    /// The graphs of a family: what is needed for three values of every parameter, and the rest.
    fn family(&self, family: &Family) -> (Vec<Workload>, Vec<Workload>) {
        let focal = &family.focal;
        let sizes = self.settings.ranges.size_mean;
        let between = |share: f64| log_between(sizes.min as f64, sizes.max as f64, share);
        let size = |size_mean: u64| Workload { size_mean, ..focal.clone() };
        let mut first = vec![focal.clone(), size(sizes.min), size(sizes.max)];
        let mut rest = vec![size(whole_blocks(between(0.5))), size(whole_blocks(between(0.75)))];
        for (index, value) in FRACTIONS.into_iter().enumerate() {
            let axis = if index < 2 { &mut first } else { &mut rest };
            axis.push(Workload { read_frac: value, ..focal.clone() });
            axis.push(Workload { seq_frac: value, ..focal.clone() });
        }
        for (index, process_num) in self.process_nums().into_iter().skip(1).enumerate() {
            let axis = if index < 2 { &mut first } else { &mut rest };
            axis.push(Workload { process_num, ..focal.clone() });
        }
        for share in [0.2, 0.8] {
            let unique = log_between(family.from_bytes, family.to_bytes, share);
            rest.push(Workload { unique_bytes: whole_blocks(unique), ..focal.clone() });
        }
        (self.possible(first), self.possible(rest))
    }

    /// Half of the ends of all parameters but the data, in which every combination of the ends of
    /// any three comes once (Box and Hunter 1961), with much data of the last region. Backups, scans
    /// and checkpoints lie there, and points in between seldom do. Large and sequential ones first.
    fn corners(&self) -> Vec<Workload> {
        let Some(family) = self.families.iter().flatten().last() else { return Vec::new() };
        let Ranges { size_mean: sizes, process_num: nums, .. } = self.settings.ranges;
        let wanted = log_between(family.from_bytes, family.to_bytes, CORNER_SHARE);
        let clear = family.from_bytes * CLEAR_OF_BORDER;
        // Where files of that many would have to be so small that they lie in another region, one
        // process stands for both ends.
        let most = if self.extent.largest(nums.max as u32) < clear { nums.min } else { nums.max };
        let corner = |ends: u32| {
            let [reads, streams, is_long] = [0, 1, 2].map(|place| ends >> place & 1);
            let process_num = if ends.count_ones() % 2 == 1 { most } else { nums.min } as u32;
            let writable = self.settings.writes_max_bytes.filter(|_| reads == 0);
            let unique = wanted.min(self.extent.largest(process_num));
            let unique_bytes = whole_blocks(unique.min(writable.unwrap_or(unique)));
            let share = unique_bytes as f64 / f64::from(process_num) / SHARE_REQUESTS;
            let size = if is_long == 1 { (sizes.max as f64).min(share) } else { sizes.min as f64 };
            Workload {
                unique_bytes,
                size_mean: whole_blocks(size),
                read_frac: f64::from(reads),
                seq_frac: f64::from(streams),
                process_num,
                ..family.focal.clone()
            }
        };
        self.possible((0..8).rev().map(corner).collect())
    }

    /// Those that may be run, each once.
    fn possible(&self, works: Vec<Workload>) -> Vec<Workload> {
        let mut kept: Vec<Workload> = Vec::new();
        for work in works {
            let work = self.allowed(&work);
            if work.check().is_ok() && !kept.contains(&work) {
                kept.push(work);
            }
        }
        kept
    }

    /// Whether the map's files will hold what this workload touches.
    pub fn reaches(&self, work: &Workload) -> bool {
        self.allowed(work) == *work
    }

    /// All visits of a round, in their order.
    fn round(&self, round: u32, points: &[Point]) -> Vec<Visit> {
        let visit = |role: Role| move |workload: Workload| Visit { workload, role, round };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.settings.seed ^ u64::from(round));
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for family in self.families.iter().flatten() {
            let (needed, more) = self.family(family);
            first.extend(needed.into_iter().map(visit(Role::Family)));
            rest.extend(more.into_iter().map(visit(Role::Family)));
        }
        let start = u64::from(round) * CALIBRATION_PER_ROUND;
        let filling = self.filling(self.settings.seed, start..start + CALIBRATION_PER_ROUND);
        let mut filling: Vec<Visit> = filling.into_iter().map(visit(Role::Calibration)).collect();
        let others = first.len() + rest.len() + CALIBRATION_PER_ROUND as usize;
        let share = extras::Share::of(&self.settings.ranges);
        let first_extras = others / share.others_each;
        if round == 0 {
            let corners = self.corners().into_iter().map(visit(Role::Calibration));
            for (place, corner) in corners.enumerate() {
                filling.insert((2 * place).min(filling.len()), corner);
            }
            first.shuffle(&mut rng);
            rest.append(&mut filling.split_off(first.len().div_ceil(2).min(filling.len())));
            rest.shuffle(&mut rng);
            // Two steps on the graphs, one between them: a run that ends early predicts, too.
            let mut ordered = Vec::new();
            let mut filling = filling.into_iter();
            for pair in first.chunks(2) {
                ordered.extend(pair.iter().cloned().chain(filling.next()));
            }
            ordered.extend(self.settings.asked.iter().cloned().map(visit(Role::Named)));
            // The graphs of the five parameters go first.
            let half = rest.len() / 2;
            let mut last = rest.split_off(half);
            last.extend(self.extras(0..first_extras).into_iter().map(visit(Role::Extra)));
            last.shuffle(&mut rng);
            ordered.append(&mut rest);
            ordered.append(&mut last);
            return ordered;
        }
        first.append(&mut rest);
        let asked = self.settings.asked.iter().cloned();
        first.extend(asked.map(visit(Role::Named)));
        for role in [Role::ReadBorder, Role::WriteBorder] {
            first.extend(curve::again(points, role).into_iter().map(visit(role)));
        }
        // What was measured before takes turns: enough is visited again to know how visits differ.
        let mut turn = round as usize % AGAIN_EVERY;
        first.retain(|_| {
            turn = (turn + 1) % AGAIN_EVERY;
            turn == 0
        });
        first.append(&mut filling);
        let refined = self.refinements.get(round as usize - 1).into_iter().flatten();
        first.extend(refined.cloned().map(visit(Role::Refinement)));
        let from = first_extras + (round as usize - 1) * share.per_round;
        let count = share.per_round.min(first.len() / share.others_each);
        first.extend(self.extras(from..from + count).into_iter().map(visit(Role::Extra)));
        first.shuffle(&mut rng);
        first
    }

    /// Workloads with several requests in flight or with fdatasyncs.
    fn extras(&self, indices: Range<usize>) -> Vec<Workload> {
        let focals: Vec<&Workload> = self.families.iter().flatten().map(|f| &f.focal).collect();
        let Settings { ranges, host, seed, .. } = &self.settings;
        let wanted = extras::Wanted { focals: &focals, ranges, host, seed: *seed };
        let filling = |index| self.filling(*seed, index..index + 1).pop();
        let works = indices.filter_map(|index| wanted.workload(index, &filling)).collect();
        let mut works = self.possible(works);
        // What may only be read here has nothing to sync.
        works.iter_mut().filter(|work| work.read_frac >= 1.0).for_each(|w| w.fsync_every = 0);
        works.retain(Workload::has_extras);
        works
    }

    /// The space-filling sequence, or another one like it.
    fn filling(&self, seed: u64, indices: Range<u64>) -> Vec<Workload> {
        let largest_bytes = |process_num| self.extent.largest(process_num);
        let filling = Filling { ranges: &self.settings.ranges, largest_bytes, seed };
        self.possible(indices.map(|index| filling.workload(index)).collect())
    }

    /// Decides what a round refines: once, from what was known when it began.
    fn refine(&mut self, round: u32, points: &[Point]) {
        if round == 0 || self.refinements.len() >= round as usize {
            return;
        }
        let earlier = refine::before(points, round);
        let Settings { ranges, hints, host, seed, .. } = &self.settings;
        let training = training(&earlier, &self.landscape(&earlier), (host, hints, *ranges));
        let from = u64::from(round - 1) * refine::CANDIDATES;
        let mut reached = *ranges;
        reached.unique_bytes.max = self.extent.max_bytes as u64;
        let choice = Choice {
            ranges: &reached,
            points: &earlier,
            candidates: &self.filling(!seed, from..from + refine::CANDIDATES),
            reference: &self.filling(seed.rotate_left(32), 0..refine::REFERENCE),
        };
        let chosen = choice.where_unsure(training, self.refinement_per_round);
        self.refinements.push(chosen);
    }
}

impl Plan for BlendPlan {
    fn next(&mut self, seen: &Seen<'_>) -> Option<Visit> {
        if self.families.is_none() {
            if let Some(visit) = self.search_step(seen) {
                return Some(visit);
            }
            self.families = Some(self.decide(seen.points));
        }
        for round in 0.. {
            self.refine(round, seen.points);
            let visits = self.round(round, seen.points);
            if visits.is_empty() {
                return None; // no workload is possible here, nor will one be in a later round
            }
            let missing = visits.into_iter().find(|visit| !visit.is_made(seen.points));
            if missing.is_some() {
                return missing;
            }
        }
        None
    }

    fn landscape(&self, points: &[Point]) -> Landscape {
        let borders = self.borders(points);
        // The plan may reach further than the visits made so far: what is shown ends with them.
        let reached = points.iter().map(|point| point.workload.unique_bytes).max().unwrap_or(0);
        let is_begun = reached > self.settings.ranges.unique_bytes.min;
        let max_bytes = if is_begun { reached as f64 } else { self.extent.max_bytes };
        let mut regions = self.regions(&borders, max_bytes);
        // The graphs stay where they were measured, though the borders are known better by now.
        for region in &mut regions {
            let inside = |family: &&Family| {
                let at = family.focal.unique_bytes as f64;
                region.unique_bytes.from <= at && at <= region.unique_bytes.to
            };
            if let Some(family) = self.families.iter().flatten().find(inside) {
                region.unique_bytes.focal = family.focal.unique_bytes as f64;
                region.focal = family.focal.clone();
            }
        }
        let log = borders.iter().map(border_sentence).collect();
        Landscape { borders, regions, log }
    }
}

fn border_sentence(border: &Border) -> String {
    let at = &border.unique_bytes;
    format!(
        "{:?} border by {}: onset {}, capacity {} ({} to {}), step {:.1}",
        border.curve,
        ioscape_model::word(border.found_by),
        show_bytes(at.onset),
        show_bytes(at.capacity),
        show_bytes(at.low),
        show_bytes(at.high),
        border.step
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ioscape_model::units::{GIB, MIB};

    use super::*;

    /// A plan that found a last region from 256 MiB to 1 GiB.
    fn plan(cpus: u32, room_bytes: u64, writes_max_bytes: Option<f64>) -> BlendPlan {
        let mut ranges = Ranges::usual(cpus);
        ranges.unique_bytes.max = GIB;
        let settings = Settings {
            ranges,
            hints: Hints { room_bytes, ..Hints::default() },
            host: Host::default(),
            seed: 1,
            writes_max_bytes,
            most_bytes: GIB as f64,
            asked: vec![],
        };
        let mut plan = BlendPlan::new(settings);
        let (from_bytes, to_bytes) = ((256 * MIB) as f64, GIB as f64);
        plan.families =
            Some(vec![Family { focal: plan.focal((512 * MIB) as f64), from_bytes, to_bytes }]);
        plan
    }

    #[test]
    fn a_map_visits_what_it_was_asked_for_early_and_again_later() {
        let mut plan = plan(2, 64 * GIB, None);
        let asked = Workload { unique_bytes: 300 * MIB, depth: 4, ..Workload::default() };
        plan.settings.asked = vec![asked.clone()];
        let places = |round: u32| {
            let visits = plan.round(round, &[]).into_iter().enumerate();
            let named = visits.filter(|(_, visit)| visit.role == Role::Named);
            named.map(|(place, visit)| (place, visit.workload)).collect::<Vec<_>>()
        };
        let first = places(0);
        assert!(
            matches!(&first[..], [(place, work)] if *work == asked && *place < 20),
            "{first:?}"
        );
        // Later rounds take turns, so that three of them visit it once more.
        assert_eq!((1..=3).flat_map(places).count(), 1);
    }

    /// Which ends of reads, sequence, size and processes.
    fn ends(work: &Workload) -> [bool; 4] {
        [work.read_frac > 0.5, work.seq_frac > 0.5, work.size_mean > MIB / 8, work.process_num > 1]
    }

    #[test]
    fn of_the_ends_of_any_three_parameters_every_combination_is_a_corner_once() {
        for cpus in [2, 16, 128] {
            let corners = plan(cpus, 1 << 40, None).corners();
            assert_eq!(corners.len(), 8);
            for without in 0..4 {
                let three = |work: &Workload| {
                    let mut three = ends(work).to_vec();
                    three.remove(without);
                    three
                };
                assert_eq!(corners.iter().map(three).collect::<BTreeSet<_>>().len(), 8);
            }
            assert!(ends(&corners[0]).iter().all(|is_high| *is_high), "a scan goes first");
            assert!(corners.iter().all(|work| work.unique_bytes > 700 * MIB));
        }
    }

    #[test]
    fn corners_may_be_run_where_there_is_little_room_and_where_little_may_be_written() {
        for (cpus, room_bytes) in [(1, 2 * GIB), (4, 2 * GIB), (64, 4 * GIB), (128, 2 * GIB)] {
            for writes_max_bytes in [None, Some((300 * MIB + 12_345) as f64)] {
                let plan = plan(cpus, room_bytes, writes_max_bytes);
                let corners = plan.corners();
                assert_eq!(corners.len(), 8, "{cpus} processors, {room_bytes} bytes");
                assert_eq!(corners.iter().filter(|work| work.read_frac < 0.5).count(), 4);
                let from = 256 * MIB;
                assert!(corners.iter().all(|work| work.unique_bytes > from), "{corners:?}");
                assert!(corners.iter().all(|work| plan.allowed(work) == *work));
            }
        }
    }
}
