//! The terminal summary.

use std::path::PathBuf;

use ioscape_model::Record;
use ioscape_report::text;

use crate::fixture;

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
    let found = text(&fixture::full(), 80, false);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("summary.txt");
    std::fs::write(path, &found).unwrap();
    assert_eq!(found, include_str!("summary.txt"));
}

#[test]
fn no_line_is_longer_than_the_terminal_is_wide() {
    for (name, record) in records() {
        for width in [60, 80, 120] {
            for line in text(&record, width, false).lines() {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
            }
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    for (name, record) in records() {
        let colourless = text(&record, 80, false);
        assert!(!colourless.contains('\u{1b}'), "{name}");
        assert_eq!(plain(&text(&record, 80, true)), colourless, "{name}");
    }
    assert!(text(&fixture::full(), 80, true).contains("\u{1b}[1;31m"), "serious doubts stand out");
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
        let summary = text(&record, 80, false);
        assert!(summary.contains(said), "{name}:\n{summary}");
        assert!(!summary.contains("NaN") && !summary.contains("inf"), "{name}:\n{summary}");
    }
}

#[test]
fn a_hostile_path_cannot_move_the_cursor() {
    let mut record = fixture::full();
    let name = "a\u{1b}[2Jb\rc\u{9b}31md";
    record.header.target.path = name.into();
    record.regions[0].name = name.into();
    record.findings[0].text = name.into();
    record.warnings[0].remedy = name.into();
    let summary = text(&record, 80, false);
    assert!(!summary.chars().any(|c| c.is_control() && c != '\n'), "{summary:?}");
}
