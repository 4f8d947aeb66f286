//! What names cost while they are cached: distinct ones each time, since a single hot name is found
//! sooner than any that a program meets.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use ioscape_model::ElementName::{
    self, Access, Close, Create, CreateExclusive, CreateLarge, Link, Mkdir, OpenCached,
    ReaddirEntry, Rename, RenameReplace, Rmdir, SetAttribute, StatCached, StatNegative, Symlink,
    Unlink,
};
use ioscape_model::{Code, Severity, Warning, Words};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::Probe;
use super::sample::Shape;
use super::workplace::{Buffer, Enough, PAGE, Workplace, names, write_at};
use crate::error::Result;

/// Files in the directory that programs usually meet, and in a large one.
const USUAL: usize = 1000;
const LARGE: usize = 10_000;
/// Names that are made and gone in a round.
const ROUND: usize = 256;
/// Cached pages of files that are removed.
const CACHED_PAGES: [usize; 3] = [0, 16, 256];
/// Of these so many.
const CACHED_FILES: usize = 12;
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::CLOEXEC);

/// A directory with files that stay, and names for others.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) directory: Arc<OwnedFd>,
    pub(super) residents: Vec<CString>,
}

impl Crowd {
    /// Makes the directory and as many files as there is time for, but at least 64.
    pub(super) fn make(at: &mut Workplace, name: &str, count: usize) -> Result<Self> {
        let root = at.root();
        rustix::fs::mkdirat(&root, name, Mode::RWXU).map_err(|error| at.error("create", error))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&root, name, flags, Mode::empty())
            .map_err(|error| at.error("open", error))?;
        let mut residents = names("file", count);
        let until_s = at.now_s() + at.pace().prepare_s;
        let mut made = 0;
        for name in &residents {
            if made % 64 == 0 {
                at.note_written(64 * PAGE as u64 / 8)?;
                if made > 0 && at.now_s() > until_s {
                    break;
                }
            }
            new_file(&directory, name).map_err(|error| at.error("create", error))?;
            made += 1;
        }
        residents.truncate(made);
        rustix::fs::syncfs(&directory).map_err(|error| at.error("write back", error))?;
        Ok(Self { directory: Arc::new(directory), residents })
    }
}

fn new_file(directory: impl AsFd, name: &CString) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, name.as_c_str(), NEW, Mode::RUSR | Mode::WUSR)
}

/// Names in a directory of 1,000.
#[derive(Debug, Default)]
pub(super) struct Names {
    made: Option<(Crowd, Buffer)>,
}

impl Probe for Names {
    fn names(&self) -> &'static [ElementName] {
        &[
            Create,
            OpenCached,
            Close,
            StatCached,
            StatNegative,
            Access,
            ReaddirEntry,
            Rename,
            RenameReplace,
            Link,
            Symlink,
            SetAttribute,
            Unlink,
            CreateExclusive,
            Mkdir,
            Rmdir,
        ]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let crowd = Crowd::make(at, "names", USUAL)?;
        if crowd.residents.len() < USUAL {
            let made = crowd.residents.len();
            for name in [Create, StatCached, ReaddirEntry] {
                at.doubt(name, smaller(made));
            }
        }
        self.made = Some((crowd, at.buffer(1 << 20)));
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some((crowd, buffer)) = &self.made else { return Ok(()) };
        look(at, crowd)?;
        change(at, crowd)?;
        directories(at, crowd)?;
        for pages in &CACHED_PAGES[1..] {
            remove_cached(at, crowd, (*pages, buffer))?;
        }
        Ok(())
    }
}

fn smaller(files: usize) -> Warning {
    let text = Words::new("making files takes so long here that the directory had {files} only")
        .figure("files", files as f64);
    let remedy = "give a longer --budget";
    Warning::new(Code::TooFewRepeats, text, remedy).with_severity(Severity::Note)
}

/// Operations that wait for nothing but may have to write to a journal.
fn enough(at: &Workplace, calls: usize) -> Enough {
    // On a filesystem that is mounted to write at once these wait for storage.
    Enough { seconds: at.pace().costly_s / 2.0, calls: calls as u64 }
}

