//! Learnt by an import beside the events: files, streams, lines that could not be read.

use std::collections::HashMap;
use std::io;

use super::paths;
use crate::event::{FileEntry, FileKind, Sink, StreamEntry};

/// Malformed lines that are kept to be shown.
const SHOWN: usize = 3;
/// Deeper files have no directory in the table.
const DEPTH_MAX: u16 = 64;
/// Bytes of a malformed line that are shown.
const SHOWN_BYTES: usize = 100;

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The file it is in.
    pub file: String,
    /// Its number, 1 and up; of a record in a binary file.
    pub line: u64,
    /// How it begins, without control characters.
    pub text: String,
}

/// How many lines were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Lines or records.
    pub(crate) lines: u64,
    /// Of these, lines that are no lines of the format.
    pub(crate) malformed: u64,
    /// The first of them.
    pub(crate) first: Vec<Malformed>,
    /// Lines that are of the format, but no I/O.
    pub(crate) passed_over: u64,
}

impl Tally {
    /// Notes a line that could not be read.
    pub(crate) fn bad(&mut self, file: &str, line: u64, text: &[u8]) {
        self.malformed += 1;
        if self.first.len() < SHOWN {
            let text = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]);
            let text = text.chars().map(|c| if c.is_control() { '.' } else { c }).collect();
            self.first.push(Malformed { file: file.to_owned(), line, text });
        }
    }
}

/// The table of files while it grows. Paths go to the sink as they are: it decides what it keeps.
#[derive(Default)]
pub(crate) struct Files {
    entries: Vec<FileEntry>,
    by_name: HashMap<Box<[u8]>, u32>,
    /// The name that was asked for last: mostly it is asked for again.
    last: (Vec<u8>, u32),
}

impl Files {
    /// The file of a path, new or known.
    pub(crate) fn path(&mut self, path: &[u8]) -> u32 {
        self.named(path, paths::described)
    }

    /// A volume or device that has a name only.
    pub(crate) fn volume(&mut self, name: &[u8], kind: FileKind) -> u32 {
        let path = || Some(String::from_utf8_lossy(name).into_owned());
        self.named(name, |_| FileEntry { kind, path: path(), ..FileEntry::default() })
    }

    /// A block device by its numbers.
    pub(crate) fn device(&mut self, device: (u32, u32)) -> u32 {
        let mut name = [0; 8];
        name[..4].copy_from_slice(&device.0.to_le_bytes());
        name[4..].copy_from_slice(&device.1.to_le_bytes());
        let kind = FileKind::Block;
        self.named(&name, |_| FileEntry { kind, device, ..FileEntry::default() })
    }

    /// A file that nobody knows the name of.
    pub(crate) fn nameless(&mut self, kind: FileKind) -> u32 {
        self.add(FileEntry { kind, ..FileEntry::default() })
    }

    /// Whether a path has been seen and is still there.
    pub(crate) fn known(&self, path: &[u8]) -> Option<u32> {
        self.by_name.get(path).copied()
    }

    /// The name belongs to no file any more; one that is made later is another file.
    pub(crate) fn forget(&mut self, path: &[u8]) {
        self.by_name.remove(path);
        self.last.1 = 0;
    }

