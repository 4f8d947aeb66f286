//! What refinement, `--precision`, `--max-written` and the budget do to a run, on simulated devices
//! whose law is known.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use ioscape_analysis::model::Training;
use ioscape_analysis::predict::Predictor;
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_engine::{Error, Finished, Prepared, Rig, Window};
use ioscape_experiment::explore::{Earlier, Event, MeasureVector, Run, explore};
use ioscape_experiment::plan::extent;
use ioscape_experiment::plan::{BlendPlan, BlendSettings, Plan, Seen};
use ioscape_experiment::vector::SystemVector;
use ioscape_model::{
    Access, Code, EndReason, Header, Hints, Limits, ModelName, Point, Record, Role, Workload,
};
use ioscape_test_support::recorded;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A run that was asked for.
#[derive(Clone, Copy)]
struct Asked {
    device: &'static str,
    seed: u64,
    budget_s: f64,
    precision: Option<f64>,
    written_max_bytes: Option<u64>,
    /// `None`: as many refinement points as usual.
    refinement_per_round: Option<usize>,
    /// Bytes that measuring the system vector writes; `None` measures none.
    vector_bytes: Option<u64>,
    /// How long fitting the models of a map takes, on the clock of the run.
    map_s: f64,
}

const USUAL: Asked = Asked {
    device: "hdd",
    seed: 1,
    budget_s: 600.0,
    precision: None,
    written_max_bytes: None,
    refinement_per_round: None,
    vector_bytes: None,
    map_s: 0.0,
};

/// A simulated device on whose clock other things take their time, too.
struct Delayed<'a> {
    sim: SimRig,
    by_s: &'a Cell<f64>,
}

impl Rig for Delayed<'_> {
    fn engine(&self) -> &'static str {
        self.sim.engine()
    }
    fn hints(&self) -> Hints {
        self.sim.hints()
    }
    fn now_s(&self) -> f64 {
        self.sim.now_s() + self.by_s.get()
    }
    fn prepare(&mut self, work: &Workload) -> Result<Prepared, Error> {
        self.sim.prepare(work)
    }
    fn start(&mut self, work: &Workload, seed: u64) -> Result<(), Error> {
        self.sim.start(work, seed)
    }
    fn window(&mut self, length_s: f64) -> Result<Window, Error> {
        self.sim.window(length_s)
    }
    fn mark(&mut self) {
        self.sim.mark();
    }
    fn finish(&mut self, sync: bool) -> Result<Finished, Error> {
        self.sim.finish(sync)
    }
    fn written_bytes(&self) -> u64 {
        self.sim.written_bytes()
    }
    fn limit_written(&mut self, most_bytes: u64) {
        self.sim.limit_written(most_bytes);
    }
    fn may_write_bytes(&self) -> u64 {
        self.sim.may_write_bytes()
    }
}

fn header(asked: Asked, rig: &SimRig) -> Header {
    let Asked { precision, written_max_bytes, .. } = asked;
    let mut hints = rig.hints();
    hints.room_bytes = extent::room_bytes(hints.room_bytes, written_max_bytes);
    Header {
        budget_s: asked.budget_s,
        limits: Limits { precision, written_max_bytes, ..Limits::default() },
        hints,
        ..ioscape_test_support::header(asked.seed, rig.spec().ranges())
    }
}

/// The plan of a run.
fn plan(asked: Asked, header: &Header) -> BlendPlan {
    let usual = BlendPlan::new(BlendSettings::from_header(header));
    match asked.refinement_per_round {
        Some(points) => usual.refining(points),
        None => usual,
    }
}

fn explored(asked: Asked) -> Record {
    explored_with_vector(asked).0
}

/// And how long the system vector might take, seconds.
fn explored_with_vector(asked: Asked) -> (Record, Option<f64>) {
    let given_s = Rc::new(Cell::new(None));
    let by_s = Cell::new(0.0);
    let sim = SimRig::new(SimSpec::preset(asked.device).unwrap(), asked.seed);
    let header = header(asked, &sim);
    let mut rig = Delayed { sim, by_s: &by_s };
    let record = recorded(&header, |journal| {
        let run = Run {
            rig: &mut rig,
            plan: &mut plan(asked, &header),
            header: &header,
            budget_s: asked.budget_s,
            interrupt: &AtomicBool::new(false),
            vector: asked.vector_bytes.map(|written_bytes| {
                let vector = SystemVector { written_bytes, ..SystemVector::default() };
                let given_s = Rc::clone(&given_s);
                let measure: Box<MeasureVector> = Box::new(move |(budget_s, _), _| {
                    given_s.set(Some(budget_s));
                    Ok(vector.clone())
                });
                measure
            }),
            journal,
            on_event: &mut |event| {
                if let Event::Map { .. } = event {
                    by_s.set(by_s.get() + asked.map_s);
                }
            },
        };
        explore(run, Earlier::default()).unwrap();
    });
    (record, given_s.get())
}

