//! The graphs of each region: three values of every parameter first, for these are what a map is
//! asked for, and more of them later.

use ioscape_model::{Role, Workload};

use super::BlendPlan;
use crate::plan::filling::{log_between, whole_blocks};
use crate::plan::{Seen, Visit};

/// Values on the graphs of the fractions; the first two are measured first.
const FRACTIONS: [f64; 4] = [0.0, 1.0, 0.25, 0.75];

/// A region and the focal vector of its graphs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Family {
    pub(super) focal: Workload,
    pub(super) from_bytes: f64,
    pub(super) to_bytes: f64,
}

impl BlendPlan {
    /// Whether three values of every parameter were visited in every region, as far as they may be.
    pub fn has_families(&self, seen: &Seen<'_>) -> bool {
        self.families.is_some() && self.open_graphs(seen).is_empty()
    }

    /// What the graphs still need, one value of each region in turn: if time runs out, every region lacks a
    /// little and none lacks everything. Where nothing more may be written, or not as much as a region's
    /// data, the graphs are those of reads.
    pub(super) fn open_graphs(&self, seen: &Seen<'_>) -> Vec<Visit> {
        let needed = |family: &Family| {
            let mut family = family.clone();
            if seen.is_spared(&family.focal) || seen.is_too_large_to_write(&family.focal) {
                family.focal.read_frac = 1.0;
            }
            let mut works = self.family(&family).0;
            // In the cache layer files of several processes are small: laid out first, they can be read once nothing more may
            // be written. In the device layer laying them out may cost as much as all other graphs write: they come last.
            let is_cache_layer = self.settings.seeks_borders;
            works.sort_by_key(|work| (work.process_num > 1) != is_cache_layer);
            works
        };
        let graphs: Vec<Vec<Workload>> = self.families.iter().flatten().map(needed).collect();
        let longest = graphs.iter().map(Vec::len).max().unwrap_or(0);
        let by_turns =
            (0..longest).flat_map(|index| graphs.iter().filter_map(move |g| g.get(index)));
        let is_open =
            |visit: &Visit| seen.may_visit(&visit.workload) && !visit.is_made(seen.points);
        by_turns.cloned().map(first_visit).filter(is_open).collect()
    }

    /// The next visit where time is short or writes are running out: what the graphs need goes
    /// before points between them.
    pub(super) fn next_on_graphs(&self, seen: &Seen<'_>) -> Option<Visit> {
        let is_due = seen.device_is_due && !self.settings.seeks_borders;
        let is_spared = self.settings.is_short || seen.spares_writes || seen.reads_only;
        if is_spared || is_due { self.open_graphs(seen).into_iter().next() } else { None }
    }

    /// The graphs of a family: what is needed for three values of every parameter, and the rest.
    pub(super) fn family(&self, family: &Family) -> (Vec<Workload>, Vec<Workload>) {
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
        for (index, process_num) in self.process_nums().into_iter().enumerate() {
            let axis = if index < 2 { &mut first } else { &mut rest };
            axis.push(Workload { process_num, ..focal.clone() });
        }
        if !self.settings.seeks_borders && self.settings.ranges.depth.max > 1 {
            let deep = |depth| Workload { depth, ..focal.clone() };
            first.extend([8, 32].map(deep));
            rest.extend([2, 16].map(deep));
        }
        for share in [0.2, 0.8] {
            let unique = log_between(family.from_bytes, family.to_bytes, share);
            rest.push(Workload { unique_bytes: whole_blocks(unique), ..focal.clone() });
        }
        (self.possible(first), self.possible(rest))
    }
}

fn first_visit(workload: Workload) -> Visit {
    Visit { workload, role: Role::Family, round: 0 }
}
