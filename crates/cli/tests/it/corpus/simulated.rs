//! Devices with a known law that misbehave on request.

use ioscape_engine::sim::Noise;
use ioscape_engine::{Rig, SimRig, SimSpec};
use ioscape_model::{Code, Rules, Severity, Warning};

use super::{Flag, Look, Trap, spring, visit};
use crate::workdir::{Workdir, record};

/// What the page cache cannot hold.
const STORAGE_READS: &str = "unique_bytes=8GiB,size_mean=16k,read_frac=1,seq_frac=0";

/// A preset with something changed.
fn device(preset: &str, change: impl FnOnce(&mut SimSpec)) -> SimRig {
    let mut spec = SimSpec::preset(preset).unwrap();
    change(&mut spec);
    spec.check().unwrap();
    SimRig::new(spec, 7)
}

/// One visit's warnings.
fn measured(rig: &mut dyn Rig, workload: &str) -> Look {
    Ok(visit(rig, workload, &Rules::thorough(), 1)?.warnings)
}

/// On a preset with something changed.
pub(super) fn on(preset: &str, workload: &str, change: impl FnOnce(&mut SimSpec)) -> Look {
    measured(&mut device(preset, change), workload)
}

/// What a whole run says about a preset with something changed.
fn mapped(preset: &str, change: impl FnOnce(&mut SimSpec)) -> Vec<Warning> {
    let mut spec = SimSpec::preset(preset).unwrap();
    change(&mut spec);
    let work = Workdir::new();
    std::fs::write(work.path("device.toml"), spec.to_toml()).unwrap();
    let output = work.output(&[
        "run",
        "sim:device.toml",
        "--budget",
        "4m",
        "--seed",
        "3",
        "--quiet",
        "--report",
        "none",
        "--out",
        "r.jsonl",
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    record(&work.path("r.jsonl")).warnings
}

pub(super) const TRAPS: &[Trap] = &[
    Trap {
        built: "simulated device",
        look: || {
            let workload = "unique_bytes=8GiB,size_mean=1MiB,read_frac=1,seq_frac=0";
            Ok(visit(&mut device("hdd", |_| {}), workload, &Rules::brief(), 1)?.warnings)
        },
        flags: &[Flag {
            what: "a disk too slow for a 99.9th percentile",
            code: Code::FewRequests,
            severity: Severity::Note,
            advice: "measure longer for the tail",
        }],
    },
    Trap {
        built: "simulated device",
        look: || {
            let workload = "unique_bytes=2GiB,size_mean=16k,read_frac=1,seq_frac=0,rate=9000";
            on("cloud-volume", workload, |spec| spec.noise = Noise::default())
        },
        flags: &[Flag {
            what: "an open loop that asks for three times what the device gives",
            code: Code::BehindSchedule,
            severity: Severity::Warning,
            advice: "lower rate",
        }],
    },
    Trap {
        built: "simulated device",
        look: || {
            on("nvme", "unique_bytes=64MiB,read_frac=1", |spec| {
                spec.noise.transient_amplitude = -3.0;
                spec.noise.transient_s = 15.0;
            })
        },
        flags: &[Flag {
            what: "a beginning four times as fast as what lasts",
            code: Code::NotPrecise,
            severity: Severity::Warning,
            advice: "measure longer",
        }],
    },
    Trap {
        built: "simulated device",
        look: || on("nvme", STORAGE_READS, |spec| spec.trouble.error_rate = 0.002),
        flags: &[Flag {
            what: "one request in five hundred fails with an I/O error",
            code: Code::RequestErrors,
            severity: Severity::Warning,
            advice: "dmesg",
        }],
    },
    Trap {
        built: "simulated device",
        look: || on("nvme", STORAGE_READS, |spec| spec.trouble.short_rate = 0.05),
        flags: &[Flag {
            what: "one request in twenty is cut short",
            code: Code::RequestErrors,
            severity: Severity::Serious,
            advice: "find out who cut it",
        }],
    },
    Trap {
        built: "simulated device",
        look: || {
            on("nvme", STORAGE_READS, |spec| {
                spec.trouble.timeout_rate = 2e-4;
                spec.trouble.timeout_s = 1.0;
            })
        },
        flags: &[Flag {
            what: "now and then a request times out after a second",
            code: Code::RequestErrors,
            severity: Severity::Warning,
            advice: "that of the requests that were done",
        }],
    },
    Trap {
        built: "simulated device, `ioscape run`",
        look: || {
            Ok(mapped("cloud-volume", |spec| {
                spec.trouble.credit_bytes = Some(2 << 30);
                spec.trouble.spent_speed = 0.3;
            }))
        },
        flags: &[Flag {
            what: "burst credit that runs out in the middle of a run",
            code: Code::Drift,
            severity: Severity::Warning,
            advice: "a longer --budget",
        }],
    },
    Trap {
        built: "simulated device, `ioscape run`",
        look: || Ok(mapped("nvme", |spec| spec.trouble.decline_per_hour = 9.0)),
        flags: &[Flag {
            what: "a machine that slows down all the time",
            code: Code::Drift,
            severity: Severity::Warning,
            advice: "run again when it is quiet",
        }],
    },
    Trap {
        built: "simulated device",
        look: || {
            on("nvme", "unique_bytes=64MiB,read_frac=1", |spec| {
                spec.noise.stall_every_s = 0.7;
                spec.noise.stall_s = 1.5;
            })
        },
        flags: &[Flag {
            what: "a device that stalls two thirds of the time",
            code: Code::NotPrecise,
            severity: Severity::Warning,
            advice: "on a quieter machine",
        }],
    },
];

#[test]
fn what_a_device_does_wrong_is_noticed() {
    spring(TRAPS);
}
