//! The data sheet first, then the layer that borders are looked for in, then the device layer: what
//! is measured in which order, so that whatever the budget leaves out is what is missed least.
//!
//! 1. Each line of the data sheet once; over several ranks four of them from 2, 4, … hosts, too.
//!    Lines that write a second time as soon as writes run out, in runs of four minutes and more.
//! 2. Borders of the page cache, and three values of every parameter in each of its regions.
//! 3. Reads that miss the page cache, where the search did not pass it.
//! 4. Three values of every parameter, depth among them, in the device layer.
//! 5. Once both layers have their graphs, in runs of four minutes and more: one line of the data sheet at rates
//!    of its own, for how latency grows with them; then the twelve named workloads where a quarter of the time left is
//!    enough for them, for answers about these are asked for most.
//! 6. What else the plans of both layers want, in proportion to their shares of the time and of what may be written; the data
//!    sheet and the cold reads again from time to time, for their intervals.
//!
//! Late in the budget the device layer begins though the other has families left, and its graphs come first where a
//! buffered visit finds no room beside what `--max-written` keeps for them. A resumed run
//! decides all of this as its first part did, from the points and how long they took; only what it may still write it
//! counts by itself.

use ioscape_model::{
    Header, Hosts, Layer, Point, Ranges, Role, SheetLine, Workload, datasheet, named,
};

use super::blend::SHORT_BUDGET_S;
use super::filling::whole_blocks;
use super::{BlendPlan, BlendSettings, Landscape, Plan, Seen, Visit, cold};

/// Of the time for both layers, what the device layer gets.
const DEVICE_SHARE: f64 = 0.25;
/// From this part of the budget on the device layer begins, whatever the other has left.
const DEVICE_BEGINS: f64 = 0.82;
/// … unless the budget is shorter than this, seconds: the data sheet is what it knows of the device then.
const DEVICE_BEGINS_BUDGET_S: f64 = SHORT_BUDGET_S;
/// From this part of the budget on, workloads that were asked for go before everything else …
const ASKED_BEGIN: f64 = 0.9;
/// … and earlier where they need more time, but not before this part.
const ASKED_BEGIN_MIN: f64 = 0.5;
/// Named workloads are visited only if they take at most this share of the time that is left.
const NAMED_SHARE: f64 = 0.25;
/// Blocks of visits to the device layer count for at least so long, seconds.
const BLOCK_S: f64 = 8.0;
/// The data sheet is visited again after so many seconds of the run.
const SHEET_AGAIN_S: f64 = 240.0;

/// Rates at which latency is measured, as shares of what the closed loop does: closer where it grows.
const RATE_SHARES: [f64; 5] = [0.25, 0.5, 0.7, 0.8, 0.9];

/// The plan of a map with a data sheet.
#[derive(Clone, Debug)]
pub struct LayeredPlan {
    sheet: Vec<SheetLine>,
    /// Lines of the data sheet from several hosts.
    over_hosts: Vec<Workload>,
    /// The named workloads within the header's ranges.
    named: Vec<Workload>,
    is_quick: bool,
    header: Header,
    /// The layer of the header's own ranges.
    layer: Layer,
    main: BlendPlan,
    device: Option<BlendPlan>,
}

/// The visits so far, by what they were for.
struct Parted {
    main: Vec<Point>,
    device: Vec<Point>,
    main_s: f64,
    device_s: f64,
    /// By how much the device layer's share of both exceeds what its visits count for, seconds.
    device_due_s: f64,
}

