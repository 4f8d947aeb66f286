//! Ways to go through two files, each the same every time, made for a process that does them and for a
//! simulation that is shown them.

use ioscape_trace::{Event, Op};

pub(crate) const PAGE: u64 = 4096;
/// Pages of the files.
pub(crate) const A_PAGES: u64 = 32_768;
pub(crate) const B_PAGES: u64 = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    A = 1,
    B = 2,
    Log = 3,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) file: File,
    pub(crate) is_write: bool,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.uniform() * n as f64) as u64
    }
}

/// Pages of file A with probabilities that fall with a power of their rank; ranks are scattered.
fn zipf(exponent: f64) -> impl FnMut(&mut Draws) -> u64 {
    let mut law: Vec<f64> = Vec::new();
    for i in 0..A_PAGES {
        law.push(law.last().unwrap_or(&0.0) + ((i + 1) as f64).powf(-exponent));
    }
    move |draws| {
        let at = draws.uniform() * law[law.len() - 1];
        law.partition_point(|sum| *sum < at) as u64 * 20_011 % A_PAGES
    }
}

fn read(file: File, page: u64, pages: u64) -> Step {
    Step { file, is_write: false, offset: page * PAGE, length: pages * PAGE }
}

/// What a pattern does; `part` shortens it.
pub(crate) fn steps(name: &str, part: f64) -> Vec<Step> {
    let count = |full: u64| (full as f64 * part) as u64;
    let mut draws = Draws(88_172_645_463_325_252);
    let a = |page| read(File::A, page, 1);
    match name {
        "uniform" => (0..count(80_000)).map(|_| a(draws.below(A_PAGES))).collect(),
        "zipf-0.6" => {
            let mut zipf = zipf(0.6);
            (0..count(80_000)).map(|_| a(zipf(&mut draws))).collect()
        }
        "zipf-1.0" => {
            let mut zipf = zipf(1.0);
            (0..count(160_000)).map(|_| a(zipf(&mut draws))).collect()
        }
        "cyclic" => {
            let round = (0..24_000).step_by(4).map(|page| read(File::A, page, 4));
            std::iter::repeat_n(round, 4).flatten().collect()
        }
        "zipf+scan" => {
            let mut zipf = zipf(1.0);
            let mut steps = Vec::new();
            for i in 0..count(80_000) {
                steps.push(a(zipf(&mut draws)));
                if i % 16_000 == 15_999 {
                    steps.extend((0..10_240).step_by(8).map(|page| read(File::B, page, 8)));
                }
            }
            steps
        }
        "once" => (0..A_PAGES).step_by(4).map(|page| read(File::A, page, 4)).collect(),
        "strided" => (0..10).flat_map(|i| (i % 5..24_000).step_by(5).map(a)).collect(),
        "reverse" => (0..3).flat_map(|_| (0..=20_000).rev().map(a)).collect(),
        "window" => (0..count(80_000)).map(|i| a(i / 4 + draws.below(8000))).collect(),
        "modify" => modify(&mut draws, count(60_000)),
        "append" => append(&mut draws, count(20_000)),
        _ => {
            let mut zipf = zipf(0.8);
            let both = |i| [a(zipf(&mut draws)), read(File::B, i % (B_PAGES / 2) * 2, 2)];
            (0..count(40_000)).flat_map(both).collect()
        }
    }
}

fn modify(draws: &mut Draws, count: u64) -> Vec<Step> {
    let mut zipf = zipf(0.8);
    let mut steps = Vec::new();
    for i in 0..count {
        let page = zipf(draws);
        let is_part = i % 4 == 3;
        if !is_part {
            steps.push(read(File::A, page, 1));
        }
        let (offset, length) = if is_part { (page * PAGE + 500, 100) } else { (page * PAGE, PAGE) };
        steps.push(Step { file: File::A, is_write: true, offset, length });
    }
    steps
}

fn append(draws: &mut Draws, count: u64) -> Vec<Step> {
    let record =
        |i: u64, is_write| Step { file: File::Log, is_write, offset: i * 4120, length: 4120 };
    let mut steps = Vec::new();
    for i in 0..count {
        steps.push(record(i, true));
        for k in 0..4 {
            let back = draws.below(if k > 0 { 1500 } else { 20_000 });
            if back <= i {
                steps.push(record(i - back, false));
            }
        }
    }
    steps
}

/// Events as a recorder would have seen them, spread evenly over the time that it took.
pub(crate) fn events(steps: &[Step], is_random: bool, elapsed_ns: u64) -> Vec<Event> {
    let event = |op, file: File, start_ns| {
        let id = file as u32;
        Event { stream: 1, handle: id, file: id, ..Event::new(start_ns, op) }
    };
    let mut events = Vec::new();
    for file in [File::A, File::B, File::Log] {
        let op = if file == File::Log { Op::Create } else { Op::Open };
        events.push(event(op, file, 0));
        events.push(Event { other: u64::from(is_random), ..event(Op::Advise, file, 0) });
    }
    let each = elapsed_ns as f64 / steps.len() as f64;
    for (i, step) in steps.iter().enumerate() {
        let op = if step.is_write { Op::Write } else { Op::Read };
        let event = event(op, step.file, (i as f64 * each) as u64);
        events.push(Event { offset: step.offset, length: step.length, ..event });
    }
    events
}
