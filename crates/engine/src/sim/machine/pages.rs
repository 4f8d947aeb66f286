//! The page cache of a machine: each page of the data is there or not, clean, dirty or on its way.

use crate::sim::spec::{MachineCache, Policy};

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
const NONE: u32 = u32::MAX;

const RESIDENT: u8 = 1;
const ACTIVE: u8 = 1 << 1;
const REFERENCED: u8 = 1 << 2;
/// Read in, and not asked for since.
const FRESH: u8 = 1 << 3;
const READING: u8 = 1 << 4;
const WRITING: u8 = 1 << 5;
const DIRTY: u8 = 1 << 6;
/// Cannot be replaced.
const PINNED: u8 = READING | WRITING | DIRTY;

/// The state of every page. Numbers of pages count from the beginning of the data.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    policy: Policy,
    capacity: u32,
    states: Vec<u8>,
    /// Newer and older neighbour in its list.
    links: Vec<[u32; 2]>,
    /// Inactive and active; only the first where one list is kept.
    lists: [List; 2],
    /// A bit for each dirty page that is not being written.
    to_write: Vec<u64>,
    dirty: u32,
    writing: u32,
    /// Dirty or being written.
    unclean: u32,
    /// Read in and replaced before anybody asked for them.
    pub(super) unused: u64,
}

#[derive(Clone, Copy, Debug)]
struct List {
    newest: u32,
    oldest: u32,
    length: u32,
}

/// How a page was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Resident,
    Reading,
    Missing,
}

impl Pages {
    /// An empty cache over so many pages of data.
    pub(super) fn new(spec: &MachineCache, count: u32) -> Self {
        let list = List { newest: NONE, oldest: NONE, length: 0 };
        Self {
            policy: spec.policy,
            capacity: (spec.bytes / PAGE) as u32,
            states: vec![0; count as usize],
            links: vec![[NONE; 2]; count as usize],
            lists: [list; 2],
            to_write: vec![0; count.div_ceil(64) as usize],
            dirty: 0,
            writing: 0,
            unclean: 0,
            unused: 0,
        }
    }

    /// Pages that it holds at most.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Pages that it holds, those being read included.
    pub(super) fn resident(&self) -> u32 {
        self.lists[0].length + self.lists[1].length
    }

    /// Dirty pages, those only that are not being written too.
    pub(super) fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Pages being written.
    pub(super) fn writing(&self) -> u32 {
        self.writing
    }

    /// Pages that are dirty or being written.
    pub(super) fn unclean(&self) -> u32 {
        self.unclean
    }

    /// Read in and not asked for yet.
    #[cfg(test)]
    pub(super) fn fresh(&self) -> u64 {
        self.states.iter().filter(|state| **state & FRESH != 0).count() as u64
    }

    pub(super) fn look(&self, page: u32) -> Found {
        match self.states[page as usize] & (RESIDENT | READING) {
            0 => Found::Missing,
            RESIDENT => Found::Resident,
            _ => Found::Reading,
        }
    }

    pub(super) fn is_unclean(&self, page: u32) -> bool {
        self.states[page as usize] & (DIRTY | WRITING) != 0
    }

    /// A resident page is asked for; whether it was there for another reason than this request
    /// and its read-ahead.
    pub(super) fn access(&mut self, page: u32) -> bool {
        let state = self.states[page as usize];
        let index = page as usize;
        self.states[index] &= !FRESH;
        match self.policy {
            Policy::Lru => {
                if self.lists[0].newest != page {
                    self.unlink(page);
                    self.link(page, 0);
                }
            }
            Policy::TwoLists if state & (ACTIVE | REFERENCED) == REFERENCED => {
                self.unlink(page);
                self.states[index] = self.states[index] & !REFERENCED | ACTIVE;
                self.link(page, 1);
            }
            Policy::TwoLists => self.states[index] |= REFERENCED,
        }
        state & FRESH == 0
    }

