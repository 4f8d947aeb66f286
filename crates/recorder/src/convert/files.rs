//! Which file is which: by inode where a tracer tells it, by path otherwise.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use ioscape_trace::{FileEntry, FileKind, Sink};

use crate::observed::Identity;

/// Inode and device.
pub(crate) type Inode = (u64, (u32, u32));

/// A file, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Known {
    path: Option<Rc<str>>,
    inode: Option<Inode>,
    pub(crate) kind: FileKind,
    first_bytes: u64,
    /// Pages of it that were cached when it was seen first, where a tracer told.
    cached_pages: Option<u64>,
    /// Its length now.
    pub(crate) bytes: u64,
    /// It is run, or mapped to be run.
    pub(crate) is_program: bool,
    /// A recorded event was about its bytes: pages that are read in are explained by it.
    pub(crate) is_touched: bool,
    /// Stands for its description where a tracer tells none; 0 until it is needed.
    pub(crate) handle: u32,
}

/// The files of a recording. Ids begin with 1.
#[derive(Debug, Default)]
pub(crate) struct Files {
    all: Vec<Known>,
    by_inode: HashMap<Inode, u32>,
    by_path: HashMap<Rc<str>, u32>,
    /// Stands for everything without a name: pipes, sockets, terminals.
    other: Option<u32>,
}

/// What a path and the bits of `st_mode` say; 0 where nobody knows them.
fn kind_of(mode: u32, path: Option<&str>) -> FileKind {
    let is_pseudo =
        path.is_some_and(|path| path.starts_with("/proc/") || path.starts_with("/sys/"));
    match mode & libc::S_IFMT {
        _ if is_pseudo => FileKind::Pseudo,
        libc::S_IFREG => FileKind::Regular,
        libc::S_IFDIR => FileKind::Directory,
        libc::S_IFLNK => FileKind::Symlink,
        libc::S_IFBLK => FileKind::Block,
        _ if mode == 0 && path.is_some() => FileKind::Regular,
        _ => FileKind::Other,
    }
}

impl Files {
    fn add(&mut self, known: Known) -> u32 {
        self.all.push(known);
        self.all.len() as u32
    }

    /// A file by its id, which is one that was given out here.
    pub(crate) fn get(&mut self, id: u32) -> &mut Known {
        &mut self.all[id as usize - 1]
    }

    /// Its path, where it has one.
    pub(crate) fn path(&self, id: u32) -> Option<Rc<str>> {
        self.all.get((id as usize).checked_sub(1)?)?.path.clone()
    }

    /// The file of a path: one that is known, or a new one.
    pub(crate) fn named(&mut self, path: &str) -> u32 {
        if let Some(id) = self.by_path.get(path) {
            return *id;
        }
        let path: Rc<str> = path.into();
        let kind = kind_of(0, Some(&path));
        let id = self.add(Known { path: Some(Rc::clone(&path)), kind, ..Known::default() });
        self.by_path.insert(path, id);
        id
    }

    /// Everything that is no file and has no path.
    pub(crate) fn other(&mut self) -> u32 {
        if let Some(other) = self.other {
            return other;
        }
        let id = self.add(Known { kind: FileKind::Other, ..Known::default() });
        self.other = Some(id);
        id
    }

    /// The file with this inode; with a path where one was given to open it.
    pub(crate) fn opened(&mut self, path: Option<&str>, identity: &Identity) -> u32 {
        let kind = kind_of(identity.mode, path);
        if kind == FileKind::Other {
            return self.other();
        }
        let inode = (identity.inode, identity.device);
        // The inode of a file that was made may have been another's before.
        let known = self.by_inode.get(&inode).copied().filter(|_| !identity.created);
        if let Some(id) = known {
            let known = self.get(id);
            known.bytes = identity.bytes;
            if !known.is_touched {
                known.cached_pages = known.cached_pages.or(identity.cached_pages);
            }
            self.learn_path(id, path);
            return id;
        }
        let of_path = path.map(|path| self.named(path));
        let id = match of_path {
            Some(id) if self.get(id).inode.is_none() => id,
            _ => self.add(Known::default()),
        };
        self.by_inode.insert(inode, id);
        let known = self.get(id);
        known.inode = Some(inode);
        known.kind = kind;
        (known.first_bytes, known.bytes) = (identity.bytes, identity.bytes);
        known.cached_pages = identity.cached_pages;
        self.learn_path(id, path);
        id
    }

    fn learn_path(&mut self, id: u32, path: Option<&str>) {
        let Some(path) = path else { return };
        let path: Rc<str> = path.into();
        let known = self.get(id);
        if known.path.is_none() {
            known.kind = if known.kind == FileKind::Regular {
                kind_of(libc::S_IFREG, Some(&path))
            } else {
                known.kind
            };
            known.path = Some(Rc::clone(&path));
        } else if known.path.as_ref() == Some(&path) {
            return;
        }
        self.by_path.insert(path, id);
    }

    /// The file with an inode, whether or not anybody opened it.
    pub(crate) fn of_inode(&self, identity: &Identity) -> Option<u32> {
        self.by_inode.get(&(identity.inode, identity.device)).copied()
    }

