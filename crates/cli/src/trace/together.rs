//! Traces that are looked at as if their programs ran at the same time, on one machine.

use std::path::{Path, PathBuf};

use ioscape_trace::caches::PAGE_BYTES;
use ioscape_trace::{Event, FileEntry, Op, TraceInfo};

use super::opened::{Opened, Progress};
use super::source;
use crate::exit::usage;

/// One trace or several.
pub(crate) struct Together {
    traces: Vec<Opened>,
    /// Added to the numbers of files, handles and streams of each: nobody shares them.
    bases: Vec<Base>,
    info: TraceInfo,
}

/// Added to the numbers of a trace.
#[derive(Clone, Copy, Debug, Default)]
struct Base {
    file: u32,
    handle: u32,
    stream: u32,
}

impl Together {
    /// Opens traces.
    pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let traces = paths.iter().map(|path| Opened::open(path));
        Self::of_opened(traces.collect::<anyhow::Result<Vec<_>>>()?)
    }

    /// Of traces that are open; at least one.
    pub(crate) fn of_opened(traces: Vec<Opened>) -> anyhow::Result<Self> {
        let mut info = traces[0].info().clone();
        for trace in &traces[1..] {
            let more = trace.info();
            if more.layer != info.layer {
                return Err(usage(format!(
                    "{} was seen at another layer than the first trace: they cannot share a cache",
                    trace.path().display()
                )));
            }
            info.lost += more.lost;
            info.elapsed_s = info.elapsed_s.max(more.elapsed_s);
            info.read_ahead_kb.extend(&more.read_ahead_kb);
            let fresh: Vec<String> =
                more.limits.iter().filter(|limit| !info.limits.contains(limit)).cloned().collect();
            info.limits.extend(fresh);
        }
        let mut bases = vec![Base::default()];
        if traces.len() > 1 {
            for trace in &traces[..traces.len() - 1] {
                bases.push(after(bases[bases.len() - 1], trace)?);
            }
        }
        Ok(Self { traces, bases, info })
    }

    /// Facts about all of them.
    pub(crate) fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// Where the traces are.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.traces.iter().map(Opened::path)
    }

    /// The only one, where there is one.
    pub(crate) fn only(&self) -> Option<&Opened> {
        (self.traces.len() == 1).then(|| &self.traces[0])
    }

    /// The tables of files.
    pub(crate) fn files(&self) -> anyhow::Result<Vec<FileEntry>> {
        let mut all = Vec::new();
        for (trace, base) in self.traces.iter().zip(&self.bases) {
            let moved = |mut file: FileEntry| {
                file.id += base.file;
                file.directory += if file.directory == 0 { 0 } else { base.file };
                file
            };
            all.extend(trace.files()?.into_iter().map(moved));
        }
        Ok(all)
    }

    /// How many events they hold.
    pub(crate) fn events_count(&self) -> u64 {
        self.traces.iter().map(Opened::events_count).sum()
    }

    /// Shows each event with the number of its trace, from 0, in the order of time since each trace's
    /// own beginning.
    pub(crate) fn for_each(
        &self,
        what: &'static str,
        mut see: impl FnMut(usize, &Event),
    ) -> anyhow::Result<()> {
        if let Some(only) = self.only() {
            return only.for_each(what, |event| see(0, event));
        }
        let progress = Progress::new(what, self.events_count());
        let mut readers: Vec<_> = self.traces.iter().map(Opened::events).collect();
        let read = |number: usize, reader: &mut super::opened::Reader<'_>| {
            reader.read().map_err(|error| source::named(self.traces[number].path(), error))
        };
        let mut waiting = Vec::new();
        for (number, reader) in readers.iter_mut().enumerate() {
            waiting.push(read(number, reader)?);
        }
        loop {
            let times = waiting.iter().enumerate();
            let times =
                times.filter_map(|(number, event)| Some((event.as_ref()?.start_ns, number)));
            let Some((_, number)) = times.min() else { return Ok(()) };
            let next = read(number, &mut readers[number])?;
            if let Some(event) = std::mem::replace(&mut waiting[number], next) {
                see(number, &moved(event, self.bases[number]));
                progress.step();
            }
        }
    }
}

/// Numbers above all that a trace has.
fn after(base: Base, trace: &Opened) -> anyhow::Result<Base> {
    let files = trace.files()?;
    let (mut file, mut handle, mut stream) = (files.last().map_or(0, |file| file.id), 0_u32, 0_u32);
    trace.for_each("counting files", |event| {
        file = file.max(event.file);
        handle = handle.max(event.handle);
        stream = stream.max(event.stream);
    })?;
    let sum = |a: u32, b: u32| {
        a.checked_add(b).ok_or_else(|| usage("the traces have too many files together".to_owned()))
    };
    Ok(Base {
        file: sum(base.file, file)?,
        handle: sum(base.handle, handle)?,
        stream: sum(base.stream, stream)?,
    })
}

/// An event among those of others.
fn moved(mut event: Event, base: Base) -> Event {
    let other_is_file = matches!(event.op, Op::Rename | Op::Link | Op::Copy);
    if other_is_file && event.other != 0 {
        event.other += u64::from(base.file);
    }
    for (number, base) in [
        (&mut event.file, base.file),
        (&mut event.handle, base.handle),
        (&mut event.stream, base.stream),
    ] {
        *number += if *number == 0 { 0 } else { base };
    }
    event
}

/// Bytes as pages of memory, at least one.
pub(crate) fn pages_of_memory(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES).max(1)
}
