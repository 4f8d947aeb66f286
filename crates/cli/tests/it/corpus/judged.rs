//! Facts as the kernel would tell them, one thing wrong in an otherwise blameless machine: for what
//! cannot be built without other hardware, or without changing the whole machine.

use ioscape_analysis::doctor::judge;
use ioscape_model::checkup::{Device, Facts, Probe};
use ioscape_model::units::GIB;
use ioscape_model::{Code, Severity};
use ioscape_test_support::blameless;

use super::{Flag, Look, Trap, spring};

/// What the judge says about that machine with something changed.
#[expect(clippy::unnecessary_wraps, reason = "what can always be built looks like what cannot")]
pub(super) fn judged(change: impl FnOnce(&mut Facts)) -> Look {
    let mut facts = blameless();
    change(&mut facts);
    Ok(judge(&facts).doubts)
}

fn device(facts: &mut Facts) -> &mut Device {
    facts.device.as_mut().unwrap()
}

fn probe(facts: &mut Facts) -> &mut Probe {
    facts.probe.as_mut().unwrap()
}

pub(super) const TRAPS: &[Trap] = &[
    Trap {
        built: "facts",
        look: || judged(|facts| facts.sample.cpu_stolen_fraction = Some(0.06)),
        flags: &[Flag {
            what: "the hypervisor gives a sixteenth of the processors to others",
            code: Code::StolenTime,
            severity: Severity::Warning,
            advice: "measure when the host is quieter",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| facts.sample.dirty_bytes = Some(GIB)),
        flags: &[Flag {
            what: "1 GiB that others wrote waits for write-back",
            code: Code::DirtyAtStart,
            severity: Severity::Warning,
            advice: "for the rest, `sync`",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| facts.sample.swapped_pages = Some(2000)),
        flags: &[Flag {
            what: "the machine swaps",
            code: Code::Swapping,
            severity: Severity::Warning,
            advice: "switch swap off",
        }],
    },
    Trap {
        built: "facts",
        look: || {
            judged(|facts| facts.host.io_limits = vec!["io.max 259:0 rbps=1048576".to_owned()])
        },
        flags: &[Flag {
            what: "a control group limits the device to 1 MiB/s",
            code: Code::Throttled,
            severity: Severity::Serious,
            advice: "the limit is what will be measured",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| probe(facts).direct_read_s = Some(4e-6)),
        flags: &[Flag {
            what: "the host's cache answers direct reads in 4 µs",
            code: Code::CachesBelow,
            severity: Severity::Warning,
            advice: "reaches the medium",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| facts.target.rotational = Some(true)),
        flags: &[Flag {
            what: "a disk that is said to turn reads a page in 80 µs",
            code: Code::CachesBelow,
            severity: Severity::Warning,
            advice: "reaches the medium",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| device(facts).raid_sync = Some("resync".to_owned())),
        flags: &[Flag {
            what: "the array below rebuilds itself",
            code: Code::Rebuilding,
            severity: Severity::Serious,
            advice: "/proc/mdstat",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| device(facts).temperature_celsius = Some(82.0)),
        flags: &[Flag {
            what: "the drive is two degrees below where it slows down",
            code: Code::PowerSaving,
            severity: Severity::Warning,
            advice: "let it cool down",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| facts.machine.on_battery = Some(true)),
        flags: &[Flag {
            what: "a notebook on battery",
            code: Code::PowerSaving,
            severity: Severity::Warning,
            advice: "plug it in",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| device(facts).zoned = Some("host-managed".to_owned())),
        flags: &[Flag {
            what: "a shingled drive that writes in zones",
            code: Code::Placement,
            severity: Severity::Warning,
            advice: "longer than its buffer lasts",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| device(facts).layers = vec!["zram".to_owned()]),
        flags: &[Flag {
            what: "compressed memory taken for a disk",
            code: Code::MemoryFilesystem,
            severity: Severity::Serious,
            advice: "name a target on a disk",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| probe(facts).extents = Some(900)),
        flags: &[Flag {
            what: "free space so scattered that 8 MiB lie in 900 pieces",
            code: Code::Placement,
            severity: Severity::Warning,
            advice: "free space is scattered",
        }],
    },
];

#[test]
fn what_the_kernel_would_tell_is_judged() {
    spring(TRAPS);
}
