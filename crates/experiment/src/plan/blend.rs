//! The default plan: find the borders, then measure every region along every parameter, then
//! fill the space between and refine where a model is least sure, in randomised rounds until the
//! budget ends (`docs/method.md`).

mod family;

use std::ops::Range;

use ioscape_analysis::border::{self, Search, Step};
use ioscape_analysis::model::device_hints;
use ioscape_analysis::region::{self, CLEAR_OF_BORDER};
use ioscape_model::units::show_bytes;
use ioscape_model::{
    Access, Border, Curve, DeviceLayer, Header, Hints, Host, Layer, Point, Ranges, Region,
    RegionKind, RegionUniqueBytes, Role, State, Workload,
};
use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

use self::family::Family;
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
/// Where no more is written, so many rounds in a row may have nothing to read.
const BARREN_ROUNDS_MAX: u32 = 8;
/// What visits of one workload are expected to differ by, before any were repeated.
const NOISE_PRIOR: f64 = 0.05;
/// Corners of the map lie so far along the last region, its data as a logarithm.
const CORNER_SHARE: f64 = 0.8;

/// With less time, seconds, the graphs come first and nothing between them: a data sheet and a system
/// vector have a third of it.
pub(super) const SHORT_BUDGET_S: f64 = 240.0;
/// Steps on the graphs before each point between them: a run that ends early predicts, too.
const STEPS: usize = 2;

/// What the plan knows beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the map extends.
    pub ranges: Ranges,
    /// What is known about the target.
    pub hints: Hints,
    /// The machine.
    pub host: Host,
    /// How much its kernel reads ahead of a stream at most, bytes, where it is known.
    pub read_ahead_bytes: Option<u64>,
    /// Where chance comes from.
    pub seed: u64,
    /// Workloads that write are kept below this, bytes: beyond it writers would stall in reclaim.
    pub writes_max_bytes: Option<f64>,
    /// The map may never reach further, bytes.
    pub most_bytes: f64,
    /// Workloads that were asked for when the run began.
    pub asked: Vec<Workload>,
    /// Whether borders are looked for. A device layer lies beyond them: it is one region, whose
    /// family has a graph of depth besides.
    pub seeks_borders: bool,
    /// Whether there is hardly time for more than the graphs.
    pub is_short: bool,
}

impl Settings {
    /// From the first line of a record, and nothing else: a run that is continued decides as it did before.
    pub fn from_header(header: &Header) -> Self {
        Self {
            ranges: header.ranges,
            hints: header.hints.clone(),
            host: header.host.clone(),
            read_ahead_bytes: header.target.read_ahead_bytes,
            seed: header.seed,
            writes_max_bytes: header.limits.writes_max_bytes,
            most_bytes: extent::most_bytes(&header.hints, &header.limits, header.budget_s),
            asked: asked(header, header.ranges.access),
            seeks_borders: true,
            is_short: is_short(header),
        }
    }

    /// Settings for the device layer, if the map has one.
    pub fn of_device(header: &Header) -> Option<Self> {
        let DeviceLayer { ranges, room_bytes } = header.device?;
        Some(Self {
            ranges,
            hints: device_hints(&header.hints, room_bytes),
            host: header.host.clone(),
            read_ahead_bytes: header.target.read_ahead_bytes,
            // Its chance is its own, or it would visit what the other layer does.
            seed: !header.seed,
            writes_max_bytes: None,
            most_bytes: ranges.unique_bytes.max as f64,
            asked: asked(header, ranges.access),
            seeks_borders: false,
            is_short: is_short(header),
        })
    }
}

/// A map with a data sheet has a third less time for the rest.
pub(crate) fn is_short(header: &Header) -> bool {
    header.budget_s < SHORT_BUDGET_S && !header.datasheet.is_empty()
}

/// The workloads asked for (`run -w`) that have this access.
fn asked(header: &Header, access: Access) -> Vec<Workload> {
    header.asked.iter().filter(|work| work.access == access).cloned().collect()
}