/// What changes nothing. The lists are gone through in random order.
fn look(at: &mut Workplace, crowd: &Crowd) -> Result<()> {
    let Crowd { directory, residents } = crowd;
    let order = at.shuffled(residents.len() as u64);
    let name = |call: u64| residents[order[call as usize % order.len()] as usize].as_c_str();
    let enough_looks = Enough { calls: 2 * residents.len() as u64, ..at.cheap() };
    let warm = |call| rustix::fs::statat(directory, name(call), AtFlags::empty()).map(drop);
    (0..residents.len() as u64).try_for_each(warm).map_err(|error| at.error("look at", error))?;
    at.time((StatCached, Shape::NONE), enough_looks, |call| {
        rustix::fs::statat(directory, name(call), AtFlags::empty()).map(drop)
    })?;
    at.time((Access, Shape::NONE), enough_looks, |call| {
        rustix::fs::accessat(directory, name(call), rustix::fs::Access::READ_OK, AtFlags::empty())
    })?;
    let absent = names("none", ROUND);
    for name in &absent {
        rustix::fs::statat(directory, name.as_c_str(), AtFlags::empty()).ok();
    }
    at.time((StatNegative, Shape::NONE), enough_looks, |call| {
        let name = absent[call as usize % absent.len()].as_c_str();
        match rustix::fs::statat(directory, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        }
    })?;
    let mut open = Vec::with_capacity(ROUND);
    at.time((OpenCached, Shape::NONE), enough(at, ROUND), |call| {
        rustix::fs::openat(directory, name(call), READ, Mode::empty()).map(|file| open.push(file))
    })?;
    let calls = open.len() as u64;
    at.time((Close, Shape::NONE), Enough { seconds: 1.0, calls }, |_| {
        drop(open.pop());
        Ok(())
    })?;
    read_through(at, directory)?;
    list(at, directory, ReaddirEntry)
}

/// Reads a directory to its end; the sample is of its entries.
pub(super) fn list(at: &mut Workplace, directory: impl AsFd, of: ElementName) -> Result<()> {
    let lap = at.lap();
    let entries = read_through(at, directory)?;
    let passed_s = at.since(&lap);
    at.push(of, Shape::NONE, (entries, passed_s));
    Ok(())
}

/// How many entries there are.
fn read_through(at: &Workplace, directory: impl AsFd) -> Result<u64> {
    let failed = |at: &Workplace, error| at.error("list", error);
    // A descriptor of its own: the position belongs to it.
    let flags = READ | OFlags::DIRECTORY;
    let own = rustix::fs::openat(directory, ".", flags, Mode::empty());
    let own = own.map_err(|error| failed(at, error))?;
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut listing = rustix::fs::RawDir::new(own, buffer.spare_capacity_mut());
    let mut entries = 0;
    while let Some(entry) = listing.next() {
        entry.map_err(|error| failed(at, error))?;
        entries += 1;
    }
    Ok(entries)
}

/// Makes names, changes and removes them.
fn change(at: &mut Workplace, crowd: &Crowd) -> Result<()> {
    let directory = crowd.directory.as_fd();
    let (new, other) = (names("new", ROUND), names("other", ROUND));
    let made = create(at, directory, (Create, &new))?;
    at.time((SetAttribute, Shape::NONE), enough(at, made), |call| {
        let mode = if call % 2 == 0 { Mode::RWXU } else { Mode::RUSR };
        rustix::fs::chmodat(directory, new[call as usize].as_c_str(), mode, AtFlags::empty())
    })?;
    let links = at.time((Link, Shape::NONE), enough(at, made), |call| {
        let (from, to) = (new[call as usize].as_c_str(), other[call as usize].as_c_str());
        rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())
    })?;
    remove_all(at, directory, &other[..links as usize])?;
    let links = at.time((Symlink, Shape::NONE), enough(at, made), |call| {
        rustix::fs::symlinkat("file000001", directory, other[call as usize].as_c_str())
    })?;
    remove_all(at, directory, &other[..links as usize])?;
    let renamed = at.time((Rename, Shape::NONE), enough(at, made), |call| {
        let (from, to) = (new[call as usize].as_c_str(), other[call as usize].as_c_str());
        rustix::fs::renameat(directory, from, directory, to)
    })? as usize;
    remove_all(at, directory, &new[renamed..made])?;
    let made = create(at, directory, (CreateExclusive, &new))?;
    let replaced = at.time((RenameReplace, Shape::NONE), enough(at, made.min(renamed)), |call| {
        let (from, to) = (new[call as usize].as_c_str(), other[call as usize].as_c_str());
        rustix::fs::renameat(directory, from, directory, to)
    })? as usize;
    remove_all(at, directory, &new[replaced..made])?;
    let removed = at.time((Unlink, Shape::pages(0, 0)), enough(at, renamed), |call| {
        rustix::fs::unlinkat(directory, other[call as usize].as_c_str(), AtFlags::empty())
    })? as usize;
    remove_all(at, directory, &other[removed..renamed])?;
    at.note_written((ROUND * PAGE) as u64)
}

