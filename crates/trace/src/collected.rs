//! A trace in memory, for those who want all of it at once: tests, short traces.

use std::collections::BTreeMap;
use std::io;

use crate::event::{Event, FileEntry, Op, Sink, StreamEntry, TraceInfo};

/// Keeps a whole trace. Of entries with one id the last one counts, as in the trace's file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// In the order in which they came.
    pub events: Vec<Event>,
    /// Files by their id.
    pub files: BTreeMap<u32, FileEntry>,
    /// Streams by their id.
    pub streams: BTreeMap<u32, StreamEntry>,
    /// Told at the end; `None` before.
    pub info: Option<TraceInfo>,
}

impl Collected {
    /// The path of a file, empty where it has none.
    #[must_use]
    pub fn path(&self, file: u32) -> &str {
        self.files.get(&file).and_then(|file| file.path.as_deref()).unwrap_or("")
    }

    /// Events of one kind on files whose path ends in this name.
    #[must_use]
    pub fn on(&self, name: &str, op: Op) -> Vec<&Event> {
        let is_named = |file: u32| self.path(file).rsplit('/').next() == Some(name);
        self.events.iter().filter(|event| event.op == op && is_named(event.file)).collect()
    }
}

impl Sink for Collected {
    /// # Panics
    /// After `finish`: nothing comes after the end.
    fn event(&mut self, event: &Event) -> io::Result<()> {
        assert!(self.info.is_none(), "an event after the end");
        self.events.push(*event);
        Ok(())
    }

    fn file(&mut self, file: FileEntry) -> io::Result<()> {
        self.files.insert(file.id, file);
        Ok(())
    }

    fn stream(&mut self, stream: StreamEntry) -> io::Result<()> {
        self.streams.insert(stream.id, stream);
        Ok(())
    }

    /// # Panics
    /// When it is called twice.
    fn finish(&mut self, info: &TraceInfo) -> io::Result<()> {
        assert!(self.info.is_none(), "it ends once");
        self.info = Some(info.clone());
        Ok(())
    }
}
