//! A command under way, to be disturbed.

use std::fs::{File, read, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use ioscape_engine::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::workdir::Workdir;

/// What has not happened by then does not happen.
const HANGS_S: f64 = 900.0;

/// A command that ends with the test at the latest, also with one that fails.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    pub(crate) fn start(work: &Workdir, arguments: &[&str]) -> Self {
        Self::spawn(work, work.command(arguments))
    }

    pub(crate) fn spawn(work: &Workdir, mut command: Command) -> Self {
        // Pipes that nobody reads would hold it up.
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| work.path(name));
        let into = |path: &Path| File::create(path).unwrap();
        let child = command.stdout(into(&stdout)).stderr(into(&stderr)).spawn().unwrap();
        Self { child, stdout, stderr }
    }

    /// Its number.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Does nothing to one that has ended.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.has_ended() {
            return;
        }
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits, however slow the machine; fails where the command ends before, or never.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, mut is_so: impl FnMut() -> bool) {
        let clock = Clock::start();
        while clock.now_s() < HANGS_S {
            // In this order: it may do the last thing and end between two looks.
            let has_ended = self.has_ended();
            if is_so() {
                return;
            }
            assert!(!has_ended, "ended too soon: {}", self.stderr());
            wait_ms(5);
        }
        panic!("nothing happened in {HANGS_S} s: {}", self.stderr());
    }

    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let clock = Clock::start();
        while clock.now_s() < HANGS_S {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            wait_ms(5);
        }
        panic!("no end in {HANGS_S} s: {}", self.stderr());
    }

    pub(crate) fn stdout(&self) -> String {
        read_to_string(&self.stdout).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        read_to_string(&self.stderr).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) fn wait_ms(ms: u64) {
    let clock = Clock::start();
    clock.sleep_until(clock.now_ns() + ms * 1_000_000);
}

/// Points of a record whose lines are whole.
pub(crate) fn points(path: &Path) -> usize {
    let text = read(path).unwrap_or_default();
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| line.starts_with(b"{\"kind\":\"point\"") && line.ends_with(b"\n")).count()
}
