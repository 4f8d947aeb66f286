//! What the engines cost beside a bare loop of system calls and beside fio, in one interleaved run:
//! `cargo bench -p ioscape-engine --bench pair -- [null] [cached] [direct] [--dir DIR]`.
//!
//! Machines drift by more than the differences that matter here. So the sides take turns, the
//! order turns round with every round, and a ratio is the median of the rounds' ratios. Beside
//! time per request stands processor time per request: other load on the machine hardly touches
//! it. Without fio its columns are left out, aloud.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may panic and prints")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::{
    Clock, EngineKind, FileRig, Placement, Rig, RunId, UringOptions, host, target,
};
use ioscape_model::{Code, Workload};

/// Requests between two looks at the clock in a bare loop.
const CHUNK: usize = 64;
/// fio counts in milliseconds and takes a while to start.
const FIO_SLICE_S: f64 = 1.0;
/// Rounds of one second on each side, past the page cache: from one to the next ratios differ by 10 %.
const ROUNDS: usize = 25;

fn main() {
    let mut directory = PathBuf::from("/var/tmp");
    let mut parts = Vec::new();
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--dir" => directory = arguments.next().expect("--dir DIR").into(),
            _ => parts.push(argument),
        }
    }
    let asked = |part: &str| parts.is_empty() || parts.iter().any(|asked| asked == part);
    let has_fio = Command::new("fio").arg("--version").output().is_ok();
    if !has_fio {
        println!("SKIPPED: no fio here, its columns are left out");
    }
    if asked("null") {
        null(&directory);
    }
    if asked("cached") {
        cached(&directory, has_fio);
    }
    if asked("direct") && has_fio {
        direct(&directory);
    }
}

/// Of one slice, per request, seconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    time_s: f64,
    cpu_s: f64,
}

/// One workload on the engine as it is in a run: prepared files, a worker thread, windows.
struct Ours {
    rig: FileRig,
    work: Workload,
    file: PathBuf,
}

impl Ours {
    fn new(directory: &Path, (engine, placement): (EngineKind, Placement), text: &str) -> Self {
        let clock = Clock::start();
        let run = RunId::random().unwrap();
        let opened = target::open_directory(directory).unwrap();
        let file = opened.path().join(run.file_name(0));
        let interrupt = Arc::new(AtomicBool::new(false));
        let rig = FileRig::new(opened, run, &host::describe(&clock), clock, interrupt).unwrap();
        let mut rig = rig.with_engine(engine).with_placement(placement);
        let work = Workload::parse(text).unwrap();
        rig.prepare(&work).unwrap();
        Self { rig, work, file }
    }

    fn slice(&mut self, seed: u64, length_s: f64) -> Cost {
        self.rig.start(&self.work, seed).unwrap();
        self.rig.window(0.02).unwrap();
        let window = self.rig.window(length_s).unwrap();
        let finished = self.rig.finish(false).unwrap();
        for warning in finished.warnings.iter().filter(|w| w.code != Code::HarnessCost) {
            println!("       {}", warning.text);
        }
        let ops = window.ops() as f64;
        Cost { time_s: window.length_s / ops, cpu_s: window.cpu_s.unwrap() / ops }
    }
}

/// pread in a loop, nothing else: the offsets lie ready. They come from a table that is as good as
/// endless, or the processor's caches would know what comes.
struct Bare {
    file: File,
    clock: Clock,
    offsets: Vec<u64>,
    memory: Vec<u8>,
    size: usize,
    next: usize,
}

