//! Reads through the cache: pages that are waited for, and read-ahead.

use std::ops::Range;

use super::{Run, Slot};
use crate::sim::machine::pages::{Found, PAGE};
use crate::sim::machine::storage::Purpose;

/// The first read-ahead of a stream, pages.
const WINDOW_FIRST: u32 = 4;

/// How far a stream has been read ahead, pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    pub(super) window: u32,
    /// Asking for this page brings the next window.
    pub(super) mark: Option<u32>,
    pub(super) until: u32,
}

impl Run {
    /// Looks at a read's pages one after the other, until one has to be waited for.
    pub(super) fn fetch(&mut self, slot: usize) {
        let Slot { cursor, end, .. } = self.slots[slot];
        for page in cursor..end {
            match self.pages.look(page) {
                Found::Missing => self.read_in(slot, page),
                Found::Reading => {}
                Found::Resident => {
                    let is_hit = self.pages.access(page);
                    self.seen.asked_pages += 1;
                    self.seen.hit_pages += u64::from(is_hit);
                    self.seen.missed_reads += u64::from(!is_hit);
                    self.slots[slot].cursor = page + 1;
                    if self.slots[slot].ahead.mark == Some(page) {
                        let from = self.slots[slot].ahead.until;
                        self.read_in(slot, from);
                    }
                    continue;
                }
            }
            self.readers.push(slot);
            return;
        }
        self.ask_processor(slot);
    }

    /// Reads ahead from a page on: a stream ever more, another read to its own end.
    fn read_in(&mut self, slot: usize, from: u32) {
        let most = (self.spec.cache.read_ahead_bytes / PAGE) as u32;
        let at = &mut self.slots[slot];
        let process = &mut self.processes[at.process];
        let asked = at.end.saturating_sub(from).min(most);
        let (window, limit) = if at.is_stream {
            let doubled = (2 * at.ahead.window).clamp(WINDOW_FIRST.min(most), most);
            (doubled.max(asked), process.pages.end)
        } else {
            (asked, at.end)
        };
        let until = from.saturating_add(window).min(limit);
        let mark = (until > from).then_some(from);
        at.ahead = Ahead { window, mark, until };
        process.ahead = at.ahead;
        let mut page = from;
        while page < until {
            let first = page;
            while page < until && self.pages.look(page) == Found::Missing {
                self.pages.begin_read(page);
                page += 1;
            }
            if page > first {
                let count = page - first;
                self.submit(first, count, Purpose::ReadIn { first, count });
            } else {
                page += 1;
            }
        }
    }

    pub(super) fn has_read(&mut self, pages: Range<u32>) {
        pages.clone().for_each(|page| self.pages.end_read(page));
        if self.is_stopped {
            return;
        }
        let slots = &self.slots;
        let is_waiting = |slot: &mut usize| pages.contains(&slots[*slot].cursor);
        let woken: Vec<usize> = self.readers.extract_if(.., is_waiting).collect();
        for slot in woken {
            self.fetch(slot);
        }
    }
}
