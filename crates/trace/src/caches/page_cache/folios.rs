//! Folios, the lists they are on, and the tree that finds them: what the kernel's `struct folio`,
//! `lruvec` lists and `i_pages` are.

use super::super::page_table::PageTable;

/// A folio's place in the arena.
pub(super) type FolioId = u32;

const NONE: FolioId = u32::MAX;

/// Bits of a folio, called as in the kernel's `enum pageflags`.
pub(super) mod flag {
    /// Touched once since it last changed lists.
    pub(crate) const REFERENCED: u8 = 1;
    /// Was active before.
    pub(crate) const WORKINGSET: u8 = 1 << 1;
    /// Must be written back.
    pub(crate) const DIRTY: u8 = 1 << 2;
    /// The one that starts the next read-ahead.
    pub(crate) const READAHEAD: u8 = 1 << 3;
    /// Goes first once it is written back.
    pub(crate) const RECLAIM: u8 = 1 << 4;
    /// In use by the call at hand: cannot go.
    pub(crate) const PINNED: u8 = 1 << 5;
    /// Mapped, and touched through the mapping.
    pub(crate) const YOUNG: u8 = 1 << 6;
    /// On the active list, or to go there.
    pub(crate) const ACTIVE: u8 = 1 << 7;
}

/// Generations that a folio may be in.
pub(super) const GENERATIONS: usize = 4;

/// The two lists, where there are no generations.
pub(super) const INACTIVE: u8 = 0;
pub(super) const ACTIVE: u8 = 1;

/// 2^`order` pages of a file that come and go together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folio {
    pub(super) file: u32,
    pub(super) first: u64,
    pub(super) order: u8,
    pub(super) flags: u8,
    /// Where it is by its generation, which nobody gives it where there are two lists.
    pub(super) list: u8,
    /// Touches by calls beyond the first, of a folio that is in a generation.
    pub(super) references: u8,
    /// Towards the head: younger.
    younger: FolioId,
    older: FolioId,
}

impl Folio {
    pub(super) const fn pages(&self) -> u64 {
        1 << self.order
    }

    pub(super) const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// The page after the last one.
    pub(super) const fn end(&self) -> u64 {
        self.first + self.pages()
    }
}

/// What a place in a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageSlot {
    Empty,
    Held(FolioId),
    /// What is left of an evicted page (mm/workingset.c, `pack_shadow`): the lists' age then, and
    /// whether the page had been active.
    Shadow {
        age: u64,
        workingset: bool,
    },
}

/// Two bits of kind, 62 of content.
#[derive(Clone, Copy, Debug, Default)]
struct Packed(u64);

impl Packed {
    const fn of_place(place: PageSlot) -> Self {
        match place {
            PageSlot::Empty => Self(0),
            PageSlot::Held(id) => Self((id as u64) << 2 | 1),
            PageSlot::Shadow { age, workingset } => Self(age << 2 | 2 | workingset as u64),
        }
    }

    const fn place(self) -> PageSlot {
        match self.0 & 3 {
            0 => PageSlot::Empty,
            1 => PageSlot::Held((self.0 >> 2) as FolioId),
            low => PageSlot::Shadow { age: self.0 >> 2, workingset: low == 3 },
        }
    }
}

/// One of the lists: folios from the youngest, its head, to the oldest, its tail.
#[derive(Clone, Copy, Debug)]
struct List {
    head: FolioId,
    tail: FolioId,
    pages: u64,
}

const EMPTY: List = List { head: NONE, tail: NONE, pages: 0 };

/// All folios in memory.
#[derive(Debug)]
pub(super) struct Folios {
    arena: Vec<Folio>,
    free: Vec<FolioId>,
    lists: [List; GENERATIONS],
    tree: PageTable<Packed>,
}

impl Folios {
    pub(super) fn new() -> Self {
        Self {
            arena: Vec::new(),
            free: Vec::new(),
            lists: [EMPTY; GENERATIONS],
            tree: PageTable::new(),
        }
    }

