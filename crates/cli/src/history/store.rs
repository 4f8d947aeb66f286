//! A history as files: `DIR/LABEL/STAMP-RUN.jsonl`, and `DIR/LABEL/BLOCK/…` for runs of a block.
//! No index: a record that is copied there belongs to it, one that is removed does not, and a
//! version control system merges two histories without a conflict.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ioscape_model::{KeptRun, Record};

use crate::exit::usage;
use crate::journal;
use crate::out_file::{self, Existing};

/// More than a history of years: what is larger was not made by keeping records.
const FILES_MAX: usize = 10_000;

/// A name that can be a directory everywhere.
///
/// # Errors
/// One line that says what a name is made of.
pub(super) fn plain_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || text.len() > 64 || text.starts_with('.') || !text.chars().all(is_plain) {
        return Err(format!(
            "`{text}` is no name; use up to 64 letters, digits, - _ and ., no . in front"
        ));
    }
    Ok(text.to_owned())
}

/// The directory.
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    /// A history that is there.
    pub(super) fn open(root: &Path) -> anyhow::Result<Self> {
        if !root.is_dir() {
            return Err(usage(format!(
                "{}: there is no history; `ioscape history add {} RECORD…` begins one",
                root.display(),
                root.display()
            )));
        }
        Ok(Self { root: root.to_owned() })
    }

    /// A history, made where there is none.
    pub(super) fn make(root: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(root).map_err(|error| out_file::failed(root, error, "DIR"))?;
        Self::open(root)
    }

    /// The label asked for; of none `main`, or the only one that there is.
    pub(super) fn label(&self, asked: Option<&str>) -> anyhow::Result<String> {
        let labels = self.labels()?;
        let is_there = |name: &str| labels.iter().any(|label| label == name);
        let all = || labels.join(", ");
        match (asked, labels.as_slice()) {
            (_, []) => Err(usage(format!("{}: no records are kept there", self.root.display()))),
            (Some(asked), _) if is_there(asked) => Ok(asked.to_owned()),
            (Some(asked), _) => Err(usage(format!("--label {asked}: there are {}", all()))),
            (None, [only]) => Ok(only.clone()),
            (None, _) if is_there("main") => Ok("main".to_owned()),
            (None, _) => Err(usage(format!("name one by --label: {}", all()))),
        }
    }

    fn labels(&self) -> anyhow::Result<Vec<String>> {
        let is_label = |path: &PathBuf| path.is_dir();
        let all = entries(&self.root)?.into_iter().filter(is_label);
        Ok(all.filter_map(|path| name_of(&path)).collect())
    }

    /// All records under a label, with what is known of each run; none where nothing is kept.
    pub(super) fn runs(&self, label: &str) -> anyhow::Result<Vec<(KeptRun, Record)>> {
        let files = self.files(label)?;
        if files.len() > FILES_MAX {
            let path = self.root.join(label);
            return Err(usage(format!("{}: more than {FILES_MAX} records", path.display())));
        }
        files.into_iter().map(|(block, path)| self.run(block, &path)).collect()
    }

    /// One of the records under a label.
    pub(super) fn any(&self, label: &str) -> anyhow::Result<Option<Record>> {
        let last = self.files(label)?.pop();
        last.map(|(_, path)| journal::open(&path)).transpose()
    }

    fn run(&self, block: Option<String>, path: &Path) -> anyhow::Result<(KeptRun, Record)> {
        let record = journal::open(path)?;
        let header = &record.header;
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let kept = KeptRun {
            run_id: header.run_id.clone(),
            block,
            record: below.display().to_string(),
            start_time: header.start_time.clone(),
            kernel: header.host.kernel.clone(),
            version: header.tool.version.clone(),
        };
        Ok((kept, record))
    }

    /// Files under a label, each with its block.
    fn files(&self, label: &str) -> anyhow::Result<Vec<(Option<String>, PathBuf)>> {
        let root = self.root.join(label);
        if !root.is_dir() {
            return Ok(vec![]);
        }
        let mut files = Vec::new();
        for path in entries(&root)? {
            if path.is_dir() {
                let inside = entries(&path)?.into_iter().filter(|path| is_record(path));
                files.extend(inside.map(|file| (name_of(&path), file)));
            } else if is_record(&path) {
                files.push((None, path));
            }
        }
        Ok(files)
    }

    /// Copies a record to its place; none where that run is kept already.
    pub(super) fn keep(
        &self,
        path: &Path,
        record: &Record,
        label: &str,
        block: Option<&str>,
    ) -> anyhow::Result<Option<PathBuf>> {
        let name = file_name(record)?;
        let is_kept = |(_, file): &(Option<String>, PathBuf)| file.ends_with(&name);
        if self.files(label)?.iter().any(is_kept) {
            return Ok(None);
        }
        let directory = block.iter().fold(self.root.join(label), |place, block| place.join(block));
        fs::create_dir_all(&directory)
            .map_err(|error| out_file::failed(&directory, error, "DIR"))?;
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let place = directory.join(&name);
        out_file::write(&place, &bytes, Existing::Kept, "DIR")?;
        Ok(Some(place))
    }
}

/// `20261120T131618Z-RUN.jsonl`: in the order of time.
fn file_name(record: &Record) -> anyhow::Result<String> {
    let header = &record.header;
    let plain =
        |text: &str| -> String { text.chars().filter(char::is_ascii_alphanumeric).collect() };
    let (stamp, run) = (plain(&header.start_time), plain(&header.run_id));
    if stamp.is_empty() {
        return Err(usage("a record without a start has no place in time"));
    }
    Ok(if run.is_empty() { format!("{stamp}.jsonl") } else { format!("{stamp}-{run}.jsonl") })
}

fn is_record(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|extension| extension == "jsonl")
}

fn name_of(path: &Path) -> Option<String> {
    path.file_name()?.to_str().map(str::to_owned)
}

/// Entries of a directory by name, hidden ones left out.
fn entries(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = match read {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(usage(format!("cannot read {}: {error}", directory.display())));
        }
        read => read.with_context(|| format!("cannot read {}", directory.display()))?,
    };
    let mut paths: Vec<PathBuf> = read.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| name_of(path).is_some_and(|name| !name.starts_with('.')));
    paths.sort();
    Ok(paths)
}

/// Runs that were made otherwise would show a change where none was.
///
/// # Errors
/// One line that names what differs.
pub(super) fn refuse_other(path: &Path, record: &Record, kept: &Record) -> anyhow::Result<()> {
    let (new, old) = (&record.header, &kept.header);
    let differs = [
        (new.method != old.method, "was made by another method"),
        (new.target.kind != old.target.kind, "is of another kind of target"),
        (new.target.filesystem != old.target.filesystem, "is of another filesystem"),
        (
            new.host.memory_limit_set_bytes != old.host.memory_limit_set_bytes,
            "was made under another --memory-limit",
        ),
    ];
    match differs.into_iter().find(|(is_other, _)| *is_other) {
        Some((_, how)) => Err(usage(format!(
            "{} {how} than the records under this label: give it a --label of its own",
            path.display()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_directories_everywhere() {
        for good in ["main", "kernel-6.12", "a_b"] {
            assert_eq!(plain_name(good).unwrap(), good);
        }
        for bad in ["", ".", "..", ".git", "a/b", "a b", "ü", &"x".repeat(65)] {
            assert!(plain_name(bad).is_err(), "{bad}");
        }
    }
}
