//! What is known of files beside their pages: length, who has them open, whether they have a name.

use std::collections::{HashMap, HashSet};

#[derive(Debug, Default)]
struct OpenFile {
    bytes: u64,
    /// Pages that its device is read ahead, where that is known.
    read_ahead: Option<u64>,
    handles: HashSet<u32>,
    /// Its name is gone: it lives as long as somebody has it open.
    is_unlinked: bool,
}

/// Files by their number.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    files: HashMap<u32, OpenFile>,
}

impl OpenFiles {
    pub(super) fn length(&self, file: u32) -> u64 {
        self.files.get(&file).map_or(0, |file| file.bytes)
    }

    pub(super) fn set_length(&mut self, file: u32, bytes: u64) {
        self.files.entry(file).or_default().bytes = bytes;
    }

    /// The file reaches at least so far.
    pub(super) fn reach(&mut self, file: u32, bytes: u64) {
        let file = self.files.entry(file).or_default();
        file.bytes = file.bytes.max(bytes);
    }

    pub(super) fn read_ahead(&self, file: u32) -> Option<u64> {
        self.files.get(&file).and_then(|file| file.read_ahead)
    }

    pub(super) fn set_read_ahead(&mut self, file: u32, pages: u64) {
        self.files.entry(file).or_default().read_ahead = Some(pages);
    }

    pub(super) fn open(&mut self, file: u32, handle: u32) {
        self.files.entry(file).or_default().handles.insert(handle);
    }

    /// Whether the file is gone with that.
    pub(super) fn close(&mut self, file: u32, handle: u32) -> bool {
        let Some(file) = self.files.get_mut(&file) else { return false };
        file.handles.remove(&handle);
        file.is_unlinked && file.handles.is_empty()
    }

    /// Whether the file is gone with that.
    pub(super) fn unlink(&mut self, file: u32) -> bool {
        let file = self.files.entry(file).or_default();
        file.is_unlinked = true;
        file.handles.is_empty()
    }
}
