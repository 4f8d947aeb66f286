//! Windows as a rig would show them, where no device here can be brought to show them.

use ioscape_engine::Window;
use ioscape_model::{Code, Rules, Severity};
use ioscape_test_support::{Stream, StreamSpec};

use super::{Flag, Look, Trap, spring, visit};

/// What is said about a visit with such windows, of a hundred thousand requests of 16 KiB per second.
pub(super) fn shown(workload: &str, decorate: fn(&mut Window, f64)) -> Look {
    let law = StreamSpec { bytes_per_s: 16_384e5, variation: 0.0, ..StreamSpec::default() };
    let mut rig = Stream::new(law, 1).decorated(decorate);
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
