//! Names and inodes that are not cached, without touching anybody else's: they are on the account of
//! a memory group of this run's own, and that group alone is emptied. On ext4 the blocks that they
//! lie in are dropped as well where this user may read the device; others keep these.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use ioscape_model::ElementName::{self, OpenMissed, ReaddirMissed, StatMissed, UnlinkMissed};
use ioscape_model::{Code, Warning};
use rustix::fs::{Advice, AtFlags, Mode, OFlags, fstat};

use super::Probe;
use super::cached::lay_out;
use super::names::{Crowd, list};
use super::sample::Shape;
use super::workplace::{Buffer, Enough, PAGE, Workplace, read_at};
use crate::cgroup::{Group, Version};
use crate::error::Result;
use crate::memory_limit::MemoryLimit;
use crate::run_id::RunId;
use crate::target::describe;

/// Directories, each with its files: they lie together on storage, as what `tar x` makes does.
const DIRECTORIES: usize = 12;
const FILES: usize = 100;
/// A file whose pages are read before names are, bytes.
const FILLER_BYTES: u64 = 8 << 20;
const FILLER: &str = "filler";
/// A limit that holds nothing back, bytes: the group is only for its account.
const NO_LIMIT_BYTES: u64 = 1 << 50;

/// Files whose names and inodes are forgotten.
#[derive(Debug)]
pub(super) struct Forgotten {
    run: RunId,
    account: Option<Account>,
    crowds: Vec<Crowd>,
    /// Read from storage before names are.
    filler: Option<(OwnedFd, Buffer)>,
}

/// Whose memory it is that is emptied. Dropping it leaves the group.
#[derive(Debug)]
struct Account {
    group: PathBuf,
    version: Version,
    device: Option<File>,
    _own: Option<MemoryLimit>,
}

impl Forgotten {
    pub(super) fn new(run: &RunId) -> Self {
        Self { run: run.clone(), account: None, crowds: vec![], filler: None }
    }
}

impl Probe for Forgotten {
    fn names(&self) -> &'static [ElementName] {
        &[StatMissed, OpenMissed, ReaddirMissed, UnlinkMissed]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        if at.directory().is_memory() {
            refuse_all(self, at, "names live in memory here: none can be missing");
            return Ok(());
        }
        let account = match Account::open(at, &self.run) {
            Ok(account) => account,
            Err(why) => {
                refuse_all(self, at, &why);
                return Ok(());
            }
        };
        for number in 0..DIRECTORIES {
            let crowd = Crowd::make(at, &format!("forgotten{number:02}"), FILES)?;
            if crowd.residents.len() < FILES {
                refuse_all(self, at, "there was no time to make the files");
                return Ok(());
            }
            self.crowds.push(crowd);
        }
        if at.room_bytes(FILLER_BYTES) == FILLER_BYTES {
            let mut buffer = at.buffer(1 << 20);
            let (file, _) = lay_out(at, FILLER, (&mut buffer, FILLER_BYTES))?;
            self.filler = Some((file, buffer));
        }
        self.account = Some(account);
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some(account) = &self.account else { return Ok(()) };
        rustix::fs::syncfs(at.root()).map_err(|error| at.error("write back", error))?;
        account.empty(at)?;
        if let Some(filler) = &mut self.filler {
            tire(at, filler)?;
        }
        let before_bytes = read_bytes();
        for (number, crowd) in self.crowds.iter().enumerate() {
            list(at, crowd.directory.as_fd(), ReaddirMissed)?;
            match number % 3 {
                0 => look(at, crowd)?,
                1 => open(at, crowd)?,
                _ => remove(at, crowd)?,
            }
        }
        if before_bytes.is_some() && read_bytes() == before_bytes {
            for name in self.names() {
                at.doubt(*name, blocks_cached());
            }
        }
        Ok(())
    }
}

/// Uses up what a limit of requests lets through at once: a round looks at few names.
fn tire(at: &mut Workplace, (file, buffer): &mut (OwnedFd, Buffer)) -> Result<()> {
    let length = fstat(&*file).map_or(0, |stat| stat.st_size as u64);
    rustix::fs::fadvise(&*file, 0, None, Advice::Random).ok();
    let pages = at.shuffled((length / PAGE as u64).max(1));
    at.ramp(|call| {
        let place = call as usize % pages.len();
        if place == 0 {
            rustix::fs::fadvise(&*file, 0, None, Advice::DontNeed)?;
        }
        read_at(&*file, buffer.get_mut(PAGE), pages[place] * PAGE as u64)
    })?;
    Ok(())
}

fn refuse_all(probe: &Forgotten, at: &mut Workplace, why: &str) {
    for name in probe.names() {
        at.refuse(*name, why);
    }
}

