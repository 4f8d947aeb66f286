//! The record as it grows: one line at a time, handed to the kernel before the next begins. While
//! it grows it is locked: nobody else continues it.

mod lock;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ioscape_engine::Error;
use ioscape_experiment::explore::Outcome;
use ioscape_model::seal::Chain;
use ioscape_model::units::show_seconds;
use ioscape_model::{Code, EndReason, Line, Record};

use crate::exit::usage;
use crate::out_file;
use crate::output::say;

/// `PREFIX-20261120T131618Z`, for what began at 2026-11-20T13:16:18Z.
pub(crate) fn stamped(prefix: &str, started: &str) -> String {
    let stamp: String = started.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("{prefix}-{stamp}")
}

/// Where a record goes whose place nobody named: `PREFIX-20261120T131618Z.jsonl`, or a name like
/// it that is not taken.
pub(crate) fn default_record(prefix: &str, started: &str) -> PathBuf {
    not_taken(Path::new(&(stamped(prefix, started) + ".jsonl")))
}

/// A name like this that is not taken: two records may begin within one second.
fn not_taken(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let names = (2..).map(|number| path.with_file_name(format!("{stem}-{number}.jsonl")));
    let mut names = std::iter::once(path.to_owned()).chain(names);
    names.find(|name| !name.exists()).unwrap_or_else(|| path.to_owned())
}

/// An open record. A new one in which nothing measured was written goes away again when it is
/// dropped, so that whatever ended the command can be tried again under the same name.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    worth: Worth,
    chain: Chain,
    /// Where its whole lines end, as long as what lies behind them has not been cut off.
    whole_bytes: Option<u64>,
}

/// Whether a record is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    /// It is new, and nothing measured is in it.
    Nothing,
    /// It holds a measurement, or was there before.
    Kept,
}

impl Journal {
    /// A new record; an existing file is refused. `flag` is what names another one.
    pub(crate) fn create(path: &Path, flag: &str) -> anyhow::Result<Self> {
        match OpenOptions::new().append(true).create_new(true).open(path) {
            Ok(file) => {
                lock::lock(&file, path)?;
                let (path, chain, worth) = (path.to_owned(), Chain::default(), Worth::Nothing);
                Ok(Self { file, path, worth, chain, whole_bytes: None })
            }
            Err(error) => Err(out_file::failed(path, error, flag)),
        }
    }

    /// An existing record, to be continued behind its last whole line. Nothing is changed before
    /// the first line is written.
    pub(crate) fn go_on(path: &Path) -> anyhow::Result<(Record, Self)> {
        let failed = |error| usage(format!("cannot continue {}: {error}", path.display()));
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(usage(format!("cannot continue {}: it is no file", path.display())));
        }
        lock::lock(&file, path)?;
        let record = read(&file, path)?;
        warn_of_alterations(path, &record);
        let (path, chain, worth) = (path.to_owned(), record.chain, Worth::Kept);
        let whole_bytes = Some(record.valid_bytes);
        Ok((record, Self { file, path, worth, chain, whole_bytes }))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it stays when it is dropped.
    pub(crate) fn is_kept(&self) -> bool {
        self.worth == Worth::Kept
    }

    /// Appends a line.
    pub(crate) fn write(&mut self, line: &Line) -> io::Result<()> {
        let (text, chain) = self.chain.seal(line)?;
        if let Some(whole_bytes) = self.whole_bytes {
            self.file.set_len(whole_bytes)?;
            self.whole_bytes = None;
        }
        self.file.write_all(&text)?;
        self.chain = chain;
        match line {
            Line::Point(_) | Line::Trial(_) | Line::Element(_) => self.worth = Worth::Kept,
            // A map that is closed outlives a power cut and a device that fails: a filesystem may
            // hold a new file back for half a minute. Nothing is measured meanwhile, and maps are
            // rare; after each point it would cost a slow disk more than it measures. Some
            // filesystems find out only here that there was no room.
            Line::Map(_) | Line::End(_) => self.file.sync_all()?,
            _ => {}
        }
        Ok(())
    }

