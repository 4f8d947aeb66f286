//! Looks at all events before the first call: which files were there at the start, how long they
//! were, of which the data are needed, and which workload it is like.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_engine::error::{Error, Result};
use ioscape_engine::replay::{AtStart, Shape, StageFile};
use ioscape_model::app::Behaviour;
use ioscape_model::{Start, Workload};
use ioscape_trace::character::{self, Character};
use ioscape_trace::{Event, FileEntry, FileKind, Flags, Layer, Op, Sink};

use super::{Load, Step};

/// Ids above this are no ids: a table of so many files would not fit memory.
const FILES_MAX: u32 = 1 << 26;
/// Events between two looks at whether to go on.
const LOOK_EVENTS: u64 = 1 << 16;

/// Result of the survey.
#[derive(Debug)]
pub struct Surveyed {
    files: Vec<StageFile>,
    is_staged: Vec<bool>,
    behaviour: Behaviour,
    workload: Workload,
    /// Events there are.
    events: u64,
    recorded_s: f64,
}

impl Surveyed {
    pub(super) fn stage_files(&self) -> &[StageFile] {
        &self.files
    }

    /// Whether calls on a file are made: it lies on storage.
    pub(super) fn is_staged(&self, file: u32) -> bool {
        self.is_staged.get(file as usize).copied().unwrap_or(false)
    }

    pub(super) fn directory(&self, file: u32) -> u32 {
        self.files.get(file as usize).map_or(0, |found| found.directory)
    }

    /// Files that there are, or will be.
    pub(super) fn files_count(&self) -> u64 {
        self.is_staged.iter().filter(|is_staged| **is_staged).count() as u64
    }

    pub(super) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// How long it took when it was recorded, seconds.
    #[must_use]
    pub fn recorded_s(&self) -> f64 {
        self.recorded_s
    }

    /// Its behaviour when it was recorded.
    #[must_use]
    pub fn behaviour(&self) -> &Behaviour {
        &self.behaviour
    }

    /// How many events there are.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Bytes that will be laid out.
    #[must_use]
    pub fn laid_out_bytes(&self) -> u64 {
        let starts = self.files.iter().filter_map(|file| file.at_start);
        starts.filter(|start| start.has_data).map(|start| start.bytes).sum()
    }
}

/// A file, as far as its events tell.
#[derive(Clone, Debug, Default)]
struct Found {
    kind: FileKind,
    directory: u32,
    first_bytes: u64,
    last_bytes: u64,
    is_resident: Option<bool>,
    seen: bool,
    /// Its first event says that it was not there.
    is_made: bool,
    /// Read up to here before anybody wrote there.
    needed_bytes: u64,
    written_end: u64,
    has_data: bool,
    /// Written over where data were before.
    overwritten_bytes: u64,
}

impl Found {
    fn new(entry: &FileEntry) -> Self {
        Self {
            kind: entry.kind,
            directory: entry.directory,
            first_bytes: entry.first_bytes,
            last_bytes: entry.last_bytes,
            is_resident: entry.resident_bytes.map(|bytes| bytes > 0),
            ..Self::default()
        }
    }

    fn see(&mut self, event: &Event) {
        let is_done = event.error == 0;
        if !self.seen {
            self.seen = true;
            let makes = matches!(event.op, Op::Create | Op::Mkdir | Op::Symlink) && is_done;
            self.is_made = makes || event.op == Op::LookupNeg;
        }
        if !is_done || event.length == 0 {
            if event.op == Op::Open && event.flags.has(Flags::TRUNC) {
                self.written_end = u64::MAX; // what was there before is gone
            }
            return;
        }
        let end = event.offset.saturating_add(event.length);
        match event.op {
            Op::Read | Op::Sendfile | Op::Copy | Op::FaultR | Op::FaultW | Op::Get => {
                self.has_data = true;
                if end > self.written_end {
                    self.needed_bytes = self.needed_bytes.max(end);
                }
            }
            Op::Write | Op::Set => {
                let is_over = event.offset < self.first_bytes.max(self.needed_bytes);
                self.has_data |= is_over;
                let over = if is_over { event.length } else { 0 };
                self.overwritten_bytes = self.overwritten_bytes.saturating_add(over);
                self.written_end = self.written_end.max(end);
            }
            _ => {}
        }
    }

    /// A name was given to it, by `link` or `copy`.
    fn name(&mut self, is_made: bool) {
        if !self.seen {
            (self.seen, self.is_made) = (true, is_made);
        }
    }

    fn shape(&self) -> Shape {
        match self.kind {
            FileKind::Directory => Shape::Directory,
            FileKind::Symlink => Shape::Link,
            _ => Shape::File,
        }
    }

