//! Measurements on real files while something is done to them, to this process or to the machine.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_engine::target::{Consent, Ground, open_device, open_directory};
use ioscape_engine::{Clock, EngineKind, FileRig, RunId, harness, host};
use ioscape_experiment::{Event, Subject};
use ioscape_model::{Code, Point, Role, Rules, Severity, Warning, Workload};

use super::{Flag, Look, Trap, examined, spring};
use crate::workdir::Workdir;
use ioscape_test_support::{LoopDevice, run};

const MIB: u64 = 1 << 20;
/// Reads from all over a small file.
const READS: &str = "unique_bytes=8MiB,size_mean=16k,read_frac=1,seq_frac=0";
/// 2000 of them per second, which leaves most of the processors to other tests.
const FEW_READS: &str = "unique_bytes=8MiB,size_mean=16k,read_frac=1,seq_frac=0,rate=2000";

/// Short visits: what is looked for shows at once.
pub(super) fn quick() -> Rules {
    Rules {
        window_s: 0.05,
        windows_min: 10,
        ramp_s: 0.1,
        ramp_max_s: 0.2,
        measure_max_s: 0.6,
        ..Rules::brief()
    }
}

/// What is measured, by what.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) workload: &'static str,
    pub(crate) engine: EngineKind,
    pub(crate) verify: bool,
}

impl Way {
    pub(crate) const fn usual(workload: &'static str) -> Self {
        Self { workload, engine: EngineKind::Auto, verify: false }
    }

    const fn verified(workload: &'static str) -> Self {
        Self { verify: true, ..Self::usual(workload) }
    }

    /// One visit; `deed` is done after the third window.
    pub(crate) fn visit(
        self,
        ground: impl Into<Ground>,
        mut deed: impl FnMut(),
    ) -> Result<Point, String> {
        let failed = |error: ioscape_engine::Error| error.to_string();
        let (clock, id) = (Clock::start(), RunId::random().map_err(failed)?);
        let mut host = host::describe(&clock);
        host.harness_s_per_op = harness::cost_s(&clock);
        let quiet = Arc::new(AtomicBool::new(false));
        let mut rig = FileRig::new(ground, id.clone(), &host, clock, quiet)
            .map_err(failed)?
            .with_engine(self.engine);
        if self.verify {
            rig = rig.with_verification(&id).map_err(failed)?;
        }
        let work = Workload::parse(self.workload).unwrap();
        let subject = Subject { work: &work, role: Role::Measure, round: 0, seed: 1 };
        ioscape_experiment::measure(&subject, &quick(), &mut rig, &mut |event| {
            if matches!(event, Event::Window { count: 3, .. }) {
                deed();
            }
        })
        .map_err(failed)
    }
}

/// What is said about a visit to a directory of its own in which this was done to the test file.
fn disturbed(way: Way, deed: fn(&Path)) -> Look {
    let work = Workdir::new();
    let target = work.target();
    let directory = open_directory(&target).map_err(|error| error.to_string())?;
    Ok(way.visit(directory, || deed(&test_file(&target)))?.warnings)
}

fn test_file(directory: &Path) -> PathBuf {
    let mut entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.to_string_lossy().contains(".ioscape-")).unwrap()
}