    /// A missing page comes in with a write.
    pub(super) fn insert(&mut self, page: u32) {
        if self.resident() >= self.capacity {
            self.replace();
        }
        self.states[page as usize] = RESIDENT;
        self.link(page, 0);
    }

    /// A missing page is about to be read in.
    pub(super) fn begin_read(&mut self, page: u32) {
        self.insert(page);
        self.states[page as usize] |= FRESH | READING;
    }

    pub(super) fn end_read(&mut self, page: u32) {
        self.states[page as usize] &= !READING;
    }

    /// A resident page is overwritten; whether it was not dirty before.
    pub(super) fn dirty_page(&mut self, page: u32) -> bool {
        let state = &mut self.states[page as usize];
        if *state & DIRTY != 0 {
            return false;
        }
        self.dirty += 1;
        self.unclean += u32::from(*state & WRITING == 0);
        *state |= DIRTY;
        if *state & WRITING == 0 {
            self.to_write[page as usize / 64] |= 1 << (page % 64);
        }
        true
    }

    /// The first run of adjacent pages to be written in a range, and how long it is.
    pub(super) fn run(&self, range: std::ops::Range<u32>, longest: u32) -> Option<(u32, u32)> {
        let mut page = range.start;
        while page < range.end {
            let word = self.to_write[page as usize / 64] >> (page % 64);
            if word == 0 {
                page = (page / 64 + 1) * 64;
                continue;
            }
            let first = page + word.trailing_zeros();
            if first >= range.end {
                return None;
            }
            let until = range.end.min(first + longest);
            let is_due = |page: &u32| self.to_write[*page as usize / 64] >> (page % 64) & 1 == 1;
            return Some((first, (first..until).take_while(is_due).count() as u32));
        }
        None
    }

    pub(super) fn begin_write(&mut self, first: u32, count: u32) {
        for page in first..first + count {
            let state = &mut self.states[page as usize];
            *state = *state & !DIRTY | WRITING;
            self.to_write[page as usize / 64] &= !(1 << (page % 64));
        }
        self.dirty -= count;
        self.writing += count;
    }

    pub(super) fn end_write(&mut self, first: u32, count: u32) {
        for page in first..first + count {
            let state = &mut self.states[page as usize];
            *state &= !WRITING;
            if *state & DIRTY == 0 {
                self.unclean -= 1;
            } else {
                self.to_write[page as usize / 64] |= 1 << (page % 64);
            }
        }
        self.writing -= count;
    }

    /// Lets a page go: the oldest inactive one that is clean. Where none is, the cache is too
    /// small for what is on its way, and grows beyond its capacity.
    fn replace(&mut self) {
        while self.lists[1].length > self.lists[0].length {
            let page = self.lists[1].oldest;
            self.unlink(page);
            self.states[page as usize] &= !(ACTIVE | REFERENCED);
            self.link(page, 0);
        }
        for _ in 0..self.lists[0].length {
            let page = self.lists[0].oldest;
            self.unlink(page);
            let state = self.states[page as usize];
            if state & PINNED == 0 {
                self.unused += u64::from(state & FRESH != 0);
                self.states[page as usize] = 0;
                return;
            }
            self.link(page, 0);
        }
    }

    fn link(&mut self, page: u32, list: usize) {
        let List { newest, oldest, length } = &mut self.lists[list];
        self.links[page as usize] = [NONE, *newest];
        match *newest {
            NONE => *oldest = page,
            newer => self.links[newer as usize][0] = page,
        }
        *newest = page;
        *length += 1;
    }

    fn unlink(&mut self, page: u32) {
        let list = usize::from(self.states[page as usize] & ACTIVE != 0);
        let [newer, older] = self.links[page as usize];
        match newer {
            NONE => self.lists[list].newest = older,
            newer => self.links[newer as usize][1] = older,
        }
        match older {
            NONE => self.lists[list].oldest = newer,
            older => self.links[older as usize][0] = newer,
        }
        self.lists[list].length -= 1;
    }
}
