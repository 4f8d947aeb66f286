//! The files that calls are made on, with the directory they are in.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::handles::Handles;
use super::layout::{self, Layout};
use super::mappings::Mappings;
use super::names::Names;
use super::{POOL_BYTES, Shape, StageFile};
use crate::error::{Error, Result};
use crate::run_id::RunId;
use crate::scratch::{MODE_FOR_OTHERS, Scratch};
use crate::target::Directory;

/// The files of a replay. Dropping it removes them.
#[derive(Debug)]
pub struct Stage {
    // In this order: nothing is open any more when the directory is removed.
    pub(super) mappings: Mappings,
    pub(super) handles: Handles,
    pub(super) root: OwnedFd,
    pub(super) names: Names,
    pub(super) shapes: Vec<Shape>,
    /// Random bytes, twice [`POOL_BYTES`].
    pub(super) pool: Vec<u8>,
    pub(super) null: OwnedFd,
    /// Where the next bytes that are copied into a file go.
    pub(super) copied: Mutex<HashMap<u32, u64>>,
    /// Files that had to be opened though no call opened them.
    pub(super) reopened: AtomicU64,
    laid_out_bytes: u64,
    scratch: Scratch,
}

impl Stage {
    /// Makes the directory, directory `number` of a run, and all that is there at the start.
    /// `on_bytes` is told how many bytes were written so far.
    ///
    /// # Errors
    /// [`Error::NoRoom`] where the files would fill more than half of what is free,
    /// [`Error::Interrupted`], or what the kernel said.
    pub fn new(
        directory: &Arc<Directory>,
        (run, number): (&RunId, usize),
        files: &[StageFile],
        interrupt: &AtomicBool,
        on_bytes: &mut dyn FnMut(u64),
    ) -> Result<Self> {
        raise_file_limit();
        let (free_bytes, wanted_bytes) = (directory.free_bytes()?, layout::data_bytes(files));
        if wanted_bytes > free_bytes / 2 {
            return Err(Error::Refused(format!(
                "{} has {free_bytes} bytes free and at most half of that is used; the files of the \
                 trace take {wanted_bytes}: name a target with more room",
                directory.path().display()
            )));
        }
        let scratch = Scratch::new(Arc::clone(directory), run, number)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(scratch.path(), flags, Mode::empty())
            .map_err(|error| Error::path("open", scratch.path(), error))?;
        let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Error::path("open", "/dev/null", error))?;
        let mut pool = vec![0; 2 * POOL_BYTES];
        Xoshiro256PlusPlus::seed_from_u64(std::process::id().into()).fill_bytes(&mut pool);
        let names = Names::new(files.iter().map(|file| file.directory).collect());
        let mut layout = Layout { root: &root, names: &names, pool: &pool, interrupt, bytes: 0 };
        layout.make(files, scratch.path(), on_bytes)?;
        let laid_out_bytes = layout.bytes;
        Ok(Self {
            mappings: Mappings::default(),
            handles: Handles::new(),
            shapes: files.iter().map(|file| file.shape).collect(),
            copied: Mutex::default(),
            reopened: AtomicU64::new(0),
            root,
            names,
            pool,
            null,
            laid_out_bytes,
            scratch,
        })
    }

    /// Bytes that were written before the first call.
    pub fn laid_out_bytes(&self) -> u64 {
        self.laid_out_bytes
    }

    /// Files that had to be opened though no call opened them: they were open when the trace began.
    pub fn reopened(&self) -> u64 {
        self.reopened.load(Ordering::Relaxed)
    }

    /// Where the files are.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Lets programs of other users open the files by their names: a web server runs as a user of its
    /// own.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn let_others_read(&self) -> Result<()> {
        fn open_up(path: &Path) -> std::io::Result<()> {
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    open_up(&entry.path())?;
                } else {
                    fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o644))?;
                }
            }
            fs::set_permissions(path, fs::Permissions::from_mode(MODE_FOR_OTHERS))
        }
        open_up(self.path()).map_err(|error| Error::path("let others read", self.path(), error))
    }

    pub(super) fn shape(&self, file: u32) -> Shape {
        self.shapes.get(file as usize).copied().unwrap_or_default()
    }
}

/// Allows as many open files as the administrator does: a trace, and visitors of a web site, may have more
/// open than a shell's limit.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
}
