//! A record of what was imported: header, points, estimates, map. What the other program did not
//! say is left unknown; the same results give the same record.

use std::collections::BTreeSet;

use ioscape_analysis::estimate;
use ioscape_model::line::FORMAT_VERSION;
use ioscape_model::{
    Access, Code, End, EndReason, Header, Hints, Host, Limits, Line, Map, Method, Point, Range,
    Ranges, Rules, Severity, Spent, Target, Tool, Warning, Workload,
};

use super::fio::{Measured, Results};

/// fio's samples of throughput are that long unless it was told otherwise.
const WINDOW_S: f64 = 0.5;
const UNKNOWN: &str = "unknown";

/// The lines of the record.
pub(super) fn lines(all: &[Results], tool: Tool, command_line: Vec<String>) -> Vec<Line> {
    let points = points(all);
    let mut lines = vec![Line::Header(header(all, &points, tool, command_line))];
    lines.extend(warnings(all).into_iter().map(Line::Warning));
    lines.extend(points.iter().cloned().map(Line::Point));
    let (estimates, repeatability) = estimate::pool(&points, 1);
    lines.extend(estimates.into_iter().map(Line::Estimate));
    let elapsed_s = points.iter().map(|point| point.elapsed_s).sum();
    let log = versions(all).into_iter().map(|version| format!("results of {version}")).collect();
    let map = Map { revision: 1, provisional: false, repeatability, elapsed_s, log };
    lines.push(Line::Map(map));
    lines.push(Line::End(end(&points, elapsed_s)));
    lines
}

fn versions(all: &[Results]) -> BTreeSet<&str> {
    all.iter().map(|results| results.version.as_str()).collect()
}

fn header(all: &[Results], points: &[Point], tool: Tool, command_line: Vec<String>) -> Header {
    let began_s = all.iter().filter_map(|results| results.timestamp_s).min();
    let began = began_s.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let range = |of: fn(&Workload) -> u64| {
        let values = || points.iter().map(|point| of(&point.workload));
        Range { min: values().min().unwrap_or(0), max: values().max().unwrap_or(0) }
    };
    let most = |of: fn(&Measured) -> f64| measured(all).map(of).fold(0.0, f64::max);
    Header {
        format_version: FORMAT_VERSION,
        tool,
        run_id: began_s.map_or_else(|| "fio".to_owned(), |seconds| format!("fio-{seconds}")),
        command_line,
        seed: measured(all).next().map_or(0, |first| first.seed),
        start_time: began.map_or_else(
            || UNKNOWN.to_owned(),
            |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        ),
        // A real machine, of which nothing is known: an empty name is that of a simulated one.
        host: Host { kernel: "not known".to_owned(), ..Host::default() },
        target: target(all),
        method: Method::Measure,
        rules: Rules {
            window_s: WINDOW_S,
            windows_min: 0,
            precision: 0.0,
            ramp_s: measured(all).map(|one| one.ramp_s).fold(f64::MAX, f64::min),
            ramp_max_s: most(|one| one.ramp_s),
            measure_max_s: most(|one| one.figures.runtime_s),
            sync_at_end: false,
        },
        ranges: Ranges {
            unique_bytes: range(|work| work.unique_bytes),
            size_mean: range(|work| work.size_mean),
            process_num: range(|work| u64::from(work.process_num)),
            access: if measured(all).all(|one| one.work.access == Access::Direct) {
                Access::Direct
            } else {
                Access::Buffered
            },
            ..Ranges::usual(1)
        },
        budget_s: 0.0,
        limits: Limits::default(),
        hints: Hints::default(),
        asked: vec![],
        forecast: None,
    }
}

fn measured(all: &[Results]) -> impl Iterator<Item = &Measured> {
    all.iter().flat_map(|results| &results.measured)
}

/// Named where all results agree.
fn target(all: &[Results]) -> Target {
    let places: BTreeSet<Option<&str>> =
        measured(all).map(|measured| measured.place.as_deref()).collect();
    let devices: BTreeSet<Option<&str>> =
        all.iter().map(|results| results.device.as_deref()).collect();
    let only = |set: BTreeSet<Option<&str>>| match set.len() {
        1 => set.into_iter().next().flatten().map(str::to_owned),
        _ => None,
    };
    Target {
        path: only(places).unwrap_or_else(|| UNKNOWN.to_owned()),
        kind: "imported".to_owned(),
        device: only(devices),
        ..Target::default()
    }
}

