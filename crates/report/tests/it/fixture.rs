//! A record as a run of a quarter of an hour under a memory limit of 256 MiB could have left it: three
//! regions, curves, families, space-filling points, canaries, findings, doubts. The figures come
//! from a law of time per request with two caches, so that they hang together.

use std::collections::BTreeMap;

use ioscape_model::Forecast;
use ioscape_model::units::{GIB, KIB, MIB};
use ioscape_model::{Advice, AdviceKind, Conclusion, Grade, Trust};
use ioscape_model::{
    Border, BorderUniqueBytes, Code, Curve, End, EndReason, Estimate, Finding, FindingCode,
    FoundBy, Header, Host, Interval, Map, Method, Point, Ranges, Record, Region, RegionKind,
    RegionUniqueBytes, ResponseTime, Role, Rules, Severity, Spent, Target, TargetKind, Tool,
    Warning, Words, Workload,
};

const WRITE_CACHE: f64 = 61.0 * MIB as f64;
const READ_CACHE: f64 = 244.0 * MIB as f64;

/// A header and nothing else.
pub(crate) fn empty() -> Record {
    Record {
        header: header(),
        points: vec![],
        estimates: vec![],
        borders: vec![],
        regions: vec![],
        models: vec![],
        findings: vec![],
        warnings: vec![],
        resumed: vec![],
        elements: vec![],
        sustained: vec![],
        suite: ioscape_model::SuiteLines::default(),
        replays: vec![],
        revision_max: 0,
        map: None,
        end: None,
        valid_bytes: 0,
        chain: ioscape_model::seal::Chain::default(),
    }
}

/// A whole run.
pub(crate) fn full() -> Record {
    let mut record = empty();
    record.regions = regions();
    record.borders = borders();
    let mut plan = sweep();
    for region in &record.regions {
        plan.extend(family(&region.focal).into_iter().map(|work| (work, Role::Family)));
    }
    plan.extend(calibration().into_iter().map(|work| (work, Role::Calibration)));
    let mut noise = Noise(7);
    // Three rounds, each in an order of its own, with a canary after every ninth visit.
    for round in 0..3 {
        for i in 0..plan.len() {
            let (work, role) = &plan[(i * 37 + round as usize * 11) % plan.len()];
            visit(&mut record, work.clone(), *role, round, &mut noise);
            if i % 9 == 8 {
                visit(&mut record, canary(), Role::Canary, round, &mut noise);
            }
        }
    }
    record.estimates = plan.iter().map(|(work, _)| estimate(work, &record.points)).collect();
    record.findings = findings();
    record.warnings = warnings();
    record.map = Some(Map {
        datasheet: vec![],
        revision: 4,
        provisional: false,
        repeatability: Some(0.031),
        elapsed_s: 891.0,
        log: vec!["border at 1.2 GiB dropped: step 1.2 is below 1.5".into()],
    });
    let spent_s = record.points.iter().fold(Spent::default(), |sum, p| sum.plus(&p.spent_s));
    record.end = Some(End {
        left_out: vec![],
        reason: EndReason::Budget,
        points: record.points.len() as u64,
        elapsed_s: record.points.last().unwrap().started_s + 4.0,
        spent_s,
        read_bytes: 412 * GIB,
        written_bytes: 158 * GIB,
        device_written_bytes: Some(163 * GIB),
        forecast: None,
        dropped: vec![],
    });
    record
}

/// What `analysis` could conclude from the whole run.
pub(crate) fn conclusion() -> Conclusion {
    let advice = |kind, text: &str| Advice { kind, text: text.into(), figures: BTreeMap::new() };
    Conclusion {
        storage: "Behaves like flash (SSD): a random 4 KiB read takes 85.8 µs (11.7k IOPS).".into(),
        reads: "up to 244 MiB (±2.7 %)".into(),
        writes: "up to 61 MiB (±2.7 %)".into(),
        limit: "Memory up to 244 MiB, the disk beyond.".into(),
        trust: Trust {
            grade: Grade::C,
            meaning: "only differences of a factor of two are real".into(),
            reasons: vec![
                "drift: something changed".into(),
                "repeated measurements differ by 3.1 %".into(),
            ],
        },
        advice: vec![
            advice(AdviceKind::MoreMemory, "a 4 KiB read takes 1.39 µs from memory"),
            advice(AdviceKind::LargerRequests, "256 KiB in place of 4 KiB"),
        ],
    }
}

