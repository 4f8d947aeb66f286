//! Records whose truth is known in, conclusions out.

use ioscape_model::units::MIB;
use ioscape_model::{
    AdviceKind, BorderUniqueBytes, Classes, Code, Curve, End, EndReason, Figure, FoundBy, Grade,
    Header, Host, Map, Method, Origin, Point, ResponseTime, Role, SheetTimes, SuiteLines, Target,
    Warning, Workload, datasheet, seal::Chain,
};

use super::*;
use crate::visit::visit;

/// A device that takes `read_s` for a 4 KiB read and `queue` times as many of them in parallel, behind
/// a cache of 256 MiB.
fn record(read_s: f64, queue: f64) -> Record {
    let target = Target { filesystem: "ext4".into(), ..Target::default() };
    let header = Header::new(Origin::default(), Method::Blend, Host::default(), target);
    let sheet = datasheet::lines(1 << 30).into_iter().map(|line| {
        let work = &line.workload;
        let per_s = match work.access {
            Access::Buffered => 1e6,
            Access::Direct if work.depth == 32 => queue / read_s,
            Access::Direct => read_s.recip(),
        };
        let times =
            [0.9, 1.0, 3.0, 5.0].map(|factor| exact(factor * f64::from(work.depth) / per_s));
        SheetFigures {
            name: line.name,
            visits: 3,
            ops_per_s: exact(per_s),
            throughput_bytes_per_s: exact(per_s * work.size_mean as f64),
            response_time_s: SheetTimes {
                p50: times[0],
                mean: times[1],
                p99: times[2],
                p999: times[3],
            },
            workload: line.workload,
            warnings: vec![],
        }
    });
    let map = Map {
        revision: 1,
        provisional: false,
        repeatability: Some(0.03),
        elapsed_s: 600.0,
        log: vec![],
        datasheet: sheet.collect(),
    };
    let curve = [(16, 4e9), (64, 4e9), (200, 4e9), (400, 1e9), (1024, 1e8)];
    let estimates = curve.into_iter().flat_map(|(mib, rate)| {
        [1.0, 0.0].map(|read_frac| {
            let work = Workload {
                unique_bytes: mib * MIB,
                read_frac,
                seq_frac: 0.0,
                ..Workload::default()
            };
            estimate(work, if read_frac > 0.0 { rate } else { 5e8 })
        })
    });
    let canary = |_| Point { role: Role::Canary, ..visit(Workload::default(), 1e9) };
    Record {
        points: (0..9).map(canary).collect(),
        estimates: estimates.collect(),
        borders: vec![border()],
        regions: vec![],
        models: vec![],
        findings: vec![],
        warnings: vec![],
        end: Some(End::after(EndReason::Budget, &[], 600.0)),
        resumed: vec![],
        elements: vec![],
        sustained: vec![],
        suite: SuiteLines::default(),
        replays: vec![],
        revision_max: 1,
        valid_bytes: 0,
        chain: Chain::default(),
        map: Some(map),
        header,
    }
}

fn exact(value: f64) -> Figure {
    Figure { value, low: value * 0.98, high: value * 1.02 }
}

fn border() -> Border {
    border_at([250.0, 256.0, 240.0, 270.0])
}

/// Onset, capacity and its interval in MiB.
fn border_at(mib: [f64; 4]) -> Border {
    let [onset, capacity, low, high] = mib.map(|mib| mib * MIB as f64);
    Border {
        unique_bytes: BorderUniqueBytes { onset, capacity, low, high },
        curve: Curve::Read,
        found_by: FoundBy::Counters,
        step: 40.0,
        layer: Layer::Cache,
        revision: 1,
    }
}

fn estimate(workload: Workload, rate: f64) -> Estimate {
    let ops = rate / workload.size_mean as f64;
    let p99 = 3.0 / ops;
    let times = ResponseTime { mean: ops.recip(), p99, ..ResponseTime::default() };
    let point =
        Point { response_time_s: times, classes: Classes::default(), ..visit(workload, rate) };
    let pooled = crate::estimate::pool(&[point], 0).0.remove(0);
    Estimate { ops_per_s: Interval::exact(ops), response_time_s: times, ..pooled }
}

