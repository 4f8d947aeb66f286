//! Facts of which there is nothing to say. Tests spoil one of them at a time.

use ioscape_model::checkup::{Device, Facts, Machine, Probe, Sample};
use ioscape_model::units::{GIB, MIB};
use ioscape_model::{Host, Target};

/// A machine of one's own with a good drive: nothing to say.
pub fn blameless() -> Facts {
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
            kind: ioscape_model::TargetKind::Directory,
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
