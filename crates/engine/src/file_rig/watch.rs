//! What others did to a visit: changed its files, held this process back, put the machine to sleep.

use std::fs::File;

use ioscape_model::{Code, Severity, Warning, Words, Workload};

use crate::cgroup::Group;
use crate::clock;

/// Blocks that a file gave up, of those it had: less is a filesystem's own affair.
const GIVEN_UP: f64 = 0.01;
/// Time for which a quota held this process back, of the visit's.
const HELD_BACK: [f64; 2] = [0.01, 0.1];
/// Two readings of two clocks are never made at once.
const ASLEEP_MIN_S: f64 = 0.05;

/// How things were when the workers began.
#[derive(Debug)]
pub(super) struct Watch {
    files: Vec<Option<State>>,
    quota: Option<Group>,
    held_back_s: Option<f64>,
    asleep_s: f64,
}

/// A file, as far as others may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    length: u64,
    blocks: u64,
    links: u64,
    modified: (i64, u64),
}

impl State {
    #[expect(clippy::useless_conversion, reason = "these fields differ between architectures")]
    fn read(file: &File) -> Option<Self> {
        let status = rustix::fs::fstat(file).ok()?;
        Some(Self {
            length: status.st_size.cast_unsigned(),
            blocks: status.st_blocks.cast_unsigned(),
            links: u64::from(status.st_nlink),
            modified: (status.st_mtime, status.st_mtime_nsec as u64),
        })
    }

    /// What somebody did to it, where the workload itself writes or only reads.
    fn changed_to(&self, now: &Self, writes: bool) -> Option<Words> {
        let file = |what: &str| Words::new(format!("a test file {what} while it was measured"));
        if now.links == 0 {
            return Some(file("was removed or replaced"));
        }
        if now.length != self.length {
            let text = file("went from {before_bytes} to {after_bytes}");
            let text = text.figure("before_bytes", self.length as f64);
            return Some(text.figure("after_bytes", now.length as f64));
        }
        let given_up = self.blocks.saturating_sub(now.blocks);
        if given_up as f64 > GIVEN_UP * self.blocks as f64 {
            let text = file("has {holes_bytes} of holes that it did not have");
            return Some(text.figure("holes_bytes", given_up as f64 * 512.0));
        }
        (!writes && now.modified != self.modified)
            .then(|| file("was written, and not by this measurement"))
    }
}

impl Watch {
    /// Begins to watch. What is not ours may be changed by those whose it is.
    pub(super) fn begin(files: &[File], is_ours: bool) -> Self {
        let files = if is_ours { files } else { &[] };
        let quota = Group::current("cpu").filter(|group| group.cpu_limit().is_some());
        Self {
            files: files.iter().map(State::read).collect(),
            held_back_s: quota.as_ref().and_then(Group::held_back_s),
            quota,
            asleep_s: clock::asleep_s(),
        }
    }

    /// What was done since, in a visit of this length.
    pub(super) fn doubts(&self, files: &[File], work: &Workload, length_s: f64) -> Vec<Warning> {
        let all = [self.changed(files, work), self.held_back(length_s), self.asleep()];
        all.into_iter().flatten().collect()
    }

    fn changed(&self, files: &[File], work: &Workload) -> Option<Warning> {
        let writes = work.read_frac < 1.0;
        let text =
            self.files.iter().zip(files).find_map(|(before, file)| {
                before.as_ref()?.changed_to(&State::read(file)?, writes)
            })?;
        let remedy = "find out who touches files called .ioscape-…, and measure again";
        Some(Warning::new(Code::FileChanged, text, remedy).with_severity(Severity::Serious))
    }

    fn held_back(&self, length_s: f64) -> Option<Warning> {
        let since_s = self.quota.as_ref()?.held_back_s()? - self.held_back_s?;
        let share = since_s / length_s.max(f64::MIN_POSITIVE);
        if share <= HELD_BACK[0] {
            return None;
        }
        let text = Words::new(
            "the processor quota of a control group held this process back for {held_back_s}, \
             {held_back_share} of the visit",
        )
        .figure("held_back_s", since_s)
        .figure("held_back_share", share);
        let remedy = "raise the quota of the control group: the container's or the service's";
        let severity = if share > HELD_BACK[1] { Severity::Serious } else { Severity::Warning };
        Some(Warning::new(Code::Throttled, text, remedy).with_severity(severity))
    }

    fn asleep(&self) -> Option<Warning> {
        let slept_s = clock::asleep_s() - self.asleep_s;
        (slept_s > ASLEEP_MIN_S).then(|| {
            let text =
                Words::new("the machine slept for {slept_s} meanwhile").figure("slept_s", slept_s);
            Warning::new(Code::ClockJump, text, "keep it awake, and measure again")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const MIB: u64 = 1 << 20;

    /// What is said about a file of 4 MiB after a deed.
    fn after(workload: &str, deed: impl FnOnce(&std::path::Path)) -> Option<Warning> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, vec![7; 4 << 20]).unwrap();
        let files = [File::open(&path).unwrap()];
        files[0].sync_all().unwrap();
        let watch = Watch::begin(&files, true);
        deed(&path);
        watch.changed(&files, &Workload::parse(workload).unwrap())
    }

    fn writable(path: &std::path::Path) -> File {
        File::options().write(true).open(path).unwrap()
    }

    #[test]
    fn what_others_do_to_a_file_is_seen() {
        let check = |deed: &dyn Fn(&std::path::Path), part: &str| {
            let warning = after("read_frac=0.5", deed).unwrap();
            assert!(warning.text.contains(part), "{}", warning.text);
        };
        let cut = |path: &std::path::Path| writable(path).set_len(MIB).unwrap();
        check(&cut, "from 4.00 MiB to 1.00 MiB");
        let figures = after("read_frac=0.5", cut).unwrap().figures;
        let lengths = ["before_bytes", "after_bytes"].map(|name| figures[name] as u64);
        assert_eq!(lengths, [4 * MIB, MIB]);
        check(&|path| std::fs::remove_file(path).unwrap(), "removed");
        let replace = |path: &std::path::Path| {
            let other = path.with_extension("other");
            std::fs::write(&other, "other").unwrap();
            std::fs::rename(other, path).unwrap();
        };
        check(&replace, "replaced");
    }

    #[test]
    fn a_write_is_somebody_elses_only_where_the_workload_writes_nothing() {
        let deed = |path: &std::path::Path| {
            let file = writable(path);
            file.write_all_at(b"other", 0).unwrap();
            let later = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
            file.set_modified(later).unwrap();
        };
        assert!(after("read_frac=1", deed).unwrap().text.contains("not by this measurement"));
        assert_eq!(after("read_frac=0.5", deed), None);
        assert_eq!(after("read_frac=1", |_| {}), None);
    }
}