impl Bare {
    fn new(path: &Path, work: &Workload) -> Self {
        let size = work.size_mean;
        let places = work.unique_bytes / size;
        let mut state = 1_u64;
        let draw = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            ((u128::from(state) * u128::from(places)) >> 64) as u64 * size
        };
        Self {
            file: File::open(path).unwrap(),
            clock: Clock::start(),
            offsets: (0..1 << 20).map(draw).collect(),
            memory: vec![0; size as usize + 4096],
            size: size as usize,
            next: 0,
        }
    }

    fn slice(&mut self, length_s: f64) -> Cost {
        let skip = self.memory.as_ptr().align_offset(4096);
        let buffer = &mut self.memory[skip..][..self.size];
        let (from_s, from_cpu_s) = (self.clock.now_s(), thread_cpu_s());
        let mut requests = 0;
        while self.clock.now_s() - from_s < length_s {
            for offset in &self.offsets[self.next..][..CHUNK] {
                rustix::io::pread(&self.file, &mut *buffer, *offset).unwrap();
            }
            self.next = (self.next + CHUNK) % self.offsets.len();
            requests += CHUNK;
        }
        let requests = requests as f64;
        Cost {
            time_s: (self.clock.now_s() - from_s) / requests,
            cpu_s: (thread_cpu_s() - from_cpu_s) / requests,
        }
    }
}

fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Random reads by fio of a file that is there.
fn fio(file: &Path, work: &Workload, flags: &[&str]) -> Cost {
    let output = Command::new("fio")
        .args(["--name=pair", "--rw=randread", "--time_based", "--output-format=terse"])
        .args(["--randrepeat=0", "--invalidate=0"])
        .arg(format!("--runtime={FIO_SLICE_S}"))
        .arg(format!("--filename={}", file.display()))
        .arg("--group_reporting")
        .arg(format!("--size={}", work.share_bytes()))
        .arg(format!("--bs={}", work.size_mean))
        .args(flags)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("3;")).expect("a terse line");
    let fields: Vec<&str> = line.split(';').collect();
    // Terse format 3: reads begin at field 5 (KiB, KiB/s, requests/s, ms); of the time,
    // processor shares in per cent stand at 87 and 88.
    let number = |index: usize| fields[index].trim_end_matches('%').parse::<f64>().unwrap();
    let (kib, ms) = (number(5), number(8));
    let requests = kib * 1024.0 / work.size_mean as f64;
    let time_s = ms * 1e-3 / requests;
    // The processor's shares are means over the jobs.
    let busy = f64::from(work.process_num) * (number(87) + number(88)) / 100.0;
    Cost { time_s, cpu_s: time_s * busy }
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn show(label: &str, costs: &[Cost]) {
    let least = |figure: fn(&Cost) -> f64| costs.iter().map(figure).fold(f64::INFINITY, f64::min);
    println!(
        "    {label:22} {:8.1} ns ({:.1} at least), processor {:8.1} ns ({:.1} at least)",
        median(costs.iter().map(|cost| cost.time_s)) * 1e9,
        least(|cost| cost.time_s) * 1e9,
        median(costs.iter().map(|cost| cost.cpu_s)) * 1e9,
        least(|cost| cost.cpu_s) * 1e9,
    );
}

/// How many of so many sorted values are left out at each end, so that the true median lies between
/// the rest in at least 95 % of all cases: each value is below it as often as above.
fn outside(count: usize) -> usize {
    let (mut chance, mut left_out) = (0.5_f64.powf(count as f64), 0);
    let mut tail = chance;
    loop {
        chance *= (count - left_out) as f64 / (left_out + 1) as f64;
        tail += chance;
        if tail > 0.025 {
            return left_out;
        }
        left_out += 1;
    }
}

/// Medians with 95 % intervals, over the rounds, of what `figure` makes of both sides.
fn pair(label: &str, sides: (&[Cost], &[Cost]), figure: fn(f64, f64) -> f64) {
    let rounds = || sides.0.iter().zip(sides.1);
    let spread = |values: Vec<f64>| {
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        let (last, outer) = (sorted.len() - 1, outside(sorted.len()));
        let (low, high) = (sorted[outer], sorted[last - outer]);
        format!("{:8.3} ({low:.3} to {high:.3})", sorted[last.div_ceil(2)])
    };
    println!(
        "    {label:22} {}, by processor time {}",
        spread(rounds().map(|(a, b)| figure(a.time_s, b.time_s)).collect()),
        spread(rounds().map(|(a, b)| figure(a.cpu_s, b.cpu_s)).collect())
    );
}

fn above_ns(ours_s: f64, other_s: f64) -> f64 {
    (ours_s - other_s) * 1e9
}

