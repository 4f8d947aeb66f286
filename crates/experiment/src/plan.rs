//! What to measure next. A plan never meets a device: it sees points and names the next visit,
//! so that exploring is tested with a formula in place of a disk, and so that a run that was
//! killed goes on by showing its points to a fresh plan.

use ioscape_analysis::model::{Samples, Training, drift_sd, off_graph_count};
use ioscape_model::{
    Access, Border, Header, Hints, Host, Method, Point, Ranges, Region, Role, Workload, open_loops,
};

mod blend;
mod cold;
mod curve;
pub mod extent;
mod extras;
pub(crate) mod filling;
#[cfg(test)]
pub(crate) mod formula;
mod global75;
mod graph;
mod halton;
mod layered;
pub(crate) mod left_out;
mod orthogonal;
pub mod paper;
#[cfg(test)]
mod predicted;
pub(crate) mod refine;

pub(crate) use blend::is_short;
pub use blend::{BlendPlan, Settings as BlendSettings};
pub use global75::Global75Plan;
pub use layered::LayeredPlan;
pub use orthogonal::OrthogonalPlan;
pub use paper::PaperPlan;

/// The next thing to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// The workload.
    pub workload: Workload,
    /// Why.
    pub role: Role,
    /// Which round of visits it belongs to, from 0.
    pub round: u32,
}

impl Visit {
    /// Whether a point has this role, round and workload.
    pub(crate) fn is_made(&self, points: &[Point]) -> bool {
        points.iter().any(|point| {
            point.role == self.role && point.round == self.round && point.workload == self.workload
        })
    }
}

/// What a plan may look at.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// All points so far, in order, those of earlier parts of a resumed run included.
    pub points: &'a [Point],
    /// Points of both layers whose files this part of the run has laid out.
    pub laid_out: &'a [Point],
    /// Seconds of the budget used.
    pub elapsed_s: f64,
    /// The budget, seconds.
    pub budget_s: f64,
    /// True once `--max-written` is used up: visits read files that are laid out, and write no more, but for those that
    /// the next field allows.
    pub reads_only: bool,
    /// Buffered workloads that touch no more than this, bytes, write all the same: the page cache takes their
    /// writes, and storage has each page once. 0 for none.
    pub absorbed_up_to_bytes: u64,
    /// Buffered workloads that write may touch no more than this, bytes: of larger ones the page cache
    /// would write back more than may still be written.
    pub writes_up_to_bytes: u64,
    /// Workloads may need no more new files than this, bytes: of more of them not as much may still be written.
    pub lays_out_up_to_bytes: u64,
    /// Graphs of the device layer that write come before all that is buffered: what may still be written is kept for them.
    pub device_is_due: bool,
    /// The run has written a third of what it may beside layout: the search for the write cache ends,
    /// and the graphs get the rest.
    pub spares_writes: bool,
}

impl<'a> Seen<'a> {
    /// A run that may still write whatever it likes.
    pub fn writing_freely(points: &'a [Point], elapsed_s: f64, budget_s: f64) -> Self {
        Self {
            points,
            laid_out: points,
            elapsed_s,
            budget_s,
            reads_only: false,
            absorbed_up_to_bytes: 0,
            writes_up_to_bytes: u64::MAX,
            lays_out_up_to_bytes: u64::MAX,
            device_is_due: false,
            spares_writes: false,
        }
    }
}

impl Seen<'_> {
    /// Whether a workload may still be visited.
    pub fn may_visit(&self, work: &Workload) -> bool {
        let laid_out = || self.laid_out.iter().map(|point| &point.workload);
        let may_lay_out = |up_to_bytes: u64| {
            let needed_bytes =
                || extent::files_bytes(laid_out().chain([work])) - extent::files_bytes(laid_out());
            up_to_bytes == u64::MAX || needed_bytes() <= up_to_bytes
        };
        let most_bytes = if self.reads_only { 0 } else { self.lays_out_up_to_bytes };
        !self.is_too_large_to_write(work) && !self.is_spared(work) && may_lay_out(most_bytes)
    }

    /// True if a workload writes what is not to be written any more.
    pub(crate) fn is_spared(&self, work: &Workload) -> bool {
        let is_absorbed = is_absorbed(work, self.absorbed_up_to_bytes);
        self.reads_only && work.read_frac < 1.0 && !is_absorbed
    }

    /// True if a buffered workload writes to more data than visits still may.
    pub(crate) fn is_too_large_to_write(&self, work: &Workload) -> bool {
        work.read_frac < 1.0
            && work.access == Access::Buffered
            && work.unique_bytes > self.writes_up_to_bytes
    }
}

