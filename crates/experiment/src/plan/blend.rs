//! The default plan: find the borders, then measure every region along every parameter, then
//! fill the space between, in randomised rounds until the budget ends (`docs/method.md`).

use ioscape_analysis::border::{self, Sample, Search, Step};
use ioscape_analysis::region;
use ioscape_model::units::{KIB, MIB, show_bytes};
use ioscape_model::{
    Border, Curve, Header, Hints, Point, Ranges, Region, RegionUniqueBytes, Role, Workload,
};
use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::extent::{self, Extent};
use super::{Landscape, Plan, Seen, Visit, halton};

/// The search for borders ends at the latest when this share of the budget is used.
const SEARCH_SHARE: f64 = 0.4;
/// Space-filling points that are new in every round.
const CALIBRATION_PER_ROUND: u64 = 24;
/// What visits of one workload are expected to differ by, before any were repeated.
const NOISE_PRIOR: f64 = 0.05;
/// A region's behaviour shows from this many times its lower border on.
const CLEAR_OF_BORDER: f64 = 1.25;
/// Values on the graphs of the fractions; the first two are measured first.
const FRACTIONS: [f64; 4] = [0.0, 1.0, 0.25, 0.75];

/// What the plan knows beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the map extends.
    pub ranges: Ranges,
    /// What is known about the target.
    pub hints: Hints,
    /// Bandwidth of a copy in memory, where it was measured.
    pub memory_bytes_per_s: Option<f64>,
    /// Where chance comes from.
    pub seed: u64,
    /// Workloads that write are kept below this, bytes: beyond it writers would stall in reclaim.
    pub writes_max_bytes: Option<f64>,
    /// The map may never reach further, bytes.
    pub most_bytes: f64,
}

