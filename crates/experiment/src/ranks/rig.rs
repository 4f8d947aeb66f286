//! All ranks as one rig.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_cluster::Group;
use ioscape_engine::error::Result;
use ioscape_engine::file_rig::Part;
use ioscape_engine::host::waits;
use ioscape_engine::{Ahead, Error, Finished, Prepared, Rig, Window};
use ioscape_model::{
    Hints, Hosts, Layout, RankFigures, RankPlace, Ranks, Waits, Warning, Workload,
};

use super::crew::{Crew, Other};
use super::merged;
use super::orders::{Order, Said, Sums};
use super::stragglers::{self, Course};

/// Workers begin so long after that was agreed: every rank has heard of it by then.
const LEAD_NS: i64 = 5_000_000;
/// An order to make workers, and answers that need no measuring, come within this.
const SOON_NS: i64 = 10_000_000_000;

/// A rig on every rank, driven from rank 0.
pub struct RanksRig {
    /// That of rank 0: its files go before the group does.
    rig: Box<dyn Rig>,
    crew: Crew,
    hosts: Hosts,
    hints: Hints,
    /// Of each rank, whether it is the first of its host.
    is_first: Vec<bool>,
    visit: Option<RunningVisit>,
}

/// The workload that runs. Instants are by rank 0's clock.
struct RunningVisit {
    work: Workload,
    /// When the workers were to begin.
    agreed_ns: i64,
    /// When the latest window was to end, and when each rank's did.
    until_ns: i64,
    ended_ns: Vec<i64>,
    /// Work of each rank since the windows began to count.
    counted: Vec<Counted>,
    /// Waits of rank 0 until then.
    waits: Waits,
}

/// How a visit went on a rank. Instants are by rank 0's clock.
struct Passed {
    /// When its first worker began and its last.
    began_ns: Option<(i64, i64)>,
    /// When all had stopped.
    stopped_ns: i64,
    /// Waits since the windows began to count.
    waits: Waits,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    ops: u64,
    bytes: u64,
    length_s: f64,
    /// Bytes per second of each window.
    rates: Vec<f64>,
}

impl RanksRig {
    /// From what was assembled.
    pub(super) fn new(
        (group, rig): (Box<dyn Group>, Box<dyn Rig>),
        others: Vec<Other>,
        (hosts, hints): (Hosts, Hints),
        interrupt: Arc<AtomicBool>,
    ) -> Self {
        let firsts: Vec<u32> = hosts.firsts().map(|place| place.rank).collect();
        let is_first = (0..group.size()).map(|rank| firsts.contains(&rank)).collect();
        let crew = Crew::new(group, others, interrupt);
        Self { crew, rig, hosts, hints, is_first, visit: None }
    }

    /// A rig that lets the others go when it is dropped, and does nothing else.
    pub(super) fn dismissing(group: Box<dyn Group>, rig: Box<dyn Rig>) -> Self {
        let hints = rig.hints();
        Self::new((group, rig), Vec::new(), (Hosts::default(), hints), Arc::default())
    }

    /// Own sums, and those of the others.
    fn sums(&self) -> impl Iterator<Item = Sums> {
        let others = self.crew.others.iter().map(|other| other.sums);
        std::iter::once(Sums::read(&*self.rig)).chain(others)
    }

    /// Where a device counts, all ranks of its host see all that is written to it.
    fn has_counter(&self) -> bool {
        self.rig.device_written_bytes().is_some()
    }

    /// Stops what runs on the other ranks, after something went wrong.
    fn stop_others(&mut self) {
        if self.visit.take().is_some() && self.crew.tell_all(&Order::Finish { sync: false }).is_ok()
        {
            self.crew.hear_all(Some(SOON_NS)).ok(); // what went wrong before is told
        }
    }

    /// The worse of two troubles: a rank that is gone says more than what came of it.
    fn worse<T, U>(ours: Result<T>, theirs: Result<U>) -> Result<(T, U)> {
        match (ours, theirs) {
            (_, Err(error @ Error::Rank { .. })) | (Err(error), _) | (Ok(_), Err(error)) => {
                Err(error)
            }
            (Ok(ours), Ok(theirs)) => Ok((ours, theirs)),
        }
    }
}