impl LayeredPlan {
    /// From the first line of a record, and nothing else.
    pub fn new(header: &Header) -> Self {
        let mut sheet = header.datasheet.clone();
        // What needs the least laid out is on the screen first, and reads find files that no write broke up.
        sheet.sort_by_key(|line| (line.workload.unique_bytes, line.workload.read_frac < 1.0));
        let mut steps = header.hosts.as_ref().map_or_else(Vec::new, Hosts::steps);
        if header.budget_s < SHORT_BUDGET_S {
            steps.drain(..steps.len().saturating_sub(1));
        }
        let from = |line: &SheetLine| {
            let work = line.workload.clone();
            steps.clone().into_iter().map(move |hosts| datasheet::from_hosts(&work, hosts))
        };
        let mut over_hosts: Vec<Workload> =
            datasheet::over_hosts(&header.datasheet).flat_map(from).collect();
        over_hosts.retain(|work| work.check().is_ok());
        let access = header.ranges.access;
        let all = named::names().filter_map(named::named);
        let mut named: Vec<Workload> = all.map(|work| Workload { access, ..work }).collect();
        named.retain(|work| lies_in(&header.ranges, work));
        Self {
            sheet,
            over_hosts,
            named,
            is_quick: header.is_quick,
            header: header.clone(),
            layer: Layer::of_access(header.ranges.access),
            main: BlendPlan::new(BlendSettings::from_header(header)),
            device: BlendSettings::of_device(header).map(BlendPlan::new),
        }
    }

    /// Lines of the data sheet that have not been visited in this round.
    fn lines(&self, round: u32, seen: &Seen<'_>) -> impl Iterator<Item = Visit> {
        left(self.sheet.iter().map(|line| &line.workload), round, seen)
    }

    /// The next unvisited line of the data sheet in this round.
    fn line(&self, round: u32, seen: &Seen<'_>) -> Option<Visit> {
        self.lines(round, seen).next()
    }

    /// The next unvisited workload that was asked for (`run -w`), once the time left suffices only for these
    /// and one more visit, or nine tenths of the budget are used; never before half of it.
    fn asked(&self, seen: &Seen<'_>) -> Option<Visit> {
        let plans = [Some(&self.main), self.device.as_ref()].into_iter().flatten();
        let left: Vec<Visit> = plans.flat_map(|plan| plan.asked(seen)).collect();
        let needed_s = mean_visit_s(seen) * (left.len() + 1) as f64;
        let begins_s = f64::min(ASKED_BEGIN * seen.budget_s, seen.budget_s - needed_s);
        let is_time = seen.elapsed_s > begins_s.max(ASKED_BEGIN_MIN * seen.budget_s);
        left.into_iter().next().filter(|_| is_time)
    }

    /// The next of the named workloads, where there is room for all that are left.
    fn named(&self, seen: &Seen<'_>) -> Option<Visit> {
        let held = self.named.iter().filter(|work| self.main.reaches(work));
        let left: Vec<Visit> = left(held, 0, seen).collect();
        let needed_s = mean_visit_s(seen) * left.len() as f64;
        let has_room = needed_s <= NAMED_SHARE * (seen.budget_s - seen.elapsed_s);
        left.into_iter().next().filter(|_| has_room)
    }

    /// The next open loop of [`datasheet::RATE_LINE`]. Its rates are shares of what the first visit to that
    /// line did as a closed loop.
    fn at_a_rate(&self, seen: &Seen<'_>) -> Option<Visit> {
        if seen.budget_s < SHORT_BUDGET_S || self.header.hosts.is_some() {
            return None;
        }
        let line = &self.sheet.iter().find(|line| line.name == datasheet::RATE_LINE)?.workload;
        let closed = seen.points.iter().find(|point| point.workload == *line)?;
        let visit = |share: f64| Visit {
            workload: datasheet::at_rate(line, share * closed.ops_per_s),
            role: Role::OpenLoop,
            round: 0,
        };
        let is_left = |visit: &Visit| {
            let is_rate = visit.workload.check().is_ok() && visit.workload.rate > 0.0;
            is_rate && seen.may_visit(&visit.workload) && !visit.is_made(seen.points)
        };
        RATE_SHARES.map(visit).into_iter().find(is_left)
    }

    /// The next visit of the graphs of hosts.
    fn over_hosts(&self, seen: &Seen<'_>) -> Option<Visit> {
        left(self.over_hosts.iter(), 0, seen).next()
    }

