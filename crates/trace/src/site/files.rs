//! The files of a load like a site's: as many in each group, times a factor.

use ioscape_model::app::{FileGroup, PageKind, Site};

use super::deck::{Card, mixed};
use super::{Answer, Scaled};
use crate::{FileEntry, FileKind};

/// Files of a group in a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    group: FileGroup,
    /// Id of the first.
    first: u32,
    files: u64,
    /// Requests for all of them until each of the site's was made once.
    pub(super) requests: u64,
    unchanged: u64,
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) entries: Vec<FileEntry>,
    /// Pages and names that are not there, then objects.
    pub(super) blocks: [Vec<Block>; 2],
}

/// A whole number for each of several that were multiplied, such that their sum is right.
struct Rounding {
    factor: f64,
    before: f64,
}

impl Rounding {
    fn next(&mut self, count: u64) -> u64 {
        let after = self.before + count as f64 * self.factor;
        let scaled = after.round() - self.before.round();
        self.before = after;
        scaled as u64
    }
}

impl Files {
    pub(super) fn new(site: &Site, scaled: &Scaled) -> Self {
        let factor = scaled.files;
        let directories = ((site.directories as f64 * factor).round() as u32).max(1);
        let directory = |id| FileEntry { id, kind: FileKind::Directory, ..FileEntry::default() };
        let mut entries: Vec<FileEntry> = (1..=directories).map(directory).collect();
        let mut blocks = [Vec::new(), Vec::new()];
        let rounding = || Rounding { factor, before: 0.0 };
        let (mut files, mut requests, mut unchanged) = (rounding(), rounding(), rounding());
        for group in &site.files {
            let block = Block {
                group: *group,
                first: entries.len() as u32 + 1,
                files: files.next(group.files),
                requests: requests.next(group.requests),
                unchanged: unchanged.next(group.unchanged),
            };
            if block.files == 0 {
                continue;
            }
            for at in 0..block.files {
                let id = block.first + at as u32;
                let bytes = block.bytes(at);
                entries.push(FileEntry {
                    id,
                    directory: 1 + id % directories,
                    depth: 1,
                    first_bytes: bytes,
                    last_bytes: bytes,
                    ..FileEntry::default()
                });
            }
            blocks[usize::from(group.kind == PageKind::Object)].push(block);
        }
        Self { entries, blocks }
    }

    /// Ids of files that are asked for and not there.
    pub(super) fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        let blocks = self.blocks.iter().flatten();
        let missing = blocks.filter(|block| block.group.kind == PageKind::Missing);
        missing.flat_map(|block| block.first..block.first + block.files as u32)
    }
}

impl Block {
    /// Size of a file of it: between the smallest and the largest in even steps of the logarithm. Which
    /// of them is small says nothing of how often it is asked for.
    fn bytes(&self, at: u64) -> u64 {
        let (min, max) = (self.group.bytes_min as f64 + 1.0, self.group.bytes_max as f64 + 1.0);
        let share = match self.files {
            1 => 0.5,
            files => at as f64 / (files - 1) as f64,
        };
        (min * (max / min).powf(share)).round() as u64 - 1
    }

    /// File and answer of a card.
    pub(super) fn ask(&self, card: Card) -> (u32, Answer) {
        let file = self.first + (card.number % self.files) as u32;
        let is_unchanged = mixed(card.number) % self.requests.max(1) < self.unchanged;
        let answer = match self.group.kind {
            PageKind::Missing => Answer::Missing,
            _ if is_unchanged => Answer::Unchanged,
            _ => Answer::Whole,
        };
        (file, answer)
    }
}
