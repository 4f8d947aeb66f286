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

/// Files of a load, with the directories that they are in.
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

/// Groups of a kind, as they are scaled. Where a group has no file left, its requests wait for the next
/// one: fewer files share all requests.
struct Pending {
    files: Rounding,
    requests: Rounding,
    unchanged: Rounding,
    waiting: u64,
    waiting_unchanged: u64,
}

impl Pending {
    fn new(files: f64, requests: f64) -> Self {
        let rounding = |factor| Rounding { factor, before: 0.0 };
        Self {
            files: rounding(files),
            requests: rounding(requests),
            unchanged: rounding(requests),
            waiting: 0,
            waiting_unchanged: 0,
        }
    }

    fn take(&mut self, group: &FileGroup, first: u32) -> Option<Block> {
        self.waiting += group.requests;
        self.waiting_unchanged += group.unchanged;
        let files = self.files.next(group.files);
        (files > 0).then(|| Block {
            group: *group,
            first,
            files,
            requests: self.requests.next(std::mem::take(&mut self.waiting)),
            unchanged: self.unchanged.next(std::mem::take(&mut self.waiting_unchanged)),
        })
    }
}

impl Files {
    pub(super) fn new(site: &Site, scaled: &Scaled) -> Self {
        let factor = scaled.files;
        let directories = ((site.directories as f64 * factor).round() as u32).max(1);
        let directory = |id| FileEntry { id, kind: FileKind::Directory, ..FileEntry::default() };
        let mut entries: Vec<FileEntry> = (1..=directories).map(directory).collect();
        let mut blocks = [Vec::new(), Vec::new()];
        let mut groups = site.files.clone();
        groups.sort_by_key(|group| std::cmp::Reverse(group.requests / group.files.max(1)));
        // With more files each request of the log stands for as many more, with fewer for itself.
        let requests_factor = factor.max(1.0);
        let mut kinds: [Pending; 3] =
            std::array::from_fn(|_| Pending::new(factor, requests_factor));
        for group in &groups {
            let Some(block) = kinds[group.kind as usize].take(group, entries.len() as u32 + 1)
            else {
                continue;
            };
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
        // Requests for files that are left out at the end go to the last ones of their kind.
        for block in blocks.iter_mut().flatten().rev() {
            let left = &mut kinds[block.group.kind as usize];
            block.requests += left.requests.next(std::mem::take(&mut left.waiting));
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
