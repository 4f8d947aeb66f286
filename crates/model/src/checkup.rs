//! What `ioscape doctor` sees before anything is measured, and what it makes of it.
//!
//! The first half is facts, as the kernel tells them; the second the answer. `None` is what could
//! not be known.

use serde::Serialize;

use crate::host::{Host, Target};
use crate::warning::Warning;

/// Everything that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// The machine.
    pub host: Host,
    /// What would be measured.
    pub target: Target,
    /// More about the machine than a record holds.
    pub machine: Machine,
    /// The block device behind the target, where there is one.
    pub device: Option<Device>,
    /// What the machine did meanwhile.
    pub sample: Sample,
    /// What a small test file said.
    pub probe: Option<Probe>,
    /// What opening the target said already.
    pub warnings: Vec<Warning>,
}

/// The machine beyond [`Host`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Whether this process is root.
    pub is_root: bool,
    /// Memory nodes that processors are near to or far from.
    pub numa_nodes: u32,
    /// Running on battery; `None` where no power supply shows itself.
    pub on_battery: Option<bool>,
    /// Write-back is put off until somebody reads.
    pub laptop_mode: bool,
    /// Swap space in use, bytes.
    pub swap_used_bytes: u64,
    /// Whether a memory control group can be made here.
    pub can_limit_memory: bool,
}

/// A block device, whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Device {
    /// Kernel name.
    pub name: String,
    /// Major and minor number, `254:0`.
    pub number: String,
    /// `none`, `host-aware`, `host-managed`.
    pub zoned: Option<String>,
    /// How it is joined: `dm crypt`, `dm thin`, `md raid1`, `loop`, `zram`, `nbd`; a plain disk
    /// has none. Those of the devices below it follow.
    pub layers: Vec<String>,
    /// Loop device: whether it goes past the cache of the file behind it.
    pub loop_direct: Option<bool>,
    /// What a RAID array is busy with besides serving: `resync`, `check`, `recover`.
    pub raid_sync: Option<String>,
    /// Temperature, degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Temperature from which the device slows itself down, degrees Celsius.
    pub temperature_limit_celsius: Option<f64>,
    /// What its first and last blocks say is on it. Read only where the device is the target.
    pub contents: Vec<String>,
    /// Share of blocks read at random that hold nothing but zeros, where it is the target.
    pub zero_fraction: Option<f64>,
}

/// The machine over a second or so, while the doctor did nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// How long.
    pub length_s: f64,
    /// Share of all processors' time that was used.
    pub cpu_busy_fraction: Option<f64>,
    /// Share that the hypervisor gave to others.
    pub cpu_stolen_fraction: Option<f64>,
    /// Share of this process's scheduling periods in which its quota had run out, since boot or
    /// since its control group was made.
    pub cpu_throttled_fraction: Option<f64>,
    /// Share of the time in which somebody waited for a processor.
    pub cpu_pressure: Option<f64>,
    /// Share of the time in which somebody waited for memory.
    pub memory_pressure: Option<f64>,
    /// Share of the time in which somebody waited for I/O.
    pub io_pressure: Option<f64>,
    /// Share of the time in which the target's device had something to do.
    pub device_busy_fraction: Option<f64>,
    /// What others read from it.
    pub device_read_bytes_per_s: Option<f64>,
    /// What others wrote to it.
    pub device_write_bytes_per_s: Option<f64>,
    /// What was discarded on it: blocks of deleted files.
    pub device_discard_bytes_per_s: Option<f64>,
    /// Pages swapped in and out.
    pub swapped_pages: Option<u64>,
    /// Dirty data and data under write-back at the end, bytes.
    pub dirty_bytes: Option<u64>,
}

/// What a small test file, made and removed again, said about the filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Probe {
    /// How large it was.
    pub length_bytes: u64,
    /// Pieces it lies in.
    pub extents: Option<u64>,
    /// Zeros took less room than data that cannot be compressed.
    pub compresses: Option<bool>,
    /// A page written and made durable, the median of several.
    pub flush_s: Option<f64>,
    /// Offsets and sizes that direct I/O has to keep to; 0 where there is none.
    pub direct_align_bytes: Option<u64>,
    /// A page read past the page cache, the median of several.
    pub direct_read_s: Option<f64>,
    /// Whether those reads left the page cache alone.
    pub direct_is_direct: Option<bool>,
    /// Reading one page of a file that is not cached brought in this much.
    pub read_ahead_bytes: Option<u64>,
}

/// The doctor's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checkup {
    /// What would make a measurement misleading, the gravest first.
    pub doubts: Vec<Warning>,
    /// What cannot be known from here.
    pub unknown: Vec<Unknown>,
    /// What root would add.
    pub privileges: Vec<Privilege>,
}

/// Something that no look from here can tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// What.
    pub text: String,
    /// How it could be found out, or what the run does about it.
    pub remedy: String,
}

/// Something that not everybody may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Privilege {
    /// What it is good for.
    pub text: String,
    /// Whether this process may.
    pub granted: bool,
}
