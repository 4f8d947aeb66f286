//! Filesystems made for the purpose.

use std::path::Path;

use ioscape_model::{Code, Severity};

use super::{Flag, Look, Trap, examined, spring};
use crate::workdir::Workdir;
use ioscape_test_support::Mount;

/// A filesystem of its own, gone when dropped.
struct Mounted {
    mount: Mount,
    _work: Workdir,
}

impl Mounted {
    /// On a loop device over a sparse image, which the page cache holds once more.
    fn make(filesystem: &str, options: &str) -> Result<Self, String> {
        let work = Workdir::new();
        let mount = Mount::of_image(&work.target(), filesystem, options)?;
        Ok(Self { mount, _work: work })
    }

    /// Two layers in one view.
    fn overlay() -> Result<Self, String> {
        let work = Workdir::new();
        for name in ["lower", "upper", "work"] {
            std::fs::create_dir(work.path(name)).unwrap();
        }
        let text = |name: &str| work.path(name).to_str().unwrap().to_owned();
        let (lower, upper, inner) = (text("lower"), text("upper"), text("work"));
        let options = format!("lowerdir={lower},upperdir={upper},workdir={inner}");
        let mount = Mount::make(&work.target(), &["-t", "overlay", "-o", &options, "none"])?;
        Ok(Self { mount, _work: work })
    }

    fn point(&self) -> &Path {
        self.mount.point()
    }
}

fn mounted(filesystem: &str, options: &str) -> Look {
    examined(Mounted::make(filesystem, options)?.point())
}

/// A filesystem of which a twentieth is free.
fn nearly_full() -> Look {
    let mounted = Mounted::make("ext4", "noatime")?;
    let free_bytes = || -> Result<u64, String> {
        let directory = ioscape_engine::target::open_directory(mounted.point());
        directory.and_then(|directory| directory.free_bytes()).map_err(|e| e.to_string())
    };
    let filler = std::fs::File::create(mounted.point().join("filler")).unwrap();
    let length = free_bytes()? - (12 << 20);
    rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, length)
        .map_err(|error| error.to_string())?;
    examined(mounted.point())
}

pub(super) const TRAPS: &[Trap] = &[
    Trap {
        built: "filesystem: ext4 on a loop device, `sync,strictatime`",
        look: || mounted("ext4", "sync,strictatime"),
        flags: &[
            Flag {
                what: "a loop device over a file that the page cache holds once more",
                code: Code::CachesBelow,
                severity: Severity::Warning,
                advice: "losetup --direct-io=on",
            },
            Flag {
                what: "every write waits for the medium (`sync`)",
                code: Code::MountOptions,
                severity: Severity::Warning,
                advice: "mounted alike",
            },
            Flag {
                what: "reading writes access times (`strictatime`)",
                code: Code::MountOptions,
                severity: Severity::Note,
                advice: "mounted alike",
            },
            Flag {
                what: "test files can only be smaller than the page cache",
                code: Code::BorderNotReached,
                severity: Severity::Note,
                advice: "--memory-limit",
            },
        ],
    },
    Trap {
        built: "filesystem: ext4 on a loop device, `nobarrier,data=journal`",
        look: || mounted("ext4", "nobarrier,data=journal"),
        flags: &[
            Flag {
                what: "flushes that are not passed on (`nobarrier`)",
                code: Code::FlushSuspect,
                severity: Severity::Warning,
                advice: "mount it with barriers",
            },
            Flag {
                what: "data written twice (`data=journal`)",
                code: Code::MountOptions,
                severity: Severity::Warning,
                advice: "mounted alike",
            },
            Flag {
                what: "direct reads that go through the page cache all the same",
                code: Code::DirectNotDirect,
                severity: Severity::Warning,
                advice: "leave access=direct out",
            },
        ],
    },
    Trap {
        built: "filesystem: btrfs on a loop device, `compress-force=zstd`",
        look: || mounted("btrfs", "compress-force=zstd"),
        flags: &[Flag {
            what: "a filesystem that compresses what can be compressed",
            code: Code::CopyOnWrite,
            severity: Severity::Note,
            advice: "other results from this filesystem",
        }],
    },
    Trap {
        built: "filesystem: ext4 on a loop device, filled",
        look: nearly_full,
        flags: &[Flag {
            what: "a filesystem with next to no room",
            code: Code::NearlyFull,
            severity: Severity::Serious,
            advice: "make room",
        }],
    },
    Trap {
        built: "filesystem: overlay",
        look: || examined(Mounted::overlay()?.point()),
        flags: &[Flag {
            what: "an overlay, as containers have it: counters see neither layer",
            code: Code::NoCounters,
            severity: Severity::Warning,
            advice: "measure the filesystem below it",
        }],
    },
    Trap {
        built: "filesystem: tmpfs",
        look: || examined(Path::new("/dev/shm")),
        flags: &[Flag {
            what: "tmpfs taken for a disk",
            code: Code::MemoryFilesystem,
            severity: Severity::Serious,
            advice: "name a directory on a disk",
        }],
    },
];

#[test]
fn filesystems_that_mislead_are_noticed() {
    spring(TRAPS);
}
