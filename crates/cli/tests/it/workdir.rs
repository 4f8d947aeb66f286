//! A directory to work in, and the binary in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ioscape_model::Record;

/// A test holds this lock if it compares speeds, or needs many visits in little time. Tests that do not hold it assert only
/// what holds on a busy machine.
static STORAGE: Mutex<()> = Mutex::new(());

/// A directory that goes away with the test.
pub(crate) struct Workdir {
    directory: tempfile::TempDir,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Workdir {
    pub(crate) fn new() -> Self {
        // Beside the build, not in /tmp: that may be a memory filesystem.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir(directory.path().join("target")).unwrap();
        Self { directory, _turn: None }
    }

    /// No other test that holds the lock runs meanwhile.
    pub(crate) fn alone() -> Self {
        let turn = STORAGE.lock().unwrap_or_else(PoisonError::into_inner);
        Self { _turn: Some(turn), ..Self::new() }
    }

    /// Where files are measured.
    pub(crate) fn target(&self) -> PathBuf {
        self.directory.path().join("target")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ioscape"));
        command.current_dir(self.directory.path()).args(arguments);
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs it, expects success, and gives what it printed.
    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}: {stderr}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.stdout(arguments)).unwrap()
    }

    /// One visit that `ioscape measure` makes, where its precision does not matter: on a busy
    /// machine 5 % take half a minute, or are not reached at all.
    pub(crate) fn visit(&self, arguments: &[&str]) -> serde_json::Value {
        let brief = ["--rounds", "1", "--precision", "50%", "--json", "--quiet"];
        let output = self.output(&[&["measure"], arguments, &brief].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        // Even that may be missed, which is exit code 1.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {stderr}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs it, expects this exit code and one line on stderr, and gives that line.
    pub(crate) fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?} printed on stdout");
        stderr
    }

    /// Test files that lie in the target.
    pub(crate) fn left_behind(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.target()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Opens a record.
pub(crate) fn record(path: &Path) -> Record {
    Record::read(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap()
}
