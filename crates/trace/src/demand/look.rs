//! The first pass over a trace: what must be known before events are counted.

use std::collections::HashMap;

use super::files::{Files, Home};
use crate::caches::{PAGE_BYTES, Subjects};
use crate::character::pages::PageSet;
use crate::{Event, FileKind, Op, StreamEntry, Tables, TraceInfo};

/// A stretch without a call, of which so much was not spent on a processor, is no work: the stream
/// waited in a call that nobody recorded, ns.
const IDLE_NS: u64 = 1_000_000;

/// When a stream waited outside of recorded calls: from a time on, for so long, ns.
pub(super) type Idle = HashMap<u32, Vec<(u64, u64)>>;

/// Results of the first pass.
pub(super) struct Look {
    pub(super) files: Files,
    pub(super) subjects: Subjects,
    pub(super) idle: Idle,
    /// Pages of data touched.
    pub(super) touched: PageSet,
    /// Pages of data written.
    pub(super) written: PageSet,
    moved: HashMap<(u32, u32), u64>,
    ends: HashMap<u32, (u64, bool)>,
}

impl Look {
    pub(super) fn new(tables: &Tables, info: &TraceInfo) -> Self {
        Self {
            files: Files::new(&tables.files),
            subjects: Subjects::new(&tables.files, info),
            idle: Idle::new(),
            touched: PageSet::default(),
            written: PageSet::default(),
            moved: HashMap::new(),
            ends: HashMap::new(),
        }
    }

    pub(super) fn see(&mut self, event: &Event) {
        self.subjects.see(event);
        self.see_data(event);
        self.see_idle(event);
    }

    fn see_data(&mut self, event: &Event) {
        let moves = matches!(
            event.op,
            Op::Read | Op::Write | Op::Copy | Op::Sendfile | Op::FaultR | Op::FaultW
        );
        if !moves || event.error != 0 || !self.subjects.takes_part(event.file) {
            return;
        }
        if matches!(event.op, Op::FaultR | Op::FaultW) {
            let (first, pages) = self.subjects.touched_by(event);
            self.touched.insert_bytes(event.file, first * PAGE_BYTES, pages * PAGE_BYTES);
        } else {
            self.touched.insert_bytes(event.file, event.offset, event.length);
        }
        if matches!(event.op, Op::Write | Op::FaultW) {
            self.written.insert_bytes(event.file, event.offset, event.length);
        }
        let is_data = self.files.get(event.file).is_some_and(|f| f.kind == FileKind::Regular);
        if is_data && let Some(device) = self.files.device(event.file) {
            *self.moved.entry(device).or_default() += event.length;
        }
    }

    fn see_idle(&mut self, event: &Event) {
        let end = event.start_ns + event.duration_ns.unwrap_or(0);
        if matches!(event.op, Op::FaultR | Op::FaultW) {
            // A wait after it is a wait for its page.
            if let Some((_, faulted)) = self.ends.get_mut(&event.stream) {
                *faulted = true;
            }
            return;
        }
        let before = self.ends.insert(event.stream, (end, false));
        let (Some((from, false)), Some(work_ns)) = (before, event.cpu_gap_ns) else { return };
        let gap_ns = event.start_ns.saturating_sub(from);
        let idle_ns = gap_ns.saturating_sub(work_ns);
        if idle_ns >= IDLE_NS && idle_ns > gap_ns / 2 {
            self.idle.entry(event.stream).or_default().push((from, idle_ns));
        }
    }

    /// A stream that lived on without a call or an end did nothing that is known.
    fn rest(&mut self, streams: &[StreamEntry]) {
        for stream in streams {
            let Some((end_ns, false)) = self.ends.get(&stream.id).copied() else { continue };
            let rest_ns = stream.end_ns.saturating_sub(end_ns);
            if rest_ns >= IDLE_NS {
                self.idle.entry(stream.id).or_default().push((end_ns, rest_ns));
            }
        }
    }

    /// Chooses the device that most bytes were moved to and from, and leaves out what lies elsewhere.
    pub(super) fn finish(&mut self, streams: &[StreamEntry]) {
        self.rest(streams);
        let most = self.moved.iter().max_by_key(|(device, bytes)| (**bytes, **device));
        self.files.set_storage(most.map(|(device, _)| *device));
        for file in self.files.ids() {
            if self.files.home(file) != Home::Storage {
                self.subjects.leave_out(file);
            }
        }
    }
}
