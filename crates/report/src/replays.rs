//! Replays in words and rows, for the terminal and the page: how long, how late, with which calls, and how
//! their ends compare with those recorded.

use ioscape_model::units::{show_bytes, show_seconds, three_digits};
use ioscape_model::{Record, Replay, ReplayedOperation, Spacing, WebReplay, word};

/// Headings of [`rows`].
pub(crate) const HEADINGS: [&str; 7] =
    ["operation", "calls", "bytes", "mean", "p50", "p99", "longest"];

/// All replays of a record in sentences.
pub(crate) fn sentences(record: &Record) -> Vec<String> {
    record.replays.iter().flat_map(told).collect()
}

/// Calls of the last replay by operation, under [`HEADINGS`].
pub(crate) fn rows(record: &Record) -> Vec<[String; 7]> {
    let operations = record.replays.last().into_iter().flat_map(|replay| &replay.operations);
    let row = |(name, calls): (&String, &ReplayedOperation)| {
        let bytes = if calls.bytes == 0 { String::new() } else { show_bytes(calls.bytes as f64) };
        let time = calls.time_s;
        let [mean, p50, p99, max] = [time.mean, time.p50, time.p99, time.max].map(show_seconds);
        [name.to_lowercase(), calls.count.to_string(), bytes, mean, p50, p99, max]
    };
    operations.map(row).collect()
}

/// Calls of the last replay that ended otherwise than when recorded: the first of them.
pub(crate) fn examples(record: &Record) -> &[String] {
    record.replays.last().map_or(&[], |replay| &replay.errors.examples)
}

fn told(replay: &Replay) -> Vec<String> {
    let spacing = match replay.spacing {
        Spacing::None => "without the time between them".to_owned(),
        spacing => format!("{} loop, speed {}", word(spacing), replay.speed),
    };
    let what = if replay.web.is_some() { "requests" } else { "calls" };
    let mut lines = vec![format!(
        "{} {what} of {} stream{} in {} ({spacing}); recorded {}",
        replay.calls,
        replay.streams,
        if replay.streams == 1 { "" } else { "s" },
        show_seconds(replay.elapsed_s),
        show_seconds(replay.recorded_s)
    )];
    lines.push(format!(
        "{} read, {} written; {} laid out before in {} files",
        show_bytes(replay.bytes_read as f64),
        show_bytes(replay.bytes_written as f64),
        show_bytes(replay.laid_out_bytes as f64),
        replay.files
    ));
    if let Some(late) = replay.late_s {
        lines.push(format!(
            "late by {} in the median, {} in one of a hundred calls, {} at most",
            show_seconds(late.p50),
            show_seconds(late.p99),
            show_seconds(late.max)
        ));
    }
    if let Some(web) = &replay.web {
        lines.extend(web_sentences(replay, web));
        return lines;
    }
    let errors = &replay.errors;
    lines.push(if errors.unlike() == 0 {
        "every call ended as it did when it was recorded".to_owned()
    } else {
        format!(
            "{} calls ended otherwise than when recorded: {} failed here only, {} there only, {} in \
             another way, {} moved fewer bytes",
            errors.unlike(),
            errors.only_here,
            errors.only_recorded,
            errors.different,
            errors.shorter
        )
    });
    lines
}

/// Requests to a server.
fn web_sentences(replay: &Replay, web: &WebReplay) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(latency) = replay.latency_s {
        lines.push(format!(
            "{} /s; from when a request was due to its last byte {} in the median, {} in one of a \
             hundred, {} at most",
            three_digits(replay.calls as f64 / replay.elapsed_s.max(1e-9)),
            show_seconds(latency.p50),
            show_seconds(latency.p99),
            show_seconds(latency.max)
        ));
    }
    let statuses: Vec<String> =
        web.statuses.iter().map(|(status, count)| format!("{count} of status {status}")).collect();
    lines.push(format!(
        "{} sessions over {} connections, up to {} at a time; {}",
        web.sessions,
        web.connections,
        web.sessions_max,
        if statuses.is_empty() { "no answer".to_owned() } else { statuses.join(", ") }
    ));
    if replay.errors.only_here > 0 {
        lines.push(format!(
            "{} requests had another answer than expected, {} of them none",
            replay.errors.only_here, web.failed
        ));
    }
    lines
}
