//! Bytes of unknown origin: the corpora of the fuzz targets are replayed with every test, and
//! mutated for as long as `IOSCAPE_FUZZ_S` says, seconds for each target. Numbers of records are
//! changed one by one: they are what axes, grids and plans go by.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use ioscape_engine::Rig;
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_experiment::explore::{Earlier, Run, explore};
use ioscape_experiment::plan::decided_by;
use ioscape_model::seal::Chain;
use ioscape_model::{Header, Line, Method, Record};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;

#[path = "../../../fuzz/entries.rs"]
mod entries;

use entries::{ENTRIES, Entry};

/// Mutations of each target where no time is set.
const MUTATIONS: u64 = 800;
/// Reading and using one input takes no longer, in a build without optimisation.
const INPUT_S: f64 = 10.0;

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn every_input_of_the_corpora_is_read_or_refused() {
    for (name, entry) in ENTRIES {
        let corpus = corpus(name);
        assert!(corpus.len() >= 4, "{name} has a corpus");
        for (path, bytes) in corpus {
            let clock = ioscape_engine::Clock::start();
            let kept = catch_unwind(AssertUnwindSafe(|| entry(&bytes)));
            assert!(kept.is_ok(), "{} makes it panic", path.display());
            let took_s = clock.now_s();
            assert!(took_s < INPUT_S, "{} takes {took_s} s", path.display());
        }
    }
}

#[test]
fn no_mutation_of_the_corpora_makes_a_reader_panic_or_hang() {
    let limit_s = std::env::var("IOSCAPE_FUZZ_S").ok().and_then(|text| text.parse::<f64>().ok());
    for (name, entry) in ENTRIES {
        let clock = ioscape_engine::Clock::start();
        let mut mutations = 0;
        let is_over = |mutations: u64| {
            limit_s.map_or(mutations >= MUTATIONS, |limit_s| clock.now_s() > limit_s)
        };
        let corpus: Vec<Vec<u8>> = corpus(name).into_iter().map(|(_, bytes)| bytes).collect();
        while !is_over(mutations) {
            try_one(name, entry, &mutated(&corpus, mutations));
            mutations += 1;
        }
        println!("{name}: {mutations} mutations in {:.0} s", clock.now_s());
    }
}

/// Numbers that hardly any field may hold, and what is none.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "0.5",
    "1",
    "1e-300",
    "1e18",
    "1e308",
    "4294967295",
    "9007199254740992",
    "9223372036854775808",
    "18446744073709551615",
    "null",
    "\"NaN\"",
    "[[[[[[[[1]]]]]]]]",
];
/// So many changes of each record are tried, the same ones every time.
const CHANGES: usize = 150;

/// Where the numbers of a line are.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), found));
        }
        Value::Array(values) => values
            .iter()
            .enumerate()
            .for_each(|(index, value)| places(value, &format!("{at}/{index}"), found)),
        _ => {}
    }
}

/// Records that differ in one number of a line of `kinds`, and what was put there.
fn changed(bytes: &[u8], kinds: &[&str], count: usize) -> Vec<(String, Vec<u8>)> {
    let lines: Vec<Value> = bytes
        .split_inclusive(|&byte| byte == b'\n')
        .filter_map(|text| serde_json::from_slice(text).ok())
        .collect();
    let mut all = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let mut found = Vec::new();
        if kinds.is_empty() || kinds.iter().any(|kind| line["kind"] == **kind) {
            places(line, "", &mut found);
        }
        all.extend(found.into_iter().map(|place| (index, place)));
    }
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(42);
    let mut change = |_| {
        let (index, place) = &all[chance.random_range(0..all.len())];
        let number = NUMBERS[chance.random_range(0..NUMBERS.len())];
        let mut changed = lines.clone();
        *changed[*index].pointer_mut(place).unwrap() = serde_json::from_str(number).unwrap();
        let texts = changed.iter().map(|line| line.to_string() + "\n");
        (format!("line {}, {place} = {number}", index + 1), texts.collect::<String>().into_bytes())
    };
    (0..count).map(&mut change).collect()
}

#[test]
fn no_changed_number_of_a_record_makes_a_reader_panic_hang_or_take_all_memory() {
    for (path, bytes) in corpus("record") {
        for (change, bytes) in changed(&bytes, &[], CHANGES) {
            println!("{}: {change}", path.display()); // what an abort leaves
            try_one("record", entries::record, &bytes);
        }
    }
}

