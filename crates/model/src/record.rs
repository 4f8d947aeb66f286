//! Opening a record again. Reading only: whoever has the file writes the lines.
//!
//! A record may come from anywhere. What is no line of one, what has rotted and what is too large
//! to be one is refused, and no more is held in memory than these limits let in.

use std::io::{BufRead, Read};

use crate::{
    Border, End, Estimate, Finding, Header, Line, Map, ModelLine, Point, Region, SuiteLines,
    Warning,
    line::{FORMAT_VERSION, Resumed},
    seal,
};

/// Longest line: thousands of times what a run writes.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Most lines: weeks of measuring.
const LINES_MAX: usize = 100_000;

/// A record that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file could not be read.
    #[error("cannot read the record: {0}")]
    Read(#[from] std::io::Error),
    /// A line is no line of a record.
    #[error("line {line} is not a line of a record: {reason}")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// What the parser said.
        reason: String,
    },
    /// A line is not what was written.
    #[error(
        "line {line} is not what was written, its check does not fit: restore the file from a \
         copy, or take the line out to go without it"
    )]
    Rotten {
        /// Counted from 1.
        line: usize,
    },
    /// Larger than any run's.
    #[error("line {line} goes beyond what a record may be: {LINES_MAX} lines of 4 MiB each")]
    TooLarge {
        /// Counted from 1.
        line: usize,
    },
    /// The first line is not a header.
    #[error("the file does not begin with a header: is it an ioscape record?")]
    NoHeader,
    /// Written by a later version.
    #[error(
        "the record has format version {found}, this build reads up to {FORMAT_VERSION}: update ioscape"
    )]
    TooNew {
        /// The record's version.
        found: u32,
    },
}

/// A record in memory, in the order of the file. Of borders, regions, models, findings and
/// estimates only those of the last closed revision.
#[derive(Clone, Debug)]
pub struct Record {
    /// The first line.
    pub header: Header,
    /// All visits.
    pub points: Vec<Point>,
    /// Pooled workloads.
    pub estimates: Vec<Estimate>,
    /// Borders, smallest first.
    pub borders: Vec<Border>,
    /// Regions, smallest first.
    pub regions: Vec<Region>,
    /// Models.
    pub models: Vec<ModelLine>,
    /// Findings.
    pub findings: Vec<Finding>,
    /// Doubts about the run.
    pub warnings: Vec<Warning>,
    /// The last closed revision.
    pub map: Option<Map>,
    /// The last line; none after a kill.
    pub end: Option<End>,
    /// Where the run went on after an interruption.
    pub resumed: Vec<Resumed>,
    /// What classic benchmarks gave; empty in the record of a map.
    pub suite: SuiteLines,
    /// The highest revision that any line carries: one that was not closed is not to be reused.
    pub revision_max: u32,
    /// Length of the part that holds whole lines, bytes: where a resumed run goes on.
    pub valid_bytes: u64,
}

impl Record {
    /// Reads a record. A torn last line is dropped.
    ///
    /// # Errors
    /// When the file cannot be read, does not begin with a header, is of a later version, holds
    /// something else than lines of a record as they were written, or too much.
    pub fn read(mut from: impl BufRead) -> Result<Self, RecordError> {
        let mut lines = Vec::new();
        let mut valid_bytes = 0;
        let mut text = Vec::new();
        for number in 1.. {
            text.clear();
            let length = from.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut text)?;
            if length == 0 {
                break;
            }
            if length as u64 > LINE_BYTES_MAX || number > LINES_MAX {
                return Err(RecordError::TooLarge { line: number });
            }
            // Asked before the line is read: a later format may hold what no type here fits.
            if number == 1
                && let Some(found) = newer_version(&text)
            {
                return Err(RecordError::TooNew { found });
            }
            // A line is written in one piece, its end last: without that it was torn, and nothing
            // can follow it.
            if !text.ends_with(b"\n") {
                break;
            }
            lines.push(read_line(&text, number)?);
            valid_bytes += length as u64;
        }
        Self::assemble(lines, valid_bytes)
    }

    /// The budget that holds now, seconds: a run may be gone on with under a longer one.
    pub fn budget_s(&self) -> f64 {
        let given_later = self.resumed.iter().rev().find_map(|resumed| resumed.budget_s);
        given_later.unwrap_or(self.header.budget_s)
    }

    fn assemble(lines: Vec<Line>, valid_bytes: u64) -> Result<Self, RecordError> {
        let mut lines = lines.into_iter();
        let Some(Line::Header(header)) = lines.next() else { return Err(RecordError::NoHeader) };
        let mut record = Self {
            header,
            points: vec![],
            estimates: vec![],
            borders: vec![],
            regions: vec![],
            models: vec![],
            findings: vec![],
            warnings: vec![],
            map: None,
            end: None,
            resumed: vec![],
            suite: SuiteLines::default(),
            revision_max: 0,
            valid_bytes,
        };
        for line in lines {
            record.revision_max = record.revision_max.max(revision_of(&line));
            match line {
                Line::Point(x) => record.points.push(x),
                Line::Estimate(x) => record.estimates.push(x),
                Line::Border(x) => record.borders.push(x),
                Line::Region(x) => record.regions.push(x),
                Line::Model(x) => record.models.push(x),
                Line::Finding(x) => record.findings.push(x),
                Line::Map(x) => record.map = Some(x),
                Line::Warning(x) => record.warnings.push(x),
                Line::Suite(x) => record.suite.suite = Some(x),
                Line::Trial(x) => record.suite.trials.push(x),
                Line::Score(x) => record.suite.scores.push(x),
                Line::Contrast(x) => record.suite.contrasts.push(x),
                Line::End(x) => record.end = Some(x),
                Line::Resumed(x) => {
                    // What was said of the run when it stopped is said anew when it ends.
                    record.warnings.retain(|warning| !warning.code.is_closing());
                    record.suite.scores.clear();
                    record.suite.contrasts.clear();
                    record.end = None;
                    record.resumed.push(x);
                }
                Line::Header(_) => return Err(RecordError::NoHeader),
            }
        }
        record.keep_last_revision();
        Ok(record)
    }

    fn keep_last_revision(&mut self) {
        let last = self.map.as_ref().map(|map| map.revision);
        let current = |revision: u32| Some(revision) == last;
        self.estimates.retain(|x| current(x.revision));
        self.borders.retain(|x| current(x.revision));
        self.regions.retain(|x| current(x.revision));
        self.models.retain(|x| current(x.revision));
        self.findings.retain(|x| current(x.revision));
    }
}

fn read_line(text: &[u8], number: usize) -> Result<Line, RecordError> {
    let line = serde_json::from_slice::<Line>(text)
        .map_err(|error| RecordError::Malformed { line: number, reason: error.to_string() })?;
    if seal::holds(text) { Ok(line) } else { Err(RecordError::Rotten { line: number }) }
}

fn revision_of(line: &Line) -> u32 {
    match line {
        Line::Estimate(x) => x.revision,
        Line::Border(x) => x.revision,
        Line::Region(x) => x.revision,
        Line::Model(x) => x.revision,
        Line::Finding(x) => x.revision,
        Line::Map(x) => x.revision,
        _ => 0,
    }
}

fn newer_version(text: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(text).ok()?;
    let found = u32::try_from(value.get("format_version")?.as_u64()?).ok()?;
    (found > FORMAT_VERSION).then_some(found)
}
