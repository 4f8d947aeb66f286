//! The kernel's page cache, simulated from a trace: what it holds, what it reads from storage, what it
//! writes back, under a limit of memory.
//!
//! Rules and constants are those of Linux 6.18, named by file and function where they are used; none is
//! fitted to a measurement. Simplified, and said at the spot: reclaim sees no anonymous memory (which
//! without swap it does not scan), pages are on the lists at once (the kernel collects up to 31 of them
//! per processor first), write-back takes no time, extents that hold no data are read like others. Names
//! that are forgotten take no pages with them: an inode with pages is not on the list from which memory
//! for inodes is freed (fs/inode.c, `__inode_add_lru`).

mod dirty;
mod events;
mod files;
mod folios;
mod generations;
mod memory;
mod read_ahead;
mod reading;
mod reclaim;
mod tiers;
mod write_back;
mod writing;

use std::collections::{HashMap, HashSet};

use files::OpenFiles;
use memory::Memory;
use read_ahead::Window;

/// Which page makes room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// The kernel's: two lists, refaults, read-ahead, large folios.
    PageCache,
    /// The kernel's, where it keeps generations in place of the two lists: by its description, not held
    /// against a kernel that does.
    Mglru,
    /// The page touched longest ago; no read-ahead.
    Lru,
    /// The page that came first; no read-ahead.
    Fifo,
}

impl Policy {
    /// As it is typed and written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PageCache => "page-cache",
            Self::Mglru => "mglru",
            Self::Lru => "lru",
            Self::Fifo => "fifo",
        }
    }

    /// Whether a kernel runs it: then with read-ahead and large folios.
    #[must_use]
    pub const fn is_kernels(self) -> bool {
        matches!(self, Self::PageCache | Self::Mglru)
    }
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Who makes room.
    pub policy: Policy,
    /// Pages that files may take: the group's limit less its other memory.
    pub memory_pages: u64,
    /// Read-ahead of a device of which nothing else is known, pages.
    pub read_ahead_pages: u64,
    /// The largest request of a device, pages: what a read larger than the read-ahead may take.
    pub request_pages: u64,
    /// Whether the filesystem puts several pages into one folio (ext4, xfs, btrfs do).
    pub large_folios: bool,
    /// Dirty pages above which they are written back.
    pub dirty_pages_background: u64,
    /// Time after which reclaim and refaults see how long the lists have become, nanoseconds; 0: at once.
    pub counters_ns: u64,
}

/// The kernel counts a group's lists so often where nobody asks for them (mm/memcontrol.c,
/// `FLUSH_TIME`, `flush_memcg_stats_dwork`); `mem_cgroup_flush_stats_ratelimited`, which reclaim and
/// refaults call, does so only when that one is late.
const COUNTERS_NS_MAX: f64 = 2e9;

/// A trace is taken for a run in which the lists are counted so many times.
const COUNTED: f64 = 200.0;

/// How often the lists are counted in the time of a trace that lasted so long, nanoseconds.
///
/// `inactive_is_low` and `workingset_refault` decide by counts (`lruvec_page_state`) that are as old as
/// the last flush, and old counts cost memory: a log with reads of its recent past, run for half a
/// second under 40 MiB, read 28 MiB where somebody read the group's `memory.stat` every 5 ms (each
/// reader flushes) and 41 to 116 MiB where nobody did. Which of these a run gets depends on who
/// watches it and on its phase to the kernel's clock, both unknown; and a short trace is asked about
/// for the sake of longer runs. So counts are 2 s old where that is little of the trace, and a
/// two-hundredth of it elsewhere, as if it were watched.
#[must_use]
pub fn counters_ns(elapsed_s: f64) -> u64 {
    (elapsed_s.max(0.0) * 1e9 / COUNTED).min(COUNTERS_NS_MAX) as u64
}

impl Settings {
    /// Those of the kernel for this much memory.
    #[must_use]
    pub fn new(policy: Policy, memory_pages: u64) -> Self {
        Self {
            policy,
            memory_pages,
            read_ahead_pages: read_ahead::PAGES,
            request_pages: read_ahead::REQUEST_PAGES,
            large_folios: true,
            dirty_pages_background: dirty::background_pages(memory_pages),
            counters_ns: 0,
        }
    }
}

/// What came of it, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Entered the cache.
    pub inserted: u64,
    /// Read from storage into it: misses, read-ahead, rests of partly written pages, mapped pages.
    pub read: u64,
    /// Of these, by touching mappings.
    pub read_mapped: u64,
    /// Written back.
    pub written_back: u64,
    /// Asked for by reads that began where the one before on the same open file ended, and found.
    pub sequential_hits: u64,
    /// Likewise, but not found.
    pub sequential_misses: u64,
    /// Asked for by other reads, and found.
    pub random_hits: u64,
    /// Likewise, but not found.
    pub random_misses: u64,
    /// Bytes read past the cache (`O_DIRECT`).
    pub direct_read_bytes: u64,
    /// Bytes written past the cache.
    pub direct_written_bytes: u64,
}

impl Totals {
    /// Share of the pages asked for by reads that were there; 1 where nothing was.
    #[must_use]
    pub fn hit_fraction(&self) -> f64 {
        let hits = self.sequential_hits + self.random_hits;
        let asked = hits + self.sequential_misses + self.random_misses;
        if asked == 0 { 1.0 } else { hits as f64 / asked as f64 }
    }
}

/// A page cache that is shown the events of a trace.
#[derive(Debug)]
pub struct PageCache {
    settings: Settings,
    memory: Memory,
    files: OpenFiles,
    windows: HashMap<u64, Window>,
    /// Files that take no part: program text that others keep in memory, files without storage.
    outside: HashSet<u32>,
    /// Pages that each thread touched through mappings that are still there: file, page.
    mapped: HashMap<u32, Vec<(u32, u64)>>,
    totals: Totals,
}

impl PageCache {
    /// An empty one.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            memory: Memory::new(&settings),
            settings,
            files: OpenFiles::default(),
            windows: HashMap::new(),
            outside: HashSet::new(),
            mapped: HashMap::new(),
            totals: Totals::default(),
        }
    }

    /// What is simulated.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Says how long a file is at the start, bytes.
    pub fn set_length(&mut self, file: u32, bytes: u64) {
        self.files.set_length(file, bytes);
    }

    /// Says how far the device of a file is read ahead, pages.
    pub fn set_read_ahead(&mut self, file: u32, pages: u64) {
        self.files.set_read_ahead(file, pages);
    }

    /// Leaves a file out: its pages are in memory that is not this.
    pub fn leave_out(&mut self, file: u32) {
        self.outside.insert(file);
    }

    /// Puts the first pages of a file into memory, as they were found there.
    pub fn fill(&mut self, file: u32, pages: u64) {
        for page in 0..pages {
            if self.memory.folio_at(file, page).is_none() {
                self.memory.insert(file, page, 0, memory::Why::Read);
            }
        }
    }

    /// What came of the events so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            inserted: self.memory.inserted(),
            written_back: self.memory.written_back(),
            ..self.totals
        }
    }

    /// Pages read from storage so far.
    #[must_use]
    pub const fn pages_read(&self) -> u64 {
        self.totals.read
    }

    /// Whether a page is in memory.
    #[must_use]
    pub fn holds(&self, file: u32, page: u64) -> bool {
        self.memory.folio_at(file, page).is_some()
    }

    /// Pages in memory.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.memory.used()
    }

    /// The most pages that were in memory at once.
    #[must_use]
    pub const fn held_at_most(&self) -> u64 {
        self.memory.used_at_most()
    }
}

#[cfg(test)]
mod tests;