impl Settings {
    /// From the first line of a record, and nothing else: a run that is gone on with decides as
    /// it did before.
    pub fn of(header: &Header) -> Self {
        Self {
            ranges: header.ranges,
            hints: header.hints.clone(),
            memory_bytes_per_s: header.host.memory_copy_bytes_per_s,
            seed: header.seed,
            writes_max_bytes: header.limits.writes_max_bytes,
            most_bytes: extent::most_bytes(&header.hints, &header.limits, header.budget_s),
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
        let mut plan = Self { settings, extent: Extent::within(0.0, 0.0, 1), families: None };
        plan.extent = plan.extent_to(max_bytes);
        plan
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
        for (curve, role) in curves {
            let samples = samples(seen.points, role);
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
            memory_s_per_byte: self.settings.memory_bytes_per_s.map(f64::recip),
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
        Workload { unique_bytes: whole_blocks(unique_bytes), size_mean, ..Workload::default() }
    }

    fn borders(&self, points: &[Point]) -> Vec<Border> {
        let on = |curve, role| border::borders(&self.search(curve), curve, &samples(points, role));
        let (read, write) =
            (on(Curve::Read, Role::ReadBorder), on(Curve::Write, Role::WriteBorder));
        border::merge(&read, &write)
    }

    fn regions(&self, borders: &[Border]) -> Vec<Region> {
        let range = &self.settings.ranges.unique_bytes;
        region::regions_from(borders, range.min as f64, self.extent.max_bytes)
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
        self.regions(&borders).into_iter().map(family).collect()
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

    /// All visits of a round, in their order.
    fn round(&self, families: &[Family], round: u32, points: &[Point]) -> Vec<Visit> {
        let visit = |role: Role| move |workload: Workload| Visit { workload, role, round };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.settings.seed ^ u64::from(round));
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for family in families {
            let (needed, more) = self.family(family);
            first.extend(needed.into_iter().map(visit(Role::Family)));
            rest.extend(more.into_iter().map(visit(Role::Family)));
        }
        if round == 0 {
            first.shuffle(&mut rng);
            rest.shuffle(&mut rng);
            first.append(&mut rest);
            return first;
        }
        first.append(&mut rest);
        for role in [Role::ReadBorder, Role::WriteBorder] {
            first.extend(curve_again(points, role).into_iter().map(visit(role)));
        }
        let start = u64::from(round - 1) * CALIBRATION_PER_ROUND;
        let filling = (start..start + CALIBRATION_PER_ROUND).map(|index| self.filling(index));
        first.extend(self.possible(filling.collect()).into_iter().map(visit(Role::Calibration)));
        first.shuffle(&mut rng);
        first
    }

    /// The space-filling sequence. Half of the fractions are at 0 or 1: the corners hold the
    /// single classes, which no point inside shows alone.
    fn filling(&self, index: u64) -> Workload {
        let coordinate = |dimension| halton::coordinate(index, dimension, self.settings.seed);
        let ranges = &self.settings.ranges;
        let snap = |value: f64, snapped: bool| {
            if snapped { value.round() } else { (value * 1000.0).round() / 1000.0 }
        };
        let nums = ranges.process_num;
        let process_num =
            (nums.min as f64 + coordinate(4) * (nums.max - nums.min + 1) as f64) as u32;
        let least = ranges.unique_bytes.min as f64;
        let unique = log_between(least, self.extent.largest(process_num).max(least), coordinate(0));
        let size_max = (unique / f64::from(process_num) / 8.0).min(ranges.size_mean.max as f64);
        let size =
            log_between(ranges.size_mean.min as f64, ranges.size_mean.max as f64, coordinate(1));
        Workload {
            unique_bytes: whole_blocks(unique),
            size_mean: whole_blocks(size.min(size_max)),
            read_frac: snap(coordinate(2), index.is_multiple_of(2)),
            seq_frac: snap(coordinate(3), (index / 2).is_multiple_of(2)),
            process_num,
            ..Workload::default()
        }
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
        let families = self.families.as_deref().unwrap_or_default();
        for round in 0.. {
            let visits = self.round(families, round, seen.points);
            if visits.is_empty() {
                return None; // no workload is possible here, nor will one be in a later round
            }
            let missing = visits.into_iter().find(|visit| !is_made(visit, seen.points));
            if missing.is_some() {
                return missing;
            }
        }
        None
    }

    fn landscape(&self, points: &[Point]) -> Landscape {
        let borders = self.borders(points);
        let mut regions = self.regions(&borders);
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
        border.found_by,
        show_bytes(at.onset),
        show_bytes(at.capacity),
        show_bytes(at.low),
        show_bytes(at.high),
        border.step
    )
}

fn is_made(visit: &Visit, points: &[Point]) -> bool {
    points.iter().any(|point| {
        point.role == visit.role && point.round == visit.round && point.workload == visit.workload
    })
}

/// The workloads of a border search, each once: what a later round visits again.
fn curve_again(points: &[Point], role: Role) -> Vec<Workload> {
    let mut works: Vec<Workload> = Vec::new();
    for point in points.iter().filter(|point| point.role == role && point.round == 0) {
        if !works.contains(&point.workload) {
            works.push(point.workload.clone());
        }
    }
    works
}

fn samples(points: &[Point], role: Role) -> Vec<Sample> {
    /// A visit that moved nothing was slower than this, bytes per second.
    const THROUGHPUT_MIN: f64 = 1.0;
    let on_curve = points.iter().filter(|point| point.role == role);
    on_curve
        .map(|point| Sample {
            unique_bytes: point.workload.unique_bytes as f64,
            time_s_per_byte: 1.0 / point.throughput().max(THROUGHPUT_MIN),
            hit_fraction: match role {
                Role::WriteBorder => point.write_absorbed_fraction,
                _ => point.hit_fraction,
            },
            resident_bytes: point.resident_bytes.map(|bytes| bytes as f64),
        })
        .collect()
}

fn log_between(from: f64, to: f64, share: f64) -> f64 {
    from * (to / from).powf(share)
}

fn whole_blocks(bytes: f64) -> u64 {
    let unit = if bytes >= 16.0 * MIB as f64 { MIB / 4 } else { 4 * KIB };
    (bytes as u64 / unit * unit).max(4 * KIB)
}