    /// Appends a line, or says which record it was that could not be written.
    pub(crate) fn put(&mut self, line: &Line) -> anyhow::Result<()> {
        let written = self.write(line);
        written.with_context(|| format!("cannot write the record {}", self.path.display()))
    }

    /// The record of a run could not be written to its end.
    pub(crate) fn unwritten(&self, error: io::Error) -> anyhow::Error {
        let path = self.path.display();
        if !self.is_kept() {
            return anyhow::Error::from(error).context(format!("cannot write the record {path}"));
        }
        anyhow::anyhow!(
            "cannot write the record: {error}; what was written is kept, continue with `ioscape run \
             --resume {path}` once there is room"
        )
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let is_at = |path: &Path| {
            let (ours, there) = (self.file.metadata().ok()?, fs::metadata(path).ok()?);
            Some((ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        };
        if self.worth == Worth::Nothing && is_at(&self.path) == Some(true) {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// A run without a single visit has nothing to say.
///
/// # Errors
/// Why there was none, and what to try.
pub(crate) fn refuse_nothing(outcome: &Outcome, budget_s: f64) -> anyhow::Result<()> {
    if outcome.end.points > 0 {
        return Ok(());
    }
    let why = match (outcome.end.reason, &outcome.failure) {
        (EndReason::Interrupted, _) => return Err(Error::Interrupted.into()),
        (_, Some(failure)) => failure.clone(),
        (EndReason::Written, None) => {
            "one visit may write more than --max-written allows; raise it".to_owned()
        }
        (_, None) => format!(
            "opening the target and a first visit take longer than the budget of {}; give a \
             longer --budget, 1m or more",
            show_seconds(budget_s)
        ),
    };
    Err(anyhow::anyhow!("nothing was measured: {why}"))
}

/// Opens a record for reading, and says so where it is not as it was written.
pub(crate) fn open(path: &Path) -> anyhow::Result<Record> {
    let record = open_again(path)?;
    warn_of_alterations(path, &record);
    Ok(record)
}

/// Opens a record of which that has been said.
pub(crate) fn open_again(path: &Path) -> anyhow::Result<Record> {
    let file = File::open(path).map_err(|error| cannot_open(path, error))?;
    read(&file, path)
}

fn read(file: &File, path: &Path) -> anyhow::Result<Record> {
    Record::read(BufReader::new(file))
        .map_err(|error| usage(format!("{}: {error}", path.display())))
}

/// A path that leads to no record is wrong usage; what else can be wrong is not.
fn cannot_open(path: &Path, error: io::Error) -> anyhow::Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            usage(format!("cannot open {shown}: {error}"))
        }
        io::ErrorKind::PermissionDenied => {
            usage(format!("cannot open {shown}: {error}; name a record that this user may read"))
        }
        _ => anyhow::Error::from(error).context(format!("cannot open {shown}")),
    }
}

/// Not every answer has a place for what is doubtful about its record.
fn warn_of_alterations(path: &Path, record: &Record) {
    for warning in record.warnings.iter().filter(|warning| warning.code == Code::Altered) {
        say(&format!("ioscape: {}: {}; {}", path.display(), warning.text, warning.remedy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_record_without_a_measurement_goes_away_and_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        drop(Journal::create(&path, "--out").unwrap());
        assert!(!path.exists());
        let mut journal = Journal::create(&path, "--out").unwrap();
        journal.worth = Worth::Kept;
        drop(journal);
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        let journal = Journal::create(&path, "--out").unwrap();
        fs::rename(&path, directory.path().join("moved")).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        drop(journal);
        assert_eq!(fs::read(&path).unwrap(), b"somebody else's");
    }

    #[test]
    fn the_default_record_is_named_after_the_time() {
        let name = default_record("ioscape-validate", "2026-11-20T13:16:18Z");
        assert_eq!(name, Path::new("ioscape-validate-20261120T131618Z.jsonl"));
    }
}