fn kinds(said: &Conclusion) -> Vec<AdviceKind> {
    said.advice.iter().map(|advice| advice.kind).collect()
}

#[test]
fn a_device_is_named_by_how_soon_it_answers() {
    for (read_s, name) in [
        (8e-6, "faster than flash"),
        (85e-6, "like flash"),
        (600e-6, "network volume"),
        (8e-3, "spinning disk"),
    ] {
        let said = conclude(&record(read_s, 8.0)).unwrap();
        assert!(said.storage.contains(name), "{read_s}: {}", said.storage);
    }
}

#[test]
fn the_answer_holds_the_figures_that_were_measured() {
    let said = conclude(&record(100e-6, 16.0)).unwrap();
    assert_eq!(
        said.storage,
        "Behaves like flash (SSD): a random 4 KiB read takes 100 µs on average."
    );
    assert_eq!(
        said.reads,
        "buffered random 16 KiB, 1 process. Data set up to 256 MiB (±5.9 %), read over and over: from memory, 4.00 GB/s, 244k IOPS, \
         p99 12.3 µs (4.10 GB/s in 4 KiB requests). Data set of 1 GiB: 100 MB/s, 6.10k IOPS, p99 492 µs"
    );
    assert!(said.writes.starts_with("no limit found: 1 GiB"), "{}", said.writes);
    assert_eq!(
        said.limit,
        "The disk: at 1 GiB of data reads are 40.0 times slower than from memory."
    );
}

#[test]
fn behind_a_network_the_memory_of_the_server_is_a_level_of_its_own() {
    let mut record = record(300e-6, 16.0);
    record.header.target.filesystem = "nfs4".into();
    record.borders.push(Border { step: 7.0, ..border_at([700.0, 700.0, 650.0, 750.0]) });
    let said = conclude(&record).unwrap();
    let files = "Files of another machine (nfs4): a random 4 KiB read takes 300 µs on average";
    assert!(said.storage.starts_with(files), "{}", said.storage);
    assert!(!kinds(&said).contains(&AdviceKind::FasterDevice));
    assert!(
        said.reads.contains(
            "). Data set up to 700 MiB (±7.1 %): the rest from the server's memory, 1.00 GB/s, 61.0k IOPS, p99 49.2 µs. \
             Data set of 1 GiB: 100 MB/s"
        ),
        "{}",
        said.reads
    );
    assert!(!said.writes.contains("server"), "{}", said.writes);
    assert!(said.limit.starts_with("The server's disk: at 1 GiB"), "{}", said.limit);
    record.borders.pop();
    assert!(conclude(&record).unwrap().limit.starts_with("The server: at 1 GiB"));
}

#[test]
fn where_all_reads_hit_memory_is_the_limit() {
    let mut record = record(100e-6, 16.0);
    record.borders.clear();
    record.estimates.iter_mut().for_each(|estimate| estimate.hit_fraction = Some(1.0));
    let said = conclude(&record).unwrap();
    assert!(
        said.limit.starts_with("None met: memory answered all reads of up to 1 GiB"),
        "{}",
        said.limit
    );
    assert!(said.reads.starts_with("no limit found: 1 GiB"), "{}", said.reads);
}

#[test]
fn advice_follows_the_figures_and_the_largest_gain_comes_first() {
    let said = conclude(&record(100e-6, 16.0)).unwrap();
    assert_eq!(
        kinds(&said),
        [
            AdviceKind::MoreMemory,
            AdviceKind::SmallerWorkingSet,
            AdviceKind::MoreInFlight,
            AdviceKind::FasterDevice
        ]
    );
    assert!((said.advice[0].figures["gain_ratio"] - 100.0).abs() < 1e-9);
    // Where 32 at once are no faster than one, they only wait.
    let disk = conclude(&record(8e-3, 1.1)).unwrap();
    assert!(kinds(&disk).contains(&AdviceKind::FewerInFlight));
    assert!(!kinds(&disk).contains(&AdviceKind::MoreInFlight));
    let text = |said: &Conclusion| {
        let found = said.advice.iter().find(|advice| advice.kind == AdviceKind::FasterDevice);
        found.unwrap().text.clone()
    };
    assert!(text(&said).contains("must beat 10.0k IOPS at depth 1"), "{}", text(&said));
    let capped = conclude(&record(600e-6, 1.8)).unwrap();
    assert!(text(&capped).contains("provisioned limit"), "{}", text(&capped));
}