    /// The next read that misses the page cache, where the search for borders did not pass it.
    fn cold(&self, round: u32, parted: &Parted, seen: &Seen<'_>) -> Option<Visit> {
        if self.layer == Layer::Device {
            return None;
        }
        let borders = self.main.landscape(&parted.main).borders;
        if !cold::is_needed(&self.header, &borders, self.main.extent.max_bytes) {
            return None;
        }
        let span = self.header.device.map(|device| device.ranges.unique_bytes.max);
        let largest = |process_num: u32| {
            let main = whole_blocks(self.main.extent.largest(process_num));
            if process_num == 1 { span.unwrap_or(main).max(main) } else { main }
        };
        let works = cold::workloads(&self.header, &largest).into_iter();
        let mut visits = works.map(|workload| Visit { workload, role: Role::Calibration, round });
        visits.find(|visit| seen.may_visit(&visit.workload) && !visit.is_made(seen.points))
    }

    /// True if a visit measures a line of the data sheet, in a closed loop or at a rate: its time counts for
    /// no layer.
    fn is_line(&self, point: &Point) -> bool {
        let lines = self.sheet.iter().map(|line| &line.workload);
        let is_named = || lines.chain(&self.over_hosts).any(|work| *work == point.workload);
        point.role == Role::OpenLoop || (point.role == Role::Named && is_named())
    }

    fn parted(&self, points: &[Point]) -> Parted {
        // No plan of a layer chooses open loops, or learns from them.
        let closed = || points.iter().filter(|point| point.role != Role::OpenLoop);
        let is_main = |point: &&Point| self.layer.holds(point);
        let sum_s = |is_wanted: bool, of: &dyn Fn(&Point) -> f64| -> f64 {
            let visits = closed().filter(|point| is_main(point) == is_wanted);
            visits.filter(|point| !self.is_line(point)).map(of).sum()
        };
        // If `--max-written` is short, visits that write end early; with shares of time alone the device
        // layer used up the rest in a block of forty such visits. So a visit that writes counts for at least
        // the shortest running in plus the longest measuring.
        let is_limited = self.header.limits.written_max_bytes.is_some();
        let counted_s = |point: &Point| {
            let is_spared = is_limited && point.workload.read_frac < 1.0;
            let least_s = if is_spared { self.header.rules.visit_s() } else { 0.0 };
            let layout_s = point.spent_s.layout;
            layout_s + (point.elapsed_s - layout_s).max(least_s)
        };
        let [counted_main_s, counted_device_s] =
            [true, false].map(|is_wanted| sum_s(is_wanted, &counted_s));
        Parted {
            main: closed().filter(is_main).cloned().collect(),
            device: closed().filter(|point| Layer::Device.holds(point)).cloned().collect(),
            main_s: sum_s(true, &|point| point.elapsed_s),
            device_s: sum_s(false, &|point| point.elapsed_s),
            device_due_s: DEVICE_SHARE * (counted_main_s + counted_device_s) - counted_device_s,
        }
    }

    /// Whether the device layer's turn has come.
    fn is_devices_turn(
        &self,
        (main_seen, device_seen): (&Seen<'_>, &Seen<'_>),
        parted: &Parted,
        seen: &Seen<'_>,
    ) -> bool {
        let Some(device) = &self.device else { return false };
        let is_long = seen.budget_s >= DEVICE_BEGINS_BUDGET_S;
        let is_late = is_long && seen.elapsed_s > DEVICE_BEGINS * seen.budget_s;
        let has_graphs = device.has_families(device_seen);
        if !has_graphs && is_long && seen.device_is_due && !seen.reads_only {
            return true;
        }
        if !is_late && !self.main.has_families(main_seen) {
            return false;
        }
        if !has_graphs {
            return true;
        }
        // Each change of layer empties the page cache: visits to either come in blocks.
        let others = |point: &&Point| point.role != Role::Canary && !self.is_line(point);
        let last = seen.points.iter().rfind(others);
        let is_begun = last.is_some_and(|point| Layer::Device.holds(point));
        parted.device_due_s > if is_begun { 0.0 } else { BLOCK_S }
    }
}

/// Visits of a round to these named workloads that may be made and were not yet, in their order.
fn left<'a>(
    works: impl Iterator<Item = &'a Workload>,
    round: u32,
    seen: &Seen<'_>,
) -> impl Iterator<Item = Visit> {
    let visit = move |work: &Workload| Visit { workload: work.clone(), role: Role::Named, round };
    works.map(visit).filter(|it| seen.may_visit(&it.workload) && !it.is_made(seen.points))
}

