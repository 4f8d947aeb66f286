//! Calls on what is open: bytes, positions, lengths, advice.

use super::table::{OffsetSource, Shape};
use super::{At, Found, Row};
use crate::event::{Event, FileKind, Flags, Op};

/// `POSIX_FADV_WILLNEED`, in `other` of an advice.
const WILL_NEED: u64 = 3;

impl At<'_, '_, '_, '_> {
    pub(super) fn transfer(
        &mut self,
        blank: Event,
        op: Op,
        place: OffsetSource,
        shape: Shape,
    ) -> Found {
        let mut this = self.on(blank, op, 0)?;
        let given = self.arguments().unsigned(3);
        // preadv2 and pwritev2 use the position where the offset is −1.
        let is_given = place == OffsetSource::Given && self.arguments().number(3) != Some(-1);
        this.length = u64::try_from(self.call.result.value().unwrap_or(0)).ok()?;
        if shape == Shape::Buffer {
            let asked = self.arguments().unsigned(2)?;
            this.asked = (asked != this.length).then_some(asked);
        }
        this.offset = if is_given { given? } else { self.position(&mut this) };
        this.length = this.length.min(u64::MAX - this.offset);
        let end = this.offset + this.length;
        if self.call.result.error() == 0 {
            self.ledger.files.reach(this.file, end);
            if !is_given && let Some(open) = self.kernel.processes.opened(this.handle) {
                open.position = end;
            }
        }
        Some(Row::Is(this))
    }

    /// Where the description stands; for a writer that appends, the end of the file.
    fn position(&mut self, this: &mut Event) -> u64 {
        this.flags = this.flags.with(Flags::IMPLICIT_OFFSET);
        let position = self.kernel.processes.opened(this.handle).map_or(0, |open| open.position);
        if this.op == Op::Write && this.flags.has(Flags::APPEND) {
            let end = self.ledger.files.entry(this.file).map_or(0, |entry| entry.last_bytes);
            return end.max(position);
        }
        position
    }

    pub(super) fn seek(&mut self) -> Option<()> {
        let descriptor = self.arguments().descriptor(0)?;
        let Some(place) = self.call.result.value() else { return Some(()) };
        let place = u64::try_from(place).ok()?;
        let handle = self.handle(descriptor);
        let is_end =
            self.arguments().raw(2) == b"SEEK_END" || self.arguments().number(2) == Some(2);
        let is_itself = self.arguments().number(1) == Some(0);
        let file = self.kernel.processes.opened(handle).map(|open| {
            open.position = place;
            open.file
        });
        if let Some(file) = file.filter(|_| is_end && is_itself) {
            self.ledger.files.reach(file, place);
        }
        Some(())
    }

    /// An operation on a range: its offset in the argument `first`, its length behind it.
    pub(super) fn ranged(&mut self, blank: Event, op: Op, first: usize) -> Option<Event> {
        let mut this = self.on(blank, op, 0)?;
        this.offset = self.arguments().unsigned(first)?;
        this.length = self.arguments().unsigned(first + 1)?;
        Some(this)
    }

    pub(super) fn ftruncate(&mut self, blank: Event) -> Found {
        let mut this = self.on(blank, Op::Trunc, 0)?;
        this.offset = self.arguments().unsigned(1)?;
        self.cut(this);
        Some(Row::Is(this))
    }

    /// The file ends where the event says, from now on.
    pub(super) fn cut(&mut self, this: Event) {
        let entry = self.ledger.files.entry(this.file);
        if let Some(entry) = entry.filter(|_| this.error == 0) {
            entry.last_bytes = this.offset;
        }
    }

    pub(super) fn fallocate(&mut self, blank: Event) -> Found {
        let is_punch = self.arguments().has_flag(1, "FALLOC_FL_PUNCH_HOLE", 2);
        let keeps = self.arguments().has_flag(1, "FALLOC_FL_KEEP_SIZE", 1);
        let this = self.ranged(blank, if is_punch { Op::Punch } else { Op::Falloc }, 2)?;
        if this.error == 0 && !is_punch && !keeps {
            self.ledger.files.reach(this.file, this.offset.saturating_add(this.length));
        }
        Some(Row::Is(this))
    }

