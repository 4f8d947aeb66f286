//! The recorder in the kernel: programs, maps and the ring between them and us.

mod asm;
mod btf;
mod calls;
mod layout;
mod pages;
pub(crate) mod record;
mod ring;
mod routine;
mod system;
mod tree;
mod uring;

use crate::call::{Calls, NUMBERS};
use crate::error::Error;
use btf::Btf;
use layout::Layout;
use record::LONG_BYTES;
use ring::Ring;
use routine::{LOST, Maps, UNFOLLOWED, slot};
use system::{Attached, Map, MapKind, attach};

/// Most threads that are recorded at a time: one for so many bytes of the ring. All tables are as small
/// as the ring, for their memory is that of the recorded program where both live under one limit.
const RING_BYTES_PER_THREAD: u32 = 2048;
/// Most requests of `io_uring` in flight, likewise.
const RING_BYTES_PER_REQUEST: u32 = 1024;
/// No table has fewer entries.
const ENTRIES_MIN: u32 = 1024;

/// Programs that run in the kernel until this is dropped.
#[derive(Debug)]
pub(crate) struct Programs {
    /// First, so that nothing is written any more when the maps go.
    attached: Vec<Attached>,
    maps: Maps,
    ring: Ring,
    /// Sentences about what this kernel does not tell.
    unseen: Vec<&'static str>,
}

impl Programs {
    /// Loads and attaches; the ring takes this many bytes, a power of two.
    pub(crate) fn start(calls: &Calls, ring_bytes: u32) -> Result<Self, Error> {
        let layout = Layout::read(&Btf::of_kernel()?)?;
        let maps = make_maps(ring_bytes)?;
        for (number, call) in calls.all() {
            maps.wanted.store(number as u32, &calls::word(number, call))?;
        }
        let ring = Ring::map(&maps.ring, ring_bytes as usize)?;
        let mut started = Self { attached: Vec::new(), maps, ring, unseen: Vec::new() };
        started.attach_surroundings(&layout)?;
        started.attach("sys_exit", &calls::exit(&started.maps, &layout))?;
        started.attach("sys_enter", &calls::enter(&started.maps, &layout))?;
        Ok(started)
    }

    fn attach(&mut self, tracepoint: &str, code: &[asm::Instruction]) -> Result<(), Error> {
        self.attached.push(attach(tracepoint, code)?);
        Ok(())
    }

    fn attach_surroundings(&mut self, layout: &Layout) -> Result<(), Error> {
        self.attach("sched_process_fork", &tree::fork(&self.maps, layout))?;
        self.attach("sched_process_exec", &tree::exec(&self.maps, layout))?;
        self.attach("sched_process_exit", &tree::exit(&self.maps, layout))?;
        self.attach("sched_switch", &tree::switch(&self.maps, layout))?;
        let seen = match layout.pages {
            None => false,
            Some(pages) => {
                let maps = &self.maps;
                let programs = [
                    ("mm_filemap_add_to_page_cache", pages::inserted(maps, layout, pages)),
                    ("mm_filemap_fault", pages::fault(maps, layout, pages)),
                    ("mm_filemap_map_pages", pages::mapped(maps, layout, pages)),
                    ("writeback_dirty_folio", pages::dirtied(maps, layout, pages)),
                ];
                programs.iter().all(|(name, code)| self.attach(name, code).is_ok())
            }
        };
        if !seen {
            self.unseen.push("this kernel does not tell of mapped pages and the page cache");
        }
        let seen = layout.uring.is_some_and(|uring| {
            let submitted = uring::submitted(&self.maps, layout, uring);
            let completed = uring::completed(&self.maps, layout, uring);
            self.attach("io_uring_complete", &completed).is_ok()
                && self.attach("io_uring_submit_req", &submitted).is_ok()
        });
        if !seen {
            self.unseen.push("this kernel does not tell of requests of io_uring");
        }
        Ok(())
    }

    /// Records a thread from now on.
    pub(crate) fn follow(&self, thread: u32, now_ns: u64) -> Result<(), Error> {
        let mut fresh = [0_u64; slot::BYTES as usize / 8];
        fresh[slot::LAST_END as usize / 8] = now_ns;
        fresh[slot::BEGAN as usize / 8] = now_ns;
        self.maps.threads.store(thread, &fresh)
    }

    /// Records a thread no more.
    pub(crate) fn forget(&self, thread: u32) {
        self.maps.threads.remove(thread);
    }

    /// Hands over every record that has arrived; how many there were.
    pub(crate) fn drain<E>(
        &mut self,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.ring.drain(take)
    }

    /// Nothing more is written; what is in the ring stays to be drained.
    pub(crate) fn stop(&mut self) {
        self.attached.clear();
    }

    /// Records for which the ring had no room.
    pub(crate) fn lost(&self) -> u64 {
        self.maps.counts.number(LOST as u32)
    }

    /// Threads that could not be followed, for there were too many.
    pub(crate) fn unfollowed(&self) -> u64 {
        self.maps.counts.number(UNFOLLOWED as u32)
    }

    /// Sentences about what this kernel does not tell.
    pub(crate) fn unseen(&self) -> &[&'static str] {
        &self.unseen
    }
}

fn make_maps(ring_bytes: u32) -> Result<Maps, Error> {
    let entries = |ring_bytes_each: u32| (ring_bytes / ring_bytes_each).max(ENTRIES_MIN);
    let (threads, requests) = (entries(RING_BYTES_PER_THREAD), entries(RING_BYTES_PER_REQUEST));
    Ok(Maps {
        threads: Map::create(MapKind::Hash, (4, slot::BYTES as u32), threads)?,
        wanted: Map::create(MapKind::Array, (4, 4), NUMBERS)?,
        scratch: Map::create(MapKind::PerProcessor, (4, LONG_BYTES as u32), 1)?,
        ring: Map::create(MapKind::Ring, (0, 0), ring_bytes)?,
        counts: Map::create(MapKind::Array, (4, 8), 2)?,
        requests: Map::create(MapKind::Hash, (8, uring::REQUEST_BYTES), requests)?,
    })
}
