//! Of a recorded replay, the load alone: events of the threads that a process started, without those of
//! its first thread, which reads the trace, lays files out and removes them.
//!
//! `started_threads IN.trace OUT.trace`: times count from the first event that is left.

use std::collections::HashSet;
use std::error::Error;
use std::fs::File;

use ioscape_trace::{Event, Names, Sink, Store, StoreWriter, Tables, TraceInfo};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: started_threads IN.trace OUT.trace";
    let (from, to) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let store = Store::open(File::open(from)?)?;
    let Tables { files, streams } = store.tables()?;
    let started = streams.iter().filter(|stream| stream.process != stream.id);
    let started: HashSet<u32> = started.map(|stream| stream.id).collect();
    let (mut events, mut first_ns, mut last_ns) = (Vec::<Event>::new(), u64::MAX, 0);
    store.for_each_event(|event| {
        if started.contains(&event.stream) {
            first_ns = first_ns.min(event.start_ns);
            last_ns = last_ns.max(event.start_ns + event.duration_ns.unwrap_or(0));
            events.push(*event);
        }
        Ok(())
    })?;
    if events.is_empty() {
        return Err("no thread but the first made a call".into());
    }
    let elapsed_s = last_ns.saturating_sub(first_ns) as f64 / 1e9;
    let info = TraceInfo { elapsed_s, cpu_s: None, counted: None, ..store.info().clone() };
    let mut out = StoreWriter::new(File::create(to)?, Names::Hashed, &info)?;
    for file in files {
        out.file(file)?;
    }
    for mut stream in streams.into_iter().filter(|stream| started.contains(&stream.id)) {
        stream.start_ns = stream.start_ns.saturating_sub(first_ns);
        stream.end_ns = stream.end_ns.saturating_sub(first_ns);
        out.stream(stream)?;
    }
    for mut event in events {
        event.start_ns -= first_ns;
        out.event(&event)?;
    }
    out.close(&info)?;
    Ok(())
}
