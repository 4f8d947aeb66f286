//! Opening a record again. Reading only: whoever has the file writes the lines.
//!
//! A record may come from anywhere. What is no line of one, what has rotted and what is too large
//! to be one is refused, and no more is held in memory than these limits let in.

use std::io::{BufRead, Read};

use crate::{
    Border, Element, End, Estimate, Finding, Header, Line, Map, ModelLine, Point, Region, Replay,
    RulesError, SuiteLines, Sustained, Warning,
    line::{FORMAT_VERSION, Resumed},
    seal::{Chain, Follower, Seal},
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
         copy, or take the line out to go without it and have that said"
    )]
    Rotten {
        /// Counted from 1.
        line: usize,
    },
    /// A line holds a number that no run writes.
    #[error("line {line}: {what}: restore the file from a copy")]
    Impossible {
        /// Counted from 1.
        line: usize,
        /// Which number, and what it may be.
        what: RulesError,
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
    /// The system vector; empty where none was measured.
    pub elements: Vec<Element>,
    /// Where writing for long was looked at.
    pub sustained: Vec<Sustained>,
    /// What classic benchmarks gave; empty in the record of a map.
    pub suite: SuiteLines,
    /// Replays of a trace or model.
    pub replays: Vec<Replay>,
    /// The highest revision that any line carries: one that was not closed is not to be reused.
    pub revision_max: u32,
    /// Length of the part that holds whole lines, bytes: where a resumed run goes on.
    pub valid_bytes: u64,
    /// What the next line is joined to there.
    pub chain: Chain,
}

impl Record {
    /// Seconds of the budget used: the latest time that any line says.
    pub fn elapsed_s(&self) -> f64 {
        let of_points = self.points.last().map_or(0.0, |point| point.started_s + point.elapsed_s);
        let of_map = self.map.as_ref().map_or(0.0, |map| map.elapsed_s);
        let of_end = self.end.as_ref().map_or(0.0, |end| end.elapsed_s);
        of_points.max(of_map).max(of_end)
    }

    /// Reads a record. A torn last line is dropped. Where other lines are missing, or stand there
    /// twice, a serious warning of the record says so.
    ///
    /// # Errors
    /// When the file cannot be read, does not begin with a header, is of a later version, holds
    /// something else than lines of a record as they were written, or too much.
    pub fn read(mut from: impl BufRead) -> Result<Self, RecordError> {
        let mut record: Option<Self> = None;
        let mut follower = Follower::default();
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
            let (line, seal) = read_line(&text, number)?;
            valid_bytes += length as u64;
            if !follower.take(seal, number) {
                continue;
            }
            match (&mut record, line) {
                (None, Line::Header(header)) => record = Some(Self::begun(header)),
                (Some(record), line) => record.take(line)?,
                (None, _) => return Err(RecordError::NoHeader),
            }
        }
        let mut record = record.ok_or(RecordError::NoHeader)?;
        record.warnings.extend(follower.doubt());
        record.keep_last_revision();
        Ok(Self { valid_bytes, chain: follower.end(), ..record })
    }

    /// The budget that holds now, seconds: a run may be continued under a longer one.
    pub fn budget_s(&self) -> f64 {
        let given_later = self.resumed.iter().rev().find_map(|resumed| resumed.budget_s);
        given_later.unwrap_or(self.header.budget_s)
    }

    fn begun(header: Header) -> Self {
        Self {
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
            elements: vec![],
            sustained: vec![],
            suite: SuiteLines::default(),
            replays: vec![],
            revision_max: 0,
            valid_bytes: 0,
            chain: Chain::default(),
        }
    }

    fn take(&mut self, line: Line) -> Result<(), RecordError> {
        self.revision_max = self.revision_max.max(revision_of(&line));
        match line {
            Line::Point(x) => self.points.push(x),
            Line::Estimate(x) => self.estimates.push(x),
            Line::Border(x) => self.borders.push(x),
            Line::Region(x) => self.regions.push(x),
            Line::Model(x) => self.models.push(x),
            Line::Finding(x) => self.findings.push(x),
            Line::Map(x) => self.map = Some(x),
            Line::Warning(x) => self.warnings.push(x),
            Line::Element(x) => self.elements.push(x),
            Line::Sustained(x) => self.sustained.push(x),
            Line::Suite(x) => self.suite.suite = Some(x),
            Line::Trial(x) => self.suite.trials.push(x),
            Line::Score(x) => self.suite.scores.push(x),
            Line::Contrast(x) => self.suite.contrasts.push(x),
            Line::Replay(x) => self.replays.push(x),
            Line::End(x) => self.end = Some(x),
            Line::Resumed(x) => {
                // What was said of the run when it stopped is said anew when it ends.
                self.warnings.retain(|warning| !warning.code.is_closing());
                self.suite.scores.clear();
                self.suite.contrasts.clear();
                self.end = None;
                self.resumed.push(x);
            }
            Line::Header(_) => return Err(RecordError::NoHeader),
        }
        Ok(())
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

fn read_line(text: &[u8], number: usize) -> Result<(Line, Seal), RecordError> {
    let line = serde_json::from_slice::<Line>(text)
        .map_err(|error| RecordError::Malformed { line: number, reason: error.to_string() })?;
    let seal = Seal::from_text(text);
    if seal == Seal::Broken {
        return Err(RecordError::Rotten { line: number });
    }
    line.check().map_err(|what| RecordError::Impossible { line: number, what })?;
    Ok((line, seal))
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