#[test]
fn a_run_is_gone_on_with_whatever_number_is_in_its_record_or_refused() {
    let killed = simulated();
    let kinds = ["header", "point", "estimate", "border", "region", "map"];
    let mut gone_on = 0;
    for (change, bytes) in changed(&killed, &kinds, CHANGES) {
        println!("{change}");
        let Ok(record) = Record::read(&bytes[..]) else { continue };
        let clock = ioscape_engine::Clock::start();
        let before = record.points.len();
        let after = explored(&record.header.clone(), Some(record));
        gone_on += usize::from(Record::read(&after[..]).unwrap().points.len() > before);
        assert!(clock.now_s() < INPUT_S, "{change} takes {} s", clock.now_s());
    }
    assert!(gone_on > 20, "{gone_on}");
}

/// A run of a simulated device that was killed.
fn simulated() -> Vec<u8> {
    let corpus = corpus("record");
    let (_, fitted) = corpus.iter().find(|(path, _)| path.ends_with("fitted.jsonl")).unwrap();
    let spec = SimSpec::preset("nvme").unwrap();
    let header = Header {
        method: Method::Blend,
        ranges: spec.ranges(),
        hints: SimRig::new(spec, 1).hints(),
        budget_s: 60.0,
        ..Record::read(&fitted[..]).unwrap().header
    };
    let mut lines = explored(&header, None);
    lines.truncate(lines[..lines.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1);
    lines
}

/// The record of half a minute on a simulated device, continued where there is an earlier one.
fn explored(header: &Header, earlier: Option<Record>) -> Vec<u8> {
    let mut rig = SimRig::new(SimSpec::preset("nvme").unwrap(), 1);
    let (mut text, mut chain) = (Vec::new(), Chain::default());
    let mut write = |line: &Line| {
        let (line, end) = chain.seal(line)?;
        text.extend(line);
        chain = end;
        Ok(())
    };
    write(&Line::Header(header.clone())).unwrap();
    let mut before = Earlier::default();
    if let Some(record) = earlier {
        record.points.iter().for_each(|point| write(&Line::Point(point.clone())).unwrap());
        before = Earlier::recorded(&record);
    }
    let run = Run {
        rig: &mut rig,
        plan: &mut *decided_by(header),
        header,
        budget_s: header.budget_s.min(before.elapsed_s + 30.0),
        interrupt: &AtomicBool::new(false),
        vector: None,
        journal: &mut write,
        on_event: &mut |_| {},
    };
    explore(run, before).unwrap();
    text
}

fn try_one(name: &str, entry: Entry, bytes: &[u8]) {
    let clock = ioscape_engine::Clock::start();
    let kept = catch_unwind(AssertUnwindSafe(|| entry(bytes)));
    if kept.is_err() || clock.now_s() > INPUT_S {
        let finding = std::env::temp_dir().join(format!("ioscape-finding-{name}"));
        std::fs::write(&finding, bytes).unwrap();
        panic!("{name}: see {}", finding.display());
    }
}

/// Pieces that readers trip over.
const PIECES: [&str; 24] = [
    "0",
    "-1",
    "1e308",
    "5e-324",
    "1e999",
    "NaN",
    "inf",
    "18446744073709551615",
    "\"\"",
    "null",
    "[]",
    "{}",
    "[[",
    "\n",
    "=",
    ",",
    "\"",
    "\\u0000",
    "<script>alert(1)</script>",
    "\u{1b}[2J",
    "\u{202e}",
    "99999999999g",
    "true",
    "0.0000001",
];

/// An input of the corpus, changed in a few places.
fn mutated(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut bytes = corpus[chance.random_range(0..corpus.len())].clone();
    for _ in 0..chance.random_range(1..5) {
        let at = chance.random_range(0..=bytes.len());
        let end = (at + chance.random_range(0..16)).min(bytes.len());
        match chance.random_range(0..8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = chance.random(),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copied = bytes[at..end].to_vec();
                bytes.splice(at..at, copied);
            }
            5 => number(&mut bytes, &mut chance),
            6 => {
                let other = &corpus[chance.random_range(0..corpus.len())];
                let from = chance.random_range(0..=other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => {
                let piece = PIECES[chance.random_range(0..PIECES.len())];
                bytes.splice(at..end, piece.bytes());
            }
        }
    }
    bytes
}

/// Puts something else in a number's place.
fn number(bytes: &mut Vec<u8>, chance: &mut Xoshiro256PlusPlus) {
    let starts: Vec<usize> = (1..bytes.len())
        .filter(|&at| bytes[at].is_ascii_digit() && !bytes[at - 1].is_ascii_alphanumeric())
        .collect();
    if starts.is_empty() {
        return;
    }
    let at = starts[chance.random_range(0..starts.len())];
    let is_part = |byte: &&u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    let length = bytes[at..].iter().take_while(is_part).count();
    let piece = PIECES[chance.random_range(0..8)];
    bytes.splice(at..at + length, piece.bytes());
}