fn writable(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

fn flip_a_bit(path: &Path) {
    let file = writable(path);
    let at = 5 * MIB + 1234;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

fn punch(path: &Path) {
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(writable(path), flags, 0, 4 * MIB).unwrap();
}

/// Where residency is known: without it nobody can tell.
fn with_residency(workload: &'static str) -> Look {
    let work = Workdir::new();
    let directory = open_directory(work.target()).map_err(|error| error.to_string())?;
    let point = Way::usual(workload).visit(directory, || {})?;
    point.hit_fraction.ok_or("this filesystem does not say what is cached")?;
    Ok(point.warnings)
}

/// A device of which the last quarter gives nothing but errors: its image was cut.
fn failing_device() -> Look {
    let work = Workdir::new();
    let image = work.path("image");
    fs::write(&image, vec![7; 32 << 20]).unwrap();
    let device = LoopDevice::over(&image, &["--direct-io=on"])?;
    let way = Way::usual(
        "unique_bytes=32MiB,size_mean=16k,size_dist=fixed,read_frac=1,seq_frac=0,access=direct",
    );
    let look = open_device(device.path(), Consent::ReadOnly)
        .map_err(|error| error.to_string())
        .and_then(|device| {
            writable(&image).set_len(24 * MIB).unwrap();
            way.visit(device, || {})
        });
    Ok(look?.warnings)
}

/// Processors that are busy while the doctor looks.
fn busy_processors() -> Look {
    let work = Workdir::alone();
    let stop = AtomicBool::new(false);
    let spinners = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..spinners {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let look = examined(&work.target());
        stop.store(true, Ordering::Relaxed);
        look
    })
}

/// The warnings of `ioscape measure`, as a process of its own that something is done to.
fn measured_apart(command: &mut std::process::Command, deed: impl FnOnce(u32)) -> Look {
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    deed(child.id());
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let warnings: Vec<Warning> = serde_json::from_value(answer["warnings"].clone()).unwrap();
    Ok(warnings)
}

const APART: [&str; 5] = ["measure", "target", "--json", "--quiet", "-w"];

/// Whether the workers of a process are there yet.
fn is_working(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    tasks.into_iter().flatten().flatten().any(|task| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.starts_with("ioscape-worker")
    })
}

/// Stopped for a while in the middle of its windows, as by a suspended host.
fn stopped() -> Look {
    let work = Workdir::new();
    let clock = Clock::start();
    let pause = |seconds: f64| clock.sleep_until(clock.now_ns() + (seconds * 1e9) as u64);
    let mut command = work.command(&APART);
    command.arg(FEW_READS);
    // The stop makes one window last for a second. After that 10 % are seldom reached: the budget ends the measurement.
    measured_apart(command.args(["--precision", "10%", "--budget", "9s"]), |process| {
        let number = process.to_string();
        // The first workers there are measure the harness; those of the visit run in for half a second.
        for _ in 0..500 {
            pause(0.01);
            if is_working(process) && !files_of(&work.target()).is_empty() {
                break;
            }
        }
        pause(0.8);
        run("kill", &["-STOP", &number]).ok();
        pause(0.8);
        run("kill", &["-CONT", &number]).ok();
    })
}

fn files_of(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// In a control group that gives a fifth of a processor.
fn throttled() -> Look {
    let work = Workdir::new();
    let name = format!("ioscape-corpus-{}", std::process::id());
    let (one, two) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
    // By its weight it comes before the tests beside it: what holds it back is its quota.
    let (group, quota, weight) = if one.join("cpu.cfs_quota_us").exists() || one.is_dir() {
        (one.join(name), ("cpu.cfs_quota_us", "20000"), ("cpu.shares", "262144"))
    } else {
        (two.join(name), ("cpu.max", "20000 100000"), ("cpu.weight", "10000"))
    };
    fs::create_dir(&group).map_err(|error| format!("no control group here: {error}"))?;
    fs::write(group.join(weight.0), weight.1).ok();
    let look = fs::write(group.join(quota.0), quota.1)
        .map_err(|error| format!("no processor quota here: {error}"))
        .and_then(|()| {
            let into = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.display());
            let mut command = std::process::Command::new("sh");
            command.current_dir(work.path("."));
            command.args(["-c", &into, "sh", env!("CARGO_BIN_EXE_ioscape")]).args(APART);
            command.args([READS, "--precision", "50%", "--rounds", "1"]);
            measured_apart(&mut command, |_| {})
        });
    fs::remove_dir(&group).ok();
    look
}

