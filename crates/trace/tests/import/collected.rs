//! A sink that keeps everything, and short ways to it.

use std::collections::BTreeMap;
use std::io;

use ioscape_trace::import::{Error, Format, Input, Summary, import};
use ioscape_trace::{Event, FileEntry, Op, Sink, StreamEntry, TraceInfo};

#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) events: Vec<Event>,
    pub(crate) files: BTreeMap<u32, FileEntry>,
    pub(crate) streams: BTreeMap<u32, StreamEntry>,
    pub(crate) info: Option<TraceInfo>,
}

impl Sink for Collected {
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

    fn finish(&mut self, info: &TraceInfo) -> io::Result<()> {
        assert!(self.info.is_none(), "it ends once");
        self.info = Some(info.clone());
        Ok(())
    }
}

impl Collected {
    pub(crate) fn path(&self, file: u32) -> &str {
        self.files.get(&file).and_then(|file| file.path.as_deref()).unwrap_or("")
    }

    /// `(start µs, operation, path, offset, length)` of each event.
    pub(crate) fn rows(&self) -> Vec<(u64, Op, &str, u64, u64)> {
        let row = |event: &Event| {
            let place = (event.offset, event.length);
            (event.start_ns / 1000, event.op, self.path(event.file), place.0, place.1)
        };
        self.events.iter().map(row).collect()
    }
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn read(format: &Format, files: &[&[u8]]) -> Result<(Collected, Summary), Error> {
    let mut collected = Collected::default();
    let inputs = files
        .iter()
        .enumerate()
        .map(|(number, bytes)| Input { name: format!("file {number}"), bytes: Box::new(*bytes) });
    let summary = import(format, inputs.collect(), &mut collected)?;
    assert_eq!(summary.events, collected.events.len() as u64);
    assert_eq!(collected.info.as_ref(), Some(&summary.info));
    assert_eq!(collected.events.iter().map(|event| event.start_ns).min(), Some(0));
    Ok((collected, summary))
}

/// A fixture without a line that cannot be read.
pub(crate) fn clean(format: &Format, name: &str) -> Collected {
    let (collected, summary) = read(format, &[&fixture(name)]).expect("it is of the format");
    assert_eq!(summary.malformed, 0, "{name}: {:?}", summary.first_malformed);
    collected
}
