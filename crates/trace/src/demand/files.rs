//! Files as they were before the recording: where they lie, whether they were in
//! memory.

use std::collections::HashMap;

use crate::{FileEntry, FileKind};

/// Where the bytes of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// On the device that holds most of the data.
    Storage,
    /// On another device: programs, libraries, settings.
    Elsewhere,
    /// No storage: pipes, sockets, terminals, /proc.
    Nowhere,
}

/// A file before the recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) kind: FileKind,
    pub(super) bytes: u64,
    pub(super) directory: u32,
    device: (u32, u32),
    resident: Option<u64>,
}

/// Files of a trace, with the device that its data are on.
#[derive(Debug, Default)]
pub(super) struct Files {
    all: HashMap<u32, Facts>,
    storage: Option<(u32, u32)>,
    warm_frac: Option<f64>,
}

impl Files {
    /// From the table; devices of directories that nobody opened are those of files in them.
    pub(super) fn new(entries: &[FileEntry]) -> Self {
        let fact = |entry: &FileEntry| Facts {
            kind: entry.kind,
            bytes: entry.first_bytes,
            directory: entry.directory,
            device: entry.device,
            resident: entry.resident_bytes,
        };
        let mut all: HashMap<u32, Facts> = entries.iter().map(|e| (e.id, fact(e))).collect();
        for entry in entries {
            if entry.device == (0, 0) {
                continue;
            }
            if let Some(directory) = all.get_mut(&entry.directory)
                && directory.device == (0, 0)
            {
                directory.device = entry.device;
            }
        }
        Self { all, storage: None, warm_frac: None }
    }

    /// Says which device the data are on.
    pub(super) fn set_storage(&mut self, device: Option<(u32, u32)>) {
        self.storage = device;
        self.warm_frac = self.count_warm();
    }

    /// Ids of all of them.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.all.keys().copied().collect()
    }

    pub(super) fn get(&self, file: u32) -> Option<&Facts> {
        self.all.get(&file)
    }

    /// The device of a file, or that of the nearest directory above it of which one is known.
    pub(super) fn device(&self, file: u32) -> Option<(u32, u32)> {
        let mut at = self.all.get(&file)?;
        for _ in 0..DEPTH_MAX {
            if at.device != (0, 0) {
                return Some(at.device);
            }
            at = self.all.get(&at.directory)?;
        }
        None
    }

    /// Where the bytes of a file are. Where the format knows no devices, all are on storage.
    pub(super) fn home(&self, file: u32) -> Home {
        let Some(facts) = self.all.get(&file) else {
            return if file == 0 && self.storage.is_some() { Home::Nowhere } else { Home::Storage };
        };
        match (facts.kind, self.storage, self.device(file)) {
            (FileKind::Other | FileKind::Pseudo, _, _) => Home::Nowhere,
            (_, Some(storage), Some(device)) if storage != device => Home::Elsewhere,
            _ => Home::Storage,
        }
    }

    /// True where name and inode were out of memory at the start: those of files without data are taken
    /// to be as those of most others.
    pub(super) fn is_cold(&self, file: u32) -> bool {
        let resident = self.all.get(&file).filter(|facts| facts.bytes > 0).and_then(|f| f.resident);
        match resident {
            Some(bytes) => bytes == 0,
            None => self.warm_frac().is_some_and(|warm| warm < 0.5),
        }
    }

    /// Share of the data files on storage that were in memory.
    pub(super) fn warm_frac(&self) -> Option<f64> {
        self.warm_frac
    }

    fn count_warm(&self) -> Option<f64> {
        let (mut warm, mut known) = (0_u64, 0_u64);
        for facts in self.all.values() {
            let is_here = self.storage.is_none_or(|storage| storage == facts.device);
            if let (FileKind::Regular, Some(bytes), true) = (facts.kind, facts.resident, is_here)
                && facts.bytes > 0
            {
                known += 1;
                warm += u64::from(bytes > 0);
            }
        }
        (known > 0).then(|| warm as f64 / known as f64)
    }
}

/// Directories that are looked through upwards: more than paths have.
const DEPTH_MAX: usize = 64;