/// The first workload of a record that `measure` would leave, before any map.
pub(crate) fn measured() -> Record {
    let mut record = empty();
    record.header.method = Method::Measure;
    let mut noise = Noise(3);
    for round in 0..3 {
        visit(&mut record, Workload::default(), Role::Measure, round, &mut noise);
    }
    record
}

fn header() -> Header {
    Header {
        datasheet: vec![],
        device: None,
        is_quick: false,
        is_read_only: false,
        format_version: 1,
        tool: Tool { name: "ioscape".into(), version: "0.1.0".into(), build: "release".into() },
        run_id: "20261120-101500".into(),
        command_line: ["ioscape", "run", "/mnt/data", "--memory-limit", "256MiB"]
            .map(str::to_owned)
            .to_vec(),
        seed: 42,
        start_time: "2026-11-20T10:15:00Z".into(),
        hosts: None,
        host: Host {
            cpu_model: "AMD EPYC 7B13".into(),
            cpus: 8,
            llc_bytes: Some(32 * MIB),
            memory_bytes: 16 * GIB,
            memory_available_bytes: 13 * GIB,
            kernel: "6.12.9".into(),
            os: "Debian GNU/Linux 13".into(),
            virtualisation: Some("kvm".into()),
            clock_source: "tsc".into(),
            clock_read_s: 23e-9,
            cgroup_version: Some(2),
            memory_limit_set_bytes: Some(256 * MIB),
            dirty_limit_bytes: 64 * MIB,
            dirty_background_bytes: 32 * MIB,
            dirty_expire_s: 30.0,
            dirty_writeback_s: 5.0,
            load_average: 0.21,
            memory_copy_bytes_per_s: Some(9.8e9),
            ..Host::default()
        },
        target: Target {
            path: "/mnt/data".into(),
            kind: TargetKind::Directory,
            filesystem: "ext4".into(),
            mount_options: "rw,relatime".into(),
            source: "/dev/nvme0n1p2".into(),
            size_bytes: 1800 * GIB,
            free_bytes: 911 * GIB,
            device: Some("nvme0n1".into()),
            device_model: Some("Samsung SSD 990 PRO 2TB".into()),
            rotational: Some(false),
            scheduler: Some("none".into()),
            queue_depth: Some(1023),
            read_ahead_bytes: Some(128 * KIB),
            write_cache: Some("write back".into()),
            ..Target::default()
        },
        method: Method::Blend,
        rules: Rules::brief(),
        ranges: Ranges::usual(8),
        limits: ioscape_model::Limits::default(),
        hints: ioscape_model::Hints::default(),
        budget_s: 900.0,
        asked: vec![],
        forecast: Some(Forecast { points: 370, elapsed_s: 890.0, written_bytes: 140 * GIB }),
    }
}

fn regions() -> Vec<Region> {
    let region = |kind: RegionKind, from: f64, to: f64, focal_mib: u64| Region {
        name: kind.into(),
        unique_bytes: RegionUniqueBytes { from, to, focal: (focal_mib * MIB) as f64 },
        focal: Workload { unique_bytes: focal_mib * MIB, size_mean: 32 * KIB, ..work() },
        layer: ioscape_model::Layer::default(),
        revision: 4,
    };
    vec![
        region(RegionKind::Cache, 8.0 * MIB as f64, WRITE_CACHE, 22),
        region(RegionKind::WriteBack, WRITE_CACHE, READ_CACHE, 122),
        region(RegionKind::Storage, READ_CACHE, GIB as f64, 500),
    ]
}

fn borders() -> Vec<Border> {
    let border = |capacity: f64, curve, found_by, step| Border {
        unique_bytes: BorderUniqueBytes {
            onset: capacity * 0.93,
            capacity,
            low: capacity * 0.975,
            high: capacity * 1.03,
        },
        curve,
        found_by,
        step,
        layer: ioscape_model::Layer::default(),
        revision: 4,
    };
    vec![
        border(WRITE_CACHE, Curve::Write, FoundBy::Timing, 3.4),
        border(READ_CACHE, Curve::Read, FoundBy::Counters, 21.0),
    ]
}

