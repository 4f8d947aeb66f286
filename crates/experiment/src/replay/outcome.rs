//! From what was done to the lines of a record.

use ioscape_engine::replay::{Stage, ThreadIo, Times};
use ioscape_model::{
    ClassTotals, Classes, Code, CountedIo, Interval, Point, Replay, ReplayedOperation, Severity,
    Spacing, Spent, Warning, Words,
};

use super::queue::Made;
use super::survey::Surveyed;
use super::tally::Sum;
use super::{Load, Replayed, Settings};

/// A share of calls that end otherwise than when recorded, above which the figures are in doubt.
const UNLIKE_MAX: f64 = 0.01;

/// Facts beside the calls.
pub(super) struct Facts<'a> {
    pub(super) load: &'a dyn Load,
    pub(super) surveyed: &'a Surveyed,
    pub(super) settings: &'a Settings,
    pub(super) round: u32,
    pub(super) stage: &'a Stage,
    pub(super) layout_s: f64,
    pub(super) started_s: f64,
}

/// Says it.
pub(super) fn replayed(facts: &Facts<'_>, made: &Made) -> Replayed {
    let replay = replay(facts, made);
    let point = point(facts, made, &replay);
    Replayed { replay, point }
}

fn replay(facts: &Facts<'_>, made: &Made) -> Replay {
    let Facts { load, surveyed, settings, stage, .. } = facts;
    let tally = &made.tally;
    let operation = |sum: &Sum| ReplayedOperation {
        count: sum.times.count(),
        bytes: sum.bytes,
        time_s: sum.times.response(),
    };
    let operations = tally.operations.iter();
    let operations = operations.map(|(op, sum)| (op.name().to_owned(), operation(sum))).collect();
    let bytes = |classes: [usize; 2]| classes.map(|at| tally.classes[at].bytes).iter().sum();
    let shown =
        |times: &Times, is_shown: bool| (is_shown && times.count() > 0).then(|| times.response());
    Replay {
        round: facts.round,
        source: load.source().to_owned(),
        spacing: settings.spacing,
        speed: settings.speed,
        start: settings.start,
        elapsed_s: made.elapsed_s,
        recorded_s: surveyed.recorded_s(),
        calls: tally.calls(),
        passed_over: made.passed_over,
        streams: made.streams,
        files: surveyed.files_count(),
        laid_out_bytes: stage.laid_out_bytes(),
        reopened: stage.reopened(),
        bytes_read: bytes([0, 1]),
        bytes_written: bytes([2, 3]),
        operations,
        late_s: shown(&tally.late, settings.spacing != Spacing::None),
        latency_s: shown(&tally.latency, settings.spacing == Spacing::Open),
        errors: tally.errors.clone(),
        counted: tally.counted.map(counted),
        web: None,
    }
}

fn counted(io: ThreadIo) -> CountedIo {
    CountedIo {
        read_bytes: io.read_bytes,
        written_bytes: io.written_bytes,
        storage_read_bytes: io.storage_read_bytes,
        storage_written_bytes: io.storage_written_bytes,
    }
}

/// The measurement, as of the workload that it is most like.
fn point(facts: &Facts<'_>, made: &Made, replay: &Replay) -> Point {
    let tally = &made.tally;
    let elapsed_s = made.elapsed_s.max(1e-9);
    let totals = |sum: &Sum| {
        let times = sum.times.response();
        let (ops, bytes) = (sum.times.count(), sum.bytes);
        ClassTotals { ops, bytes, mean_s: times.mean, p50_s: times.p50, p99_s: times.p99 }
    };
    let [read_seq, read_rand, write_seq, write_rand] = tally.classes.each_ref().map(totals);
    let bytes = (replay.bytes_read + replay.bytes_written) as f64;
    let work = facts.surveyed.workload().clone();
    let throughput = Interval::exact(bytes / elapsed_s);
    Point {
        round: facts.round,
        started_s: facts.started_s,
        ops_per_s: tally.transfers.count() as f64 / elapsed_s,
        response_time_s: tally.transfers.response(),
        latency_s: replay.latency_s,
        classes: Classes { read_seq, read_rand, write_seq, write_rand },
        elapsed_s: made.elapsed_s + facts.layout_s,
        spent_s: Spent { layout: facts.layout_s, measuring: made.elapsed_s, ..Spent::default() },
        warnings: doubts(replay),
        ..Point::bare(work, "replay", throughput)
    }
}

fn doubts(replay: &Replay) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let unlike = replay.errors.unlike();
    if unlike as f64 > UNLIKE_MAX * replay.calls as f64 {
        let text = Words::new(
            "{unlike_calls} of {calls} calls ended otherwise than when they were recorded: {example}",
        )
        .figure("unlike_calls", unlike as f64)
        .figure("calls", replay.calls as f64)
        .name("example", replay.errors.examples.first().map_or("", String::as_str));
        let remedy = "look at `errors` of the record; replay in order (`--speed 1`), on a filesystem \
                      that can do what the recorded one could";
        doubts.push(Warning::new(Code::ReplayUnlike, text, remedy));
    }
    if replay.reopened > 0 {
        let text = Words::new(
            "{files} files were opened though no call opened them: they were open when recording \
             began",
        )
        .figure("files", replay.reopened as f64);
        let warning = Warning::new(Code::ReplayUnlike, text, "nothing needs to be done");
        doubts.push(warning.with_severity(Severity::Note));
    }
    doubts
}