/// True if a workload's data, request size and number of processes lie in the ranges.
fn lies_in(ranges: &Ranges, work: &Workload) -> bool {
    [
        (ranges.unique_bytes, work.unique_bytes),
        (ranges.size_mean, work.size_mean),
        (ranges.process_num, work.process_num.into()),
    ]
    .iter()
    .all(|(range, value)| (range.min..=range.max).contains(value))
}

/// Mean time of a visit so far, all that the run did beside them included, seconds.
fn mean_visit_s(seen: &Seen<'_>) -> f64 {
    seen.elapsed_s / (seen.points.len().max(1) as f64)
}

impl Plan for LayeredPlan {
    fn next(&mut self, seen: &Seen<'_>) -> Option<Visit> {
        if let Some(line) = self.line(0, seen) {
            return Some(line);
        }
        if let Some(visit) = self.over_hosts(seen) {
            return Some(visit);
        }
        if self.is_quick {
            let most = seen.points.len() as u32 + 1;
            return (1..=most).find_map(|round| self.line(round, seen));
        }
        if let Some(visit) = self.asked(seen) {
            return Some(visit);
        }
        // Where writes are running out, lines that write are visited again before any graph: later there are no writes
        // left for them. Short runs have their graphs first.
        let is_urgent = seen.spares_writes && seen.budget_s >= SHORT_BUDGET_S;
        let writes = |visit: &Visit| visit.workload.read_frac < 1.0;
        if is_urgent && let Some(line) = self.lines(1, seen).find(writes) {
            return Some(line);
        }
        let parted = self.parted(seen.points);
        let main = Seen { points: &parted.main, elapsed_s: parted.main_s, ..*seen };
        let device = Seen { points: &parted.device, elapsed_s: parted.device_s, ..*seen };
        let is_devices_turn = self.is_devices_turn((&main, &device), &parted, seen);
        // The sheet again where both layers have what they need first.
        let has_main = self.main.has_families(&main);
        let has_families =
            has_main && self.device.as_ref().is_none_or(|plan| plan.has_families(&device));
        let rounds =
            1 + u32::max((seen.elapsed_s / SHEET_AGAIN_S) as u32, seen.spares_writes.into());
        if has_main && let Some(visit) = self.cold(0, &parted, seen) {
            return Some(visit);
        }
        let line_or_cold =
            |round| self.line(round, seen).or_else(|| self.cold(round, &parted, seen));
        let again = has_families.then(|| (1..rounds).find_map(line_or_cold));
        if let Some(line) = again.flatten() {
            return Some(line);
        }
        if has_families && let Some(visit) = self.at_a_rate(seen).or_else(|| self.named(seen)) {
            return Some(visit);
        }
        let of_device = |plan: &mut Option<BlendPlan>| plan.as_mut()?.next(&device);
        if is_devices_turn {
            return of_device(&mut self.device).or_else(|| self.main.next(&main));
        }
        self.main.next(&main).or_else(|| of_device(&mut self.device))
    }

    fn owed(&self, seen: &Seen<'_>) -> Vec<Visit> {
        if self.is_quick {
            return vec![];
        }
        let parted = self.parted(seen.points);
        let mut owed = self.main.owed(&Seen { points: &parted.main, ..*seen });
        // In a short run the device layer gets what the other leaves.
        let counts_device = owed.is_empty() || seen.budget_s >= DEVICE_BEGINS_BUDGET_S;
        if let Some(device) = self.device.as_ref().filter(|_| counts_device) {
            owed.extend(device.owed(&Seen { points: &parted.device, ..*seen }));
        }
        owed
    }

    fn landscape(&self, points: &[Point]) -> Landscape {
        if self.is_quick {
            return Landscape::default();
        }
        let parted = self.parted(points);
        let mut landscape = self.main.landscape(&parted.main);
        let is_begun = parted.device.iter().any(|point| !self.is_line(point));
        if let Some(device) = self.device.as_ref().filter(|_| is_begun) {
            let of_device = device.landscape(&parted.device);
            landscape.regions.extend(of_device.regions);
            landscape.log.extend(of_device.log);
        }
        landscape
    }
}

#[cfg(test)]
mod tests;
