//! A record of what was imported: header, points, estimates, map. What the other program did not
//! say is left unknown; the same results give the same record.

use std::collections::BTreeSet;

use ioscape_analysis::estimate;
use ioscape_model::{
    Code, End, EndReason, Header, Host, Line, Method, Origin, Point, Ranges, Rules, Severity,
    Spent, Target, TargetKind, Warning, Words,
};

use crate::fio::{Measured, Results};

/// fio's samples of throughput are that long unless it was told otherwise.
const WINDOW_S: f64 = 0.5;
const UNKNOWN: &str = "unknown";

/// The lines of the record. `maker` says by which program and command it is made; when it began and
/// what it is called follow from the results, `time_text` writes seconds since 1970 as a time.
pub fn lines(
    all: &[Results],
    maker: Origin,
    time_text: impl Fn(i64) -> Option<String>,
) -> Vec<Line> {
    let points = points(all);
    let began_s = all.iter().filter_map(|results| results.timestamp_s).min();
    let origin = Origin {
        start_time: began_s.and_then(time_text).unwrap_or_else(|| UNKNOWN.to_owned()),
        run_id: began_s.map_or_else(|| "fio".to_owned(), |seconds| format!("fio-{seconds}")),
        seed: measured(all).next().map_or(0, |first| first.seed),
        ..maker
    };
    let mut lines = vec![Line::Header(header(all, &points, origin))];
    lines.extend(warnings(all).into_iter().map(Line::Warning));
    lines.extend(points.iter().cloned().map(Line::Point));
    let elapsed_s = points.iter().map(|point| point.elapsed_s).sum();
    let log = versions(all).into_iter().map(|version| format!("results of {version}")).collect();
    lines.extend(estimate::lines(&points, elapsed_s, false, log));
    lines.push(Line::End(End::after(EndReason::Complete, &points, elapsed_s)));
    lines
}

fn versions(all: &[Results]) -> BTreeSet<&str> {
    all.iter().map(|results| results.version.as_str()).collect()
}

fn header(all: &[Results], points: &[Point], origin: Origin) -> Header {
    let most = |of: fn(&Measured) -> f64| measured(all).map(of).fold(0.0, f64::max);
    // A real machine, of which nothing is known.
    let host = Host { kernel: "not known".to_owned(), ..Host::default() };
    Header {
        rules: Rules {
            window_s: WINDOW_S,
            windows_min: 0,
            precision: 0.0,
            ramp_s: measured(all).map(|one| one.ramp_s).fold(f64::MAX, f64::min),
            ramp_max_s: most(|one| one.ramp_s),
            measure_max_s: most(|one| one.figures.runtime_s),
            sync_at_end: false,
        },
        ranges: Ranges::spanning(points.iter().map(|point| &point.workload)),
        ..Header::new(origin, Method::Measure, host, target(all))
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
        kind: TargetKind::Imported,
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
        doubts.push(noted(measured, version));
    }
    if !measured.steady {
        let text = match measured.figures.variation {
            Some(variation) => Words::new(
                "fio's samples of the throughput vary by {variation_share:.0}: whether it was steady \
                 is not known",
            )
            .figure("variation_share", variation),
            None => Words::new(
                "fio took too few samples of the throughput: whether it was steady is not known",
            ),
        };
        doubts.push(Warning::new(Code::NotSteady, text, "run the job for longer"));
    }
    doubts
}

/// The notes on a job, with the figures of each.
fn noted(measured: &Measured, version: &str) -> Warning {
    let remedy = "measure the workload with `ioscape measure` where that matters";
    let each = measured.notes.iter().map(|note| Warning::new(Code::Imported, note.clone(), remedy));
    let (texts, figures): (Vec<String>, Vec<_>) =
        each.map(|note| (note.text, note.figures)).unzip();
    let text = format!("job `{}` of {version}: {}", measured.name, texts.join("; "));
    let figures = figures.into_iter().flatten().collect();
    Warning { figures, ..Warning::new(Code::Imported, text, remedy) }
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
