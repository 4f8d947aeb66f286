use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_model::ElementName;

use super::{Elements, Limits, Pace, probes};
use crate::error::Error;
use crate::run_id::RunId;
use crate::target::open_directory;

const PACE: Pace = Pace { cheap_s: 0.001, costly_s: 0.01, ramp_s: 0.0, prepare_s: 60.0 };
const LIMITS: Limits = Limits { pace: PACE, written_max_bytes: u64::MAX, seed: 7 };

fn open(path: &std::path::Path, limits: Limits, stop: bool) -> Elements {
    let directory = Arc::new(open_directory(path).unwrap());
    let interrupt = Arc::new(AtomicBool::new(stop));
    let run = RunId::random().unwrap();
    Elements::open(directory, &run, limits, interrupt).unwrap()
}

#[test]
fn every_element_belongs_to_one_part() {
    let probes = probes(&RunId::random().unwrap());
    let all: Vec<ElementName> = probes.iter().flat_map(|probe| probe.names()).copied().collect();
    let distinct: BTreeSet<ElementName> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "none twice");
    let missing: Vec<_> = ElementName::ALL.iter().filter(|name| !distinct.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Each element is measured or refused, and nothing is left.
fn check_all_parts(limits: Limits) {
    let place = tempfile::tempdir().unwrap();
    let mut elements = open(place.path(), limits, false);
    for part in 0..elements.parts() {
        let samples = elements.visit(part).unwrap();
        for name in elements.names(part) {
            let of_it = samples.iter().filter(|sample| sample.name == *name);
            let refused = elements.refusals().iter().any(|refusal| refusal.name == *name);
            assert!(refused != (of_it.clone().count() > 0), "{name}");
            assert!(of_it.clone().all(|sample| sample.calls > 0 && sample.time_s > 0.0));
        }
        assert!(samples.iter().all(|sample| elements.names(part).contains(&sample.name)));
    }
    assert!(elements.written_bytes() > 0);
    drop(elements);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

/// One after the other: what is forgotten is forgotten by the whole process.
#[test]
fn each_element_is_measured_or_refused_whether_or_not_there_was_time_to_fill_its_files() {
    check_all_parts(LIMITS);
    let pace = Pace { prepare_s: 0.0, ramp_s: 0.01, ..PACE };
    check_all_parts(Limits { pace, ..LIMITS });
}

#[test]
fn no_more_is_written_than_may_be() {
    let place = tempfile::tempdir().unwrap();
    let mut elements = open(place.path(), Limits { written_max_bytes: 1 << 20, ..LIMITS }, false);
    assert!(matches!(elements.visit(0), Err(Error::MaxWritten)));
    drop(elements);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn an_interruption_ends_it_at_once_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut elements = open(place.path(), LIMITS, true);
    for part in 0..elements.parts() {
        assert!(matches!(elements.visit(part), Err(Error::Interrupted)), "part {part}");
    }
    drop(elements);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
