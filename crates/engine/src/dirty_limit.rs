//! `--dirty-limit`: how much data may wait in memory to be written. The kernel has one such
//! limit for the machine, so the old values are kept in a file until they are restored: when the
//! run ends, or by the next run where this one was killed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::{geteuid, getpid};
use serde::{Deserialize, Serialize};

use crate::cgroup::number;
use crate::error::{Error, Result};

/// Least limit that is taken; the kernel needs room for a few pages per processor.
const LIMIT_MIN_BYTES: u64 = 1 << 20;

/// The limits in force. Dropping it restores the old ones.
#[derive(Debug)]
pub struct DirtyLimit {
    place: SettingPaths,
    bytes: u64,
}

impl DirtyLimit {
    /// Lets at most `bytes` of data wait, and has the kernel begin to write at a third of that:
    /// with the two as close as they are by default (20 % and 10 % of memory), throttling at
    /// small limits flips between two speeds. Changes the whole machine. What a killed run left
    /// behind is restored first.
    ///
    /// # Errors
    /// [`Error::Refused`] where the user is not root or another run holds the limits; what the
    /// kernel said otherwise. Nothing has changed then.
    pub fn set(bytes: u64) -> Result<Self> {
        if !geteuid().is_root() {
            return Err(Error::Refused(format!(
                "--dirty-limit {bytes} changes the whole machine and needs root: run as root, or \
                 leave it out"
            )));
        }
        Self::set_at(SettingPaths::system(), bytes)
    }

    fn set_at(place: SettingPaths, bytes: u64) -> Result<Self> {
        if bytes < LIMIT_MIN_BYTES {
            return Err(Error::Refused(format!(
                "--dirty-limit {bytes}: at least {LIMIT_MIN_BYTES} bytes (1 MiB) are needed"
            )));
        }
        let turn = place.take_turn()?;
        if let Some(saved) = place.load()? {
            if saved.owner.is_alive() {
                let pid = saved.owner.pid;
                return Err(Error::Refused(format!(
                    "--dirty-limit {bytes}: process {pid}, another ioscape, holds the dirty limits \
                     of this machine: wait for it"
                )));
            }
            place.restore(&saved)?;
        }
        let limit = place.read(DIRTY)?;
        let background = place.read(BACKGROUND)?;
        place.save(&Saved { owner: Owner::this_process()?, limit, background })?;
        // Dropping it restores, and that takes its own turn.
        drop(turn);
        let limit = Self { place, bytes };
        limit.place.write(BACKGROUND, Setting::Bytes(bytes / 3))?;
        limit.place.write(DIRTY, Setting::Bytes(bytes))?;
        Ok(limit)
    }

    /// The limit, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for DirtyLimit {
    fn drop(&mut self) {
        // Where this fails the state file stays, and the next run tries again.
        if let Ok(_turn) = self.place.take_turn()
            && let Ok(Some(saved)) = self.place.load()
        {
            self.place.restore_and_leave(&saved).ok();
        }
    }
}

/// Restores what a killed run left behind; says whether there was anything. Limits that a live
/// run holds are its own business. Only root can have set limits, and only root can restore them:
/// for anybody else there is nothing to do.
///
/// # Errors
/// When the old values cannot be read or written. The text names the file and what to do with
/// it; measuring can go on without.
pub fn restore_leftover() -> Result<bool> {
    if !geteuid().is_root() {
        return Ok(false);
    }
    restore_leftover_at(&SettingPaths::system())
}

fn restore_leftover_at(place: &SettingPaths) -> Result<bool> {
    if !place.state_file().exists() {
        return Ok(false);
    }
    let _turn = place.take_turn()?;
    match place.load()? {
        Some(saved) if !saved.owner.is_alive() => place.restore_and_leave(&saved).map(|()| true),
        _ => Ok(false),
    }
}

/// The two limits, by the names of their settings without `_bytes` and `_ratio`.
const DIRTY: &str = "dirty";
const BACKGROUND: &str = "dirty_background";

/// One limit: the kernel keeps a number of bytes or a percentage in force, and shows the other
/// as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Setting {
    Bytes(u64),
    Ratio(u64),
}

/// The state file: who changed the limits, and what they were.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    owner: Owner,
    limit: Setting,
    background: Setting,
}

/// A process. Its number may be given to another one day; number and start together may not.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    pid: i32,
    /// Clock ticks since the machine started.
    start_ticks: u64,
}