/// Files that are made: how many were.
fn create(
    at: &mut Workplace,
    directory: impl AsFd,
    (of, list): (ElementName, &[CString]),
) -> Result<usize> {
    let extra = if of == CreateExclusive { OFlags::EXCL } else { OFlags::empty() };
    let mut open = Vec::with_capacity(list.len());
    at.time((of, Shape::NONE), enough(at, list.len()), |call| {
        let name = list[call as usize].as_c_str();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::openat(&directory, name, NEW | extra, mode).map(|file| open.push(file))
    })?;
    Ok(open.len())
}

fn remove_all(at: &Workplace, directory: impl AsFd, list: &[CString]) -> Result<()> {
    list.iter()
        .try_for_each(|name| rustix::fs::unlinkat(&directory, name.as_c_str(), AtFlags::empty()))
        .map_err(|error| at.error("remove", error))
}

fn directories(at: &mut Workplace, crowd: &Crowd) -> Result<()> {
    let directory = crowd.directory.as_fd();
    let list = names("directory", ROUND / 2);
    let made = at.time((Mkdir, Shape::NONE), enough(at, list.len()), |call| {
        rustix::fs::mkdirat(directory, list[call as usize].as_c_str(), Mode::RWXU)
    })? as usize;
    let gone = at.time((Rmdir, Shape::NONE), enough(at, made), |call| {
        rustix::fs::unlinkat(directory, list[call as usize].as_c_str(), AtFlags::REMOVEDIR)
    })? as usize;
    list[gone..made]
        .iter()
        .try_for_each(|name| rustix::fs::unlinkat(directory, name.as_c_str(), AtFlags::REMOVEDIR))
        .map_err(|error| at.error("remove", error))
}

/// Removes files whose pages are cached, and on storage.
fn remove_cached(
    at: &mut Workplace,
    crowd: &Crowd,
    (pages, buffer): (usize, &Buffer),
) -> Result<()> {
    let directory = crowd.directory.as_fd();
    let list = names("full", CACHED_FILES);
    let until_s = at.now_s() + at.pace().costly_s;
    let mut made = 0;
    for name in &list {
        let file = new_file(directory, name).map_err(|error| at.error("create", error))?;
        write_at(&file, buffer.get(pages * PAGE), 0).map_err(|error| at.error("write", error))?;
        at.note_written((pages * PAGE) as u64)?;
        made += 1;
        if at.now_s() > until_s {
            break;
        }
    }
    let first = new_file(directory, &list[0]).map_err(|error| at.error("open", error))?;
    rustix::fs::syncfs(&first).map_err(|error| at.error("write back", error))?;
    drop(first);
    at.time((Unlink, Shape::pages(pages, 0)), Enough { seconds: 2.0, calls: made }, |call| {
        rustix::fs::unlinkat(directory, list[call as usize].as_c_str(), AtFlags::empty())
    })?;
    Ok(())
}

/// Making files in a directory of 10,000.
#[derive(Debug, Default)]
pub(super) struct LargeDirectory {
    made: Option<Crowd>,
}

impl Probe for LargeDirectory {
    fn names(&self) -> &'static [ElementName] {
        &[CreateLarge]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let crowd = Crowd::make(at, "many", LARGE)?;
        let made = crowd.residents.len();
        if made < LARGE {
            let why = format!("there was time to make {made} files of {LARGE}");
            at.refuse(CreateLarge, why);
        } else {
            self.made = Some(crowd);
        }
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some(crowd) = &self.made else { return Ok(()) };
        for name in &crowd.residents {
            rustix::fs::statat(&crowd.directory, name.as_c_str(), AtFlags::empty())
                .map_err(|error| at.error("look at", error))?;
        }
        let new = names("new", ROUND);
        let made = create(at, crowd.directory.as_fd(), (CreateLarge, &new))?;
        at.note_written((made * PAGE) as u64)?;
        remove_all(at, crowd.directory.as_fd(), &new[..made])
    }
}