    fn is_staged(&self) -> bool {
        !matches!(self.kind, FileKind::Other | FileKind::Pseudo)
    }

    fn stage_file(&self, start: Start) -> StageFile {
        let is_device = self.kind == FileKind::Block;
        let bytes = self.first_bytes.max(self.needed_bytes);
        let bytes =
            if is_device { bytes.max(self.last_bytes).max(self.written_end) } else { bytes };
        // Nobody called a page of a fault by its bytes: the last page of a file is whole.
        let at_start = AtStart {
            bytes,
            has_data: self.has_data || is_device,
            is_cached: match start {
                Start::AsRecorded => self.is_resident.unwrap_or(true),
                Start::Cold => false,
                Start::Warm => true,
            },
            is_written: self.overwritten_bytes > 0,
        };
        StageFile {
            shape: self.shape(),
            directory: self.directory,
            at_start: (self.seen && !self.is_made && self.is_staged()).then_some(at_start),
        }
    }
}

/// Looks at all of them.
pub(super) fn survey(
    load: &dyn Load,
    start: Start,
    interrupt: &AtomicBool,
    on_step: &mut dyn FnMut(Step),
) -> Result<Surveyed> {
    let info = load.info();
    let unreadable = |error: io::Error| Error::path("read", load.source(), error);
    let mut files = table(load.files())?;
    let mut character = Character::new(info.layer);
    let pour = |character: &mut Character| -> io::Result<()> {
        load.files().iter().try_for_each(|file| character.file(file.clone()))?;
        load.streams().iter().try_for_each(|stream| character.stream(stream.clone()))
    };
    pour(&mut character).map_err(unreadable)?;
    let (mut events, mut end_ns) = (0, 0);
    for event in load.events() {
        let event = event.map_err(unreadable)?;
        events += 1;
        if events % LOOK_EVENTS == 0 {
            on_step(Step::Surveyed(events));
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
        }
        end_ns = end_ns.max(event.start_ns.saturating_add(event.duration_ns.unwrap_or(0)));
        see(&mut files, &event)?;
        character.event(&event).map_err(unreadable)?;
    }
    character.finish(info).map_err(unreadable)?;
    see_directories(&mut files);
    let behaviour = character.app().whole;
    let recorded_s = if info.elapsed_s > 0.0 { info.elapsed_s } else { end_ns as f64 / 1e9 };
    Ok(Surveyed {
        files: files.iter().map(|file| file.stage_file(start)).collect(),
        is_staged: files.iter().map(|file| file.seen && file.is_staged()).collect(),
        workload: character::workload(&behaviour),
        behaviour,
        events,
        recorded_s,
    })
}

/// Directories that nobody made were there, whether or not a call named them.
fn see_directories(files: &mut [Found]) {
    for file in 1..files.len() {
        if !files[file].seen || !files[file].is_staged() {
            continue;
        }
        let mut above = files[file].directory as usize;
        while let Some(directory) = files.get_mut(above).filter(|found| above != 0 && !found.seen) {
            directory.seen = true;
            directory.kind = FileKind::Directory;
            above = directory.directory as usize;
        }
    }
}

fn table(entries: &[FileEntry]) -> Result<Vec<Found>> {
    let last = entries.iter().map(|entry| entry.id).max().unwrap_or(0);
    if last > FILES_MAX {
        return Err(too_many(last));
    }
    let mut files = vec![Found::default(); last as usize + 1];
    for entry in entries {
        files[entry.id as usize] = Found::new(entry);
    }
    // What holds a file is a directory, also where a call on it told nothing of that.
    for entry in entries.iter().filter(|entry| entry.directory != 0) {
        if let Some(directory) = files.get_mut(entry.directory as usize) {
            directory.kind = FileKind::Directory;
        }
    }
    Ok(files)
}

fn too_many(file: u32) -> Error {
    Error::Refused(format!("it names file {file}, and no more than {FILES_MAX} can be laid out"))
}

fn see(files: &mut Vec<Found>, event: &Event) -> Result<()> {
    if event.file == 0 {
        return Ok(());
    }
    let other = match event.op {
        Op::Rename | Op::Link | Op::Copy => u32::try_from(event.other).unwrap_or(u32::MAX),
        _ => 0,
    };
    let most = event.file.max(other);
    if most > FILES_MAX {
        return Err(too_many(most));
    }
    // A trace that was cut has events of files that its table does not name.
    if files.len() <= most as usize {
        files.resize(most as usize + 1, Found::default());
    }
    if other != 0 && event.error == 0 && other != event.file {
        files[other as usize].name(event.op == Op::Link);
    }
    files[event.file as usize].see(event);
    Ok(())
}

/// Whether requests were seen below the page cache.
pub(super) fn is_below_cache(layer: Layer) -> bool {
    layer == Layer::Block
}