impl Owner {
    fn this_process() -> Result<Self> {
        let pid = getpid().as_raw_nonzero().get();
        match start_ticks(pid) {
            Some(start_ticks) => Ok(Self { pid, start_ticks }),
            None => Err(Error::path("read", format!("/proc/{pid}/stat"), ErrorKind::InvalidData)),
        }
    }

    fn is_alive(&self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// When a process started; `None` where it is gone, or dead and only not yet waited for.
fn start_ticks(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the state is the third field, the start the
    // twenty-second.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

/// Where the settings are, and the directory that keeps the old values.
#[derive(Clone, Debug)]
struct SettingPaths {
    settings: PathBuf,
    state: PathBuf,
}

impl SettingPaths {
    fn system() -> Self {
        Self { settings: "/proc/sys/vm".into(), state: "/run/ioscape".into() }
    }

    fn state_file(&self) -> PathBuf {
        self.state.join("dirty-limit.toml")
    }

    /// One at a time: held until the answer is dropped. Makes the directory where it is missing.
    fn take_turn(&self) -> Result<File> {
        loop {
            let directory = self.open_state()?;
            rustix::fs::flock(&directory, FlockOperation::LockExclusive)
                .map_err(|error| Error::path("lock", &self.state, error))?;
            // The previous holder may have removed it meanwhile, and another made a new one.
            let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            let held = directory.metadata().map(inode).ok();
            if held.is_some() && held == fs::metadata(&self.state).map(inode).ok() {
                return Ok(directory);
            }
        }
    }

    /// The directory of the state file, made where it is missing; private to this user.
    fn open_state(&self) -> Result<File> {
        let failed = |operation, error: io::Error| Error::path(operation, &self.state, error);
        match fs::DirBuilder::new().mode(0o700).create(&self.state) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(failed("create", error));
            }
            _ => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&self.state, flags, Mode::empty())
            .map_err(|error| failed("open", error.into()))?;
        let directory = File::from(directory);
        let metadata = directory.metadata().map_err(|error| failed("look at", error))?;
        if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
            return Err(Error::Refused(format!(
                "{} is not a private directory of this user: what it says about the old dirty \
                 limits cannot be trusted; remove it",
                self.state.display()
            )));
        }
        Ok(directory)
    }