    pub(super) fn get(&self, id: FolioId) -> &Folio {
        &self.arena[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: FolioId) -> &mut Folio {
        &mut self.arena[id as usize]
    }

    pub(super) fn set(&mut self, id: FolioId, flags: u8) {
        self.arena[id as usize].flags |= flags;
    }

    pub(super) fn clear(&mut self, id: FolioId, flags: u8) {
        self.arena[id as usize].flags &= !flags;
    }

    pub(super) const fn pages_on(&self, list: u8) -> u64 {
        self.lists[list as usize].pages
    }

    pub(super) fn place(&self, file: u32, page: u64) -> PageSlot {
        self.tree.get(file, page).place()
    }

    pub(super) fn ranges(&self, file: u32, first: u64) -> Vec<std::ops::Range<u64>> {
        self.tree.ranges(file, first)
    }

    /// A folio that is on no list yet.
    pub(super) fn make(&mut self, file: u32, first: u64, order: u8) -> FolioId {
        let folio = Folio {
            file,
            first,
            order,
            flags: 0,
            list: INACTIVE,
            references: 0,
            younger: NONE,
            older: NONE,
        };
        let id = if let Some(id) = self.free.pop() {
            self.arena[id as usize] = folio;
            id
        } else {
            self.arena.push(folio);
            self.arena.len() as FolioId - 1
        };
        self.write_places(&folio, PageSlot::Held(id));
        id
    }

    /// Takes a folio out of its file and its list.
    pub(super) fn remove(&mut self, id: FolioId, left: PageSlot) {
        self.unlink(id);
        let folio = self.arena[id as usize];
        self.write_places(&folio, left);
        self.free.push(id);
    }

    fn write_places(&mut self, folio: &Folio, place: PageSlot) {
        for page in folio.first..folio.end() {
            self.tree.set(folio.file, page, Packed::of_place(place));
        }
    }

    /// The youngest of its list.
    pub(super) fn push_head(&mut self, id: FolioId) {
        let list = *self.list_of(id);
        self.arena[id as usize].younger = NONE;
        self.arena[id as usize].older = list.head;
        if list.head != NONE {
            self.arena[list.head as usize].younger = id;
        }
        let pages = self.arena[id as usize].pages();
        let list = self.list_of(id);
        list.head = id;
        if list.tail == NONE {
            list.tail = id;
        }
        list.pages += pages;
    }

    /// The oldest of its list.
    pub(super) fn push_tail(&mut self, id: FolioId) {
        let list = *self.list_of(id);
        self.arena[id as usize].older = NONE;
        self.arena[id as usize].younger = list.tail;
        if list.tail != NONE {
            self.arena[list.tail as usize].older = id;
        }
        let pages = self.arena[id as usize].pages();
        let list = self.list_of(id);
        list.tail = id;
        if list.head == NONE {
            list.head = id;
        }
        list.pages += pages;
    }

    /// Takes a folio off its list.
    pub(super) fn unlink(&mut self, id: FolioId) {
        let folio = self.arena[id as usize];
        if folio.younger != NONE {
            self.arena[folio.younger as usize].older = folio.older;
        }
        if folio.older != NONE {
            self.arena[folio.older as usize].younger = folio.younger;
        }
        let list = self.list_of(id);
        if list.head == id {
            list.head = folio.older;
        }
        if list.tail == id {
            list.tail = folio.younger;
        }
        list.pages -= folio.pages();
    }

    fn list_of(&mut self, id: FolioId) -> &mut List {
        let folio = &self.arena[id as usize];
        let list = if folio.has(flag::ACTIVE) { ACTIVE } else { folio.list };
        &mut self.lists[usize::from(list)]
    }

    /// Takes the oldest off a list until they have so many pages (mm/vmscan.c, `isolate_lru_folios`).
    pub(super) fn isolate(&mut self, pages: u64, list: u8) -> Vec<FolioId> {
        let mut taken = Vec::new();
        let mut scanned = 0;
        while scanned < pages {
            let id = self.lists[usize::from(list)].tail;
            if id == NONE {
                break;
            }
            scanned += self.get(id).pages();
            self.unlink(id);
            taken.push(id);
        }
        taken
    }
}
