//! What fitting a record and predicting from it take: under two seconds, and under one for a
//! thousand workloads, is what an interactive answer needs. `cargo bench -p ioscape-experiment`.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::sync::atomic::AtomicBool;

use divan::Bencher;
use ioscape_analysis::model::Training;
use ioscape_analysis::predict::Predictor;
use ioscape_engine::Rig;
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_experiment::explore::{Earlier, Run, explore};
use ioscape_experiment::plan::{BlendPlan, BlendSettings};
use ioscape_model::{Header, Record, Workload, named};
use ioscape_test_support::{header, recorded};

fn main() {
    divan::main();
}

/// The record of a ten-minute run on a simulated device.
fn record() -> Record {
    let seed = 1994;
    let mut rig = SimRig::new(SimSpec::preset("nvme").unwrap(), seed);
    let ranges = rig.spec().ranges();
    let header = Header { hints: rig.hints(), ..header(seed, ranges) };
    recorded(&header, |journal| {
        let run = Run {
            rig: &mut rig,
            plan: &mut BlendPlan::new(BlendSettings::from_header(&header)),
            header: &header,
            budget_s: header.budget_s,
            interrupt: &AtomicBool::new(false),
            journal,
            on_event: &mut |_| {},
            vector: None,
        };
        explore(run, Earlier::default()).unwrap();
    })
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn fit(bencher: Bencher) {
    let training = Training::from_record(&record());
    bencher.bench_local(|| Predictor::fit(training.clone()).unwrap());
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn predict_a_thousand(bencher: Bencher) {
    let predictor = Predictor::fit(Training::from_record(&record())).unwrap();
    let named: Vec<Workload> = named::names().filter_map(named::named).collect();
    let works: Vec<Workload> = named.iter().cycle().take(1000).cloned().collect();
    bencher
        .bench_local(|| works.iter().map(|work| predictor.predict("", work)).collect::<Vec<_>>());
}
