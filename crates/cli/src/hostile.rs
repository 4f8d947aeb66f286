//! Bytes of unknown origin: the corpora of the fuzz targets are replayed with every test, and
//! mutated for as long as `IOSCAPE_FUZZ_S` says, seconds for each target.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[path = "../../../fuzz/entries.rs"]
mod entries;

use entries::{ENTRIES, Entry};

/// Mutations of each target where no time is set.
const MUTATIONS: u64 = 1500;
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