fn work() -> Workload {
    Workload::default()
}

fn canary() -> Workload {
    Workload { unique_bytes: 8 * MIB, read_frac: 1.0, seq_frac: 0.0, ..work() }
}

fn sweep() -> Vec<(Workload, Role)> {
    let sizes_mib = [8, 16, 32, 48, 56, 64, 80, 112, 160, 208, 232, 248, 280, 352, 512, 724, 1024];
    let mut plan = Vec::new();
    for (i, mib) in sizes_mib.into_iter().enumerate() {
        let at = |read_frac| Workload {
            unique_bytes: mib * MIB,
            size_mean: 16 * KIB,
            read_frac,
            seq_frac: 0.0,
            ..work()
        };
        plan.push((at(1.0), Role::ReadBorder));
        plan.push((at(0.0), Role::WriteBorder));
        if i % 2 == 0 {
            plan.push((at(0.5), Role::Sweep));
        }
    }
    plan
}

fn family(focal: &Workload) -> Vec<Workload> {
    let mut all = vec![focal.clone()];
    let largest = (focal.unique_bytes / 8).min(MIB);
    let sizes = [4, 8, 16, 64, 128, 256, 512, 1024].map(|kib| kib * KIB);
    all.extend(
        sizes
            .into_iter()
            .filter(|size| *size <= largest)
            .map(|size_mean| Workload { size_mean, ..focal.clone() }),
    );
    for fraction in [0.0, 0.25, 0.75, 1.0] {
        all.push(Workload { read_frac: fraction, ..focal.clone() });
        all.push(Workload { seq_frac: fraction, ..focal.clone() });
    }
    all.extend([2, 4, 8].map(|process_num| Workload { process_num, ..focal.clone() }));
    all
}

fn calibration() -> Vec<Workload> {
    (1..=12u64)
        .map(|i| Workload {
            unique_bytes: (8 + i * i * 6) * MIB,
            size_mean: (4 << (i % 5)) * KIB,
            read_frac: [0.0, 1.0, 0.62, 0.17][i as usize % 4],
            seq_frac: [1.0, 0.0, 0.33, 0.81][i as usize / 3 % 4],
            process_num: 1 + (i % 4) as u32,
            ..work()
        })
        .collect()
}

/// Seconds per request: a hit copies, a miss waits for the device, less so when sequential.
fn request_s(work: &Workload) -> f64 {
    let unique = work.unique_bytes as f64;
    let size = work.size_mean as f64;
    let copy = 1.5e-6 + size / 8e9;
    let miss = |cache: f64| 1.0 - (cache / unique).min(1.0);
    let device = (75e-6 * (1.0 - 0.8 * work.seq_frac)) + size / 3e9;
    let read = copy + miss(READ_CACHE) * device;
    let write = 1.3 * copy + miss(WRITE_CACHE) * device * 0.35 + miss(READ_CACHE) * device * 0.3;
    (work.read_frac * read + (1.0 - work.read_frac) * write) / f64::from(work.process_num).powf(0.7)
}

fn visit(record: &mut Record, work: Workload, role: Role, round: u32, noise: &mut Noise) {
    let started_s =
        record.points.last().map_or(1.5, |point| point.started_s + point.elapsed_s + 0.01);
    let rate = work.size_mean as f64 / request_s(&work) * (1.0 + 0.03 * noise.next());
    let mean_s = work.size_mean as f64 / rate * f64::from(work.process_num);
    let hit = (READ_CACHE / work.unique_bytes as f64).min(1.0);
    let spent_s = Spent {
        layout: if round == 0 { 0.2 } else { 0.0 },
        quiesce: if work.read_frac < 1.0 { 0.11 } else { 0.0 },
        warm_up: 0.09,
        settling: 0.6,
        measuring: 1.5,
        sync: if work.read_frac < 1.0 { 0.05 } else { 0.0 },
    };
    let steady = record.points.len() % 41 != 40;
    let throughput = Interval { mean: rate, low: rate * 0.98, high: rate * 1.02 };
    record.points.push(Point {
        round,
        role,
        seed: 42 + record.points.len() as u64,
        started_s,
        durable_bytes_per_s: Some(rate * 0.9),
        response_time_s: ResponseTime {
            mean: mean_s,
            p50: mean_s * 0.7,
            p90: mean_s * 1.6,
            p99: mean_s * 6.0,
            p999: mean_s * 20.0,
            max: mean_s * 300.0,
        },
        hit_fraction: Some(hit),
        steady,
        windows: 15,
        elapsed_s: spent_s.total() + 0.02,
        spent_s,
        warnings: if steady { vec![] } else { vec![not_steady()] },
        ..Point::bare(work, "psync", throughput)
    });
}

