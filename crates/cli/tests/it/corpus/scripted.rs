//! Windows as a rig would show them, where no device here can be brought to show them.

use hdrhistogram::Histogram;
use ioscape_engine::error::Result;
use ioscape_engine::{ClassCount, Finished, Prepared, Rig, Window};
use ioscape_model::{Code, Hints, Rules, Severity, Spent, Workload};

use super::{Flag, Look, Trap, spring, visit};

/// A hundred thousand requests of 16 KiB per second, and what the counters show besides.
struct Scripted {
    decorate: fn(&mut Window, f64),
    now_s: f64,
    read_frac: f64,
}

impl Rig for Scripted {
    fn engine(&self) -> &'static str {
        "scripted"
    }

    fn hints(&self) -> Hints {
        Hints::default()
    }

    fn now_s(&self) -> f64 {
        self.now_s
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        self.read_frac = work.read_frac;
        Ok(Prepared { spent_s: Spent::default(), warnings: vec![] })
    }

    fn start(&mut self, _work: &Workload, _seed: u64) -> Result<()> {
        self.now_s = 0.0;
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        self.now_s += length_s;
        let class = |share: f64| {
            let ops = (1e5 * length_s * share).round() as u64;
            ClassCount { ops, bytes: ops * 16_384, time_s: ops as f64 * 1e-5 }
        };
        let (reads, writes) = (class(self.read_frac), class(1.0 - self.read_frac));
        let none = ClassCount::default();
        let classes = [none, reads, none, writes];
        let mut window = Window { length_s, classes, ..Window::default() };
        (self.decorate)(&mut window, self.now_s);
        Ok(window)
    }

    fn mark(&mut self) {}

    fn finish(&mut self, _sync: bool) -> Result<Finished> {
        let mut responses = Histogram::new(2).unwrap();
        responses.record_n(10_000, 100_000).unwrap();
        let none = || Histogram::new(2).unwrap();
        Ok(Finished {
            response_ns: [none(), responses, none(), none()],
            latency_ns: None,
            warnings: vec![],
            sync_s: None,
            failed: vec![],
            verified_bytes: None,
        })
    }

    fn written_bytes(&self) -> u64 {
        0
    }
}

/// What is said about a visit with such windows.
pub(super) fn shown(workload: &str, decorate: fn(&mut Window, f64)) -> Look {
    let mut rig = Scripted { decorate, now_s: 0.0, read_frac: 0.0 };
    Ok(visit(&mut rig, workload, &Rules::thorough(), 1)?.warnings)
}

pub(super) const TRAPS: &[Trap] = &[
    Trap {
        built: "windows",
        look: || {
            shown("read_frac=0", |window, since_s| {
                window.dirty_bytes = Some((since_s * 8e8) as u64);
            })
        },
        flags: &[Flag {
            what: "writes that memory takes: dirty data grows as long as one looks",
            code: Code::NotSteady,
            severity: Severity::Warning,
            advice: "look at the durable throughput",
        }],
    },
    Trap {
        built: "windows",
        look: || {
            shown("read_frac=1", |window, since_s| {
                let reads = &mut window.classes[1];
                let slow = (since_s * 3.0) as u64 % 2;
                reads.ops >>= slow;
                reads.bytes >>= slow;
            })
        },
        flags: &[Flag {
            what: "two speeds in turn: the mean is a speed that there never was",
            code: Code::Bistable,
            severity: Severity::Warning,
            advice: "what switches between them",
        }],
    },
    Trap {
        built: "windows",
        look: || shown("read_frac=1", |window, _| window.stolen_fraction = Some(0.08)),
        flags: &[Flag {
            what: "time stolen by other guests during the run",
            code: Code::StolenTime,
            severity: Severity::Warning,
            advice: "when the host is quieter",
        }],
    },
    Trap {
        built: "windows",
        look: || {
            shown("read_frac=1,seq_frac=0", |window, _| {
                window.device_read_bytes = Some(window.bytes() * 8);
            })
        },
        flags: &[Flag {
            what: "read-ahead that fetches eight times what random reads ask for",
            code: Code::ReadAhead,
            severity: Severity::Warning,
            advice: "lower read_ahead_kb",
        }],
    },
];

#[test]
fn what_counters_show_is_noticed() {
    spring(TRAPS);
}