/// Has everybody begin at one instant, once all are ready: that instant, and this rank ahead of others.
fn agree(crew: &mut Crew) -> Result<(i64, Ahead)> {
    let ready = crew.hear_all(Some(SOON_NS)).map(drop);
    if let Err(error) = ready.and_then(|()| crew.compare_clocks()) {
        crew.tell_all(&Order::Stay).ok(); // those that failed have nothing to stay for
        return Err(error);
    }
    let agreed_ns = crew.now_ns() + LEAD_NS + crew.trip_ns();
    for index in 0..crew.others.len() {
        let other = &crew.others[index];
        let at_ns = other.track.theirs_ns(agreed_ns);
        crew.tell(other.rank, &Order::Go { at_ns })?;
    }
    let ahead = Ahead::begin();
    crew.group.clock().sleep_until_ns(agreed_ns);
    Ok((agreed_ns, ahead))
}

impl Rig for RanksRig {
    fn engine(&self) -> &'static str {
        self.rig.engine()
    }

    fn hints(&self) -> Hints {
        self.hints.clone()
    }

    fn now_s(&self) -> f64 {
        self.rig.now_s()
    }

    fn refuses_direct(&self) -> Option<String> {
        self.rig.refuses_direct()
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        if work.layout == Layout::Shared && !self.hosts.is_one_directory {
            return Err(Error::Refused(
                "layout=shared: the ranks do not see one directory, so they have no file to share; \
                 leave the key out, or name a directory that all hosts mount"
                    .to_owned(),
            ));
        }
        let order = Order::Prepare(Box::new(work.clone()));
        let (ours, theirs) = if work.layout == Layout::Shared {
            // The file of all is laid out by rank 0, before others look at it.
            let ours = self.rig.prepare(work)?;
            self.crew.tell_all(&order)?;
            (ours, self.crew.hear_all(None)?)
        } else {
            self.crew.tell_all(&order)?;
            let ours = self.rig.prepare(work);
            Self::worse(ours, self.crew.hear_all(None))?
        };
        let theirs = theirs.into_iter().map(|said| match said {
            Said::Prepared(prepared) => prepared,
            _ => Prepared::default(),
        });
        Ok(merged::prepared(std::iter::once(ours).chain(theirs).collect()))
    }

    fn start(&mut self, work: &Workload, seed: u64) -> Result<()> {
        self.crew.tell_all(&Order::Start { work: Box::new(work.clone()), seed })?;
        let Self { crew, rig, .. } = self;
        let mut agreed = None;
        let started = rig.start_when(work, seed, &mut || match agree(crew) {
            Ok((at_ns, ahead)) => {
                agreed = Some(Ok(at_ns));
                Ok(ahead)
            }
            Err(error) => {
                agreed = Some(Err(error));
                Err(Error::Interrupted)
            }
        });
        let Some(agreed) = agreed else {
            // It never came to that here. The others wait to hear so.
            self.crew.hear_all(Some(SOON_NS)).ok();
            self.crew.tell_all(&Order::Stay)?;
            return started;
        };
        let agreed_ns = agreed?;
        let now_ns = self.crew.now_ns();
        self.visit = Some(RunningVisit {
            work: work.clone(),
            agreed_ns,
            until_ns: now_ns,
            ended_ns: Vec::new(),
            counted: vec![Counted::default(); self.is_first.len()],
            waits: Waits::default(),
        });
        let theirs = self.crew.hear_all(Some(SOON_NS));
        Self::worse(started, theirs).inspect_err(|_| self.stop_others())?;
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        let length_ns = (length_s * 1e9) as i64;
        let visit = self.visit.as_mut().expect("a window follows a start");
        visit.until_ns += length_ns;
        let until_ns = visit.until_ns;
        for index in 0..self.crew.others.len() {
            let other = &self.crew.others[index];
            let order = Order::Window { until_ns: other.track.theirs_ns(until_ns) };
            self.crew.tell(other.rank, &order)?;
        }
        let ours = self.rig.window(length_s);
        let theirs = self.crew.hear_all(Some(length_ns));
        let (ours, theirs) = match Self::worse(ours, theirs) {
            // The measuring loop stops all by itself then.
            Err(Error::MaxWritten) => return Err(Error::MaxWritten),
            both => both.inspect_err(|_| self.stop_others())?,
        };
        let visit = self.visit.as_mut().expect("it is still there");
        // The next window begins where ours ended.
        visit.until_ns += (ours.length_s * 1e9) as i64 - length_ns;
        visit.ended_ns = vec![visit.until_ns];
        let mut each = vec![ours];
        for (other, said) in self.crew.others.iter().zip(theirs) {
            let Said::Window { window, at_ns } = said else { continue };
            visit.ended_ns.push(other.track.ours_ns(at_ns));
            each.push(*window);
        }
        for (sum, window) in visit.counted.iter_mut().zip(&each) {
            sum.ops += window.ops();
            sum.bytes += window.bytes();
            sum.length_s += window.length_s;
            sum.rates.push(window.bytes() as f64 / window.length_s.max(1e-9));
        }
        Ok(merged::window(&each, &self.is_first))
    }

    fn mark(&mut self) {
        self.rig.mark();
        if let Some(visit) = &mut self.visit {
            visit.counted.fill(Counted::default());
            visit.waits = waits::now();
        }
        if self.crew.tell_all(&Order::Mark).is_ok() {
            self.crew.hear_all(Some(SOON_NS)).ok(); // the next window says what is wrong
        }
    }

    fn finish(&mut self, sync: bool) -> Result<Finished> {
        let Some(visit) = self.visit.take() else { return self.rig.finish(sync) };
        self.crew.tell_all(&Order::Finish { sync })?;
        let waits = waits::now().since(&visit.waits);
        let ours = self.rig.finish(sync);
        let sync_ns = |finished: &Finished| (finished.sync_s.unwrap_or(0.0) * 1e9) as i64;
        let stopped_ns = self.crew.now_ns() - ours.as_ref().map_or(0, sync_ns);
        let (mut all, theirs) = Self::worse(ours, self.crew.hear_all(None))?;
        self.crew.compare_clocks()?;
        let mut passed = vec![Passed { began_ns: all.began_ns.take(), stopped_ns, waits }];
        let mut warnings = vec![std::mem::take(&mut all.warnings)];
        let mut failed = vec![std::mem::take(&mut all.failed)];
        for (other, said) in self.crew.others.iter().zip(theirs) {
            let Said::Finished(rest) = said else { continue };
            rest.add_times_to(&mut all);
            let ours_ns = |ns| other.track.ours_ns(ns);
            passed.push(Passed {
                began_ns: rest.began_ns.map(|(first, last)| (ours_ns(first), ours_ns(last))),
                stopped_ns: ours_ns(rest.stopped_ns),
                waits: rest.waits,
            });
            warnings.push(rest.warnings);
            failed.push(rest.failed);
            all.sync_s = all.sync_s.into_iter().chain(rest.sync_s).reduce(f64::max);
        }
        (all.warnings, all.failed) = (merged::warnings(warnings), merged::failed(failed));
        let mut ranks = self.figures(&visit, &passed);
        all.warnings.extend(self.name_stragglers(&visit, &mut ranks));
        all.ranks = Some(ranks);
        Ok(all)
    }

    fn written_bytes(&self) -> u64 {
        self.sums().map(|sums| sums.written_bytes).sum()
    }

    fn device_written_bytes(&self) -> Option<u64> {
        let firsts = self.sums().zip(&self.is_first).filter(|(_, first)| **first);
        firsts.map(|(sums, _)| sums.device_written_bytes).sum()
    }

    fn limit_written(&mut self, most_bytes: u64) {
        let parts = if self.has_counter() { self.hosts.hosts } else { self.is_first.len() as u32 };
        let most_bytes = most_bytes / u64::from(parts.max(1));
        self.rig.limit_written(most_bytes);
        if self.crew.tell_all(&Order::LimitWritten { most_bytes }).is_ok() {
            self.crew.hear_all(Some(SOON_NS)).ok(); // whoever is gone is missed at the next order
        }
    }

    fn may_write_bytes(&self) -> u64 {
        let all = self.sums().map(|sums| sums.may_write_bytes);
        let least = all.min().unwrap_or(0);
        let parts = if self.has_counter() { self.hosts.hosts } else { self.is_first.len() as u32 };
        least.saturating_mul(u64::from(parts.max(1)))
    }
}