/// The plan.
#[derive(Clone, Debug)]
pub struct BlendPlan {
    settings: Settings,
    pub(super) extent: Extent,
    /// The regions whose families are measured: decided once, when the search has ended.
    families: Option<Vec<Family>>,
    /// What each round from 1 on refines, decided when it began.
    refinements: Vec<Vec<Workload>>,
    refinement_per_round: usize,
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
        if !plan.settings.seeks_borders {
            plan.families = Some(plan.decide(&[]));
        }
        plan
    }

    /// Visits to the workloads asked for that were not made yet.
    pub fn asked(&self, seen: &Seen<'_>) -> Vec<Visit> {
        let visit = |workload| Visit { workload, role: Role::Named, round: 0 };
        let is_left =
            |visit: &Visit| seen.may_visit(&visit.workload) && !visit.is_made(seen.points);
        self.settings.asked.iter().cloned().map(visit).filter(is_left).collect()
    }

    /// Sets how many points a round spends where the model is least sure.
    #[must_use]
    pub fn refining(mut self, points_per_round: usize) -> Self {
        self.refinement_per_round = points_per_round;
        self
    }

    fn extent_to(&self, wanted_bytes: f64) -> Extent {
        let Settings { hints, ranges, most_bytes, seeks_borders, .. } = &self.settings;
        let wanted_bytes = wanted_bytes.min(*most_bytes);
        if !seeks_borders {
            let room_bytes = hints.room_bytes as f64;
            return Extent::over_span(wanted_bytes, room_bytes, ranges.process_num.max);
        }
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
        let is_open = |(_, role): &(Curve, Role)| {
            let is_spared = seen.spares_writes && *role == Role::WriteBorder;
            count(*role) < CURVE_VISITS_MAX && !is_spared
        };
        for (curve, role) in curves.into_iter().filter(is_open) {
            let samples = curve::samples(seen.points, role);
            let Step::Measure(unique_bytes) = border::next(&self.search(curve), curve, &samples)
            else {
                continue;
            };
            let workload = self.curve_workload(curve, unique_bytes);
            if seen.may_visit(&workload) {
                return Some(Visit { workload, role, round: 0 });
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
                let device = RegionKind::Device.into();
                let name = if self.settings.seeks_borders { stretch.name } else { device };
                Region { name, unique_bytes, focal, layer: Layer::default(), revision: 0 }
            })
            .collect()
    }

    /// Where a region's graphs are taken: at its focal value, or a little below where the files of
    /// several processes would not fit there.
    fn focal_bytes(&self, region: &RegionUniqueBytes) -> f64 {
        let fits = self.extent.max_bytes_shared_out;
        if !self.settings.seeks_borders {
            // As much as can be, for the sake of caches in the device.
            return fits.clamp(region.from, region.to);
        }
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

    /// This workload where it may be run, the nearest one that may be where not.
    fn allowed(&self, work: &Workload) -> Workload {
        let most = self.extent.largest(work.process_num);
        let unique_bytes = whole_blocks((work.unique_bytes as f64).min(most));
        let most = self.settings.writes_max_bytes.unwrap_or(f64::INFINITY);
        let read_frac = if unique_bytes as f64 > most { 1.0 } else { work.read_frac };
        Workload { unique_bytes, read_frac, ..work.clone() }
    }

    /// Numbers of processes on a graph besides the least, in the order they are measured: about as many as
    /// there are processors, for throughput bends there, and the most; then the others, largest first.
    /// With 2 and 4 first, 17 to 31 processes on 16 processors were predicted at half of their throughput
    /// after four minutes.
    fn process_nums(&self) -> Vec<u32> {
        let range = self.settings.ranges.process_num;
        let powers = (0..13).map(|power| 1_u64 << power);
        let between: Vec<u64> =
            powers.filter(|num| (range.min + 1..range.max).contains(num)).collect();
        let half = between.iter().rfind(|num| **num <= range.max / 2).copied();
        let rest = between.iter().rev().filter(|num| Some(**num) != half).copied();
        let most = Some(range.max).filter(|most| *most > range.min);
        half.into_iter().chain(most).chain(rest).map(|num| num as u32).collect()
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
        let share = extras::Share::new(&self.settings.ranges);
        let first_extras = others / share.others_each;
        if round == 0 {
            let corners = self.corners().into_iter().map(visit(Role::Calibration));
            for (place, corner) in corners.enumerate() {
                filling.insert((2 * place).min(filling.len()), corner);
            }
            first.shuffle(&mut rng);
            rest.append(&mut filling.split_off(first.len().div_ceil(STEPS).min(filling.len())));
            rest.shuffle(&mut rng);
            let mut ordered = Vec::new();
            let mut filling = filling.into_iter();
            for pair in first.chunks(STEPS) {
                ordered.extend(pair.iter().cloned().chain(filling.next()));
            }
            ordered.extend(self.settings.asked.iter().cloned().map(visit(Role::Named)));
            // As much of the other keys as lets a map answer for them at all; then the graphs of the
            // five parameters go first.
            let needed = extras::FIRST.min(first_extras);
            ordered.extend(self.extras(0..needed).into_iter().map(visit(Role::Extra)));
            let half = rest.len() / 2;
            let mut last = rest.split_off(half);
            last.extend(self.extras(needed..first_extras).into_iter().map(visit(Role::Extra)));
            last.shuffle(&mut rng);
            ordered.append(&mut rest);
            ordered.append(&mut last);
            return ordered;
        }
        first.append(&mut rest);
        let asked = self.settings.asked.iter().cloned();
        first.extend(asked.map(visit(Role::Named)));
        for role in [Role::ReadBorder, Role::WriteBorder] {
            first.extend(curve::searched_workloads(points, role).into_iter().map(visit(role)));
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
        let mut training = training(&earlier, &self.landscape(&earlier), (host, hints, *ranges));
        training.read_ahead_bytes = self.settings.read_ahead_bytes;
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
        if let Some(visit) = self.next_on_graphs(seen) {
            return Some(visit);
        }
        let mut barren_rounds = 0;
        for round in 0.. {
            self.refine(round, seen.points);
            let visits = self.round(round, seen.points);
            if visits.is_empty() {
                return None; // no workload is possible here, nor will one be in a later round
            }
            let may_be = |visit: &&Visit| seen.may_visit(&visit.workload);
            let missing = visits.iter().filter(|visit| !visit.is_made(seen.points)).find(may_be);
            if missing.is_some() {
                return missing.cloned();
            }
            barren_rounds =
                if visits.iter().any(|visit| may_be(&visit)) { 0 } else { barren_rounds + 1 };
            if barren_rounds > BARREN_ROUNDS_MAX {
                return None; // nothing that is laid out is ever read
            }
        }
        None
    }

    fn owed(&self, seen: &Seen<'_>) -> Vec<Visit> {
        self.open_graphs(seen)
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
        name_by_hits(&mut regions, points);
        Landscape { borders, regions, log }
    }
}

/// A region is the storage's only where storage answered. Beyond a border of writes the page cache may
/// still hold all that is read; beyond a processor's cache memory still takes all that is written.
fn name_by_hits(regions: &mut [Region], points: &[Point]) {
    let kinds: Vec<RegionKind> =
        regions.iter().map(|region| kind_by_hits(region, points)).collect();
    for (region, name) in regions.iter_mut().zip(RegionKind::names(&kinds)) {
        region.name = name;
    }
}

fn kind_by_hits(region: &Region, points: &[Point]) -> RegionKind {
    let kind = region.name.kind;
    if !matches!(kind, RegionKind::Storage | RegionKind::WriteBack) {
        return kind;
    }
    let RegionUniqueBytes { from, to, .. } = region.unique_bytes;
    let inside = |point: &&Point| {
        let work = &point.workload;
        let is_there = (from * CLEAR_OF_BORDER..=to).contains(&(work.unique_bytes as f64));
        is_there && work.state == State::Warm && work.fsync_every == 0 && work.rate <= 0.0
    };
    let there = || points.iter().filter(inside);
    let reads = there().filter(|point| point.workload.read_frac > 0.0);
    let least = reads.filter_map(|point| point.hit_fraction).reduce(f64::min);
    if least.is_none_or(|least| least < border::MEMORY_HIT) {
        return kind;
    }
    let writes = there().filter(|point| point.workload.read_frac < 1.0);
    let absorbed: Vec<f64> = writes.filter_map(|point| point.write_absorbed_fraction).collect();
    let all = absorbed.iter().filter(|fraction| **fraction >= border::MEMORY_HIT).count();
    if 2 * all > absorbed.len() { RegionKind::Cache } else { RegionKind::WriteBack }
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
mod tests;
