//! Random workloads to hold predictions against (Chen and Patterson 1994, section 9): how they
//! are drawn, and the plan that visits each of them twice.
//!
//! What is drawn depends on the seed, on the ranges and on how far the map reached; never on what
//! a model says. Nothing that was drawn is left out afterwards.

use ioscape_model::Forecast;
use ioscape_model::{
    Access, Code, Point, Ranges, Record, Role, Severity, Warning, Words, Workload,
};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::plan::extent::{Extent, files_bytes};
use crate::plan::{Landscape, Plan, Seen, Visit};

/// Visits to each workload: one to compare with, one to know how well it repeats.
pub const ROUNDS: u32 = 2;
/// Sizes are multiples of this, which is the usual `align`, bytes.
const ALIGN: u64 = 4096;
/// A record made with the same seed must share no chance with its validation.
const SEED_SALT: u64 = 0x7661_6c69_6461_7465;
/// Draws for each workload that is wanted before the box counts as empty.
const DRAWS_MAX: usize = 100;
/// With less of what the map covers, a validation says that it is about a part.
const ROOM_MIN: f64 = 0.9;
/// So few visits of one kind say little about how long the next ones take.
const VISITS_MIN: usize = 8;

/// No workload of the box can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "too few workloads fit between the smallest data of the map and what there is room for: make \
     room on the target, or ask for fewer --workloads"
)]
pub struct NoWorkload;

/// Where workloads are drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    ranges: Ranges,
    extent: Extent,
    /// What the map covers.
    mapped: Extent,
    /// Beyond this writers would stall, and the map holds reads only, bytes.
    writes_max_bytes: Option<f64>,
}

impl Space {
    /// The box that a layer of the map of a record covers, as far as its files fit `room_bytes` now.
    pub fn from_record(record: &Record, access: Access, room_bytes: u64) -> Self {
        let header = &record.header;
        let device = header.device.filter(|device| device.ranges.access == access);
        let (ranges, had_bytes) = match device {
            Some(device) => (device.ranges, device.room_bytes),
            None => (header.ranges, header.hints.room_bytes),
        };
        let is_here = |work: &Workload| work.access == ranges.access;
        let works = || record.points.iter().map(|point| &point.workload);
        let measured = || works().filter(|work| is_here(work)).map(|work| work.unique_bytes).max();
        let reach_bytes = match record.regions.iter().rfind(|region| is_here(&region.focal)) {
            Some(region) => region.unique_bytes.to,
            None => measured().unwrap_or(0) as f64,
        };
        let within = |room_bytes: u64| {
            let (room_bytes, most) = (room_bytes as f64, ranges.process_num.max);
            match device {
                Some(_) => Extent::over_span(reach_bytes.min(room_bytes), room_bytes, most),
                None => Extent::within(reach_bytes, room_bytes, most),
            }
        };
        Self {
            ranges,
            extent: within(room_bytes.min(had_bytes)),
            mapped: within(had_bytes),
            writes_max_bytes: header.limits.writes_max_bytes.filter(|_| device.is_none()),
        }
    }

    /// The ranges as they are drawn from, for the validation's own record.
    pub fn ranges(&self) -> Ranges {
        let mut ranges = self.ranges;
        ranges.unique_bytes.max = self.extent.max_bytes as u64;
        ranges
    }

    /// What cannot be drawn for want of room, where the map covers clearly more.
    pub fn shortage(&self) -> Option<Warning> {
        let one = "{one_process_bytes} by one process in place of {one_process_mapped_bytes}";
        let several = "{several_processes_bytes} by several processes in place of \
                       {several_processes_mapped_bytes}";
        let mut parts = Vec::new();
        let mut figures = Vec::new();
        for (process_num, who, part) in [(1, "one_process", one), (2, "several_processes", several)]
        {
            let (now, mapped) =
                (self.extent.largest(process_num), self.mapped.largest(process_num));
            if u64::from(process_num) <= self.ranges.process_num.max && now < ROOM_MIN * mapped {
                parts.push(part);
                figures.push((format!("{who}_bytes"), now));
                figures.push((format!("{who}_mapped_bytes"), mapped));
            }
        }
        if parts.is_empty() {
            return None;
        }
        let sentence = "there is less room than the map had: workloads touch no more than ";
        let mut text = Words::new(sentence.to_owned() + &parts.join(", "));
        for (name, bytes) in figures {
            text = text.figure(&name, bytes);
        }
        let remedy = "make room on the target and validate again: larger workloads are not tried";
        Some(Warning::new(Code::NearlyFull, text, remedy).with_severity(Severity::Warning))
    }