impl RanksRig {
    /// Says of each rank that fell behind what it waits for. Where requests come by a schedule, the
    /// schedule says what each gets.
    fn name_stragglers(&self, visit: &RunningVisit, ranks: &mut Ranks) -> Vec<Warning> {
        if visit.work.rate > 0.0 {
            return Vec::new();
        }
        let place = |rank: &RankFigures| self.hosts.ranks.get(rank.rank as usize);
        let course = |(rank, counted): (&RankFigures, &Counted)| Course {
            host: place(rank).map_or(rank.rank, |place| place.host),
            processes: rank.processes,
            rates: counted.rates.clone(),
            length_s: counted.length_s,
            waits: rank.waits,
            is_one_by_one: visit.work.depth == 1,
            storage: place(rank).map(RankPlace::storage),
        };
        let courses: Vec<Course> = ranks.each.iter().zip(&visit.counted).map(course).collect();
        let mut warnings = Vec::new();
        for (rank, resource) in stragglers::find(&courses) {
            let figures = &mut ranks.each[rank];
            figures.waits_for = Some(resource);
            warnings.push(stragglers::warning(
                figures,
                stragglers::ratio(&courses, rank),
                resource,
            ));
        }
        warnings
    }

    fn figures(&self, visit: &RunningVisit, passed: &[Passed]) -> Ranks {
        let since_s = |at_ns: i64| (at_ns - visit.agreed_ns) as f64 * 1e-9;
        let bytes_all: u64 = visit.counted.iter().map(|counted| counted.bytes).sum();
        let ranks = self.is_first.len() as u32;
        let figures = |rank: usize| {
            let counted = &visit.counted[rank];
            let other = rank.checked_sub(1).map(|index| &self.crew.others[index]);
            let part = Part { rank: rank as u32, ranks };
            RankFigures {
                rank: rank as u32,
                processes: part.workers(&visit.work).count() as u32,
                start_offset_s: passed
                    .get(rank)
                    .and_then(|passed| passed.began_ns)
                    .map_or(0.0, |(_, last_ns)| since_s(last_ns)),
                finish_offset_s: visit
                    .ended_ns
                    .get(rank)
                    .map_or(0.0, |ended_ns| (ended_ns - visit.until_ns) as f64 * 1e-9),
                ops: counted.ops,
                bytes: counted.bytes,
                share: if bytes_all > 0 { counted.bytes as f64 / bytes_all as f64 } else { 0.0 },
                throughput_bytes_per_s: if counted.length_s > 0.0 {
                    counted.bytes as f64 / counted.length_s
                } else {
                    0.0
                },
                clock_bound_s: other.map_or(0.0, |other| other.track.bound_ns() as f64 * 1e-9),
                clock_drift_ppm: other.and_then(|other| other.track.drift_ppm()),
                waits: passed.get(rank).map(|passed| passed.waits).unwrap_or_default(),
                waits_for: None,
            }
        };
        let each: Vec<RankFigures> = (0..self.is_first.len()).map(figures).collect();
        let working = each.iter().filter(|rank| rank.processes > 0);
        let per_process =
            |rank: &RankFigures| rank.throughput_bytes_per_s / f64::from(rank.processes);
        let slowest = working.min_by(|one, other| per_process(one).total_cmp(&per_process(other)));
        let began = || passed.iter().filter_map(|passed| passed.began_ns);
        let first_began_s = began().map(|(first_ns, _)| first_ns).min().map_or(0.0, since_s);
        let last_began_s = began().map(|(_, last_ns)| last_ns).max().map_or(0.0, since_s);
        let stopped = || passed.iter().map(|passed| passed.stopped_ns);
        let first_done_s = stopped().min().map_or(0.0, since_s);
        let last_done_s = stopped().max().map_or(0.0, since_s);
        Ranks {
            start_spread_s: last_began_s - first_began_s,
            common_from_s: last_began_s.max(0.0),
            common_to_s: since_s(visit.until_ns).max(0.0),
            first_done_s: first_done_s.max(0.0),
            last_done_s: last_done_s.max(0.0),
            slowest: slowest.map_or(0, |rank| rank.rank),
            each,
        }
    }
}

impl Drop for RanksRig {
    fn drop(&mut self) {
        self.crew.leave();
    }
}