/// Above one: we make more requests.
fn speed_ratio(ours_s: f64, other_s: f64) -> f64 {
    other_s / ours_s
}

/// Both sides of each round, the first one first in every second round.
fn rounds(
    count: usize,
    mut ours: impl FnMut(u64) -> Cost,
    mut other: impl FnMut() -> Cost,
) -> (Vec<Cost>, Vec<Cost>) {
    let round = |index: usize| {
        if index.is_multiple_of(2) {
            let one = ours(index as u64);
            (one, other())
        } else {
            let two = other();
            (ours(index as u64), two)
        }
    };
    (0..count).map(round).unzip()
}

fn null(directory: &Path) {
    for text in ["unique_bytes=64MiB", "size_mean=4k,size_dist=fixed,read_frac=1,seq_frac=0"] {
        let mut ours = Ours::new(directory, (EngineKind::Null, Placement::Spread), text);
        println!("null, {text}");
        show("null", &(0..20).map(|seed| ours.slice(seed, 0.1)).collect::<Vec<_>>());
    }
}

fn cached(directory: &Path, has_fio: bool) {
    for size in [512, 4096, 65_536] {
        let text =
            format!("unique_bytes=64MiB,size_mean={size},size_dist=fixed,read_frac=1,seq_frac=0");
        let mut ours = Ours::new(directory, (EngineKind::Psync, Placement::Spread), &text);
        let (path, work) = (ours.file.clone(), ours.work.clone());
        let mut bare = Bare::new(&path, &work);
        println!("cached random reads of {size} bytes");
        let (our, bare) = rounds(60, |seed| ours.slice(seed, 0.05), || bare.slice(0.05));
        show("psync", &our);
        show("bare pread loop", &bare);
        pair("ns above it", (&our, &bare), above_ns);
        if has_fio {
            let flags = ["--ioengine=psync"];
            let (our, fios) =
                rounds(7, |seed| ours.slice(seed, FIO_SLICE_S), || fio(&path, &work, &flags));
            show("fio psync", &fios);
            pair("requests, over fio", (&our, &fios), speed_ratio);
        }
    }
}

fn direct(directory: &Path) {
    for (processes, depth) in [1, 4].into_iter().flat_map(|n| [1, 4, 32, 128].map(|d| (n, d))) {
        let text = format!(
            "unique_bytes=512MiB,size_mean=4k,size_dist=fixed,read_frac=1,seq_frac=0,\
             access=direct,layout=shared,process_num={processes},depth={depth}"
        );
        // Engine beside the engine of its kind. A run takes psync for one request at a time. Where the device's
        // interrupts arrive is the kernel's choice, as for fio.
        let ring = ("io_uring", EngineKind::Uring(UringOptions::default()));
        let psync = (depth == 1).then_some(("psync", EngineKind::Psync));
        for (name, engine) in psync.into_iter().chain([ring]) {
            direct_pair(directory, &text, (name, engine));
        }
    }
}

/// Random reads of 4 KiB past the page cache, by an engine and by fio's of that name.
fn direct_pair(directory: &Path, text: &str, (name, engine): (&str, EngineKind)) {
    let mut ours = Ours::new(directory, (engine, Placement::Free), text);
    let (path, work) = (ours.file.clone(), ours.work.clone());
    let ioengine = format!("--ioengine={name}");
    let iodepth = format!("--iodepth={}", work.depth);
    let jobs = format!("--numjobs={}", work.process_num);
    let share = format!("--offset_increment={}", work.share_bytes());
    let mut flags = vec![&*ioengine, "--direct=1", "--norandommap=1", &iodepth, &jobs, &share];
    if matches!(engine, EngineKind::Uring(_)) {
        flags.extend(["--registerfiles=1", "--fixedbufs=1"]);
    }
    println!("direct random reads of 4 KiB, {name}, {jobs} {iodepth}");
    let (our, fios) =
        rounds(ROUNDS, |seed| ours.slice(seed, FIO_SLICE_S), || fio(&path, &work, &flags));
    show("ours", &our);
    show("fio", &fios);
    pair("requests, over fio", (&our, &fios), speed_ratio);
}