    fn load(&self) -> Result<Option<Saved>> {
        let path = self.state_file();
        let failed = |error| Error::path("read", &path, error);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            answer => answer.map_err(failed)?,
        };
        toml::from_str(&text).map(Some).map_err(|error| {
            Error::Refused(format!(
                "{} should hold the dirty limits that a killed run left set, and cannot be \
                 understood ({}): look at vm.dirty_bytes and vm.dirty_background_bytes \
                 (sysctl vm), set them right and remove the file",
                path.display(),
                error.message()
            ))
        })
    }

    /// Whole or not at all: a half-written file would lose the old values.
    fn save(&self, saved: &Saved) -> Result<()> {
        let path = self.state_file();
        let failed = |error| Error::path("write", &path, error);
        let text = toml::to_string(saved).map_err(io::Error::other).map_err(failed)?;
        let unfinished = path.with_extension("new");
        fs::write(&unfinished, text).map_err(failed)?;
        fs::rename(&unfinished, &path).map_err(failed)
    }

    fn restore(&self, saved: &Saved) -> Result<()> {
        self.write(DIRTY, saved.limit)?;
        self.write(BACKGROUND, saved.background)?;
        let path = self.state_file();
        fs::remove_file(&path).map_err(|error| Error::path("remove", &path, error))
    }

    /// Restores, and takes the directory away; whoever waits for a turn in it notices.
    fn restore_and_leave(&self, saved: &Saved) -> Result<()> {
        self.restore(saved)?;
        // Where somebody put a file of theirs it stays, and harms nobody.
        fs::remove_dir(&self.state).ok();
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Setting> {
        let value = |unit: &str| {
            let path = self.setting(name, unit);
            number(&path).ok_or_else(|| Error::path("read", &path, ErrorKind::InvalidData))
        };
        match value("bytes")? {
            0 => value("ratio").map(Setting::Ratio),
            bytes => Ok(Setting::Bytes(bytes)),
        }
    }

    /// Writing the one clears the other.
    fn write(&self, name: &str, setting: Setting) -> Result<()> {
        let (unit, value) = match setting {
            Setting::Bytes(bytes) => ("bytes", bytes),
            Setting::Ratio(ratio) => ("ratio", ratio),
        };
        let path = self.setting(name, unit);
        fs::write(&path, value.to_string()).map_err(|error| Error::path("write", &path, error))
    }

    fn setting(&self, name: &str, unit: &str) -> PathBuf {
        Path::new(&self.settings).join(format!("{name}_{unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings in plain files: only the kernel clears one when the other is written.
    fn place() -> (tempfile::TempDir, SettingPaths) {
        let directory = tempfile::tempdir().unwrap();
        let values =
            [("dirty_bytes", 0), ("dirty_ratio", 20), ("dirty_background_bytes", 7_000_000)];
        for (name, value) in values {
            fs::write(directory.path().join(name), format!("{value}\n")).unwrap();
        }
        let state = directory.path().join("state");
        let place = SettingPaths { settings: directory.path().to_owned(), state };
        (directory, place)
    }

    fn value(place: &SettingPaths, name: &str) -> u64 {
        number(&place.settings.join(name)).unwrap()
    }

    #[test]
    fn limits_are_set_and_restored_as_what_they_were() {
        let (_directory, place) = place();
        let limit = DirtyLimit::set_at(place.clone(), 90_000_000).unwrap();
        assert_eq!(limit.bytes(), 90_000_000);
        assert_eq!(value(&place, "dirty_bytes"), 90_000_000);
        assert_eq!(value(&place, "dirty_background_bytes"), 30_000_000);
        assert_eq!(fs::metadata(&place.state).unwrap().mode() & 0o777, 0o700);
        fs::write(place.settings.join("dirty_ratio"), "0").unwrap();
        drop(limit);
        assert_eq!(value(&place, "dirty_ratio"), 20);
        assert_eq!(value(&place, "dirty_background_bytes"), 7_000_000);
        assert!(!place.state.exists(), "nothing is left behind");
    }

    #[test]
    fn a_second_run_is_refused_while_the_first_lives() {
        let (_directory, place) = place();
        let first = DirtyLimit::set_at(place.clone(), 90_000_000).unwrap();
        let second = DirtyLimit::set_at(place.clone(), 50_000_000);
        assert!(matches!(second, Err(Error::Refused(reason)) if reason.contains("another")));
        assert!(!restore_leftover_at(&place).unwrap());
        assert_eq!(value(&place, "dirty_bytes"), 90_000_000);
        drop(first);
    }

    #[test]
    fn what_a_killed_run_left_is_restored_by_the_next() {
        for next_sets_its_own in [false, true] {
            let (_directory, place) = place();
            drop(place.take_turn().unwrap());
            let mut owner = Owner::this_process().unwrap();
            // The number of a live process, but not its start.
            owner.start_ticks += 1;
            let (limit, background) = (Setting::Bytes(123_456_789), Setting::Ratio(10));
            place.save(&Saved { owner, limit, background }).unwrap();
            if next_sets_its_own {
                drop(DirtyLimit::set_at(place.clone(), 50_000_000).unwrap());
            } else {
                assert!(restore_leftover_at(&place).unwrap());
            }
            assert_eq!(value(&place, "dirty_bytes"), 123_456_789);
            assert!(!place.state.exists());
            assert!(!restore_leftover_at(&place).unwrap());
        }
    }

    #[test]
    fn a_state_directory_that_others_may_write_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let (_directory, place) = place();
        fs::create_dir(&place.state).unwrap();
        fs::set_permissions(&place.state, fs::Permissions::from_mode(0o777)).unwrap();
        let answer = DirtyLimit::set_at(place.clone(), 90_000_000);
        assert!(matches!(answer, Err(Error::Refused(reason)) if reason.contains("private")));
        assert_eq!(value(&place, "dirty_ratio"), 20);
    }

    #[test]
    fn a_state_file_that_makes_no_sense_is_named_with_what_to_do() {
        let (_directory, place) = place();
        drop(place.take_turn().unwrap());
        fs::write(place.state_file(), "owner = ").unwrap();
        let why = restore_leftover_at(&place).unwrap_err().to_string();
        let path = place.state_file().display().to_string();
        assert!(why.contains(&path) && why.contains("remove the file"), "{why}");
        assert!(!why.contains('\n'), "{why}");
    }

    #[test]
    fn limits_that_leave_no_room_are_refused() {
        let (_directory, place) = place();
        assert!(matches!(DirtyLimit::set_at(place, 4096), Err(Error::Refused(_))));
        if !geteuid().is_root() {
            assert!(matches!(DirtyLimit::set(1 << 30), Err(Error::Refused(_))));
        }
    }
}