    pub(super) fn advise(&mut self, blank: Event) -> Found {
        let advice = ["NORMAL", "RANDOM", "SEQUENTIAL", "WILLNEED", "DONTNEED", "NOREUSE"];
        let text = self.arguments().raw(3);
        let named = advice.iter().position(|name| text.ends_with(name.as_bytes()));
        let number = named.map(|at| at as u64).or_else(|| self.arguments().unsigned(3));
        let this = self.ranged(blank, Op::Advise, 1)?;
        Some(Row::Is(Event { other: number.unwrap_or(0), ..this }))
    }

    pub(super) fn readahead(&mut self, blank: Event) -> Found {
        let this = self.ranged(blank, Op::Advise, 1)?;
        Some(Row::Is(Event { other: WILL_NEED, ..this }))
    }

    /// Entries where the tracer counted them.
    pub(super) fn readdir(&mut self, blank: Event) -> Found {
        let mut this = self.on(blank, Op::Readdir, 0)?;
        let text = self.arguments().raw(1);
        let comment = memchr::memmem::find(text, b"/* ").map(|at| &text[at + 3..]);
        this.length = comment.and_then(|text| super::after(text, b"")).unwrap_or(0);
        if let Some(entry) = self.ledger.files.entry(this.file) {
            entry.kind = FileKind::Directory;
        }
        Some(Row::Is(this))
    }

    pub(super) fn copy_range(&mut self, blank: Event) -> Found {
        let length = u64::try_from(self.call.result.value().unwrap_or(0)).ok()?;
        let to = self.on(blank, Op::Copy, 2)?;
        let to_offset = self.indirect(to, 3, length);
        self.ledger.files.reach(to.file, to_offset.saturating_add(length));
        let mut this = self.on(blank, Op::Copy, 0)?;
        this.offset = self.indirect(this, 1, length);
        this.length = length;
        let asked = self.arguments().unsigned(4)?;
        this.asked = (asked != length).then_some(asked);
        this.other = u64::from(to.file);
        Some(Row::Is(this))
    }

    /// From a file to whatever: a copy where that is a file as well.
    pub(super) fn sendfile(&mut self, blank: Event) -> Found {
        let length = u64::try_from(self.call.result.value().unwrap_or(0)).ok()?;
        let to = self.on(blank, Op::Sendfile, 0)?;
        let is_file = |entry: &mut crate::event::FileEntry| entry.kind == FileKind::Regular;
        let is_copy = self.ledger.files.entry(to.file).is_some_and(is_file);
        let mut this = self.on(blank, if is_copy { Op::Copy } else { Op::Sendfile }, 1)?;
        this.offset = self.indirect(this, 2, length);
        this.length = length;
        let asked = self.arguments().unsigned(3)?;
        this.asked = (asked != length).then_some(asked);
        this.other = u64::from(to.file);
        Some(Row::Is(this))
    }

    /// An offset behind a pointer, `[4096]` or `[4096 => 8192]`; the position where that is NULL,
    /// which then moves.
    fn indirect(&mut self, this: Event, index: usize, length: u64) -> u64 {
        let text = self.arguments().raw(index);
        if let Some(text) = text.strip_prefix(b"[") {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            return super::super::scan::decimal(&text[..digits]).unwrap_or(0);
        }
        let Some(open) = self.kernel.processes.opened(this.handle) else { return 0 };
        let position = open.position;
        open.position = position.saturating_add(length);
        position
    }

    /// A file is mapped; memory without a file is no I/O.
    pub(super) fn mmap(&mut self, blank: Event) -> Found {
        let descriptor = self.arguments().descriptor(4)?;
        let is_anonymous = self.arguments().has_flag(3, "MAP_ANONYMOUS", 0x20);
        if descriptor.number < 0 || is_anonymous {
            return Some(Row::Other);
        }
        let mut this = self.on(blank, Op::Mmap, 4)?;
        this.length = self.arguments().unsigned(1)?;
        this.offset = self.arguments().unsigned(5)?;
        let protections: [(&str, i64); 3] = [("PROT_READ", 1), ("PROT_WRITE", 2), ("PROT_EXEC", 4)];
        let set = protections.iter().filter(|(word, bit)| self.arguments().has_flag(2, word, *bit));
        this.other = set.map(|(_, bit)| bit.cast_unsigned()).sum();
        Some(Row::Is(this))
    }
}