/// Relative errors of the throughput of 300 random workloads against the law.
fn errors(asked: Asked) -> Vec<f64> {
    let record = explored(asked);
    let predictor = Predictor::fit(Training::from_record(&record)).unwrap();
    let spec = SimSpec::preset(asked.device).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1994);
    let to = record.regions.last().unwrap().unique_bytes.to;
    (0..300)
        .map(|_| {
            let work = random(&mut rng, &record.header, to);
            let predicted = predictor.predict("", &work).throughput_bytes_per_s.value;
            (predicted / spec.expected_throughput(&work) - 1.0).abs()
        })
        .collect()
}

fn random(rng: &mut Xoshiro256PlusPlus, header: &Header, unique_max: f64) -> Workload {
    let ranges = &header.ranges;
    let pages =
        |from: f64, to: f64, share: f64| (from * (to / from).powf(share)) as u64 / 4096 * 4096;
    loop {
        let mut share = || rng.random::<f64>();
        let work = Workload {
            unique_bytes: pages(ranges.unique_bytes.min as f64, unique_max, share()),
            size_mean: pages(ranges.size_mean.min as f64, ranges.size_mean.max as f64, share()),
            read_frac: share(),
            seq_frac: share(),
            process_num: 1 + (share() * ranges.process_num.max as f64) as u32,
            ..Workload::default()
        };
        if work.check().is_ok() {
            return work;
        }
    }
}

#[test]
fn refinement_hurts_neither_the_typical_prediction_nor_the_worst_ones() {
    let pooled = |refinement: usize| {
        let mut all: Vec<f64> = Vec::new();
        for (device, seed) in [("hdd", 1), ("cloud-volume", 2)] {
            let refinement_per_round = Some(refinement);
            all.extend(errors(Asked { device, seed, refinement_per_round, ..USUAL }));
        }
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all[(all.len() as f64 * share) as usize];
        println!(
            "{refinement:>2} refinements a round: median {:.1} %, p90 {:.1} %",
            100.0 * at(0.5),
            100.0 * at(0.9)
        );
        (at(0.5), at(0.9))
    };
    // Two runs with other points differ by about a tenth in the median, more in the tail.
    let (without, with) = (pooled(0), pooled(12));
    assert!(with.0 < 1.2 * without.0, "{with:?} {without:?}");
    assert!(with.1 < 1.3 * without.1, "{with:?} {without:?}");
}

/// A plan that is shown a run's points again, one by one, asks for the same visits: however the
/// clock placed the canaries between them.
#[test]
fn a_plan_that_is_shown_the_points_again_decides_the_same() {
    let asked = Asked { budget_s: 900.0, ..USUAL };
    let record = explored(asked);
    let refined = record.points.iter().filter(|p| p.role == Role::Refinement).count();
    assert!(refined >= 5, "{refined}");
    let mut fresh = plan(asked, &record.header);
    for known in 0..record.points.len() {
        let seen = &record.points[..known];
        let elapsed_s = seen.last().map_or(0.0, |p: &Point| p.started_s + p.elapsed_s);
        let visit = fresh.next(&Seen::writing_freely(seen, elapsed_s, asked.budget_s)).unwrap();
        let made = &record.points[known];
        if made.role != Role::Canary {
            assert_eq!((&visit.workload, visit.role), (&made.workload, made.role), "{known}");
        }
    }
}

#[test]
fn a_run_ends_when_its_predictions_are_as_precise_as_asked() {
    let ended = |precision| explored(Asked { precision: Some(precision), ..USUAL }).end.unwrap();
    let (coarse, fine) = (ended(0.9), ended(0.001));
    assert_eq!(coarse.reason, EndReason::Precision);
    assert_eq!(fine.reason, EndReason::Budget);
    assert!(coarse.elapsed_s < 0.8 * fine.elapsed_s, "{} {}", coarse.elapsed_s, fine.elapsed_s);
}

