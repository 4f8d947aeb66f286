//! How far off each law is, on maps and witness lists of real systems.
//!
//! ```text
//! cargo run --release -p ioscape-analysis --example laws -- CORPUS [--held-out] [--each] [--fix NAME]...
//! ```
//!
//! `CORPUS/SYSTEM/` holds maps (`map-….jsonl.gz`, records) and `measured.tsv.gz`: workloads of lists, each
//! measured twice by another program (columns list, place, visit, at, workload, `bytes_per_s`); those with direct
//! access are answered by the map's device layer.
//! `CORPUS/f0dba86.tsv.gz` holds what the law of commit f0dba86 said (map, workload, `bytes_per_s`, low,
//! high). Printed are, for each map and law, the median, 75th and 90th percentile of
//! |predicted/measured − 1|, the share of workloads inside the law's
//! intervals and the median width (high over low) of these, each with a 90 % interval by resampling, and how much of the
//! error is the measurements' own. A third of the workloads, chosen by a hash, is shown with `--held-out` only: laws
//! are not tuned on it. Lists that were looked at whole all the same are not shown there.
//!
//! Beside the blend stand simpler laws: the library's own, and those of [`competitors`].
//!
//! `--fix` holds a parameter of the law at what is expected before any sample was seen, `--each` does so
//! with every parameter in turn, and says what that changes.

#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use ioscape_analysis::model::{Training, parameter_kind};
use ioscape_analysis::predict::{FitError, Predictor};
use ioscape_analysis::validate::answers;
use ioscape_model::{Figure, Record, Workload};
use ioscape_stats::quantile::quantile;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

mod classes;
mod competitors;
mod physical;

use competitors::Competitors;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The law whose predictions were frozen when the corpus was made.
const FROZEN: &str = "f0dba86";
/// The law that the others are compared with.
const BLEND: &str = "blend";
/// Lists (system, list) whose third was looked at while the law was changed: they are not among what is set aside.
const SEEN: [(&str, &str); 9] = [
    ("ext4-512m", "a"),
    ("xfs-512m", "a"),
    ("ext4-volume", "a"),
    ("ext4-volume", "b"),
    ("ext4-volume-xeon", "a"),
    ("ext4-volume-xeon", "b"),
    ("ext4-volume-xeon", "c"),
    ("ext4-volume-xeon", "cold"),
    ("ext4-disk-xeon", "cold"),
];
/// Samples drawn for an interval.
const RESAMPLED: usize = 1000;

/// A workload that the witness measured twice on a system.
struct Truth {
    work: Workload,
    measured_bytes_per_s: [f64; 2],
}

impl Truth {
    fn bytes_per_s(&self) -> f64 {
        let [one, other] = self.measured_bytes_per_s;
        (one * other).sqrt()
    }
}

