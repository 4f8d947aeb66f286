//! Which file a stream opens, makes, maps or closes next.

use super::{CLOSE, OPEN, Open, PAGE_BYTES, READ, WRITE, Walk, What};
use crate::event::Op;

impl Walk<'_> {
    /// Opens the file of a request that is to come; of two that are opened in a row, the first.
    pub(super) fn open_planned(&mut self, number: usize) {
        if self.streams[number].planned.is_some() {
            return self.open_other(number);
        }
        let is_read = self.bags.sizes[READ].left() > 0;
        let direction = if is_read { READ } else { WRITE };
        let is_left = self.bags.sizes[READ].left() + self.bags.sizes[WRITE].left() > 0;
        let grows = self.ground.regions[direction].grows;
        let file = match (is_left, grows) {
            (false, _) => None,
            (true, true) => self.draw(direction).and_then(|page| self.files.holding(page)),
            (true, false) => self.files.never_opened(direction),
        };
        let file = file.filter(|file| self.files.is_there(*file));
        let Some(file) = file else { return self.open_other(number) };
        // What is opened is read from its start.
        self.streams[number].planned = Some(self.files.get(file).from);
        let open = &mut self.streams[number].open;
        // The new one takes the place of one that is open already.
        if let Some(at) = open.iter().position(|open| open.data == file) {
            let is_closed = self.bags.calls[CLOSE].take(What::Call(Op::Close));
            if is_closed {
                self.close(number, at);
            } else {
                self.streams[number].open.remove(at);
            }
        }
        self.open_by(number, file, Op::Open);
    }

    /// Opens a file that no request is to come of.
    pub(super) fn open_other(&mut self, number: usize) {
        // Where it is open already, requests go on by that handle.
        if let Some(file) = self.some_file() {
            self.open_by(number, file, Op::Open);
        }
    }

    /// Makes the next file that is to be made.
    pub(super) fn create(&mut self, number: usize) {
        let Some(file) = self.files.next_made() else { return };
        self.open_by(number, file, Op::Create);
        if self.bags.sizes[WRITE].left() > 0 {
            self.streams[number].planned = Some(self.files.get(file).from);
        }
    }

    /// The open file to be closed: the one opened last, whichever was written meanwhile; not the file that
    /// all further writes are to go on in.
    pub(super) fn closed_next(&self, number: usize) -> Option<usize> {
        let is_last = self.bags.calls[OPEN].count(What::Call(Op::Create)) == 0
            && self.bags.requests[WRITE] >= 1.0;
        let open = &self.streams[number].open;
        let may_go = |at: &usize| !is_last || self.files.growing(WRITE) != Some(open[*at].data);
        (0..open.len()).filter(may_go).max_by_key(|at| open[*at].handle)
    }

    /// Length of the file that is to be read next, where it is one of many and was read before: a file
    /// that is read whole has one size.
    pub(super) fn planned_length(&self, number: usize, direction: usize) -> Option<u64> {
        if direction != READ || !self.ground.regions[READ].grows {
            return None;
        }
        let file = self.files.holding(self.streams[number].planned?)?;
        let is_read = self.files.get(file).direction == READ && !self.files.is_growing(file);
        is_read.then(|| self.files.length(file)).filter(|bytes| *bytes > 0)
    }

    /// Maps part of a file and touches all of it.
    pub(super) fn map(&mut self, number: usize) {
        let Some(pages) = self.mapped.next() else { return };
        let files = &self.files;
        let planned = self.streams[number].planned.take_if(|page| {
            files.holding(*page).is_some_and(|file| files.get(file).direction == READ)
        });
        let Some(page) = planned.or_else(|| self.draw(READ)) else { return };
        let bytes = pages * PAGE_BYTES;
        let Some((at, offset)) = self.begin_at(number, READ, (page, bytes)) else { return };
        let Open { handle, data: file, .. } = self.streams[number].open[at];
        let (offset, end) = (offset / PAGE_BYTES * PAGE_BYTES, offset + bytes);
        let end = end.min(self.files.length(file));
        if end <= offset {
            return;
        }
        self.files.reach(file, end, READ);
        let data = *self.files.get(file);
        for op in [Op::Mmap, Op::FaultR] {
            let event = self.put(number, op, data.id, if op == Op::Mmap { handle } else { 0 });
            (event.offset, event.length) = (offset, end - offset);
        }
        let [first, next] = [offset / PAGE_BYTES, end.div_ceil(PAGE_BYTES)];
        let [first, next] = [first, next].map(|page| (page as usize).min(data.pages));
        self.mapped.pages -= (next - first) as f64;
        self.places.touch(READ, data.from + first..data.from + next);
        self.mapped.files.push(data.id);
    }
}
