//! Writes a trace of as many events as asked for, to try what reads traces on one larger than memory:
//!
//!     cargo run --release -p ioscape-trace --example many_events -- 100000000 /dev/shm/many.trace
//!
//! Two streams read and write pages of a small file each, at random, a microsecond apart.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "an example that cannot go on fails")]

use std::fs::File;
use std::io::BufWriter;

use ioscape_trace::{Event, FileEntry, Names, Op, Sink, StoreWriter, StreamEntry, TraceInfo};

const FILE_PAGES: u64 = 1024;
const PAGE_BYTES: u64 = 4096;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().unwrap().parse().unwrap();
    let path = arguments.next().unwrap();
    let mut info = TraceInfo { recorder: "example".to_owned(), ..TraceInfo::default() };
    let file = BufWriter::new(File::create_new(&path).unwrap());
    let mut trace = StoreWriter::new(file, Names::Hashed, &info).unwrap();
    for id in [1, 2] {
        let first_bytes = FILE_PAGES * PAGE_BYTES;
        trace.file(FileEntry { id, first_bytes, ..FileEntry::default() }).unwrap();
        trace.stream(StreamEntry { id, process: id, ..StreamEntry::default() }).unwrap();
    }
    let mut random = 7_u64;
    for number in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let one = (number % 2) as u32 + 1;
        let op = if random >> 60 == 0 { Op::Write } else { Op::Read };
        let mut event = Event::new(number * 1000, op);
        (event.stream, event.file, event.handle) = (one, one, one);
        event.duration_ns = Some(500);
        (event.offset, event.length) = ((random >> 33) % FILE_PAGES * PAGE_BYTES, PAGE_BYTES);
        trace.event(&event).unwrap();
    }
    info.elapsed_s = count as f64 / 1e6;
    trace.finish(&info).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!("{count} events in {bytes} bytes: {:.2} bytes each", bytes as f64 / count as f64);
}
