//! The record as it grows: one line at a time, handed to the kernel before the next begins.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use ioscape_model::{Line, Record, seal};

use crate::exit::usage;

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

/// An open record.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// A new record; an existing file is refused.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        match OpenOptions::new().append(true).create_new(true).open(path) {
            Ok(file) => Ok(Self { file, path: path.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(usage(format!(
                "{} exists: choose another --out, or go on with it by --resume",
                path.display()
            ))),
            Err(error) => Err(usage(format!("cannot create {}: {error}", path.display()))),
        }
    }

    /// An existing record, to be continued behind its last whole line.
    pub(crate) fn go_on(path: &Path, record: &Record) -> anyhow::Result<Self> {
        let failed = || format!("cannot go on with {}", path.display());
        let file = OpenOptions::new().append(true).open(path).with_context(failed)?;
        file.set_len(record.valid_bytes).with_context(failed)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line.
    pub(crate) fn write(&mut self, line: &Line) -> io::Result<()> {
        self.file.write_all(&seal::sealed(line)?)
    }
}

/// Opens a record for reading.
pub(crate) fn open(path: &Path) -> anyhow::Result<Record> {
    let file = File::open(path)
        .map_err(|error| usage(format!("cannot open {}: {error}", path.display())))?;
    Record::read(BufReader::new(file))
        .map_err(|error| usage(format!("{}: {error}", path.display())))
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