    /// A path was changed.
    pub(crate) fn renamed(&mut self, from: &str, to: &str) -> (u32, u32) {
        let id = self.named(from);
        let replaced = self.by_path.get(to).copied();
        self.by_path.remove(from);
        let to: Rc<str> = to.into();
        self.get(id).path = Some(Rc::clone(&to));
        self.by_path.insert(to, id);
        (id, replaced.unwrap_or(id))
    }

    /// A path is there no more.
    pub(crate) fn removed(&mut self, path: &str) -> u32 {
        let id = self.named(path);
        self.by_path.remove(path);
        id
    }

    /// Whether pages of an inode are explained by a recorded event.
    pub(crate) fn explains(&self, inode: &Inode) -> bool {
        self.by_inode.get(inode).is_some_and(|id| self.all[*id as usize - 1].is_touched)
    }

    /// Major and minor numbers of the devices that were touched.
    pub(crate) fn devices(&self) -> Vec<(u32, u32)> {
        let mut devices: Vec<_> =
            self.all.iter().filter_map(|known| known.inode.map(|(_, device)| device)).collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// Tells all of them, with the directories that they are in.
    pub(crate) fn tell(
        &mut self,
        sink: &mut dyn Sink,
        page_bytes: u64,
        inserted: impl Fn(&Inode) -> Option<bool>,
    ) -> io::Result<()> {
        let mut at = 0;
        while at < self.all.len() {
            let directory = self.all[at].path.clone().and_then(|path| {
                let (above, _) = path.rsplit_once('/').filter(|_| path.len() > 1)?;
                let above = if above.is_empty() { "/" } else { above };
                let id = self.named(above);
                self.get(id).kind = FileKind::Directory;
                Some(id)
            });
            let known = &self.all[at];
            let was_looked_at = known.is_touched && known.first_bytes > 0;
            let came_in = known.inode.as_ref().filter(|_| was_looked_at).and_then(&inserted);
            let told = known.cached_pages.filter(|_| was_looked_at).map(|pages| pages * page_bytes);
            let resident_bytes = match (told, came_in) {
                // Its pages are another inode's (overlayfs), or it was read past the page cache.
                (Some(0), Some(false)) => None,
                (Some(bytes), _) => Some(bytes),
                // It was open before. What came in in part counts as not there: which part is unknown.
                (None, came_in) => came_in.map(|came| if came { 0 } else { u64::MAX }),
            };
            let resident_bytes = resident_bytes.map(|bytes| bytes.min(known.first_bytes));
            let entry = entry(at as u32 + 1, known, directory.unwrap_or(0));
            sink.file(FileEntry { resident_bytes, ..entry })?;
            at += 1;
        }
        Ok(())
    }
}

fn entry(id: u32, known: &Known, directory: u32) -> FileEntry {
    let depth = known.path.as_ref().map_or(0, |path| path.matches('/').count() as u16);
    FileEntry {
        id,
        kind: known.kind,
        key: known.inode.map_or(0, |(inode, (major, minor))| {
            inode ^ u64::from(major) << 52 ^ u64::from(minor) << 40
        }),
        directory,
        depth: depth.saturating_sub(1),
        class: if known.is_program { "program".to_owned() } else { String::new() },
        first_bytes: known.first_bytes,
        last_bytes: known.bytes,
        device: known.inode.map_or((0, 0), |(_, device)| device),
        resident_bytes: None,
        path: known.path.as_deref().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64) -> Identity {
        Identity { inode, device: (8, 1), mode: libc::S_IFREG, ..Identity::default() }
    }

    #[test]
    fn a_file_is_one_file_under_all_of_its_names() {
        let mut files = Files::default();
        let first = files.opened(Some("/a"), &file(1));
        assert_eq!(files.opened(Some("/b"), &file(1)), first);
        assert_eq!(files.named("/b"), first);
        assert_ne!(files.opened(Some("/c"), &file(2)), first);
    }

    #[test]
    fn an_inode_that_was_made_anew_is_another_file() {
        let mut files = Files::default();
        let first = files.opened(Some("/a"), &file(1));
        assert_eq!(files.removed("/a"), first);
        let second = files.opened(Some("/a"), &Identity { created: true, ..file(1) });
        assert_ne!(first, second);
        assert_eq!(files.opened(Some("/a"), &file(1)), second);
    }

    #[test]
    fn a_file_keeps_its_id_when_it_is_renamed() {
        let mut files = Files::default();
        let temporary = files.opened(Some("/t"), &file(1));
        let old = files.opened(Some("/a"), &file(2));
        assert_eq!(files.renamed("/t", "/a"), (temporary, old));
        assert_eq!(files.named("/a"), temporary);
    }

    #[test]
    fn a_name_that_was_not_there_becomes_the_file_that_is_made() {
        let mut files = Files::default();
        let missing = files.named("/a");
        let made = files.opened(Some("/a"), &Identity { created: true, ..file(1) });
        assert_eq!(missing, made);
    }

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(kind_of(libc::S_IFREG, Some("/proc/self/io")), FileKind::Pseudo);
        assert_eq!(kind_of(libc::S_IFREG, Some("/processes")), FileKind::Regular);
        assert_eq!(kind_of(libc::S_IFCHR, Some("/dev/null")), FileKind::Other);
        assert_eq!(kind_of(libc::S_IFIFO, None), FileKind::Other);
        assert_eq!(kind_of(libc::S_IFBLK, Some("/dev/vda")), FileKind::Block);
    }
}