/// A map, and what its law and others say of each workload of its system.
struct Judged {
    map: String,
    /// Names of the fitted law's parameters, those of caches once for all of them.
    parameters: BTreeSet<String>,
    /// Per law, one for each workload.
    errors: BTreeMap<String, Vec<Judgement>>,
    repeated: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Judgement {
    /// Index of the workload in the system's lists.
    place: usize,
    /// Predicted over measured, as a logarithm.
    off: f64,
    /// The interval's high end over its low one: 1 where the law has none.
    width: f64,
    is_inside: bool,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let fixed = || arguments.windows(2).filter(|pair| pair[0] == "--fix").map(|pair| &pair[1]);
    let corpus = arguments.first().ok_or("name the directory of a corpus")?;
    let corpus = Corpus::read(Path::new(corpus), has("--held-out"))?;
    let fixed: Vec<String> = fixed().cloned().collect();
    let judged = corpus.judge(&fixed, true)?;
    show(&judged);
    if has("--each") {
        let fitted: BTreeSet<&String> = judged.iter().flat_map(|one| &one.parameters).collect();
        let others = ["multipliers", "correction"].map(str::to_owned);
        println!("\nwithout each parameter: change of the mean |ln error|, with its 90 % interval");
        for name in fitted.into_iter().chain(&others) {
            let without = [fixed.as_slice(), std::slice::from_ref(name)].concat();
            let others = corpus.judge(&without, false)?;
            let pairs = judged.iter().zip(&others);
            let changes = pairs.filter_map(|(one, other)| Changes::new(one, other, BLEND));
            show_change(name, &changes.collect::<Vec<_>>());
        }
    }
    Ok(())
}

struct Corpus {
    maps: Vec<(String, Record, String)>,
    truths: BTreeMap<String, Vec<Truth>>,
    frozen: BTreeMap<(String, String), Figure>,
}

impl Corpus {
    fn read(path: &Path, is_held_out: bool) -> Result<Self> {
        let mut corpus =
            Self { maps: Vec::new(), truths: BTreeMap::new(), frozen: BTreeMap::new() };
        let mut systems: Vec<PathBuf> = fs::read_dir(path)?
            .map(|entry| entry.map(|e| e.path()))
            .collect::<std::io::Result<_>>()?;
        systems.sort();
        for directory in systems.into_iter().filter(|path| path.is_dir()) {
            let system = name_of(&directory);
            let mut files: Vec<PathBuf> = fs::read_dir(&directory)?
                .map(|e| e.map(|e| e.path()))
                .collect::<std::io::Result<_>>()?;
            files.sort();
            for file in files {
                let name = name_of(&file);
                if let Some(map) = name.strip_suffix(".jsonl.gz") {
                    let reader = BufReader::new(GzDecoder::new(File::open(&file)?));
                    let record = Record::read(reader)?;
                    corpus.maps.push((system.clone(), record, format!("{system}/{map}")));
                } else if name == "measured.tsv.gz" {
                    let truths = truths(&text(&file)?, &system, is_held_out)?;
                    corpus.truths.insert(system.clone(), truths);
                }
            }
        }
        for line in text(&path.join(format!("{FROZEN}.tsv.gz")))?.lines().skip(1) {
            let [map, work, value, low, high] = columns(line)?;
            let figure = Figure { value: value.parse()?, low: low.parse()?, high: high.parse()? };
            corpus.frozen.insert((map.to_owned(), work.to_owned()), figure);
        }
        Ok(corpus)
    }