    /// The file has another name from now on; gives the file that had it before.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> (u32, Option<u32>) {
        let file = self.path(from);
        self.forget(from);
        let replaced = self.by_name.insert(to.into(), file);
        let mut entry = self.placed(to, paths::described(to));
        let before = &self.entries[file as usize - 1];
        (entry.id, entry.kind) = (file, before.kind);
        (entry.first_bytes, entry.last_bytes) = (before.first_bytes, before.last_bytes);
        self.entries[file as usize - 1] = entry;
        (file, replaced)
    }

    /// A file's entry, to be changed.
    pub(crate) fn entry(&mut self, file: u32) -> Option<&mut FileEntry> {
        self.entries.get_mut((file as usize).checked_sub(1)?)
    }

    /// Bytes of the file were touched up to here.
    pub(crate) fn reach(&mut self, file: u32, end: u64) {
        if let Some(entry) = self.entry(file) {
            entry.last_bytes = entry.last_bytes.max(end);
        }
    }

    fn named(&mut self, name: &[u8], described: impl Fn(&[u8]) -> FileEntry) -> u32 {
        if self.last.1 > 0 && self.last.0 == name {
            return self.last.1;
        }
        let file = if let Some(&file) = self.by_name.get(name) {
            file
        } else {
            let entry = self.placed(name, described(name));
            let file = self.add(entry);
            self.by_name.insert(name.into(), file);
            file
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(name);
        self.last.1 = file;
        file
    }

    /// With its directory.
    fn placed(&mut self, name: &[u8], entry: FileEntry) -> FileEntry {
        let directory = match paths::parent(name) {
            Some(parent) if (1..=DEPTH_MAX).contains(&entry.depth) => self.directory(parent),
            _ => 0,
        };
        FileEntry { directory, ..entry }
    }

    fn directory(&mut self, path: &[u8]) -> u32 {
        if let Some(&known) = self.by_name.get(path) {
            return known;
        }
        let entry = FileEntry { kind: FileKind::Directory, ..paths::described(path) };
        let entry = self.placed(path, entry);
        let file = self.add(entry);
        self.by_name.insert(path.into(), file);
        file
    }

    fn add(&mut self, mut entry: FileEntry) -> u32 {
        let file = u32::try_from(self.entries.len() + 1).unwrap_or(u32::MAX);
        entry.id = file;
        self.entries.push(entry);
        file
    }
}

/// The table of streams while it grows. Times are those of the format's own clock.
#[derive(Default)]
pub(crate) struct Streams {
    entries: Vec<StreamEntry>,
    /// By the number that the format gives them.
    by_number: HashMap<u64, u32>,
    last: Option<(u64, u32)>,
}

impl Streams {
    /// The stream of a number, new or known.
    pub(crate) fn numbered(&mut self, number: u64, start_ns: u64) -> u32 {
        if let Some((last, stream)) = self.last
            && last == number
        {
            return stream;
        }
        let stream = match self.by_number.get(&number) {
            Some(&stream) => stream,
            None => self.add(number, start_ns),
        };
        self.last = Some((number, stream));
        stream
    }

    /// A stream of a number that may have belonged to another one before.
    pub(crate) fn add(&mut self, number: u64, start_ns: u64) -> u32 {
        let stream = u32::try_from(self.entries.len() + 1).unwrap_or(u32::MAX);
        let entry = StreamEntry { id: stream, process: stream, start_ns, ..StreamEntry::default() };
        self.entries.push(entry);
        self.by_number.insert(number, stream);
        self.last = None;
        stream
    }

    /// It ended: its number may come again.
    pub(crate) fn end(&mut self, number: u64, end_ns: u64) {
        if let Some(stream) = self.by_number.remove(&number)
            && let Some(entry) = self.entry(stream)
        {
            entry.end_ns = end_ns;
        }
        self.last = None;
    }

    /// A stream's entry, to be changed.
    pub(crate) fn entry(&mut self, stream: u32) -> Option<&mut StreamEntry> {
        self.entries.get_mut((stream as usize).checked_sub(1)?)
    }
}

/// All of it.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) files: Files,
    pub(crate) streams: Streams,
    pub(crate) tally: Tally,
    /// Sentences on things that cannot be known, as it turned out while reading.
    pub(crate) limits: Vec<String>,
}

impl Ledger {
    /// Notes a limit once.
    pub(crate) fn limit(&mut self, limit: &str) {
        if !self.limits.iter().any(|known| known == limit) {
            self.limits.push(limit.to_owned());
        }
    }

    /// Gives the tables to a sink; times count from `origin_ns` to `end_ns`.
    pub(crate) fn hand_over(
        &mut self,
        sink: &mut dyn Sink,
        origin_ns: u64,
        end_ns: u64,
    ) -> io::Result<()> {
        for file in self.files.entries.drain(..) {
            sink.file(file)?;
        }
        for mut stream in self.streams.entries.drain(..) {
            let end = if stream.end_ns == 0 { end_ns } else { stream.end_ns };
            stream.start_ns = stream.start_ns.saturating_sub(origin_ns);
            // A file whose times go back may end a stream before it began.
            stream.end_ns = end.saturating_sub(origin_ns).max(stream.start_ns);
            sink.stream(stream)?;
        }
        Ok(())
    }
}