#[test]
fn each_criterion_can_lower_the_grade_and_the_worst_decides() {
    type Spoil = fn(&mut Record);
    let cases: [(Spoil, Grade, &str); 10] = [
        (|_| (), Grade::A, "repeats differ by 3.0 %"),
        (|r| r.map.as_mut().unwrap().repeatability = Some(0.08), Grade::B, "differ by 8.0 %"),
        (|r| r.map.as_mut().unwrap().repeatability = Some(0.3), Grade::D, "differ by 30 %"),
        (
            |r| r.points[3].throughput_bytes_per_s.mean = 0.6e9,
            Grade::C,
            "from 60 to 100 % of its median",
        ),
        (|r| r.end.as_mut().unwrap().reason = EndReason::Interrupted, Grade::C, "interrupted"),
        (|r| r.end = None, Grade::C, "killed"),
        (
            |r| r.warnings.push(Warning::new(Code::BorderNotReached, "the map ends at 1 GiB", "")),
            Grade::C,
            "the map ends at 1 GiB",
        ),
        (
            |r| {
                let doubt = Warning::new(Code::DataMismatch, "bytes differ; more", "");
                r.warnings.push(doubt.with_severity(ioscape_model::Severity::Serious));
            },
            Grade::D,
            "data mismatch: bytes differ",
        ),
        (
            |r| {
                let limit = Warning::new(Code::Throttled, "a control group limits this device", "");
                r.warnings.push(limit.with_severity(ioscape_model::Severity::Serious));
            },
            Grade::C,
            "throttled: a control group limits this device",
        ),
        (
            |r| {
                for estimate in &mut r.estimates[..5] {
                    estimate.warnings.push(Warning::new(Code::NotSteady, "still drifting", ""));
                }
            },
            Grade::B,
            "5 of 10 measurements are unsteady",
        ),
    ];
    for (spoil, grade, reason) in cases {
        let mut record = record(100e-6, 16.0);
        spoil(&mut record);
        let said = conclude(&record).unwrap();
        assert_eq!(said.trust.grade, grade, "{:?}", said.trust);
        assert!(said.trust.reasons[0].contains(reason), "{:?}", said.trust);
        // What earns an A is not named beside what does not.
        assert_eq!(said.trust.reasons.len(), if grade == Grade::A { 2 } else { 1 });
        assert_eq!(kinds(&said).contains(&AdviceKind::MeasureAgain), grade == Grade::D);
    }
}

#[test]
fn two_reasons_are_told_the_worse_first() {
    let mut record = record(100e-6, 16.0);
    record.map.as_mut().unwrap().repeatability = Some(0.08);
    record.end.as_mut().unwrap().reason = EndReason::Interrupted;
    let said = conclude(&record).unwrap().trust;
    assert_eq!((said.grade, said.reasons.len()), (Grade::C, 2), "{said:?}");
    assert!(said.reasons[0].contains("interrupted") && said.reasons[1].contains("8.0 %"));
}

#[test]
fn reads_that_stay_as_fast_beyond_memory_are_not_called_slower() {
    let mut record = record(100e-6, 16.0);
    let rates: Vec<f64> = record.estimates.iter().map(|e| e.throughput_bytes_per_s.mean).collect();
    let most = rates.into_iter().fold(0.0, f64::max);
    for estimate in &mut record.estimates {
        estimate.throughput_bytes_per_s =
            ioscape_model::Interval { mean: most, low: most, high: most };
    }
    let limit = conclude(&record).unwrap().limit;
    let said = "Reads keep their speed beyond 256 MiB of data, measured up to 1 GiB";
    assert!(limit.contains(said), "{limit}");
}

#[test]
fn a_record_without_a_map_concludes_nothing() {
    let mut record = record(100e-6, 16.0);
    record.map = None;
    assert_eq!(conclude(&record), None);
}