    fn judge(&self, fixed: &[String], with_others: bool) -> Result<Vec<Judged>> {
        let mut all = Vec::new();
        for (system, record, map) in &self.maps {
            let Some(truths) = self.truths.get(system) else { continue };
            let mut competitors: Vec<Competitors> = Vec::new();
            let mut predictor_of = |mut training: Training| {
                training.fixed = fixed.to_vec();
                let predictor = Predictor::fit(training.clone())?;
                if !with_others {
                    return Ok(predictor);
                }
                competitors.push(Competitors::fit(&training));
                Ok::<_, FitError>(predictor.with_gaussian(&training))
            };
            let mut predictor = predictor_of(Training::from_record(record))?;
            if let Some(device) = Training::of_device(record) {
                predictor = predictor.with_device(predictor_of(device).ok());
            }
            let parameters = predictor.models()[0].parameters();
            let mut judged = Judged {
                map: map.clone(),
                parameters: parameters.keys().map(|name| parameter_kind(name).to_owned()).collect(),
                errors: BTreeMap::new(),
                repeated: Vec::new(),
            };
            for (place, truth) in truths.iter().enumerate() {
                if predictor.refuses(&truth.work).is_some() || !predictor.is_in_range(&truth.work) {
                    continue;
                }
                let mut said: BTreeMap<String, Figure> = answers(&predictor, &truth.work)
                    .into_iter()
                    .map(|(model, figure)| (model.to_string(), figure))
                    .collect();
                for layer in competitors.iter().filter(|layer| layer.are_of(&truth.work)) {
                    for (law, ln_throughput) in layer.answers(&truth.work) {
                        let value = ln_throughput.exp();
                        let figure = Figure { value, low: value, high: value };
                        said.insert(law.to_owned(), figure);
                    }
                }
                let key = (map.clone(), truth.work.literal());
                if let Some(figure) = self.frozen.get(&key) {
                    said.insert(FROZEN.to_owned(), *figure);
                }
                for (law, figure) in said {
                    let truth = truth.bytes_per_s();
                    judged.errors.entry(law).or_default().push(Judgement {
                        place,
                        off: (figure.value / truth).ln(),
                        width: figure.high / figure.low,
                        is_inside: (figure.low..=figure.high).contains(&truth),
                    });
                }
                let [one, other] = truth.measured_bytes_per_s;
                judged.repeated.push((one / other).ln());
            }
            all.push(judged);
        }
        Ok(all)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn text(path: &Path) -> Result<String> {
    let mut text = String::new();
    GzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
    Ok(text)
}

fn columns<const N: usize>(line: &str) -> Result<[&str; N]> {
    let columns: Vec<&str> = line.split('\t').collect();
    columns.try_into().map_err(|_| format!("not {N} columns: {line}").into())
}

/// Workloads measured twice, of the part that is asked for.
fn truths(text: &str, system: &str, is_held_out: bool) -> Result<Vec<Truth>> {
    let mut visits: BTreeMap<(String, u32), (String, Vec<f64>)> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [list, place, _visit, _at, work, bytes_per_s] = columns(line)?;
        let known = visits.entry((list.to_owned(), place.parse()?)).or_default();
        work.clone_into(&mut known.0);
        known.1.push(bytes_per_s.parse()?);
    }
    let mut truths = Vec::new();
    for ((list, place), (work, measured)) in visits {
        let Ok(measured_bytes_per_s) = <[f64; 2]>::try_from(measured) else { continue };
        if is_held_out && SEEN.contains(&(system, list.as_str())) {
            continue;
        }
        if is_third(&format!("{system} {list}/{place}")) == is_held_out {
            let work = Workload::parse(&work)?;
            truths.push(Truth { work, measured_bytes_per_s });
        }
    }
    Ok(truths)
}

/// Whether a workload is in the third that is set aside while a law is tuned: the upper half of the
/// 64-bit FNV-1a hash of its place is divisible by three.
fn is_third(place: &str) -> bool {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    (place.bytes().fold(0xcbf2_9ce4_8422_2325, mix) >> 32).is_multiple_of(3)
}

fn show(judged: &[Judged]) {
    println!(
        "{:29} {:17} {:>4}  {:20}  {:20}  {:20}  {:16}  {:19}  {:>5}",
        "map", "law", "n", "median % (90 %)", "p75 %", "p90 %", "held %", "width", "noise"
    );
    for one in judged {
        for (law, errors) in &one.errors {
            show_line(&one.map, law, errors, &one.repeated);
        }
    }
    let laws: BTreeSet<&String> = judged.iter().flat_map(|one| one.errors.keys()).collect();
    let repeated: Vec<f64> = judged.iter().flat_map(|one| one.repeated.clone()).collect();
    for law in &laws {
        let of_law = judged.iter().filter_map(|one| one.errors.get(*law));
        let errors: Vec<Judgement> = of_law.flatten().copied().collect();
        show_line("all", law, &errors, &repeated);
    }
    println!("\nin place of the blend: change of the mean |ln error|, with its 90 % interval");
    for law in laws.into_iter().filter(|law| *law != BLEND) {
        let changes = judged.iter().filter_map(|one| Changes::new(one, one, law));
        show_change(law, &changes.collect::<Vec<_>>());
    }
}

fn show_line(map: &str, law: &str, errors: &[Judgement], repeated: &[f64]) {
    let relative: Vec<f64> = errors.iter().map(|error| 100.0 * error.off.exp_m1().abs()).collect();
    let [median, p75, p90] = [0.5, 0.75, 0.9].map(|share| {
        let [low, high] = interval(&relative, |sorted| quantile(sorted, share));
        // Errors of 100 % and more are printed without a decimal.
        let [figure, low, high] = [sorted_quantile(&relative, share), low, high]
            .map(|it| if it < 100.0 { format!("{it:.1}") } else { format!("{it:.0}") });
        format!("{figure} ({low} to {high})")
    });
    let widths: Vec<f64> = errors.iter().map(|error| error.width).collect();
    let width = sorted_quantile(&widths, 0.5);
    let [held, width] = if width > 1.0 {
        let inside: Vec<f64> =
            errors.iter().map(|error| if error.is_inside { 100.0 } else { 0.0 }).collect();
        let [low, high] = interval(&inside, mean);
        let [low_width, high_width] = interval(&widths, |sorted| quantile(sorted, 0.5));
        [
            format!("{:.0} ({low:.0} to {high:.0})", mean(&inside)),
            format!("{width:.2} ({low_width:.2} to {high_width:.2})"),
        ]
    } else {
        ["-", "-"].map(str::to_owned)
    };
    let off: Vec<f64> = errors.iter().map(|error| error.off.abs()).collect();
    let twice: Vec<f64> = repeated.iter().map(|ln| ln.abs() / 2.0).collect();
    let noise = (sorted_quantile(&twice, 0.5) / sorted_quantile(&off, 0.5)).powi(2).min(1.0);
    println!(
        "{map:29} {law:17} {:>4}  {median:20}  {p75:20}  {p90:20}  {held:16}  {width:19}  {:>4.0}%",
        errors.len(),
        100.0 * noise
    );
}

/// By how much |ln error|, at most 1.5, is larger by another law: for the workloads of a map that both answer.
struct Changes<'a> {
    map: &'a str,
    of_workloads: Vec<f64>,
}

impl<'a> Changes<'a> {
    /// Compares the blend's answers in one judgement of a map with a law's in the same or another; `None` where
    /// either law answers nothing.
    fn new(blend: &'a Judged, other: &Judged, law: &str) -> Option<Self> {
        let offs =
            blend.errors.get(BLEND)?.iter().map(|judgement| (judgement.place, judgement.off));
        let offs: BTreeMap<usize, f64> = offs.collect();
        let change = |judgement: &Judgement| -> Option<f64> {
            let off = offs.get(&judgement.place)?;
            Some(judgement.off.abs().min(1.5) - off.abs().min(1.5))
        };
        let of_workloads = other.errors.get(law)?.iter().filter_map(change).collect();
        Some(Self { map: &blend.map, of_workloads })
    }
}

/// Prints the mean change over all maps, and that of the map where it is largest.
fn show_change(name: &str, changes: &[Changes<'_>]) {
    let all: Vec<f64> = changes.iter().flat_map(|one| one.of_workloads.clone()).collect();
    let [low, high] = interval(&all, mean);
    let by_map = changes.iter().map(|one| (mean(&one.of_workloads), one.map));
    let (most, map) = by_map.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((0.0, ""));
    println!("{name:44} {:+.4} ({low:+.4} to {high:+.4})  most {most:+.4} {map}", mean(&all));
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn sorted_quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() { f64::NAN } else { quantile(&sorted, share) }
}

/// 90 % interval by the bootstrap (Efron 1979), always of the same draws.
fn interval(values: &[f64], figure: impl Fn(&[f64]) -> f64) -> [f64; 2] {
    if values.is_empty() {
        return [f64::NAN; 2];
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut figures: Vec<f64> = (0..RESAMPLED)
        .map(|_| {
            let mut drawn: Vec<f64> =
                values.iter().map(|_| values[rng.random_range(0..values.len())]).collect();
            drawn.sort_by(f64::total_cmp);
            figure(&drawn)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    [0.05, 0.95].map(|share| quantile(&figures, share))
}
