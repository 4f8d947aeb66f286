//! Set-ups with nothing misleading about them.

use ioscape_engine::target::open_directory;
use ioscape_model::units::GIB;
use ioscape_model::{Code, Warning};

use super::judged::judged;
use super::measured::Way;
use super::simulated::on;
use super::{Clean, Look, acquit};
use crate::workdir::Workdir;

/// Without what others do on this machine while the test runs.
fn without_others(look: Look) -> Look {
    let of_others = |warning: &Warning| {
        matches!(
            warning.code,
            Code::StolenTime
                | Code::ClockJump
                | Code::Neighbours
                | Code::Swapping
                | Code::DirtyAtStart
                | Code::NotSteady
                | Code::NotPrecise
                | Code::Bistable
        )
    };
    Ok(look?.into_iter().filter(|warning| !of_others(warning)).collect())
}

/// What is said about a visit to a directory beside the build.
fn measured(way: Way) -> Look {
    let work = Workdir::alone();
    let directory = open_directory(work.target()).map_err(|error| error.to_string())?;
    let point = way.visit(directory, || {})?;
    if way.verify && point.verified_bytes.is_none_or(|bytes| bytes == 0) {
        return Err("nothing was verified".to_owned());
    }
    without_others(Ok(point.warnings))
}

macro_rules! real {
    ($($what:literal, $verify:literal, $workload:literal;)*) => {
        &[$(Clean {
            what: $what,
            built: concat!("file, `", $workload, "`"),
            look: || measured(Way { verify: $verify, ..Way::usual($workload) }),
        }),*]
    };
}

pub(super) const REAL: &[Clean] = real! {
    "cached reads", false, "unique_bytes=8MiB,read_frac=1";
    "cached reads and writes by two processes", false, "unique_bytes=16MiB,process_num=2";
    "direct reads, four in flight", false, "unique_bytes=16MiB,read_frac=1,access=direct,depth=4";
    "writes that are made durable", false, "unique_bytes=8MiB,read_frac=0.5,fsync_every=4";
    "verified reads and writes", true, "unique_bytes=8MiB,process_num=2,layout=shared";
    "verified, direct, eight in flight", true, "unique_bytes=8MiB,access=direct,depth=8";
};

macro_rules! simulated {
    ($($preset:literal, $workload:literal;)*) => {
        &[$(Clean {
            what: concat!("`sim:", $preset, "`, `", $workload, "`"),
            built: "simulated device",
            look: || on($preset, $workload, |_| {}),
        }),*]
    };
}

pub(super) const SIMULATED: &[Clean] = simulated! {
    "nvme", "unique_bytes=64MiB";
    "nvme", "unique_bytes=8GiB,size_mean=4k,read_frac=1,seq_frac=0,process_num=4";
    "nvme", "unique_bytes=8GiB,size_mean=64k,read_frac=0.7,depth=16,access=direct";
    "nvme", "unique_bytes=64MiB,read_frac=0,fsync_every=8";
    "nvme", "unique_bytes=8GiB,size_mean=16k,read_frac=1,rate=2000";
    "hdd", "unique_bytes=64MiB";
    "hdd", "unique_bytes=8GiB,size_mean=1MiB,read_frac=1,seq_frac=1";
    "cloud-volume", "unique_bytes=64MiB,read_frac=1";
    "cloud-volume", "unique_bytes=3GiB,size_mean=64k";
    "sparcstation-1plus", "unique_bytes=1MiB";
    "decstation-5000", "unique_bytes=1MiB,size_mean=8k";
    "hp-730", "unique_bytes=4MiB";
    "convex-c240", "unique_bytes=16MiB,process_num=2";
    "solbourne-5e", "unique_bytes=4MiB,read_frac=1";
};

pub(super) const JUDGED: &[Clean] = &[
    Clean { what: "a drive of one's own, ext4", built: "facts", look: || judged(|_| {}) },
    Clean {
        what: "a notebook that is plugged in, governor `powersave`, xfs",
        built: "facts",
        look: || {
            judged(|facts| {
                facts.host.governor = Some("powersave".to_owned());
                facts.target.filesystem = "xfs".into();
                facts.target.mount_options = "rw,relatime,discard".into();
            })
        },
    },
    Clean {
        what: "a turning disk that turns",
        built: "facts",
        look: || {
            judged(|facts| {
                facts.target.rotational = Some(true);
                let probe = facts.probe.as_mut().unwrap();
                (probe.direct_read_s, probe.flush_s) = (Some(8e-3), Some(12e-3));
            })
        },
    },
    Clean {
        what: "a server with two memory nodes and mirrored drives",
        built: "facts",
        look: || {
            judged(|facts| {
                facts.machine.numa_nodes = 2;
                facts.device.as_mut().unwrap().layers = vec!["md raid1".to_owned()];
            })
        },
    },
    Clean {
        what: "an encrypted drive",
        built: "facts",
        look: || {
            judged(|facts| facts.device.as_mut().unwrap().layers = vec!["dm crypt".to_owned()])
        },
    },
    Clean {
        what: "a virtual machine with a network volume, a little time stolen",
        built: "facts",
        look: || {
            judged(|facts| {
                facts.host.virtualisation = Some("KVM".to_owned());
                facts.sample.cpu_stolen_fraction = Some(0.004);
                facts.sample.device_busy_fraction = Some(0.01);
                facts.probe.as_mut().unwrap().direct_read_s = Some(600e-6);
            })
        },
    },
    Clean {
        what: "a container with a memory limit and a processor quota that it does not use up",
        built: "facts",
        look: || {
            judged(|facts| {
                facts.host.memory_limit_bytes = Some(4 * GIB);
                facts.host.cpu_limit = Some(2.0);
                facts.sample.cpu_throttled_fraction = Some(0.0);
            })
        },
    },
    Clean {
        what: "a limit on another device than this",
        built: "facts",
        look: || judged(|facts| facts.host.io_limits = vec!["io.max 8:0 rbps=1048576".to_owned()]),
    },
    Clean {
        what: "a loop device that goes past the cache of its file",
        built: "facts",
        look: || {
            judged(|facts| {
                facts.target.loop_backing = Some("/image".to_owned());
                let device = facts.device.as_mut().unwrap();
                device.layers = vec!["loop".to_owned()];
                device.loop_direct = Some(true);
            })
        },
    },
    Clean {
        what: "a machine that swapped once, long ago",
        built: "facts",
        look: || judged(|facts| facts.machine.swap_used_bytes = GIB),
    },
];

#[test]
fn clean_set_ups_of_this_machine_are_not_suspected() {
    acquit(REAL);
}

#[test]
fn simulated_devices_that_behave_are_not_suspected() {
    acquit(SIMULATED);
}

#[test]
fn machines_that_are_in_order_are_not_suspected() {
    acquit(JUDGED);
}
