//! Records are kept for years: every released format opens for ever, a killed run's record opens
//! too, and nothing that can stand in a file makes the reader panic.

use ioscape_model::line::FORMAT_VERSION;
use ioscape_model::seal::Chain;
use ioscape_model::{Code, Line, Record, RecordError, Severity, Warning};
use proptest::prelude::*;
use serde_json::Value;

/// One record of each released format, with every kind of line. Never edited once released.
const RECORDS: [(u32, &str); 1] = [(1, include_str!("records/v1.jsonl"))];
const V1: &str = RECORDS[0].1;

fn read(text: impl AsRef<[u8]>) -> Result<Record, RecordError> {
    Record::read(text.as_ref())
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>) -> String {
    let message = read(text).expect_err("must be refused").to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

/// The record of the newest format with its `line` (from 1) replaced.
fn with_line(line: usize, replacement: &str) -> String {
    let mut lines: Vec<&str> = V1.lines().collect();
    lines[line - 1] = replacement;
    lines.join("\n") + "\n"
}

#[test]
fn every_format_opens_for_ever() {
    for (version, text) in RECORDS {
        let record = read(text).unwrap();
        assert_eq!(record.header.format_version, version);
        assert_eq!(record.valid_bytes, text.len() as u64);
        assert_eq!(record.points.len(), 1);
        assert_eq!(record.estimates.len(), 1);
        assert_eq!(record.borders.len(), 1);
        assert_eq!(record.regions.len(), 1);
        assert_eq!(record.models.len(), 1);
        assert_eq!(record.findings.len(), 1);
        assert_eq!(record.warnings.len(), 1);
        assert!(record.map.is_some() && record.end.is_some());
    }
}

#[test]
fn the_newest_format_is_among_the_records() {
    assert_eq!(RECORDS.map(|(version, _)| version).last(), Some(&FORMAT_VERSION));
}

#[test]
fn nothing_that_stood_in_an_old_record_is_lost() {
    for (number, text) in RECORDS.iter().flat_map(|(_, text)| text.lines().enumerate()) {
        let old: Value = serde_json::from_str(text).unwrap();
        let line: Line = serde_json::from_str(text).unwrap();
        let kept = serde_json::to_value(line).unwrap();
        lost(&old, &kept, &format!("line {}", number + 1));
    }
}

/// Fails where `kept` lacks something that `old` holds; more than that it may hold.
fn lost(old: &Value, kept: &Value, place: &str) {
    match (old, kept) {
        (Value::Object(old), Value::Object(kept)) => {
            for (key, value) in old {
                lost(value, kept.get(key).unwrap_or(&Value::Null), &format!("{place}, {key}"));
            }
        }
        _ => assert_eq!(old, kept, "{place}"),
    }
}

#[test]
fn a_record_cut_anywhere_opens_with_its_whole_lines() {
    let header_length = V1.find('\n').unwrap() + 1;
    for length in header_length..V1.len() {
        let record = read(&V1[..length]).unwrap();
        let whole = V1[..length].rfind('\n').unwrap() + 1;
        assert_eq!(record.valid_bytes, whole as u64, "cut after {length} bytes");
    }
    for length in 0..header_length {
        assert!(read(&V1[..length]).is_err(), "no header in {length} bytes");
    }
}

#[test]
fn a_malformed_line_is_named_with_its_number() {
    let bad_lines = [
        "",
        "null",
        "[]",
        "{}",
        "{\"kind\":\"border\"}",
        "{\"kind\":\"no such kind\"}",
        "{\"kind\":\"map\",\"revision\":-1,\"provisional\":true,\"elapsed_s\":1}",
        "{\"kind\":\"map\",\"revision\":1e999,\"provisional\":true,\"elapsed_s\":1}",
        "{\"kind\":\"map\",\"revision\":99999999999999999999,\"provisional\":true,\"elapsed_s\":1}",
    ];
    for bad in bad_lines {
        let message = refused(with_line(4, bad));
        assert!(message.starts_with("line 4 is not a line of a record"), "{bad}: {message}");
    }
}

/// The record of the newest format with one field of a line (from 1) replaced.
fn with_field(line: usize, path: &str, value: &str) -> String {
    let text = V1.lines().nth(line - 1).expect("there is such a line");
    let mut fields: Value = serde_json::from_str(text).expect("it is JSON");
    let place = fields.pointer_mut(&format!("/{}", path.replace('.', "/"))).expect(path);
    *place = serde_json::from_str(value).expect("it is JSON too");
    with_line(line, &fields.to_string())
}

#[test]
fn a_number_that_no_run_writes_is_named_with_its_line_and_field() {
    for (line, field, number, expected) in [
        (1, "ranges.size_mean.min", "0", "1 to 1073741824"),
        (1, "ranges.process_num.min", "0", "1 to 65536"),
        (1, "ranges.process_num.max", "9223372036854775808", "1 to 65536"),
        (1, "ranges.unique_bytes.max", "8388607", "8388608 to 9223372036854775807"),
        (1, "rules.window_s", "0", "0.0001 to 1000000000"),
        (1, "rules.window_s", "-0.1", "0.0001 to 1000000000"),
        (1, "rules.windows_min", "4294967295", "0 to 1000000"),
        (1, "rules.ramp_max_s", "1e308", "0 to 100000"),
        (1, "budget_s", "-1", "0 to 1000000000"),
        (1, "budget_s", "1e308", "0 to 1000000000"),
        (1, "forecast.elapsed_s", "-599", "0 or more, below 2^63"),
        (1, "host.memory_copy_bytes_per_s", "1e300", "0 or more, below 2^63"),
        (2, "workload.process_num", "0", "1 to 4096"),
        (2, "workload.read_frac", "-0.25", "a number from 0 to 1"),
        (2, "workload.unique_bytes", "1", "eight times size_mean for each process, or more"),
        (2, "throughput_bytes_per_s.mean", "1e308", "0 or more, below 2^63"),
        (2, "classes.read_seq.ops", "9223372036854775808", "0 or more, below 2^63"),
        (2, "started_s", "-1", "0 or more, below 2^63"),
        (5, "focal.align", "3", "a power of two up to 1 MiB"),
        (9, "revision", "4294967295", "0 to 99999"),
        (11, "repeats", "4294967295", "1 to 1000"),
    ] {
        let message = refused(with_field(line, field, number));
        let place = format!("line {line}: {field} is ");
        assert!(message.starts_with(&place), "{message}");
        let rest = format!("; it can be {expected}: restore the file from a copy");
        assert!(message.ends_with(&rest), "{message}");
    }
}

#[test]
fn a_text_that_no_run_writes_is_refused_before_tables_repeat_it() {
    let long = format!("\"{}\"", "x".repeat(70_000));
    let message = refused(with_field(1, "run_id", &long));
    let expected = "line 1: run_id is 70000 bytes long; it can be up to 65536 bytes:";
    assert!(message.starts_with(expected), "{message}");
    assert!(read(with_field(1, "target.sim", &long)).is_ok(), "a description may be longer");
}

#[test]
fn numbers_at_the_ends_of_what_runs_write_are_read() {
    for (line, field, number) in [
        (1, "seed", "18446744073709551615"),
        (1, "target.size_bytes", "18446744073709551615"),
        (1, "rules.windows_min", "0"),
        (1, "rules.precision", "0"),
        (1, "budget_s", "0"),
        (2, "throughput_bytes_per_s.mean", "0"),
        (2, "throughput_bytes_per_s.high", "1.7976931348623157e308"),
        (4, "unique_bytes.high", "1.7976931348623157e308"),
        (5, "focal.unique_bytes", "4096"),
        (6, "parameters.read_cache_bytes.value", "-1e300"),
        (14, "ratio.low", "-1e300"),
    ] {
        let read = read(with_field(line, field, number));
        assert!(read.is_ok(), "{field} {number}: {}", read.unwrap_err());
    }
}

/// The record of the newest format as a program writes it, line by line.
fn sealed() -> Vec<Vec<u8>> {
    let mut chain = Chain::default();
    let lines = V1.lines().map(|text| {
        let line = serde_json::from_str(text).expect("a line of a record");
        let (text, end) = chain.seal(&line).expect("that a run can have written");
        chain = end;
        text
    });
    lines.collect()
}

#[test]
fn a_line_that_is_missing_or_there_twice_is_noticed_wherever_it_stands() {
    let doubts = |lines: &[Vec<u8>]| {
        let warnings = read(lines.concat()).unwrap().warnings;
        warnings.into_iter().filter(|warning| warning.code == Code::Altered).collect::<Vec<_>>()
    };
    let lines = sealed();
    assert_eq!(doubts(&lines), []);
    for place in 1..lines.len() {
        assert_eq!(doubts(&lines[..place]), [], "what a killed run leaves");
        let (mut without, mut twice) = (lines.clone(), lines.clone());
        without.remove(place);
        twice.insert(place, lines[place].clone());
        let lost = doubts(&without);
        assert_eq!(lost.len(), usize::from(place + 1 < lines.len()), "line {}", place + 1);
        assert!(lost.iter().all(|doubt| doubt.severity == Severity::Serious));
        assert_eq!(doubts(&twice).len(), 1, "line {}", place + 1);
        assert_eq!(read(twice.concat()).unwrap().points.len(), 1, "no line counts twice");
    }
}

#[test]
fn a_record_that_was_sealed_before_lines_were_joined_opens_and_is_gone_on_with() {
    let alone = |line: Line| Chain::default().seal(&line).unwrap();
    let old: Vec<_> = V1.lines().map(|text| alone(serde_json::from_str(text).unwrap()).0).collect();
    let record = read(old.concat()).unwrap();
    let warning = Warning::new(Code::Leftover, "a text", "a remedy");
    let next = |text: &str| Line::Warning(Warning { text: text.to_owned(), ..warning.clone() });
    let (first, chain) = record.chain.seal(&next("first")).unwrap();
    let (second, _) = chain.seal(&next("second")).unwrap();
    let gone_on = read([old.concat(), first, second.clone()].concat()).unwrap();
    assert!(gone_on.warnings.iter().all(|warning| warning.code != Code::Altered));
    let lost = read([old.concat(), second].concat()).unwrap();
    assert_eq!(lost.warnings.last().unwrap().code, Code::Altered);
}

#[test]
fn what_is_no_record_is_told_from_a_broken_one() {
    assert!(refused("").contains("does not begin with a header"));
    let headless: String = V1.split_inclusive('\n').skip(1).collect();
    assert!(refused(headless).contains("does not begin with a header"));
    let two_headers = with_line(4, V1.lines().next().unwrap());
    assert!(refused(two_headers).contains("header"));
}

#[test]
fn a_later_format_is_refused_by_its_version_whatever_else_it_holds() {
    let later = |text: &str| {
        text.replacen(
            "\"format_version\":1",
            &format!("\"format_version\":{}", FORMAT_VERSION + 1),
            1,
        )
    };
    for text in [
        later(V1),
        later(&with_line(4, "{\"kind\":\"of the future\"}")),
        later("{\"kind\":\"header\",\"format_version\":1,\"all\":\"different\"}\n"),
    ] {
        let message = refused(text);
        assert!(message.contains("format version 2") && message.contains("update"), "{message}");
    }
}

#[test]
fn only_the_last_closed_revision_is_kept() {
    let second = V1.replace("\"revision\":1", "\"revision\":2");
    let going_on = |keep: fn(&&str) -> bool| {
        let added: String = second.split_inclusive('\n').skip(1).filter(keep).collect();
        read(format!("{V1}{added}")).unwrap()
    };
    let revisions = |record: &Record| -> Vec<u32> {
        record.borders.iter().map(|border| border.revision).collect()
    };
    let unclosed = going_on(|line| !line.contains("\"kind\":\"map\""));
    assert_eq!((revisions(&unclosed), unclosed.points.len()), (vec![1], 2));
    let closed = going_on(|_| true);
    assert_eq!((revisions(&closed), closed.points.len()), (vec![2], 2));
}

#[test]
fn deep_nesting_is_refused_and_does_not_overflow_the_stack() {
    for (open, close) in [("[", "]"), ("{\"kind\":", "}")] {
        let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        assert!(read(&deep).is_err());
        assert!(refused(with_line(2, &deep)).starts_with("line 2 is not"));
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn a_damaged_record_never_panics(
        damage in proptest::collection::vec((0..V1.len(), any::<u8>()), 1..8),
        cut in 0..V1.len(),
    ) {
        let mut bytes = V1.as_bytes().to_vec();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        for part in [&bytes[..], &bytes[cut..], &bytes[..cut]] {
            if let Ok(record) = read(part) {
                prop_assert!(record.valid_bytes <= part.len() as u64);
            }
        }
    }

    #[test]
    fn a_number_of_any_size_is_read_or_refused(digits in "-?[0-9]{1,40}(\\.[0-9]{1,40})?(e[+-]?[0-9]{1,4})?") {
        for key in ["seed", "budget_s"] {
            let from = V1.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
            let to = from + V1[from..].find(',').unwrap();
            let text = format!("{}{digits}{}", &V1[..from], &V1[to..]);
            if let Ok(record) = read(&text) {
                prop_assert!(record.header.budget_s.is_finite());
            }
        }
    }
}