fn estimate(work: &Workload, points: &[Point]) -> Estimate {
    let visits: Vec<&Point> = points.iter().filter(|p| p.workload == *work).collect();
    let n = visits.len() as f64;
    let mean = visits.iter().map(|p| p.throughput()).sum::<f64>() / n;
    let variance =
        visits.iter().map(|p| (p.throughput() - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    // A pooled spread has many degrees of freedom: two standard errors are near enough here.
    let half = 2.0 * (variance / n).sqrt().max(0.01 * mean);
    let interval = Interval { mean, low: mean - half, high: mean + half };
    Estimate {
        workload: work.clone(),
        visits: visits.len() as u32,
        throughput_bytes_per_s: interval,
        durable_bytes_per_s: visits[0].durable_bytes_per_s,
        ops_per_s: interval.scaled(1.0 / work.size_mean as f64),
        response_time_s: visits[0].response_time_s,
        latency_s: visits[0].latency_s,
        hit_fraction: visits[0].hit_fraction,
        steady: visits.iter().all(|p| p.steady),
        warnings: visits.iter().flat_map(|p| p.warnings.clone()).collect(),
        revision: 4,
    }
}

fn findings() -> Vec<Finding> {
    let mut all = [
        (FindingCode::ReadCache, "Reads are served from memory up to 244 MiB (238–251), which is 95 % of the memory limit of 256 MiB."),
        (FindingCode::WriteCache, "Writes are absorbed up to 61.0 MiB (59.5–62.8), about the dirty limit of 64 MiB; beyond it they wait for the device."),
        (FindingCode::WritePolicy, "Writes are written back: small amounts of data are absorbed at 0.77 times the speed of reads from memory."),
        (FindingCode::Concurrency, "Eight processes bring 4.3 times the throughput of one in every region."),
        (FindingCode::Sequentiality, "Sequentiality brings nothing within memory and 2.6 times the throughput beyond it."),
    ]
    .map(|(code, text)| Finding {
        code,
        text: text.into(),
        region: None,
        clause: None,
        figures: BTreeMap::new(),
        layer: ioscape_model::Layer::default(),
        revision: 4,
    })
    .to_vec();
    all.push(Finding {
        code: FindingCode::GoodSizes,
        text: "In the storage region (244 MiB to 1 GiB), good request sizes are 256 KiB to 1 MiB."
            .into(),
        region: Some(3),
        clause: Some("good request sizes are 256 KiB to 1 MiB".into()),
        figures: BTreeMap::from([("region_from_bytes".into(), READ_CACHE)]),
        layer: ioscape_model::Layer::default(),
        revision: 4,
    });
    all
}

fn warnings() -> Vec<Warning> {
    vec![
        Warning::new(
            Code::DirtyLimitAboveMemory,
            "the dirty limit of the machine (1.60 GiB) was above the memory limit (256 MiB); it \
             was lowered to 64 MiB for this run",
            "compare only with runs under the same --dirty-limit",
        )
        .with_severity(Severity::Note),
        Warning::new(
            Code::StolenTime,
            "the hypervisor took 4.1 % of the processors' time during 12 visits",
            "measure again on a quieter host, or on one of your own",
        ),
        Warning::new(
            Code::Drift,
            "the canary fell by 11 % between minute 6 and minute 7 and stayed there",
            "repeat the run; until then do not compare figures below 10 % apart",
        )
        .with_severity(Severity::Serious),
    ]
}

fn not_steady() -> Warning {
    Warning::new(
        Code::NotSteady,
        Words::new(
            "throughput was still drifting by {drift_share:.0} per second after {elapsed_s}",
        )
        .figure("drift_share", 0.07)
        .figure("elapsed_s", 3.0),
        "measure this workload alone with `ioscape measure`, which waits longer",
    )
}

/// Numbers between -1 and 1 that look like chance (Knuth's MMIX generator).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