/// True if the page cache takes all writes of a workload. It writes back once more than `dirty_bytes` are dirty.
pub(crate) fn is_absorbed(work: &Workload, dirty_bytes: u64) -> bool {
    work.access == Access::Buffered && work.fsync_every == 0 && work.unique_bytes <= dirty_bytes
}

/// Borders and regions as a plan sees them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Landscape {
    /// Smallest first.
    pub borders: Vec<Border>,
    /// Smallest first; without gaps.
    pub regions: Vec<Region>,
    /// What was decided along the way, in order.
    pub log: Vec<String>,
}

/// What models are fitted from, before a record is closed. The caller adds which borders are those of the
/// processor's cache (`publish` does); without that the law takes them for caches of the storage.
pub(crate) fn training(
    points: &[Point],
    landscape: &Landscape,
    (host, hints, ranges): (&Host, &Hints, Ranges),
) -> Training {
    let Samples { plain, cold, extras } = Samples::from_points(points);
    Training {
        samples: plain,
        cold,
        extras,
        open: open_loops(points),
        device: Vec::new(),
        borders: landscape.borders.clone(),
        processor_borders: Vec::new(),
        regions: landscape.regions.clone(),
        host: host.clone(),
        hints: hints.clone(),
        ranges,
        read_ahead_bytes: None,
        drift_sd: drift_sd(points),
        off_graph_count: off_graph_count(points),
        fixed: Vec::new(),
    }
}

/// The plan of a record: it follows from the header alone, so that a run that goes on decides as it
/// did.
pub fn decided_by(header: &Header) -> Box<dyn Plan> {
    match header.method {
        Method::Paper => Box::new(PaperPlan::new(header.ranges)),
        Method::Global75 => Box::new(Global75Plan::new(header.ranges)),
        Method::Orthogonal => Box::new(OrthogonalPlan::new(header.ranges, header.seed)),
        _ if header.datasheet.is_empty() && header.asked.is_empty() => {
            Box::new(BlendPlan::new(BlendSettings::from_header(header)))
        }
        _ => Box::new(LayeredPlan::new(header)),
    }
}

/// A way to choose points. What it answers depends on its settings, its seed and the points it is
/// shown, on nothing else.
pub trait Plan {
    /// The next visit; `None` when there is nothing left that is worth its time.
    fn next(&mut self, seen: &Seen<'_>) -> Option<Visit>;

    /// Visits that the graphs of the regions still need; none where none are drawn, or where the
    /// regions are not known yet.
    fn owed(&self, seen: &Seen<'_>) -> Vec<Visit> {
        let _ = seen;
        vec![]
    }

    /// The landscape that the points show.
    fn landscape(&self, points: &[Point]) -> Landscape;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_more_is_to_be_written_the_page_cache_takes_what_is_small() {
        const MIB: u64 = 1 << 20;
        let work = |unique_bytes: u64, read_frac: f64| Workload {
            unique_bytes,
            read_frac,
            ..Workload::default()
        };
        let visit = Visit { workload: work(64 * MIB, 0.5), role: Role::Family, round: 0 };
        let points = [formula::point(&visit, 1e9)];
        let freely = Seen::writing_freely(&points, 0.0, 60.0);
        let sparing = Seen { reads_only: true, absorbed_up_to_bytes: 32 * MIB, ..freely };
        let small = work(32 * MIB, 0.0);
        assert!(sparing.may_visit(&small) && sparing.may_visit(&work(64 * MIB, 1.0)));
        let not_taken = [
            work(33 * MIB, 0.9),
            Workload { access: Access::Direct, ..small.clone() },
            Workload { fsync_every: 8, ..small.clone() },
            // Not laid out.
            work(65 * MIB, 1.0),
            Workload { process_num: 3, ..small.clone() },
        ];
        for work in not_taken {
            assert!(freely.may_visit(&work) && !sparing.may_visit(&work), "{work}");
        }
        assert!(!Seen { absorbed_up_to_bytes: 0, ..sparing }.may_visit(&small));
    }
}
