//! Who writes a record. Its file is locked (flock(2)) for as long as it is open for writing, so
//! that two runs never continue one record. Reading takes no lock: a report of a run under way
//! is nobody's loss.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::exit::usage;

/// Locks a file that is to be written; the lock goes with the file. Not all filesystems can, and on
/// those that cannot a record is written all the same.
pub(super) fn lock(file: &File, path: &Path) -> anyhow::Result<()> {
    if !is_held(&file.try_lock()) {
        return Ok(());
    }
    let holder = holder(path).unwrap_or_else(|| "another process".to_owned());
    Err(usage(format!(
        "{} is being written by {holder}: wait until that has ended, or end it and try again",
        path.display()
    )))
}

fn is_held(tried: &Result<(), TryLockError>) -> bool {
    matches!(tried, Err(TryLockError::WouldBlock))
}

/// `process 1234 (ioscape)`, as far as the kernel lets us see it.
fn holder(path: &Path) -> Option<String> {
    let place = fs::canonicalize(path).ok()?;
    let numbers = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.file_name());
    let mut processes = numbers.filter_map(|number| number.to_str()?.parse::<u32>().ok());
    let holder =
        processes.find(|number| holds(&PathBuf::from(format!("/proc/{number}")), &place))?;
    let name = fs::read_to_string(format!("/proc/{holder}/comm")).unwrap_or_default();
    Some(format!("process {holder} ({})", name.trim_end().escape_debug()))
}

/// Whether one of a process's open files is this one and locked: see `proc_pid_fdinfo(5)`.
fn holds(process: &Path, place: &Path) -> bool {
    let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let mut here = open.filter(|file| fs::read_link(file.path()).is_ok_and(|at| at == place));
    here.any(|file| {
        let known = fs::read_to_string(process.join("fdinfo").join(file.file_name()));
        known.is_ok_and(|known| known.lines().any(|line| line.starts_with("lock:")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_locked_is_written_all_the_same() {
        let unsupported = std::io::Error::from(std::io::ErrorKind::Unsupported);
        assert!(!is_held(&Err(TryLockError::Error(unsupported))));
        assert!(!is_held(&Ok(())));
        assert!(is_held(&Err(TryLockError::WouldBlock)));
    }

    #[test]
    fn who_holds_the_lock_is_named_and_who_only_reads_is_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = |path: &Path| lock(file.as_file(), path).unwrap_err().to_string();
        let reading = File::open(file.path()).unwrap();
        assert_eq!(holder(file.path()), None);
        reading.lock().unwrap();
        let ours = format!("is being written by process {} (", std::process::id());
        assert!(held(file.path()).contains(&ours), "{}", held(file.path()));
        let elsewhere = held(Path::new("where nothing is"));
        assert!(elsewhere.contains("is being written by another process: wait"), "{elsewhere}");
        reading.unlock().unwrap();
        lock(file.as_file(), file.path()).unwrap();
    }
}