#[test]
fn no_visit_begins_after_fitting_has_used_up_the_budget() {
    let record = explored(Asked { map_s: USUAL.budget_s, ..USUAL });
    assert_eq!(record.end.unwrap().reason, EndReason::Budget);
    // One map on the way, and the last one.
    assert_eq!(record.map.unwrap().revision, 2);
    assert!(record.points.iter().all(|point| point.started_s < USUAL.budget_s));
}

#[test]
fn no_more_is_written_than_was_allowed_within_a_visit_either() {
    const MIB: u64 = 1 << 20;
    // Long enough for each to write that much; what is fitted afterwards is no matter here.
    const BUDGET_S: f64 = 150.0;
    let mut ended = 0;
    for device in ["nvme", "hdd", "cloud-volume"] {
        for seed in 0..4 {
            // Some of these are less than one visit would write.
            let most_bytes = (100 + 746 * seed) * MIB;
            let written_max_bytes = Some(most_bytes);
            let asked = Asked { device, seed, budget_s: BUDGET_S, written_max_bytes, ..USUAL };
            let record = explored(asked);
            let end = record.end.unwrap();
            let shown = format!("{device}, seed {seed}: {} of {most_bytes}", end.written_bytes);
            assert!(end.written_bytes <= most_bytes, "{shown}");
            let said = record.warnings.iter().any(|warning| warning.code == Code::MaxWritten);
            // Reading may go on until the budget ends.
            assert!(said || end.reason != EndReason::Written, "{shown}");
            if said {
                ended += 1;
                assert!(end.written_bytes > most_bytes / 4, "{shown}");
            }
        }
    }
    assert!(ended > 4, "{ended}");
}

#[test]
fn small_writes_go_on_when_no_more_may_get_to_storage() {
    const MIB: u64 = 1 << 20;
    let most_bytes = 2048 * MIB;
    let written_max_bytes = Some(most_bytes);
    for seed in 0..2 {
        let asked = Asked { device: "nvme", seed, budget_s: 300.0, written_max_bytes, ..USUAL };
        let record = explored(asked);
        assert!(record.end.unwrap().written_bytes <= most_bytes);
        // An eighth of a sixteenth of what may be written.
        let is_small = |work: &Workload| {
            let Workload { access, fsync_every, unique_bytes, .. } = *work;
            access == Access::Buffered && fsync_every == 0 && unique_bytes <= 16 * MIB
        };
        let writers = record.points.iter().map(|point| &point.workload);
        let writers: Vec<&Workload> = writers.filter(|work| work.read_frac < 1.0).collect();
        let last_large = writers.iter().rposition(|work| !is_small(work)).unwrap();
        assert!(writers.len() > last_large + 4, "seed {seed}: {last_large} of {}", writers.len());
    }
}

/// From 8 GiB on, 2 GiB of what may be written are kept for the vector.
#[test]
fn what_the_vector_leaves_of_its_bytes_is_for_the_visits() {
    const GIB: u64 = 1 << 30;
    let vector_bytes = Some(GIB / 5);
    let written_max_bytes = Some(10 * GIB);
    let asked = Asked { device: "nvme", budget_s: 150.0, written_max_bytes, vector_bytes, ..USUAL };
    let end = explored(asked).end.unwrap();
    let by_visits = end.written_bytes - GIB / 5;
    assert!((8 * GIB + GIB / 4..=10 * GIB).contains(&by_visits), "{by_visits}");
}

#[test]
fn graphs_that_are_missing_have_half_of_the_vectors_time() {
    let given_s = |device, budget_s| {
        let asked = Asked { device, budget_s, vector_bytes: Some(0), ..USUAL };
        explored_with_vector(asked).1.expect("there is time for a part of it")
    };
    assert!((given_s("nvme", 300.0) - 300.0 / 9.0).abs() < 1e-9);
    let hurried_s = given_s("hdd", 150.0);
    assert!((10.0..20.0).contains(&hurried_s), "{hurried_s}");
}

#[test]
fn a_map_holds_the_models_and_says_what_they_found() {
    let record = explored(USUAL);
    let revision = record.map.unwrap().revision;
    let blend = record.models.iter().find(|model| model.name == ModelName::Blend).unwrap();
    assert_eq!(blend.revision, revision);
    assert!(blend.parameters.values().all(|p| p.value.is_finite()), "{blend:?}");
    let finding = record
        .findings
        .iter()
        .find(|finding| finding.code == ioscape_model::FindingCode::Model)
        .unwrap();
    assert!(finding.text.len() > 20, "{}", finding.text);
}