pub(super) const TRAPS: &[Trap] = &[
    Trap {
        built: "file: cut to half its length under the run",
        look: || disturbed(Way::usual(FEW_READS), |path| writable(path).set_len(4 * MIB).unwrap()),
        flags: &[
            Flag {
                what: "reads that end before they should",
                code: Code::RequestErrors,
                severity: Severity::Serious,
                advice: "find out who cut it",
            },
            Flag {
                what: "a test file that somebody cuts",
                code: Code::FileChanged,
                severity: Severity::Serious,
                advice: "find out who touches files",
            },
        ],
    },
    Trap {
        built: "file: a hole punched into it under the run",
        look: || disturbed(Way::usual(FEW_READS), punch),
        flags: &[Flag {
            what: "a sparse file: half of it reads as zeros, without I/O",
            code: Code::FileChanged,
            severity: Severity::Serious,
            advice: "find out who touches files",
        }],
    },
    Trap {
        built: "file: removed under the run",
        look: || disturbed(Way::usual(FEW_READS), |path| fs::remove_file(path).unwrap()),
        flags: &[Flag {
            what: "a test file that somebody removes",
            code: Code::FileChanged,
            severity: Severity::Serious,
            advice: "find out who touches files",
        }],
    },
    Trap {
        built: "file: one bit flipped under the run, `--verify`, pread",
        look: || disturbed(Way::verified(READS), flip_a_bit),
        flags: &[Flag {
            what: "storage that gives back other data than it was given",
            code: Code::DataMismatch,
            severity: Severity::Serious,
            advice: "do not trust this storage",
        }],
    },
    Trap {
        built: "file: one bit flipped under the run, `--verify`, io_uring",
        look: || {
            let workload = "unique_bytes=8MiB,size_mean=16k,read_frac=1,seq_frac=0,depth=4";
            disturbed(Way::verified(workload), flip_a_bit)
        },
        flags: &[Flag {
            what: "the same with four requests in flight",
            code: Code::DataMismatch,
            severity: Severity::Serious,
            advice: "do not trust this storage",
        }],
    },
    Trap {
        built: "file",
        look: || {
            with_residency("unique_bytes=8MiB,size_mean=16k,read_frac=0.3,seq_frac=0,state=cold")
        },
        flags: &[Flag {
            what: "writes that fill the cache faster than the disk takes them, while a cold cache was asked for (`state=cold`)",
            code: Code::CacheState,
            severity: Severity::Warning,
            advice: "use access=direct",
        }],
    },
    Trap {
        built: "file",
        look: || with_residency("unique_bytes=8MiB,size_mean=16k,read_frac=1,seq_frac=0,depth=8"),
        flags: &[Flag {
            what: "eight requests in flight to the page cache, which serves one at a time",
            code: Code::DepthIgnored,
            severity: Severity::Warning,
            advice: "use access=direct",
        }],
    },
    Trap {
        built: "file, with `--engine null`",
        look: || disturbed(Way { engine: EngineKind::Null, ..Way::usual(READS) }, |_| {}),
        flags: &[Flag {
            what: "a result that is the generator's own",
            code: Code::HarnessCost,
            severity: Severity::Warning,
            advice: "with care",
        }],
    },
    Trap {
        built: "device: a loop device whose last quarter gives I/O errors",
        look: failing_device,
        flags: &[Flag {
            what: "a drive with bad sectors",
            code: Code::RequestErrors,
            severity: Severity::Serious,
            advice: "smartctl",
        }],
    },
    Trap {
        built: "process: every processor spins",
        look: busy_processors,
        flags: &[Flag {
            what: "neighbours on the processors",
            code: Code::Neighbours,
            severity: Severity::Warning,
            advice: "stop what else runs",
        }],
    },
    Trap {
        built: "process: stopped for 0.8 s (SIGSTOP)",
        look: stopped,
        flags: &[Flag {
            what: "a clock that jumps: the process, or its host, stood still",
            code: Code::ClockJump,
            severity: Severity::Warning,
            advice: "while nothing stops it",
        }],
    },
    Trap {
        built: "control group: a fifth of a processor",
        look: throttled,
        flags: &[Flag {
            what: "a container whose processor quota runs out during the run",
            code: Code::Throttled,
            severity: Severity::Serious,
            advice: "raise the quota",
        }],
    },
];

#[test]
fn what_is_done_to_a_measurement_is_noticed() {
    spring(TRAPS);
}
