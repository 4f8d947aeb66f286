//! Names that are looked up: what a cache of names and inodes of any size makes of a trace.
//!
//! A path's directories are looked up with it, the nearest first; a name that is not there takes a
//! place as others do (the kernel keeps negative entries, fs/dcache.c). Counted in names: how many
//! bytes one takes is the kernel's and the filesystem's affair.

use std::collections::HashMap;

use ioscape_model::app::CachePart;

use super::mrc::{Access, ExactCurve, Touch};
use super::parts::Counts;
use crate::event::{Event, FileEntry, FileKind, Op};

/// No path is deeper; a table that leads in rings is not followed for ever.
const DEPTH_MAX: usize = 64;

/// Counts look-ups.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The directory of each file and directory with a name.
    directory_of: HashMap<u32, u32>,
    curve: ExactCurve,
    counts: Counts,
}

impl Names {
    /// For the files of a trace.
    pub(super) fn new(files: &[FileEntry]) -> Self {
        let has_name = |file: &&FileEntry| !matches!(file.kind, FileKind::Other | FileKind::Block);
        let directories = files.iter().filter(has_name).map(|file| (file.id, file.directory));
        Self { directory_of: directories.collect(), ..Self::default() }
    }

    /// Looks up what an event names.
    pub(super) fn see(&mut self, event: &Event) {
        if !looks_up(event) {
            return;
        }
        self.touch(event.file);
        if matches!(event.op, Op::Rename | Op::Link) {
            self.touch(event.other as u32);
        }
    }

    fn touch(&mut self, file: u32) {
        let mut name = file;
        for _ in 0..DEPTH_MAX {
            let Some(directory) = self.directory_of.get(&name) else { return };
            let counts = &mut self.counts;
            let touch =
                Touch { access: Access::Read, file: 0, first_page: u64::from(name), pages: 1 };
            self.curve.touch_all(&[touch], |_, distance, touches| counts.add(distance, touches));
            name = *directory;
        }
    }

    /// The counts; `None` where no name was looked up.
    pub(super) fn finish(&self) -> Option<CachePart> {
        (self.curve.pages() > 0).then(|| self.counts.part("names".to_owned()))
    }
}

/// True where the call takes a path. Calls on a descriptor have its handle.
const fn looks_up(event: &Event) -> bool {
    match event.op {
        Op::Open
        | Op::Create
        | Op::LookupNeg
        | Op::Unlink
        | Op::Rename
        | Op::Mkdir
        | Op::Rmdir
        | Op::Link
        | Op::Symlink
        | Op::Readlink
        | Op::Exec => event.file != 0,
        Op::Stat | Op::Chattr | Op::Xattr | Op::Trunc => event.file != 0 && event.handle == 0,
        _ => false,
    }
}
