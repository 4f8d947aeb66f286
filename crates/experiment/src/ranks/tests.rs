//! Ranks in threads of one process, with clocks that run apart and rigs whose rates are known.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hdrhistogram::Histogram;
use ioscape_cluster::{Clock, Group, Local, Monotonic, Skewed, local};
use ioscape_engine::error::Result;
use ioscape_engine::{ClassCount, Error, Finished, Prepared, Rig, Window};
use ioscape_model::{Hints, Hosts, RankPlace, Resource, Role, Rules, Workload};

use super::crew::Other;
use super::rig::RanksRig;
use super::serve::{Left, serve};
use crate::measure::{Subject, measure};

const HOUR_NS: i64 = 3_600_000_000_000;
const RATE: f64 = 200e6;

/// Moves bytes at one rate by true time, and looks at a clock of its own.
struct Steady {
    clock: Skewed,
    bytes_per_s: f64,
    began_ns: i64,
    last_ns: i64,
    last_true_ns: i64,
    /// After so many windows it is gone: it panics.
    windows_left: u32,
}

impl Steady {
    fn new(clock: Skewed, bytes_per_s: f64) -> Self {
        let (began_ns, last_ns, last_true_ns) = (0, 0, 0);
        Self { clock, bytes_per_s, began_ns, last_ns, last_true_ns, windows_left: u32::MAX }
    }
}

impl Rig for Steady {
    fn engine(&self) -> &'static str {
        "steady"
    }

    fn hints(&self) -> Hints {
        Hints::default()
    }

    fn now_s(&self) -> f64 {
        self.clock.now_ns() as f64 * 1e-9
    }

    fn prepare(&mut self, _: &Workload) -> Result<Prepared> {
        Ok(Prepared::default())
    }

    fn start(&mut self, _: &Workload, _: u64) -> Result<()> {
        self.began_ns = self.clock.now_ns();
        self.last_ns = self.began_ns;
        self.last_true_ns = Monotonic.now_ns();
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        self.windows_left -= 1;
        assert!(self.windows_left > 0, "this rank dies");
        self.clock.sleep_until_ns(self.last_ns + (length_s * 1e9) as i64);
        let (now_ns, true_ns) = (self.clock.now_ns(), Monotonic.now_ns());
        let bytes = self.bytes_per_s * (true_ns - self.last_true_ns) as f64 * 1e-9;
        let mut window =
            Window { length_s: (now_ns - self.last_ns) as f64 * 1e-9, ..Window::default() };
        let ops = (bytes / 4096.0) as u64;
        window.classes[1] = ClassCount { ops, bytes: bytes as u64, time_s: window.length_s };
        (self.last_ns, self.last_true_ns) = (now_ns, true_ns);
        Ok(window)
    }

    fn mark(&mut self) {}

    fn finish(&mut self, _: bool) -> Result<Finished> {
        let mut response_ns: [Histogram<u64>; 4] =
            std::array::from_fn(|_| Histogram::new_with_bounds(1, 1 << 42, 2).unwrap());
        response_ns[1].record_n(4_096_000_000_000 / self.bytes_per_s as u64, 1000).unwrap();
        Ok(Finished {
            response_ns,
            latency_ns: None,
            warnings: vec![],
            sync_s: None,
            failed: vec![],
            verified_bytes: None,
            began_ns: Some((self.began_ns, self.began_ns)),
            ranks: None,
        })
    }

    fn written_bytes(&self) -> u64 {
        0
    }
}

/// Lets rank 0 work with ranks of these clocks and rigs; also says how the others left.
fn on_ranks<T>(
    rigs: Vec<Steady>,
    work: impl FnOnce(&mut RanksRig) -> T,
) -> (T, Vec<std::thread::Result<Left>>) {
    let clocks = rigs.iter().map(|rig| Box::new(rig.clock) as Box<dyn Clock + Send>).collect();
    let mut members: Vec<(Local, Steady)> = local(clocks).into_iter().zip(rigs).collect();
    let ranks = members.len() as u32;
    let (group, rig) = members.remove(0);
    let threads: Vec<_> = members
        .into_iter()
        .map(|(group, mut rig)| {
            std::thread::spawn(move || {
                let left = serve(&group, &mut rig, &AtomicBool::new(false));
                if left == Left::InOrder {
                    group.barrier().unwrap();
                }
                left
            })
        })
        .collect();
    let others = (1..ranks).map(|rank| Other { rank, ..Other::default() }).collect();
    let place = |rank| RankPlace {
        rank,
        host: rank,
        filesystem: "ext4".to_owned(),
        ..RankPlace::default()
    };
    let hosts = Hosts {
        hosts: ranks,
        is_one_directory: true,
        ranks: (0..ranks).map(place).collect(),
        ..Hosts::default()
    };
    let both: (Box<dyn Group>, Box<dyn Rig>) = (Box::new(group), Box::new(rig));
    let mut all = RanksRig::new(both, others, (hosts, Hints::default()), Arc::default());
    let outcome = work(&mut all);
    drop(all);
    (outcome, threads.into_iter().map(std::thread::JoinHandle::join).collect())
}

