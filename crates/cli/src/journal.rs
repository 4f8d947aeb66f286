//! The record as it grows: one line at a time, handed to the kernel before the next begins. While
//! it grows it is locked: nobody else goes on with it.

mod lock;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use ioscape_model::seal::Chain;
use ioscape_model::{Code, Line, Record};

use crate::exit::usage;
use crate::say;

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

/// A record that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    chain: Chain,
    /// Where its whole lines end, as long as what lies behind them has not been cut off.
    whole_bytes: Option<u64>,
}

impl Journal {
    /// A new record; an existing file is refused.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        match OpenOptions::new().append(true).create_new(true).open(path) {
            Ok(file) => {
                lock::lock(&file, path)?;
                let (path, chain) = (path.to_owned(), Chain::default());
                Ok(Self { file, path, chain, whole_bytes: None })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(usage(format!(
                "{} exists: choose another --out, or go on with it by --resume",
                path.display()
            ))),
            Err(error) => Err(usage(format!("cannot create {}: {error}", path.display()))),
        }
    }

    /// An existing record, to be gone on with behind its last whole line. Nothing is changed before
    /// the first line is written.
    pub(crate) fn go_on(path: &Path) -> anyhow::Result<(Record, Self)> {
        let failed = |error| usage(format!("cannot go on with {}: {error}", path.display()));
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(usage(format!("cannot go on with {}: it is no file", path.display())));
        }
        lock::lock(&file, path)?;
        let record = read(&file, path)?;
        warn_of_alterations(path, &record);
        let (path, chain) = (path.to_owned(), record.chain);
        let whole_bytes = Some(record.valid_bytes);
        Ok((record, Self { file, path, chain, whole_bytes }))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        Ok(())
    }
}

/// Opens a record for reading, and says so where it is not as it was written.
pub(crate) fn open(path: &Path) -> anyhow::Result<Record> {
    let record = open_again(path)?;
    warn_of_alterations(path, &record);
    Ok(record)
}

/// Opens a record of which that has been said.
pub(crate) fn open_again(path: &Path) -> anyhow::Result<Record> {
    let file = File::open(path)
        .map_err(|error| usage(format!("cannot open {}: {error}", path.display())))?;
    read(&file, path)
}

fn read(file: &File, path: &Path) -> anyhow::Result<Record> {
    Record::read(BufReader::new(file))
        .map_err(|error| usage(format!("{}: {error}", path.display())))
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
    fn the_default_record_is_named_after_the_time() {
        let name = default_record("ioscape-validate", "2026-11-20T13:16:18Z");
        assert_eq!(name, Path::new("ioscape-validate-20261120T131618Z.jsonl"));
    }
}
