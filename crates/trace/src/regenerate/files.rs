//! Files while load is made: which are there, how long they are, where in the address space they lie.
//! Some have their places from the start; others begin where the one before ended, and grow as long as
//! they are gone on with.

use super::ground::{Data, GeneratedFiles};
use super::places::{PAGE_BYTES, READ, Region, WRITE};

/// All files of data.
#[derive(Clone, Debug)]
pub(super) struct Files {
    data: Vec<Data>,
    /// Bytes of each; `None` where it is still to be made.
    lengths: Vec<Option<u64>>,
    regions: [Region; 2],
    /// First pages and files, in order.
    begun: [Vec<(usize, usize)>; 2],
    /// The file that grows.
    growing: [Option<usize>; 2],
    /// Of each direction, files before this one have begun.
    next: [usize; 2],
    was_opened: Vec<bool>,
    /// Files from here on were opened, or are of the other direction; by direction.
    fresh_below: [usize; 2],
}

impl Files {
    pub(super) fn new(ground: &GeneratedFiles) -> Self {
        let mut begun = [Vec::new(), Vec::new()];
        for (file, data) in ground.data.iter().enumerate() {
            if !ground.regions[data.direction].grows {
                begun[data.direction].push((data.from, file));
            }
        }
        let data = ground.data.clone();
        let bytes = |data: &Data| ground.entries()[data.id as usize - 1].first_bytes;
        let length = |data: &Data| (!data.is_made).then(|| bytes(data));
        let lengths = data.iter().map(length).collect();
        Self {
            was_opened: vec![false; data.len()],
            fresh_below: [data.len(); 2],
            data,
            lengths,
            regions: ground.regions,
            begun,
            growing: [None; 2],
            next: [0; 2],
        }
    }

    /// Files that the load makes are made once more.
    pub(super) fn begin_pass(&mut self) {
        for (data, length) in self.data.iter().zip(&mut self.lengths) {
            if data.is_made {
                *length = None;
            }
        }
        self.was_opened.fill(false);
        self.fresh_below = [self.data.len(); 2];
    }

    pub(super) fn get(&self, file: usize) -> &Data {
        &self.data[file]
    }

    pub(super) fn count(&self) -> usize {
        self.data.len()
    }

    pub(super) fn is_there(&self, file: usize) -> bool {
        self.lengths[file].is_some()
    }

    pub(super) fn open(&mut self, file: usize) {
        self.was_opened[file] = true;
    }

    /// A file that no stream has opened in this pass. The files that most is read of or written to come
    /// last: a program opens its libraries before its data.
    pub(super) fn never_opened(&mut self, direction: usize) -> Option<usize> {
        while let Some(file) = self.fresh_below[direction].checked_sub(1) {
            let is_of_it = self.data[file].direction == direction && self.is_there(file);
            if is_of_it && !self.was_opened[file] {
                return Some(file);
            }
            self.fresh_below[direction] = file;
        }
        None
    }

    /// The part of it that may be read, bytes.
    pub(super) fn length(&self, file: usize) -> u64 {
        if self.grows_by(file, READ) { self.room(file) } else { self.lengths[file].unwrap_or(0) }
    }

    /// The file of a page.
    pub(super) fn holding(&self, page: usize) -> Option<usize> {
        let direction = if page < self.regions[WRITE].from { READ } else { WRITE };
        let begun = &self.begun[direction];
        let next = begun.partition_point(|(from, _)| *from <= page);
        Some(begun.get(next.checked_sub(1)?)?.1)
    }

    /// The next file of a region that grows begins.
    pub(super) fn begin(&mut self, direction: usize) -> Option<usize> {
        if !self.regions[direction].grows {
            return None;
        }
        let is_next = |file: &usize| self.data[*file].direction == direction;
        let file = (self.next[direction]..self.data.len()).find(is_next)?;
        let from = self.frontier(direction);
        if from >= self.end_of(direction) {
            return None;
        }
        self.next[direction] = file + 1;
        self.data[file].from = from;
        self.begun[direction].push((from, file));
        self.growing[direction] = Some(file);
        Some(file)
    }

    /// A file that is to be made: one that never was, or one of the pass before.
    pub(super) fn next_made(&mut self) -> Option<usize> {
        self.begin(WRITE).or_else(|| {
            let is_gone = |file: &usize| !self.is_there(*file) && self.data[*file].pages > 0;
            (0..self.data.len()).find(is_gone)
        })
    }

    /// The file that grows.
    pub(super) fn growing(&self, direction: usize) -> Option<usize> {
        self.growing[direction]
    }

    fn grows_by(&self, file: usize, direction: usize) -> bool {
        self.growing[direction] == Some(file)
    }

    /// Whether it has no end yet.
    pub(super) fn is_growing(&self, file: usize) -> bool {
        self.grows_by(file, self.data[file].direction)
    }

    /// The page after the last of a region.
    pub(super) fn end_of(&self, direction: usize) -> usize {
        self.regions[direction].from + self.regions[direction].pages
    }

    /// The first page that no file has.
    fn frontier(&self, direction: usize) -> usize {
        let end = |file: usize| self.data[file].from + self.data[file].pages.max(1);
        self.growing[direction].map_or(self.regions[direction].from, end)
    }

    /// How long it may become, bytes.
    pub(super) fn room(&self, file: usize) -> u64 {
        let data = &self.data[file];
        let pages = if self.is_growing(file) {
            self.end_of(data.direction) - data.from
        } else {
            data.pages
        };
        pages as u64 * PAGE_BYTES
    }

    /// It was made, empty.
    pub(super) fn make(&mut self, file: usize) {
        self.lengths[file] = Some(0);
    }

    /// Bytes up to here were read or written.
    pub(super) fn reach(&mut self, file: usize, end: u64, direction: usize) {
        if self.is_growing(file) {
            let room = self.room(file).div_ceil(PAGE_BYTES);
            let pages = end.div_ceil(PAGE_BYTES).min(room) as usize;
            self.data[file].pages = self.data[file].pages.max(pages);
        }
        if direction == WRITE || self.is_growing(file) {
            let length = self.lengths[file].get_or_insert(0);
            *length = (*length).max(end);
        }
    }
}
