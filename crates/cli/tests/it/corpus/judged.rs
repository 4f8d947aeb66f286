//! Facts as the kernel would tell them, one thing wrong in an otherwise blameless machine: for what
//! cannot be built without other hardware, or without changing the whole machine.

use ioscape_analysis::doctor::judge;
use ioscape_model::checkup::{Device, Facts, Machine, Probe, Sample};
use ioscape_model::units::{GIB, MIB};
use ioscape_model::{Code, Host, Severity, Target};

use super::{Flag, Look, Trap, spring};

/// A machine of one's own with a good drive: nothing to say.
pub(super) fn blameless() -> Facts {
    Facts {
        host: Host {
            memory_bytes: 16 * GIB,
            memory_available_bytes: 12 * GIB,
            dirty_limit_bytes: 3 * GIB,
            governor: Some("performance".to_owned()),
            ..Host::default()
        },
        target: Target {
            path: "/data".to_owned(),
            kind: "directory".to_owned(),
            filesystem: "ext4".to_owned(),
            mount_options: "rw,noatime".to_owned(),
            size_bytes: 1000 * GIB,
            free_bytes: 800 * GIB,
            device: Some("nvme0n1".to_owned()),
            rotational: Some(false),
            read_ahead_bytes: Some(128 << 10),
            ..Target::default()
        },
        machine: Machine { numa_nodes: 1, on_battery: Some(false), ..Machine::default() },
        device: Some(Device {
            name: "nvme0n1".to_owned(),
            number: "259:0".to_owned(),
            temperature_celsius: Some(41.0),
            temperature_limit_celsius: Some(84.0),
            ..Device::default()
        }),
        sample: Sample {
            length_s: 1.0,
            cpu_busy_fraction: Some(0.01),
            cpu_stolen_fraction: Some(0.0),
            cpu_pressure: Some(0.001),
            memory_pressure: Some(0.0),
            io_pressure: Some(0.0),
            device_busy_fraction: Some(0.0),
            swapped_pages: Some(0),
            dirty_bytes: Some(MIB),
            ..Sample::default()
        },
        probe: Some(Probe {
            length_bytes: 8 * MIB,
            extents: Some(1),
            compresses: Some(false),
            flush_s: Some(1.2e-3),
            direct_align_bytes: Some(512),
            direct_read_s: Some(80e-6),
            direct_is_direct: Some(true),
            read_ahead_bytes: Some(4096),
        }),
        warnings: vec![],
    }
}

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
            advice: "it is the limit that will be measured",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| probe(facts).direct_read_s = Some(4e-6)),
        flags: &[Flag {
            what: "the host's cache answers direct reads in 4 µs",
            code: Code::CachesBelow,
            severity: Severity::Warning,
            advice: "larger data outgrow",
        }],
    },
    Trap {
        built: "facts",
        look: || judged(|facts| facts.target.rotational = Some(true)),
        flags: &[Flag {
            what: "a disk that is said to turn reads a page in 80 µs",
            code: Code::CachesBelow,
            severity: Severity::Warning,
            advice: "not the medium alone",
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