fn points(all: &[Results]) -> Vec<Point> {
    let began_s = all.iter().filter_map(|results| results.timestamp_s).min().unwrap_or(0);
    let mut points: Vec<Point> = Vec::new();
    for results in all {
        let since_s = results.timestamp_s.unwrap_or(began_s).saturating_sub(began_s);
        let mut started_s = since_s as f64;
        for measured in &results.measured {
            let earlier = points.iter().filter(|point| point.workload == measured.work).count();
            let point = point(measured, &results.version, earlier as u32, started_s);
            started_s += point.elapsed_s;
            points.push(point);
        }
    }
    points
}

fn point(measured: &Measured, version: &str, round: u32, started_s: f64) -> Point {
    let figures = &measured.figures;
    let spent_s =
        Spent { settling: measured.ramp_s, measuring: figures.runtime_s, ..Spent::default() };
    Point {
        round,
        seed: measured.seed,
        started_s,
        ops_per_s: figures.ops_per_s,
        response_time_s: figures.response_time_s,
        classes: measured.classes,
        cpu_s_per_op: measured.cpu_s_per_op,
        steady: measured.steady,
        windows: figures.windows,
        elapsed_s: spent_s.total(),
        spent_s,
        warnings: doubts(measured, version),
        ..Point::bare(measured.work.clone(), &measured.engine, figures.throughput_bytes_per_s)
    }
}

/// All doubts about a job are one warning, because estimates keep one of each code.
fn doubts(measured: &Measured, version: &str) -> Vec<Warning> {
    let mut doubts = Vec::new();
    if !measured.notes.is_empty() {
        doubts.push(Warning::new(
            Code::Imported,
            format!("job `{}` of {version}: {}", measured.name, measured.notes.join("; ")),
            "measure the workload with `ioscape measure` where that matters",
        ));
    }
    if !measured.steady {
        let seen = match measured.figures.variation {
            Some(variation) => {
                format!("fio's samples of the throughput vary by {:.0} %", variation * 100.0)
            }
            None => "fio took too few samples of the throughput".to_owned(),
        };
        let text = format!("{seen}: whether it was steady is not known");
        doubts.push(Warning::new(Code::NotSteady, text, "run the job for longer"));
    }
    doubts
}

fn warnings(all: &[Results]) -> Vec<Warning> {
    let of_whom = versions(all).into_iter().collect::<Vec<_>>().join(" and ");
    let mut warnings = vec![
        Warning::new(
            Code::Imported,
            format!(
                "measured by {of_whom}, not by this program; nothing is known of the machine, and \
                 cache hits were not counted"
            ),
            "compare it with records of the same origin, or measure with `ioscape run`",
        )
        .with_severity(Severity::Note),
    ];
    let left_out = all.iter().flat_map(|results| &results.left_out);
    warnings.extend(left_out.map(|why| {
        let remedy = "say it in options that have a meaning here, or measure it with `ioscape`";
        Warning::new(Code::Imported, why.clone(), remedy)
    }));
    let notes = all.iter().flat_map(|results| &results.notes);
    warnings.extend(notes.map(|note| {
        let remedy = "look into the results themselves";
        Warning::new(Code::Imported, note.clone(), remedy).with_severity(Severity::Note)
    }));
    warnings
}

fn end(points: &[Point], elapsed_s: f64) -> End {
    let bytes = |of: fn(&Point) -> u64| points.iter().map(of).sum();
    End {
        reason: EndReason::Complete,
        points: points.len() as u64,
        elapsed_s,
        spent_s: points.iter().fold(Spent::default(), |sum, point| sum.plus(&point.spent_s)),
        read_bytes: bytes(|p| p.classes.read_seq.bytes + p.classes.read_rand.bytes),
        written_bytes: bytes(|p| p.classes.write_seq.bytes + p.classes.write_rand.bytes),
        device_written_bytes: None,
        forecast: None,
        dropped: vec![],
    }
}
