//! What can be typed after `ioscape suite`.

use std::path::PathBuf;

use clap::Args;
use ioscape_model::units::{parse_duration_s, parse_size};
use ioscape_model::{Purpose, SuiteSettings};
use ioscape_suite::{Name, bonnie};

use super::special;
use crate::args::Common;
use crate::exit::usage;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct SuiteArgs {
    /// Benchmarks, joined by commas, or one study: critique, representative or table-1990; `suite
    /// list` explains all of them
    #[arg(value_name = "NAME", required_unless_present = "resume")]
    pub(crate) names: Option<String>,
    /// Directories; several are taken in turn and compared with the first [default: the current
    /// directory]
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Scored repetitions of each benchmark on each target [default: each benchmark's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: Option<u32>,
    /// Multiply the usual amount of data by this: Andrew's tree, TPC-B's branches, NetNews's
    /// articles, …
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_factor)]
    pub(crate) scale: f64,
    /// Size of Bonnie's file, 8KiB or more
    #[arg(long, value_name = "SIZE", value_parser = parse_file_size)]
    pub(crate) size: Option<u64>,
    /// How long each measurement of the operating-system suite takes; a run of TPC-B takes 10 times
    /// this
    #[arg(long, value_name = "DURATION", default_value = "0.2s", value_parser = parse_duration_s)]
    pub(crate) slice: f64,
    /// Time IOStone in whole seconds, as the published program does
    #[arg(long)]
    pub(crate) faithful: bool,
    /// Give IOStone 1987's random numbers a seed, as its authors meant to; the published program
    /// forgot to
    #[arg(long)]
    pub(crate) seeded: bool,
    /// Compiler for the Andrew benchmark [default: a built-in substitute, which does a fixed amount
    /// of work for each byte]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) cc: Option<String>,
    /// Andrew copies each file with a command of its own, as the original did
    #[arg(long)]
    pub(crate) processes: bool,
    /// Time each request in all trials; by default only one additional trial does so, which is not
    /// scored
    #[arg(long)]
    pub(crate) metered: bool,
    /// Go on with a suite that was interrupted
    #[arg(long, value_name = "RECORD", conflicts_with_all = [
        "out", "repeats", "scale", "size", "slice", "faithful", "seeded", "cc", "processes",
        "metered", "seed", "memory_limit", "dirty_limit", "names",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// The record; by default ioscape-suite-TIME.jsonl in the current directory, in UTC
    #[arg(long, short, value_name = "RECORD")]
    pub(crate) out: Option<PathBuf>,
    /// Write a page with the tables, HTML
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl SuiteArgs {
    /// The benchmarks that were asked for, and what for.
    pub(super) fn names(&self) -> anyhow::Result<(Vec<Name>, Purpose)> {
        let asked = self.names.as_deref().unwrap_or_default();
        match asked {
            special::CRITIQUE => return Ok((Name::CRITICISED.to_vec(), Purpose::Critique)),
            special::REPRESENTATIVE => {
                return Ok((vec![Name::Sort, Name::TpcB], Purpose::Representative));
            }
            _ => {}
        }
        let mut names: Vec<Name> = Vec::new();
        for text in asked.split(',').map(str::trim) {
            let name = Name::parse(text).ok_or_else(|| {
                usage(format!("{}; `ioscape suite list` says what they are", Name::unknown(text)))
            })?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok((names, Purpose::Scores))
    }

    pub(super) fn targets(&self) -> Vec<PathBuf> {
        if self.targets.is_empty() { vec![PathBuf::from(".")] } else { self.targets.clone() }
    }

    pub(super) fn repeats_of(&self, names: &[Name]) -> u32 {
        let usual = names.iter().map(|name| name.repeats()).min().unwrap_or(5);
        self.repeats.unwrap_or(usual)
    }

    pub(super) fn settings(&self) -> SuiteSettings {
        SuiteSettings {
            scale: self.scale,
            file_bytes: self.size,
            slice_s: self.slice,
            faithful: self.faithful,
            seeded: self.seeded,
            compiler: self.cc.clone(),
            processes: self.processes,
        }
    }
}

fn parse_file_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes >= bonnie::CHUNK_BYTES as u64 => Ok(bytes),
        _ => Err(format!("`{text}` holds no chunk of 8KiB; write for example 100MiB")),
    }
}

fn parse_factor(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(factor) if (0.001..=10_000.0).contains(&factor) => Ok(factor),
        _ => Err(format!("`{text}` is not a factor from 0.001 to 10000")),
    }
}