fn blocks_cached() -> Warning {
    let text = "inodes and names were forgotten, but the blocks of the filesystem that they lie in \
                stayed in memory: from a cold start they take a read more";
    let remedy = "add what a read from storage takes for every block of names";
    Warning::new(Code::CacheState, text, remedy)
}

/// All files of a directory, in the order in which they were made.
fn all(crowd: &Crowd) -> (Enough, &[CString]) {
    (Enough { seconds: 2.0, calls: crowd.residents.len() as u64 }, &crowd.residents)
}

fn look(at: &mut Workplace, crowd: &Crowd) -> Result<()> {
    let (enough, names) = all(crowd);
    at.time_waits((StatMissed, Shape::NONE), enough, |call| {
        let name = names[call as usize].as_c_str();
        rustix::fs::statat(&crowd.directory, name, AtFlags::empty()).map(drop)
    })?;
    Ok(())
}

fn open(at: &mut Workplace, crowd: &Crowd) -> Result<()> {
    let (enough, names) = all(crowd);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut open = Vec::with_capacity(names.len());
    at.time_waits((OpenMissed, Shape::NONE), enough, |call| {
        let name = names[call as usize].as_c_str();
        rustix::fs::openat(&crowd.directory, name, flags, Mode::empty()).map(|file| open.push(file))
    })?;
    Ok(())
}

/// The files are made anew afterwards.
fn remove(at: &mut Workplace, crowd: &Crowd) -> Result<()> {
    let (enough, names) = all(crowd);
    let gone = at.time_waits((UnlinkMissed, Shape::NONE), enough, |call| {
        rustix::fs::unlinkat(&crowd.directory, names[call as usize].as_c_str(), AtFlags::empty())
    })?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    for name in &names[..gone as usize] {
        rustix::fs::openat(&crowd.directory, name.as_c_str(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| at.error("create", error))?;
    }
    at.note_written(gone * 512)
}

impl Account {
    /// The group that this run has already, or one of its own.
    fn open(at: &Workplace, run: &RunId) -> std::result::Result<Self, String> {
        let found = Group::current("memory").ok_or("this system has no memory groups")?;
        let is_ours = found.path.file_name().is_some_and(|name| *name == *run.group_name());
        let own = if is_ours {
            None
        } else {
            let made = MemoryLimit::enter(NO_LIMIT_BYTES, run);
            Some(made.map_err(|_| {
                "dropping names and inodes takes a memory group of this run's own, which root or \
                 `systemd-run --user --scope -p Delegate=yes` can make"
            })?)
        };
        let group = own.as_ref().map_or_else(|| found.path.clone(), |own| own.group().to_owned());
        let account = Self { group, version: found.version, device: device(at), _own: own };
        if !account.control().exists() {
            return Err(
                "the kernel empties no memory groups here (memory.reclaim, 5.19)".to_owned()
            );
        }
        Ok(account)
    }

    fn control(&self) -> PathBuf {
        self.group.join(match self.version {
            Version::One => "memory.force_empty",
            Version::Two => "memory.reclaim",
        })
    }

    /// Empties the group, then drops the blocks of metadata that are clean. The kernel gives up a part
    /// at a time, and complains where it could not give up all.
    fn empty(&self, at: &Workplace) -> Result<()> {
        const ATTEMPTS: usize = 2;
        if let Some(device) = &self.device {
            checkpoint(at.root());
            rustix::fs::fadvise(device, 0, None, Advice::DontNeed).ok();
        }
        for _ in 0..ATTEMPTS {
            at.go_on()?;
            let amount = if self.version == Version::One { "0" } else { "1G" };
            fs::write(self.control(), amount).ok();
        }
        if let Some(device) = &self.device {
            rustix::fs::fadvise(device, 0, None, Advice::DontNeed).ok();
        }
        Ok(())
    }
}

/// The device whose page cache holds the blocks of metadata: of the filesystems here only that of
/// ext4 is reached so.
fn device(at: &Workplace) -> Option<File> {
    if !at.directory().filesystem().starts_with("ext") {
        return None;
    }
    let sysfs = describe::device(at.directory().mount())?;
    File::open(PathBuf::from("/dev").join(sysfs.file_name()?)).ok()
}

/// Has the journal's blocks written where they belong, so that they can be dropped.
fn checkpoint(directory: impl AsFd) {
    use std::os::fd::AsRawFd;
    /// `EXT4_IOC_CHECKPOINT`, Linux 5.14; see its documentation in the kernel, ext4/journal.
    const EXT4_IOC_CHECKPOINT: libc::Ioctl = 0x4004_662b;
    let flags = 0_u32;
    // SAFETY: the call reads four bytes, which live through it; where it does not exist it fails.
    unsafe { libc::ioctl(directory.as_fd().as_raw_fd(), EXT4_IOC_CHECKPOINT, &raw const flags) };
}

/// Bytes that this process had read from storage.
fn read_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}