fn visit(rig: &mut RanksRig, process_num: u32) -> Result<ioscape_model::Point> {
    let work = Workload { process_num, ..Workload::default() };
    let rules = Rules { ramp_s: 0.1, ramp_max_s: 0.2, measure_max_s: 1.5, ..Rules::brief() };
    let subject = Subject { work: &work, role: Role::Measure, round: 0, seed: 1 };
    measure(&subject, &rules, rig, &mut |_| {})
}

fn steady(offset_ns: i64, parts_per_million: f64) -> Steady {
    Steady::new(Skewed::new(offset_ns, parts_per_million), RATE)
}

#[test]
fn clocks_that_are_hours_apart_and_drift_leave_the_sum_of_the_rates() {
    let rigs = vec![steady(0, 0.0), steady(HOUR_NS, 500.0), steady(-HOUR_NS, -500.0)];
    let (point, left) = on_ranks(rigs, |rig| visit(rig, 3));
    let point = point.unwrap();
    assert!((point.throughput() / (3.0 * RATE) - 1.0).abs() < 0.01, "{}", point.throughput());
    let ranks = point.ranks.unwrap();
    assert_eq!(ranks.each.len(), 3);
    for rank in &ranks.each {
        assert!((rank.share - 1.0 / 3.0).abs() < 0.01, "{rank:?}");
        // An hour would be seen; a busy machine may put a start off by much less.
        assert!(rank.start_offset_s.abs() < 1.0 && rank.finish_offset_s.abs() < 1.0, "{rank:?}");
    }
    assert!(left.into_iter().all(|left| left.unwrap() == Left::InOrder));
}

#[test]
fn a_rank_that_gets_less_is_named_and_times_of_all_are_merged() {
    let mut rigs = vec![steady(0, 0.0), steady(5, 0.0), steady(7, 0.0)];
    rigs[1].bytes_per_s *= 0.7;
    let (point, _) = on_ranks(rigs, |rig| visit(rig, 3));
    let point = point.unwrap();
    let ranks = point.ranks.unwrap();
    assert_eq!(ranks.slowest, 1);
    // On a busy machine it may be a processor that it waits for.
    let scarce = ranks.each[1].waits_for.unwrap();
    assert!(matches!(scarce, Resource::Device | Resource::Processor), "{scarce:?}");
    assert_eq!(ranks.each[0].waits_for.or(ranks.each[2].waits_for), None);
    let named = point.warnings.iter().find(|warning| warning.text.starts_with("rank 1 gets 70"));
    let figures = &named.unwrap().figures;
    assert!((figures["of_typical_share"] - 0.7).abs() < 0.01, "{figures:?}");
    assert!((figures["rank"] - 1.0).abs() < 1e-12, "{figures:?}");
    // Of 3000 requests a third took longer: the median is of the quick ones, the 99th of the slow.
    let (quick_s, slow_s) = (4096.0 / RATE, 4096.0 / RATE / 0.7);
    assert!((point.response_time_s.p50 / quick_s - 1.0).abs() < 0.02);
    assert!((point.response_time_s.p99 / slow_s - 1.0).abs() < 0.02);
}

#[test]
fn a_rank_that_dies_ends_the_visit_and_is_named() {
    let mut rigs = vec![steady(0, 0.0), steady(HOUR_NS, 0.0), steady(0, 10.0)];
    rigs[2].windows_left = 5;
    let (point, left) = on_ranks(rigs, |rig| visit(rig, 3));
    assert!(matches!(point, Err(Error::Rank { rank: 2, .. })), "{point:?}");
    assert!(matches!(left[0], Ok(Left::Abandoned)));
    assert!(left[1].is_err());
}

#[test]
fn ranks_that_nothing_limits_may_write_before_they_have_said_anything() {
    let rigs = (0..3).map(|_| steady(0, 0.0)).collect();
    let (may_write_bytes, _) = on_ranks(rigs, |rig| rig.may_write_bytes());
    assert_eq!(may_write_bytes, u64::MAX);
}

#[test]
fn ranks_without_a_process_do_not_count() {
    let rigs = (0..3).map(|_| steady(0, 0.0)).collect();
    let (point, _) = on_ranks(rigs, |rig| visit(rig, 2));
    let ranks = point.unwrap().ranks.unwrap();
    assert_eq!(ranks.each.iter().map(|rank| rank.processes).collect::<Vec<_>>(), [1, 1, 0]);
}
