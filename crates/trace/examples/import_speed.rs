//! How fast each importer is, and how much memory a large file takes.
//!
//! `import_speed [MB]` prints MB/s and events/s of each format on made-up files of that size
//! (default 200), and `import_speed --csv MB` reads a CSV of that size with the MSR columns as it is
//! made, and prints the most memory that the process ever had.
#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::io::{self, Read};
use std::time::Duration;

use ioscape_trace::import::{Format, Input, Preset, Summary, import};
use ioscape_trace::{Event, FileEntry, Sink, StreamEntry, TraceInfo};

/// Takes events and forgets them.
struct Forgetful;

impl Sink for Forgetful {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        std::hint::black_box(event);
        Ok(())
    }

    fn file(&mut self, _: FileEntry) -> io::Result<()> {
        Ok(())
    }

    fn stream(&mut self, _: StreamEntry) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &TraceInfo) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the same lines or records again and again, with numbers that change.
struct Made {
    /// One line or record of a number.
    next: fn(u64, &mut Vec<u8>),
    number: u64,
    left: u64,
    buffer: Vec<u8>,
    taken: usize,
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
            while self.buffer.len() < 64 << 10 && self.left > 0 {
                let before = self.buffer.len();
                (self.next)(self.number, &mut self.buffer);
                self.number += 1;
                self.left = self.left.saturating_sub((self.buffer.len() - before) as u64);
            }
        }
        let count = (self.buffer.len() - self.taken).min(into.len());
        into[..count].copy_from_slice(&self.buffer[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

fn made(next: fn(u64, &mut Vec<u8>), bytes: u64) -> Made {
    Made { next, number: 0, left: bytes, buffer: Vec::new(), taken: 0 }
}

/// Somewhere in 16 GiB, in pages.
fn place(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 42 << 12
}

fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

fn msr(n: u64, out: &mut Vec<u8>) {
    let (time, disk) = (128_166_372_003_061_629 + n * 1000, n % 4);
    line(out, &format!("{time},usr,{disk},Read,{},{},41286", place(n), 4096 + n % 8 * 4096));
}

fn strace(n: u64, out: &mut Vec<u8>) {
    let us = n * 50;
    let time = format!("{} {}.{:06}", 100 + n % 4, 1_700_000_000 + us / 1_000_000, us % 1_000_000);
    let file = format!("{}</srv/data/table{}.db>", 3 + n % 8, n % 8);
    match n % 3 {
        0 => line(out, &format!("{time} read({file}, \"\"..., 8192) = 8192 <0.000012>")),
        1 => line(
            out,
            &format!("{time} pwrite64({file}, \"\"..., 4096, {}) = 4096 <0.000021>", place(n)),
        ),
        _ => line(out, &format!("{time} fdatasync({file}) = 0 <0.000412>")),
    }
}

fn perf_block(n: u64, out: &mut Vec<u8>) {
    let (time, sector) =
        (format!("{}.{:06}", 100 + n / 10_000, n % 10_000 * 100), place(n / 2) / 512);
    let who = "             fio  1234 [000]";
    match n % 2 {
        0 => line(
            out,
            &format!(
                "{who}  {time}: block:block_rq_issue: 8,0 W 4096 () {sector} + 8 none,0,0 [fio]"
            ),
        ),
        _ => line(
            out,
            &format!("{who}  {time}: block:block_rq_complete: 8,0 W () {sector} + 8 none,0,0 [0]"),
        ),
    }
}

fn perf_calls(n: u64, out: &mut Vec<u8>) {
    let time = format!("{}.{:06}", 100 + n / 100_000, n % 100_000 * 10);
    let who = "         python3 21142 [001]";
    match n % 2 {
        0 => line(
            out,
            &format!(
                "{who}  {time}: syscalls:sys_enter_read: fd: 0x00000003, buf: 0x55f998e8ec90, count: 0x00001000"
            ),
        ),
        _ => line(out, &format!("{who}  {time}: syscalls:sys_exit_read: 0x1000")),
    }
}

fn blkparse(n: u64, out: &mut Vec<u8>) {
    let step = if n.is_multiple_of(2) { "D" } else { "C" };
    let (time, sector) =
        (format!("{}.{:09}", n / 100_000, n % 100_000 * 10_000), place(n / 2) / 512);
    line(out, &format!("  8,0    1 {n:8} {time:>14} {:5}  {step}   R {sector} + 8 [fio]", 1234));
}

fn iolog(n: u64, out: &mut Vec<u8>) {
    match n {
        0 => line(out, "fio version 3 iolog"),
        1 => line(out, "0 /mnt/data/job.0.0 open"),
        _ => line(out, &format!("{} /mnt/data/job.0.0 read {} 4096", n * 10, place(n))),
    }
}

fn dxt(n: u64, out: &mut Vec<u8>) {
    if n.is_multiple_of(10_000) {
        line(out, &format!("# DXT, file_id: {n}, file_name: /scratch/out.{n}"));
    }
    let start = format!("{}.{:04}", n / 1000, n % 1000 * 10);
    line(
        out,
        &format!(
            " X_POSIX {:7}   read {n:8} {:15} {:15} {start:>11} {start:>11}",
            n % 64,
            place(n),
            65536
        ),
    );
}

fn darshan(n: u64, out: &mut Vec<u8>) {
    let counters = [
        "OPENS",
        "READS",
        "BYTES_READ",
        "MAX_BYTE_READ",
        "CONSEC_READS",
        "SEQ_READS",
        "FILENO",
        "MODE",
    ];
    let (record, counter) = (n / 64, counters[(n % 64 % 8) as usize]);
    line(
        out,
        &format!(
            "POSIX\t{}\t{record}\tPOSIX_{counter}\t10\t/scratch/run/out.{record}\t/scratch\tlustre",
            n % 16 / 16
        ),
    );
}

fn blktrace(n: u64, out: &mut Vec<u8>) {
    let action: u32 = if n.is_multiple_of(2) { 7 | 1 << 16 } else { 8 | 1 << 16 };
    let words: [u64; 3] = [n * 1000, place(n / 2) / 512, u64::from(action) << 32 | 4096];
    out.extend(0x6561_7407_u32.to_le_bytes());
    out.extend((n as u32).to_le_bytes());
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.extend([1234_u32, 8 << 20, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
}

fn vscsi(n: u64, out: &mut Vec<u8>) {
    out.extend([n as u32, 4096, 1].iter().flat_map(|word| word.to_le_bytes()));
    out.extend([0x28_u16, 0x100].iter().flat_map(|word| word.to_le_bytes()));
    out.extend([place(n) / 512, n * 10].iter().flat_map(|word| word.to_le_bytes()));
}

fn oracle(n: u64, out: &mut Vec<u8>) {
    out.extend(((n / 1000) as u32).to_le_bytes());
    out.extend((place(n) >> 12).to_le_bytes());
    out.extend(4096_u32.to_le_bytes());
    out.extend((-1_i64).to_le_bytes());
}

/// Time on a processor that this process has used.
fn busy() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("a kernel with schedstat");
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number");
    Duration::from_nanos(ns)
}

/// Appends a format's line, or entry, of this number.
type Line = fn(u64, &mut Vec<u8>);

fn timed(format: &Format, bytes: Box<dyn Read + '_>) -> (Summary, f64) {
    let before = busy();
    let input = Input { name: "made".to_owned(), bytes };
    let summary = import(format, vec![input], &mut Forgetful).expect("it is of the format");
    assert_eq!(summary.malformed, 0, "{:?}", summary.first_malformed);
    (summary, busy().saturating_sub(before).as_secs_f64())
}

fn peak_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("a kernel with status");
    let line = text.lines().find(|line| line.starts_with("VmHWM")).expect("a line of it");
    let kib: f64 =
        line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
    kib / 1024.0
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let msr_format = Format::Preset(Preset::Msr);
    if arguments.first().is_some_and(|first| first == "--csv") {
        let bytes = number(1).unwrap_or(1000) * 1_000_000;
        let (summary, _) = timed(&msr_format, Box::new(made(msr, bytes)));
        println!("{} events of {bytes} bytes in at most {:.0} MiB", summary.events, peak_mib());
        return;
    }
    let bytes = number(0).unwrap_or(200) * 1_000_000;
    let formats: [(&str, Format, Line); 11] = [
        ("csv (msr)", msr_format, msr),
        ("strace", Format::Strace, strace),
        ("perf-block", Format::PerfBlock, perf_block),
        ("perf-syscalls", Format::PerfSyscalls, perf_calls),
        ("blkparse", Format::Blkparse, blkparse),
        ("fio-iolog", Format::Iolog, iolog),
        ("dxt", Format::Dxt, dxt),
        ("darshan", Format::Darshan, darshan),
        ("blktrace", Format::Blktrace, blktrace),
        ("vscsi", Format::Vscsi, vscsi),
        ("oracle", Format::Oracle, oracle),
    ];
    for (name, format, next) in formats {
        let mut file = Vec::new();
        made(next, bytes).read_to_end(&mut file).expect("memory");
        let (summary, s) = timed(&format, Box::new(&file[..]));
        let (mb_s, lines_s) = (file.len() as f64 / s / 1e6, summary.lines as f64 / s / 1e6);
        let events_s = summary.events as f64 / s / 1e6;
        println!("{name:14} {mb_s:6.0} MB/s {lines_s:6.2} M lines/s {events_s:6.2} M events/s");
    }
}
