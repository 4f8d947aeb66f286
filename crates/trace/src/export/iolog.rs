//! The form that fio reads as `read_iolog`, version 2: files, and for each call what, where and how
//! much. Times stand in `wait` lines, microseconds since the `wait` before; fio ignores those below
//! 100. All streams are one: what ran side by side is replayed in order of starts.

use std::collections::HashSet;
use std::io::{self, Write};

use parquet::file::reader::ChunkReader;

use crate::{FileKind, Layer, Op, Store, StoreError};

/// Shorter waits are none to fio, ns.
const WAIT_NS_MIN: u64 = 100_000;

/// Writes the log; how many calls are in it.
///
/// # Errors
/// When the trace cannot be read or `out` be written.
pub fn iolog<R: ChunkReader + 'static>(
    store: &Store<R>,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let knows_files = matches!(store.info().layer, Layer::Syscall | Layer::Library);
    let tables = store.tables()?;
    let is_other = |kind| !matches!(kind, FileKind::Regular | FileKind::Block);
    let others: HashSet<u32> =
        tables.files.iter().filter(|file| is_other(file.kind)).map(|file| file.id).collect();
    let named = |file: u32| (file != 0 || !knows_files) && !others.contains(&file);
    writeln!(out, "fio version 2 iolog")?;
    let (mut opened, mut waited_ns, mut count) = (HashSet::new(), 0, 0);
    store.for_each_event(|event| {
        let action = match event.op {
            Op::Read | Op::Sendfile if event.length > 0 => "read",
            Op::Write if event.length > 0 => "write",
            Op::Sync => "sync",
            Op::Dsync => "datasync",
            Op::Discard => "trim",
            _ => return Ok(()),
        };
        if event.error != 0 || !named(event.file) {
            return Ok(());
        }
        let file = event.file;
        if opened.insert(file) {
            writeln!(out, "file-{file} add\nfile-{file} open")?;
        }
        if event.start_ns - waited_ns >= WAIT_NS_MIN {
            writeln!(out, "file-{file} wait {} 0", (event.start_ns - waited_ns) / 1000)?;
            waited_ns = event.start_ns;
        }
        let has_place = !matches!(event.op, Op::Sync | Op::Dsync);
        let (offset, length) = if has_place { (event.offset, event.length) } else { (0, 0) };
        count += 1;
        writeln!(out, "file-{file} {action} {offset} {length}")
    })?;
    close(out, opened)?;
    Ok(count)
}

fn close(out: &mut dyn Write, opened: HashSet<u32>) -> io::Result<()> {
    let mut files: Vec<u32> = opened.into_iter().collect();
    files.sort_unstable();
    files.into_iter().try_for_each(|file| writeln!(out, "file-{file} close"))
}
