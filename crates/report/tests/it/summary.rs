//! The terminal summary.

use std::path::PathBuf;

use ioscape_model::{EndReason, ModelLine, Record};
use ioscape_report::Summary;

use crate::fixture;

fn text(record: &Record, file: &str, width: usize, color: bool) -> String {
    let conclusion = fixture::conclusion();
    let conclusion = record.map.as_ref().map(|_| &conclusion);
    ioscape_report::text(&Summary { record, conclusion, file }, width, color)
}

/// Without its colours.
fn plain(painted: &str) -> String {
    let mut parts = painted.split('\u{1b}');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').unwrap().1)
}

fn records() -> Vec<(&'static str, Record)> {
    let full = fixture::full();
    let no_map =
        Record { estimates: vec![], regions: vec![], map: None, end: None, ..full.clone() };
    let mut unknown = full.clone();
    unknown.estimates.iter_mut().for_each(|estimate| estimate.hit_fraction = None);
    vec![
        ("full", full),
        ("no map", no_map),
        ("unknown", unknown),
        ("measured", fixture::measured()),
        ("empty", fixture::empty()),
    ]
}

/// `summary.txt` is the summary of the fixture as it should look; after a change that is meant,
/// copy `target/tmp/summary.txt` over it.
#[test]
fn a_whole_run_is_summed_up_as_ever() {
    let found = text(&fixture::full(), "r.jsonl", 80, false);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("summary.txt");
    std::fs::write(path, &found).unwrap();
    assert_eq!(found, include_str!("summary.txt"));
}

#[test]
fn a_run_that_went_on_under_a_longer_budget_says_that_one() {
    let mut record = fixture::full();
    let resumed = |budget_s| ioscape_model::line::Resumed {
        time: String::new(),
        elapsed_before_s: 900.0,
        budget_s,
        command_line: vec![],
    };
    record.resumed = vec![resumed(Some(1800.0)), resumed(None)];
    let summary = text(&record, "r.jsonl", 80, false);
    assert!(summary.contains("of a budget of 30 min"), "{summary}");
}

#[test]
fn no_line_is_longer_than_the_terminal_is_wide() {
    for (name, record) in records().into_iter().chain([("unsure", unsure())]) {
        for width in [60, 80, 120] {
            for line in text(&record, "r.jsonl", width, false).lines() {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
            }
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    for (name, record) in records() {
        let colourless = text(&record, "r.jsonl", 80, false);
        assert!(!colourless.contains('\u{1b}'), "{name}");
        assert_eq!(plain(&text(&record, "r.jsonl", 80, true)), colourless, "{name}");
    }
    assert!(
        text(&fixture::full(), "r.jsonl", 80, true).contains("\u{1b}[1;31m"),
        "serious doubts stand out"
    );
}

#[test]
fn records_with_less_in_them_say_what_they_lack() {
    for ((name, record), said) in records().into_iter().zip([
        "What to doubt",
        "No map was closed",
        "–",
        "unique_bytes=67108864, size_mean=16384",
        "Nothing has been measured yet",
    ]) {
        let summary = text(&record, "r.jsonl", 80, false);
        assert!(summary.contains(said), "{name}:\n{summary}");
        assert!(!summary.contains("NaN") && !summary.contains("inf"), "{name}:\n{summary}");
    }
}

/// The lines under the last heading.
fn next_steps(record: &Record, file: &str) -> String {
    let summary = text(record, file, 80, false);
    let (_, next) = summary.split_once("Where to look next\n").unwrap_or_default();
    next.to_owned()
}

/// A map that can predict, with a border and a figure that are not well known.
fn unsure() -> Record {
    let mut record = fixture::full();
    let blend = serde_json::json!({ "name": "blend", "parameters": {} });
    record.models = vec![serde_json::from_value::<ModelLine>(blend).unwrap()];
    record.borders[0].unique_bytes.low = 30e6;
    let doubted = record.estimates.iter_mut().find(|estimate| !estimate.warnings.is_empty());
    let rate = &mut doubted.unwrap().throughput_bytes_per_s;
    (rate.low, rate.high) = (rate.mean * 0.6, rate.mean * 1.4);
    record
}

#[test]
fn what_is_open_is_named_with_the_command_that_closes_it() {
    let next = next_steps(&unsure(), "my run.jsonl");
    for part in [
        "The write border may lie anywhere from 28.6 MiB to 62.8 MiB.",
        "      ioscape run --resume 'my run.jsonl' --budget 1800s\n",
        "±40 %. The same workload, longer:\n      ioscape measure /mnt/data --unique-bytes",
        " \\\n",
        " --memory-limit 256MiB",
        "      ioscape predict 'my run.jsonl' -w oltp\n",
        "      ioscape validate 'my run.jsonl'\n",
        "      ioscape report 'my run.jsonl'\n",
    ] {
        assert!(next.contains(part), "{part:?}:\n{next}");
    }
}

#[test]
fn a_run_that_stopped_early_is_gone_on_with_first() {
    let mut record = unsure();
    for reason in [Some(EndReason::Interrupted), Some(EndReason::Failed), None] {
        record.end = record
            .end
            .map(|end| ioscape_model::End { reason: reason.unwrap_or(end.reason), ..end });
        if reason.is_none() {
            record.end = None;
        }
        let next = next_steps(&record, "r.jsonl");
        assert!(
            next.starts_with("  - Go on where it stopped:\n      ioscape run --resume r.jsonl\n"),
            "{next}"
        );
        assert!(!next.contains("--budget"), "{next}");
    }
    assert_eq!(next_steps(&fixture::measured(), "r.jsonl"), "");
}

#[test]
fn a_hostile_path_cannot_move_the_cursor() {
    let mut record = fixture::full();
    let name = "a\u{1b}[2Jb\rc\u{9b}31md";
    record.header.target.path = name.into();
    record.findings[0].text = name.into();
    record.warnings[0].remedy = name.into();
    let summary = text(&record, name, 80, false);
    assert!(!summary.chars().any(|c| c.is_control() && c != '\n'), "{summary:?}");
}