    /// Different workloads at random: sizes log-uniform, fractions and the number of processes
    /// uniform. What cannot be run is drawn anew as a whole.
    ///
    /// # Errors
    /// When hardly any workload of the box can be run.
    pub fn draw(&self, seed: u64, count: usize) -> Result<Vec<Workload>, NoWorkload> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ SEED_SALT);
        let mut works: Vec<Workload> = Vec::with_capacity(count);
        for _ in 0..count.saturating_mul(DRAWS_MAX) {
            if works.len() == count {
                return Ok(works);
            }
            let drawn = self.one(&mut rng);
            works.extend(drawn.filter(|work| work.check().is_ok() && !works.contains(work)));
        }
        if works.len() == count { Ok(works) } else { Err(NoWorkload) }
    }

    /// Five numbers are drawn whatever becomes of them, so that one that is refused does not shift
    /// the meaning of the next.
    fn one(&self, rng: &mut Xoshiro256PlusPlus) -> Option<Workload> {
        let Ranges { unique_bytes, size_mean, process_num, .. } = self.ranges;
        let process_num = rng.random_range(process_num.min..=process_num.max) as u32;
        let most_bytes = self.extent.largest(process_num);
        let unique_bytes = log_uniform(unique_bytes.min as f64, most_bytes, rng.random());
        let least_bytes = size_mean.min.max(ALIGN) as f64;
        let size_mean = log_uniform(least_bytes, size_mean.max as f64, rng.random());
        let (read_frac, seq_frac) = (thousandths(rng.random()), thousandths(rng.random()));
        let unique_bytes = unique_bytes? as u64 / ALIGN * ALIGN;
        let stalls = self.writes_max_bytes.is_some_and(|most| unique_bytes as f64 > most);
        Some(Workload {
            unique_bytes,
            size_mean: (size_mean? / ALIGN as f64).round() as u64 * ALIGN,
            // As the map's own plan does it.
            read_frac: if stalls { 1.0 } else { read_frac },
            seq_frac,
            process_num,
            access: self.ranges.access,
            ..Workload::default()
        })
    }
}

fn log_uniform(from: f64, to: f64, share: f64) -> Option<f64> {
    (from <= to).then(|| from * (to / from).powf(share))
}

fn thousandths(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

/// Visits every workload once in each round, in another order each time: what the machine does
/// meanwhile falls on all of them alike.
#[derive(Clone, Debug)]
pub struct ValidationPlan {
    visits: Vec<Visit>,
}

impl ValidationPlan {
    /// The order follows from the seed.
    pub fn new(works: &[Workload], seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(visits_seed(seed));
        let mut visits = Vec::with_capacity(works.len() * ROUNDS as usize);
        for round in 0..ROUNDS {
            let mut order: Vec<&Workload> = works.iter().collect();
            order.shuffle(&mut rng);
            visits.extend(order.into_iter().map(|workload| Visit {
                workload: workload.clone(),
                role: Role::Validation,
                round,
            }));
        }
        Self { visits }
    }
}

impl Plan for ValidationPlan {
    fn next(&mut self, seen: &Seen<'_>) -> Option<Visit> {
        let made = seen.points.iter().filter(|point| point.role == Role::Validation).count();
        self.visits.get(made).cloned()
    }

    /// What the landscape is was said by the record that is being validated.
    fn landscape(&self, _points: &[Point]) -> Landscape {
        Landscape::default()
    }
}

/// Where the chance of the visits comes from: neither that of the drawing nor that of a record
/// made with the same seed.
pub fn visits_seed(seed: u64) -> u64 {
    seed ^ SEED_SALT.rotate_left(17)
}

/// What visiting the workloads will cost, from what visits cost when the map was made.
pub fn forecast(record: &Record, works: &[Workload]) -> Forecast {
    let of_map: Vec<&Point> = record.points.iter().filter(|p| p.role != Role::Canary).collect();
    let filling: Vec<&Point> =
        of_map.iter().copied().filter(|point| point.role == Role::Calibration).collect();
    // Space-filling points are drawn much like these workloads.
    let alike = if filling.len() >= VISITS_MIN { filling } else { of_map };
    let visit_s = alike.iter().map(|point| point.elapsed_s - point.spent_s.layout).sum::<f64>()
        / (alike.len() as f64).max(1.0);
    let visits = works.len() as f64 * f64::from(ROUNDS);
    let layout_bytes = files_bytes(works.iter()) as f64;
    let layout_s = record.header.hints.layout_bytes_per_s.map_or(0.0, |rate| layout_bytes / rate);
    Forecast {
        points: visits as u64,
        elapsed_s: layout_s + visits * visit_s,
        written_bytes: (layout_bytes + visits * written_bytes_per_visit(record)) as u64,
    }
}

fn written_bytes_per_visit(record: &Record) -> f64 {
    // A record that ends with a kill knows only what the windows of its visits wrote.
    let of_windows = |point: &Point| {
        let bytes = (point.classes.write_seq.bytes + point.classes.write_rand.bytes) as f64;
        bytes * (1.0 - point.write_absorbed_fraction.unwrap_or(0.0))
    };
    let laid_out = files_bytes(record.points.iter().map(|point| &point.workload));
    let written_bytes = match &record.end {
        Some(end) => end.written_bytes.saturating_sub(laid_out) as f64,
        None => record.points.iter().map(of_windows).sum(),
    };
    written_bytes / (record.points.len() as f64).max(1.0)
}

#[cfg(test)]
mod tests;
