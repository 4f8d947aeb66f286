//! From the traffic of a load to the lines of a record.

use std::collections::BTreeMap;

use ioscape_model::app::{Behaviour, Five};
use ioscape_model::{
    ClassTotals, Classes, Code, ErrorsCompared, Interval, Point, Replay, ReplayedOperation,
    Severity, Spacing, Spent, Warning, WebReplay, Words, Workload,
};
use ioscape_trace::site::SiteLoad;
use ioscape_trace::{FileKind, character};

use crate::traffic::Traffic;

/// Share of requests with another answer than expected, above which the figures are in doubt.
const UNEXPECTED_MAX: f64 = 0.01;

/// Facts beside the traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Number among the loads of a record, from 0.
    pub round: u32,
    /// The time between requests.
    pub spacing: Spacing,
    /// Gaps were divided by this.
    pub speed: f64,
    /// Length of the load as it was planned, seconds.
    pub planned_s: f64,
    /// When it began, seconds since the run did.
    pub started_s: f64,
    /// Files of the site.
    pub files: u64,
    /// Bytes of all files.
    pub files_bytes: u64,
    /// Bytes that were written before.
    pub laid_out_bytes: u64,
    /// Time that took, seconds.
    pub layout_s: f64,
}

/// The load as a replay, and as the measurement of a workload.
#[must_use]
pub fn lines(traffic: &Traffic, facts: &Facts) -> (Replay, Point) {
    let replay = replay(traffic, facts);
    let point = point(traffic, facts, &replay);
    (replay, point)
}

fn replay(traffic: &Traffic, facts: &Facts) -> Replay {
    let time_s = traffic.time.response();
    let get = ReplayedOperation { count: traffic.time.count(), bytes: traffic.bytes, time_s };
    let is_paced = facts.spacing != Spacing::None;
    Replay {
        round: facts.round,
        source: "site".to_owned(),
        spacing: facts.spacing,
        speed: facts.speed,
        elapsed_s: traffic.elapsed_ns as f64 / 1e9,
        recorded_s: facts.planned_s,
        calls: traffic.requests,
        streams: traffic.sessions_at_a_time,
        files: facts.files,
        laid_out_bytes: facts.laid_out_bytes,
        bytes_read: traffic.bytes,
        operations: BTreeMap::from([("GET".to_owned(), get)]),
        late_s: is_paced.then(|| traffic.late.response()),
        latency_s: Some(traffic.latency.response()),
        errors: ErrorsCompared {
            only_here: traffic.unexpected + traffic.failed,
            examples: traffic.first_unexpected.clone(),
            ..ErrorsCompared::default()
        },
        web: Some(WebReplay {
            sessions: traffic.sessions_begun,
            sessions_max: traffic.sessions_at_a_time,
            connections: traffic.connections,
            statuses: traffic
                .by_status
                .iter()
                .map(|(status, count)| (status.to_string(), *count))
                .collect(),
            sent_again: traffic.sent_again,
            failed: traffic.failed,
            first_byte_s: traffic.first_byte.response(),
        }),
        ..Replay::default()
    }
}

/// The measurement, as of the workload that it is most like: random reads of whole files.
fn point(traffic: &Traffic, facts: &Facts, replay: &Replay) -> Point {
    let elapsed_s = replay.elapsed_s.max(1e-9);
    let sent = traffic.by_status.get(&200).copied().unwrap_or(0).max(1);
    let behaviour = Behaviour {
        five: Five {
            unique_bytes: facts.files_bytes,
            size_mean: traffic.bytes as f64 / sent as f64,
            read_frac: 1.0,
            seq_frac: 0.0,
            process_num: u32::try_from(traffic.sessions_at_a_time).unwrap_or(u32::MAX),
        },
        ..Behaviour::default()
    };
    let times = traffic.time.response();
    let read_rand = ClassTotals {
        ops: traffic.time.count(),
        bytes: traffic.bytes,
        mean_s: times.mean,
        p50_s: times.p50,
        p99_s: times.p99,
    };
    let throughput = Interval::exact(traffic.bytes as f64 / elapsed_s);
    Point {
        round: facts.round,
        started_s: facts.started_s,
        ops_per_s: traffic.time.count() as f64 / elapsed_s,
        response_time_s: times,
        latency_s: replay.latency_s,
        classes: Classes { read_rand, ..Classes::default() },
        elapsed_s: replay.elapsed_s + facts.layout_s,
        spent_s: Spent { layout: facts.layout_s, measuring: replay.elapsed_s, ..Spent::default() },
        warnings: doubts(traffic),
        ..Point::bare(character::workload(&behaviour), "http", throughput)
    }
}

/// Workload that a load is most like, as far as it is known beforehand.
#[must_use]
pub fn workload(load: &SiteLoad) -> Workload {
    let regular = load.files().iter().filter(|entry| entry.kind == FileKind::Regular);
    let (count, bytes) =
        regular.fold((0_u64, 0), |(count, bytes), entry| (count + 1, bytes + entry.first_bytes));
    let size_mean = bytes as f64 / count.max(1) as f64;
    let five =
        Five { unique_bytes: bytes, size_mean, read_frac: 1.0, seq_frac: 0.0, process_num: 1 };
    character::workload(&Behaviour { five, ..Behaviour::default() })
}

fn doubts(traffic: &Traffic) -> Vec<Warning> {
    let mut doubts = Vec::new();
    if traffic.failed > 0 || traffic.not_sent > 0 {
        let text = Words::new(
            "{failed} of {requests} requests had no answer, and {sessions_cut} sessions were cut \
             short, for the server answered too late; the first: {first}",
        )
        .figure("failed", traffic.failed as f64)
        .figure("requests", traffic.requests as f64)
        .figure("sessions_cut", traffic.not_sent as f64)
        .name("first", traffic.first_unexpected.first().map_or("none", String::as_str));
        let remedy = "see what the server waits for; fewer --users, or a slower --speed";
        doubts.push(Warning::new(Code::ReplayUnlike, text, remedy));
    }
    let unlike = traffic.unexpected;
    if unlike as f64 > UNEXPECTED_MAX * traffic.requests as f64 {
        let text = Words::new(
            "{unexpected} of {requests} requests had another answer than expected: {first}",
        )
        .figure("unexpected", unlike as f64)
        .figure("requests", traffic.requests as f64)
        .name("first", traffic.first_unexpected.first().map_or("", String::as_str));
        let remedy = "name the directory that the server serves with --docroot, or the paths that it \
                      has with --urls";
        doubts.push(Warning::new(Code::ReplayUnlike, text, remedy));
    }
    if traffic.sent_again > 0 {
        let text = Words::new(
            "{sent_again} files were sent again though the visitor was to have them: the server does \
             not answer `If-Modified-Since`, or the load asked for them the first time",
        )
        .figure("sent_again", traffic.sent_again as f64);
        let warning = Warning::new(Code::ReplayUnlike, text, "nothing needs to be done");
        doubts.push(warning.with_severity(Severity::Note));
    }
    doubts
}
