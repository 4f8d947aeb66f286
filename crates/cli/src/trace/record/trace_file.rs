//! The file that a recording grows into. The one place that makes a trace's writer.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::path::Path;
use std::rc::Rc;

use ioscape_trace::{Event, FileEntry, Names, Sink, StoreWriter, StreamEntry, TraceInfo};

use crate::exit::usage;
use crate::out_file;

/// How a trace, a Parquet file, begins.
const MAGIC: &[u8] = b"PAR1";
/// After so many events it is looked how long the file is.
const EVENTS_BETWEEN_LOOKS: u32 = 1024;

/// A trace that is written. What is there is a trace at any moment.
pub(super) struct TraceFile {
    writer: StoreWriter<BufWriter<File>>,
    /// Bytes so far, those of held events included, for whoever limits them.
    written: Rc<Cell<u64>>,
    events: u32,
}

impl TraceFile {
    /// Begins a trace. Another trace of this name is replaced; any other file is refused.
    pub(super) fn create(
        path: &Path,
        names: Names,
        written: Rc<Cell<u64>>,
    ) -> anyhow::Result<Self> {
        refuse_others(path)?;
        let made = File::create(path).map_err(|error| out_file::failed(path, error, "--out"))?;
        let writer = StoreWriter::new(BufWriter::new(made), names, &TraceInfo::default())?;
        Ok(Self { writer, written, events: 0 })
    }

    /// Takes it away again: nothing was recorded.
    pub(super) fn discard(self, path: &Path) {
        drop(self);
        if fs::metadata(path).is_ok_and(|found| found.is_file()) {
            fs::remove_file(path).ok();
        }
    }
}

fn refuse_others(path: &Path) -> anyhow::Result<()> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    if !found.is_file() || found.len() == 0 {
        return Ok(());
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut start));
    if read.is_ok() && start == MAGIC {
        return Ok(());
    }
    Err(usage(format!("{} exists and is no trace: choose another --out", path.display())))
}

impl Sink for TraceFile {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.events = self.events.wrapping_add(1);
        if self.events.is_multiple_of(EVENTS_BETWEEN_LOOKS) {
            self.written.set(self.writer.bytes_expected());
        }
        self.writer.event(event)
    }

    fn file(&mut self, file: FileEntry) -> io::Result<()> {
        self.writer.file(file)
    }

    fn stream(&mut self, stream: StreamEntry) -> io::Result<()> {
        self.writer.stream(stream)
    }

    fn finish(&mut self, info: &TraceInfo) -> io::Result<()> {
        self.writer.finish(info)
    }
}
