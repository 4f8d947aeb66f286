//! A trace as a table of its events. Times are nanoseconds, sizes bytes; what is not known is empty.

use std::io::{self, Write};

use parquet::file::reader::ChunkReader;

use crate::{Store, StoreError};

const HEADER: &str = "t,dur,op,stream,handle,file,off,len,req,err,flags,cpu_gap,other";

/// Writes the events, one a line; how many there are.
///
/// # Errors
/// When the trace cannot be read or `out` be written.
pub fn csv<R: ChunkReader + 'static>(
    store: &Store<R>,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let mut count = 0;
    writeln!(out, "{HEADER}")?;
    store.for_each_event(|event| {
        count += 1;
        write!(out, "{},", event.start_ns)?;
        number(out, event.duration_ns)?;
        write!(
            out,
            "{},{},{},{},{},{},",
            event.op.name(),
            event.stream,
            event.handle,
            event.file,
            event.offset,
            event.length
        )?;
        number(out, event.asked)?;
        write!(out, "{},{},", event.error, event.flags.0)?;
        number(out, event.cpu_gap_ns)?;
        writeln!(out, "{}", event.other)
    })?;
    Ok(count)
}

/// A number that may be unknown, and a comma.
fn number(out: &mut dyn Write, value: Option<u64>) -> io::Result<()> {
    match value {
        Some(value) => write!(out, "{value},"),
        None => write!(out, ","),
    }
}
