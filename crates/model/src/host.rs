//! The machine and the target, as the record's header holds them (Chen and Patterson, Fig. 2).
//!
//! No host name, serial number or user name is in here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Host {
    /// Processor, as it names itself.
    pub cpu_model: String,
    /// Processors this process may run on.
    pub cpus: u32,
    /// Last-level cache of one processor, bytes.
    pub llc_bytes: Option<u64>,
    /// Physical memory, bytes.
    pub memory_bytes: u64,
    /// Memory that could be had at the start, bytes.
    pub memory_available_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub os: String,
    /// Hypervisor or container, where one shows itself.
    pub virtualisation: Option<String>,
    /// Clock source.
    pub clock_source: String,
    /// Cost of reading the clock once, seconds.
    pub clock_read_s: f64,
    /// What the tool itself spends on a request: one that does nothing, drawn, timed and entered
    /// into its histogram, seconds.
    pub harness_s_per_op: Option<f64>,
    /// Where workers ran: `free`, or the processors they were pinned to, in turn.
    pub placement: Option<String>,
    /// Frequency governor, where there is one.
    pub governor: Option<String>,
    /// Bytes per second of a copy in memory that does not fit the processor's caches.
    pub memory_copy_bytes_per_s: Option<f64>,
    /// Control group version in force for memory: 1, 2, or none.
    pub cgroup_version: Option<u32>,
    /// Memory limit this process lives under, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// `--memory-limit`, where the tool set one itself, bytes.
    pub memory_limit_set_bytes: Option<u64>,
    /// `--dirty-limit`, where the tool set one itself, bytes.
    pub dirty_limit_set_bytes: Option<u64>,
    /// Processor quota this process lives under, in processors.
    pub cpu_limit: Option<f64>,
    /// I/O throttles this process lives under, as the kernel prints them.
    pub io_limits: Vec<String>,
    /// `vm.dirty_bytes` or the bytes `vm.dirty_ratio` comes to.
    pub dirty_limit_bytes: u64,
    /// `vm.dirty_background_bytes` or the bytes `vm.dirty_background_ratio` comes to.
    pub dirty_background_bytes: u64,
    /// `vm.dirty_expire_centisecs`, in seconds.
    pub dirty_expire_s: f64,
    /// `vm.dirty_writeback_centisecs`, in seconds.
    pub dirty_writeback_s: f64,
    /// Multi-generational LRU switched on.
    pub lru_gen: Option<bool>,
    /// Swap space, bytes.
    pub swap_bytes: u64,
    /// One-minute load average at the start.
    pub load_average: f64,
}

impl Host {
    /// The tightest memory limit in force, bytes. A control group without a limit shows a number far above the memory.
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_limit_set_bytes.into_iter().chain(self.memory_limit_bytes).min()
    }
}

/// What kind of target it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// Not said.
    #[default]
    #[serde(rename = "")]
    Unknown,
    /// A directory.
    Directory,
    /// A block device.
    BlockDevice,
    /// A file that was there already, and was only read.
    File,
    /// A simulated device.
    Sim,
    /// A web server.
    Server,
    /// Whatever another program measured.
    Imported,
}

/// Filesystems that live in memory.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "hugetlbfs", "devtmpfs"];

/// Whether files on a filesystem of this type live in memory: there is no storage behind it.
pub fn is_in_memory(filesystem: &str) -> bool {
    IN_MEMORY.contains(&filesystem)
}

/// What is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Target {
    /// As it was given, made absolute.
    pub path: String,
    /// What kind of target it is.
    pub kind: TargetKind,
    /// Filesystem type.
    pub filesystem: String,
    /// Mount options, of the mount and of the filesystem.
    pub mount_options: String,
    /// Mount source: a device, or what stands for one.
    pub source: String,
    /// Filesystem size, bytes.
    pub size_bytes: u64,
    /// Free for this process at the start, bytes.
    pub free_bytes: u64,
    /// Block device's kernel name.
    pub device: Option<String>,
    /// Device model.
    pub device_model: Option<String>,
    /// Whether it turns.
    pub rotational: Option<bool>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Requests the device takes at a time.
    pub queue_depth: Option<u64>,
    /// Logical sector of the device, bytes.
    pub sector_bytes: Option<u64>,
    /// Read-ahead, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Write cache mode as the kernel sees it.
    pub write_cache: Option<String>,
    /// File behind a loop device.
    pub loop_backing: Option<String>,
    /// Simulated device: its parameters, as TOML.
    pub sim: Option<String>,
}

/// Names that filesystems go by whose files are on another machine; those below FUSE beside them.
const NETWORK: [&str; 15] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "smb3",
    "smbfs",
    "virtiofs",
];

/// Filesystems of FUSE whose files are elsewhere.
const SERVED_BY_FUSE: [&str; 11] = [
    "fuse.blobfuse2",
    "fuse.ceph",
    "fuse.ceph-fuse",
    "fuse.curlftpfs",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.juicefs",
    "fuse.mountpoint-s3",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
];

/// True if a server, or the host of a virtual machine, answers what this machine's page cache does not,
/// and has a cache of its own. Where several machines share a disk (OCFS2, GPFS), each reads the disk itself.
pub fn is_served(filesystem: &str) -> bool {
    let is_shared_disk = matches!(filesystem, "ocfs2" | "gpfs");
    (NETWORK.contains(&filesystem) && !is_shared_disk) || SERVED_BY_FUSE.contains(&filesystem)
}

/// Whether the files of a filesystem are behind a network, or on the host of a virtual machine.
pub fn is_network(filesystem: &str) -> bool {
    NETWORK.contains(&filesystem) || filesystem.starts_with("fuse.")
}

/// Linux reads ahead so much of a stream, bytes, unless told otherwise (`VM_READAHEAD_PAGES` in mm.h).
pub const READ_AHEAD_BYTES: u64 = 128 << 10;

impl Target {
    /// How much the kernel reads ahead of a stream at most, bytes: what the device says, or else what is usual.
    pub fn reads_ahead_bytes(&self) -> u64 {
        self.read_ahead_bytes.unwrap_or(READ_AHEAD_BYTES)
    }

    /// Whether it is a simulated device, which has nothing to do with the memory, the kernel and the
    /// storage of the machine.
    pub fn is_simulated(&self) -> bool {
        self.kind == TargetKind::Sim
    }

    /// Whether its files live in memory.
    pub fn is_in_memory(&self) -> bool {
        is_in_memory(&self.filesystem)
    }

    /// See [`is_served`].
    pub fn is_served(&self) -> bool {
        is_served(&self.filesystem)
    }

    /// The mount option by which the filesystem compresses.
    pub fn compress_option(&self) -> Option<&str> {
        self.mount_options.split(',').find(|option| option.starts_with("compress"))
    }
}
