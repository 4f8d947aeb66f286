//! Getting a directory ready for a workload: files laid out, earlier dirty data written back, the
//! page cache in the state that was asked for.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::Ordering;

use ioscape_model::{Access, Code, Layout, Severity, State, Warning, Words, Workload};

use super::{FileRig, place, shares};
use crate::cachestat::{CacheStat, Pieces, drop_cache, is_resident, read_in, resident};
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::files::{self, BLOCK_BYTES, OpenAccess};
use crate::memory_limit;

/// Dirty data above this share of the limit is written back before a point starts.
const DIRTY_SHARE: f64 = 0.01;
/// Pages that stay when they are to go, because they are being written back, are tried again after so
/// long, nanoseconds.
const DROP_AGAIN_NS: u64 = 100_000_000;
/// All files of a visit together get so much time for it, nanoseconds.
const DROPS_MAX_NS: u64 = 1_000_000_000;
/// Other files' pages are dropped when, with them, this share of the cache would be used.
const CROWDED_SHARE: f64 = 0.9;
/// What is resident already counts as warm at this share of what could be.
const WARM_SHARE: f64 = 0.97;
/// Part of a warm share that is streamed in; the rest comes in single pages. A cache in use by
/// mixed workloads was found to be two thirds single pages and a sixth large folios; other shares
/// were tried (`docs/experiments.md`).
const STREAMED_SHARE: f64 = 0.25;
/// The cache is not emptied to be filled anew where that would take longer.
const REFILL_MAX_S: f64 = 3.0;
/// Pages ahead of a loop are dropped as far as storage moves in this time, seconds: twice a visit of a `run`. Longer visits
/// of a `measure` may meet old pages after that.
const LOOP_REACH_S: f64 = 10.0;
/// Several processes share the page cache unevenly while they touch together less than this many times its bytes:
/// some of them keep all of their data cached (`docs/experiments.md`, "Does a full cache get shared evenly?").
const UNEVEN_UP_TO: f64 = 1.58;
/// Files that were broken up stay so where laying them out anew would take longer.
const MEND_MAX_S: f64 = 3.0;
/// They stay so, too, where that would take more than one part in so many of what may still be written. A choice.
const MEND_SHARE: u64 = 4;
/// Reading in or writing out more than this says how fast that is.
const TELLS_RATE_BYTES: u64 = 16 << 20;

/// What the kernel said, where it was that there is no room.
fn no_room(error: &Error) -> Option<String> {
    let Error::Path { source, .. } = error else { return None };
    let is_room = matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
    is_room.then(|| source.to_string())
}

/// True if a visit puts the workload's data into the page cache before it makes requests.
fn is_warm(work: &Workload) -> bool {
    work.state == State::Warm && work.access == Access::Buffered
}

/// The larger of two rates, or the one that is known.
fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

/// That files stay in small pieces. `why` ends the sentence; placeholders in it are the caller's to fill.
fn stay_broken(bytes: u64, why: &str) -> Words {
    Words::new(format!(
        "{{broken_bytes}} of the files are in small pieces since earlier points, and stay so: {why}"
    ))
    .figure("broken_bytes", bytes as f64)
}

/// The warning about files that stay in small pieces.
fn left_broken(text: Words) -> Warning {
    let remedy = "compare only with points that say the same; a smaller --unique-max or more free \
                  space lets `run` lay them out anew";
    Warning::new(Code::CopyOnWrite, text, remedy).with_severity(Severity::Note)
}

impl FileRig {
    /// The workload as it is run here: on a device every process has a range of its own, as it
    /// would have a file of its own in a directory.
    pub(super) fn on_ground(&self, work: &Workload) -> Result<Workload> {
        let mut work = work.clone();
        if self.ground.directory().is_some() {
            return Ok(work);
        }
        let path = self.ground.path().display();
        if work.read_frac < 1.0 && self.ground.is_read_only() {
            let read_frac = work.read_frac;
            let remedy = if self.ground.is_in_use() {
                "leave --read-only out and name a directory, so that files are made for it".into()
            } else {
                format!("let all that is on it be overwritten by --destroy {path}")
            };
            return Err(Error::Refused(format!(
                "{path} is only read, but read_frac={read_frac} writes too: ask for read_frac=1, \
                 or {remedy}"
            )));
        }
        if work.access == Access::Buffered && self.ground.is_in_use() {
            return Err(Error::Refused(format!(
                "{path} is somebody's file, whose pages in memory stay as they are: ask for \
                 access=direct, which reads past them"
            )));
        }
        work.layout = Layout::Shared;
        Ok(work)
    }

    /// What is missing of the files, bytes.
    pub(super) fn missing_bytes(&self, shares: &[(usize, u64)]) -> u64 {
        let missing = |(number, length): &(usize, u64)| {
            length.next_multiple_of(BLOCK_BYTES).saturating_sub(self.files.length(*number))
        };
        shares.iter().map(missing).sum()
    }

    /// Lays out what is missing. It leaves the page cache again: pages that were written are kept
    /// in larger pieces and higher esteem by the kernel than pages that were read.
    pub(super) fn lay_out(&mut self, number: usize, length: u64) -> Result<()> {
        let laid_out = self.files.length(number);
        let began_s = self.clock.now_s();
        self.files.get(number, length)?;
        let range = laid_out..self.files.length(number);
        if range.is_empty() || self.ground.is_memory() || self.ground.is_read_only() {
            return Ok(());
        }
        self.learn_layout_rate(range.end - range.start, began_s);
        self.forget(number, range)
    }

    /// Keeps the best rate: one disturbance must not decide how all later visits find their files.
    /// What is written out in less than a moment says little.
    fn learn_layout_rate(&mut self, bytes: u64, began_s: f64) {
        if bytes >= TELLS_RATE_BYTES {
            let rate = bytes as f64 / (self.clock.now_s() - began_s).max(1e-6);
            self.laid_out_bytes_per_s =
                self.laid_out_bytes_per_s.map(|best| best.max(rate)).or(Some(rate));
        }
    }

    /// Drops a part of a file from the page cache.
    fn forget(&mut self, number: usize, range: Range<u64>) -> Result<()> {
        let file = self.files.open_again(number, OpenAccess::Buffered)?;
        drop_cache(&file, range.clone())
            .map_err(|error| Error::path("drop the cache of", self.files.path(number), error))?;
        let filled_bytes = self.filled_bytes.get_mut(number);
        if let Some(filled_bytes) = filled_bytes.filter(|filled| **filled > range.start) {
            *filled_bytes = 0;
        }
        Ok(())
    }

    /// True of a workload that only reads, and reads storage: it is faster from files in large pieces. A workload that
    /// writes breaks its files up by itself, where the filesystem never writes in place.
    pub(super) fn needs_whole_files(&self, work: &Workload) -> bool {
        let is_cached = is_warm(work) && work.unique_bytes <= self.cache_bytes();
        work.read_frac >= 1.0 && !is_cached
    }

    /// Lays out anew what earlier points broke up on storage, as filesystems do that never write in
    /// place: a visit that only reads finds the same files whatever was run before it. Says so where it
    /// does not, because that would take long.
    pub(super) fn mend(&mut self, shares: &[(usize, u64)]) -> Result<Option<Warning>> {
        // Blocks that are to be recognised have to stay what the requests made of them.
        if self.ground.is_memory() || self.ground.directory().is_none() || self.ledgers.is_some() {
            return Ok(None);
        }
        let is_broken = |share: &&(usize, u64)| self.files.is_broken_up(share.0, share.1);
        let broken: Vec<(usize, u64)> = shares.iter().filter(is_broken).copied().collect();
        if broken.is_empty() {
            return Ok(None);
        }
        let bytes: u64 = broken.iter().map(|(_, length)| length).sum();
        let rate = larger(self.laid_out_bytes_per_s, self.hints.layout_bytes_per_s);
        let expected_s = rate.map_or(0.0, |rate| bytes as f64 / rate);
        if expected_s > MEND_MAX_S {
            let text = stay_broken(bytes, "laying them out anew would take {anew_s}");
            return Ok(Some(left_broken(text.figure("anew_s", expected_s))));
        }
        if bytes > self.left_at_rest_bytes() / MEND_SHARE {
            let why = "there is too little left of --max-written to lay them out anew";
            return Ok(Some(left_broken(stay_broken(bytes, why))));
        }
        let began_s = self.clock.now_s();
        for (number, length) in broken {
            let written = self.files.lay_out_again(number, length);
            if let Some(why) = written.as_ref().err().and_then(no_room) {
                self.forget(number, 0..length)?;
                self.write_back()?;
                return Ok(Some(left_broken(stay_broken(bytes, "{why}").name("why", why))));
            }
            written?;
            self.forget(number, 0..length)?;
        }
        self.learn_layout_rate(bytes, began_s);
        // What held the pieces is given back now, not while the workload runs.
        self.write_back()?;
        Ok(None)
    }

    /// Writes back what earlier points left dirty; says so when that does not help.
    pub(super) fn quiesce(&mut self) -> Result<Option<Warning>> {
        if self.ground.is_memory() || self.ground.is_in_use() {
            return Ok(None);
        }
        let allowed_bytes = (self.dirty_limit_bytes as f64 * DIRTY_SHARE) as u64;
        let dirty_bytes = |counters: &Counters| {
            counters.dirty().map_or(0, |dirty| dirty.dirty_bytes + dirty.writeback_bytes)
        };
        if dirty_bytes(&self.counters) <= allowed_bytes {
            return Ok(None);
        }
        self.write_back()?;
        let left_bytes = dirty_bytes(&self.counters);
        // What is left is not ours: other filesystems of the machine are being written.
        if left_bytes <= allowed_bytes.saturating_mul(10) {
            return Ok(None);
        }
        let text = Words::new(
            "{left_bytes} were dirty at the start although this filesystem was written back",
        )
        .figure("left_bytes", left_bytes as f64);
        let remedy = "others are writing on this machine: run again when it is quiet";
        Ok(Some(Warning::new(Code::DirtyAtStart, text, remedy)))
    }

    /// Another run that is at work here. A directory that cannot be listed any more says nothing.
    pub(super) fn neighbours(&self) -> Option<Warning> {
        files::neighbours(self.ground.directory()?, self.files.run()).ok()?
    }

    /// Memory that is being swapped is too small for what runs on this machine.
    pub(super) fn swapping(&mut self) -> Option<Warning> {
        let swapped = self.counters.swapped()?;
        let before = self.swapped.replace(swapped)?;
        let moved = swapped.since(&before);
        let pages = moved.pages_in + moved.pages_out;
        (pages > 0).then(|| {
            let text = Words::new("the machine swapped {pages} pages since the previous point")
                .figure("pages", pages as f64);
            let remedy =
                "free memory, or raise --memory-limit: the page cache is not what it seems";
            Warning::new(Code::Swapping, text, remedy)
        })
    }

    /// A memory limit that somebody took away while it was relied on.
    pub(super) fn limit_lost(&self) -> Option<Warning> {
        let text = memory_limit::lost(self.memory_limit_set_bytes?)?;
        let remedy = "see what changes control groups on this machine, and run again";
        Some(Warning::new(Code::Throttled, text, remedy).with_severity(Severity::Serious))
    }

    /// Makes room: pages that this workload does not touch leave the cache where it would
    /// otherwise be crowded.
    pub(super) fn clear_others(&mut self, shares: &[(usize, u64)]) -> Result<()> {
        if self.ground.is_in_use() {
            return Ok(());
        }
        let wanted: u64 = shares.iter().map(|(_, length)| length).sum();
        let used = |number: usize| {
            shares.iter().find(|(used, _)| *used == number).map_or(0, |(_, length)| *length)
        };
        let mut others = Vec::new();
        let mut crowd_bytes = wanted;
        self.filled_bytes.resize(self.files.count(), 0);
        for number in 0..self.files.count() {
            let (from, to) = (used(number), self.files.length(number));
            if from < to {
                let file = self.files.open_again(number, OpenAccess::Buffered)?;
                crowd_bytes += resident(&file, from..to).map_or(to - from, |c| c.resident_bytes);
                others.push((number, from..to));
            }
        }
        if (crowd_bytes as f64) < CROWDED_SHARE * self.cache_bytes() as f64 {
            return Ok(());
        }
        for (number, range) in others {
            self.forget(number, range)?;
        }
        Ok(())
    }

    /// Warm: what fits is read in, front to back, and nothing for loops over more. Cold: nothing stays.
    pub(super) fn bring_into_state(
        &mut self,
        work: &Workload,
        shares: &[(usize, u64)],
    ) -> Result<()> {
        if self.ground.is_in_use() {
            return Ok(());
        }
        if self.is_loop_over_more(work) {
            return self.clear_ahead(work);
        }
        let dropped_by_ns = self.clock.now_ns() + DROPS_MAX_NS;
        for (number, length) in shares {
            let file = self.files.open_again(*number, OpenAccess::Buffered)?;
            if work.state == State::Cold || work.access == Access::Direct {
                let path = self.files.path(*number);
                self.filled_bytes.clear();
                let drop_pages = || {
                    drop_cache(&file, 0..*length)
                        .map_err(|error| Error::path("drop the cache of", &path, error))
                };
                let mut left = drop_pages()?;
                // Pages that are being written back stay for a moment.
                let are_many = |left: CacheStat| left.resident_bytes > length / 100;
                while work.state == State::Cold
                    && !self.ground.is_memory()
                    && left.is_some_and(are_many)
                    && self.clock.now_ns() < dropped_by_ns
                {
                    if self.interrupt.load(Ordering::Relaxed) {
                        return Err(Error::Interrupted);
                    }
                    self.clock.sleep_until(self.clock.now_ns() + DROP_AGAIN_NS);
                    left = drop_pages()?;
                }
                // What stays for longer is judged by what the visit finds: only a filesystem that
                // keeps everything is refused.
                let keeps_all = |left: CacheStat| left.resident_bytes > length - length / 10;
                if work.state == State::Cold && left.is_some_and(keeps_all) {
                    return Err(Error::Refused(format!(
                        "state=cold: {} stays in memory, this filesystem cannot be made cold; \
                         leave the key out",
                        path.display()
                    )));
                }
                continue;
            }
            let (fits, cached) = self.room_and_held(&file, *length, shares.len());
            // Whatever part of a larger share is resident is as good as its beginning. Not with
            // several: the process whose share is all cached outruns the others, and with that
            // keeps its pages from them.
            let is_alone = shares.len() == 1;
            if fits < *length && is_alone && cached as f64 >= WARM_SHARE * fits as f64 {
                continue;
            }
            if fits < *length && !is_alone {
                self.drop_share(*number, *length)?;
            }
            self.fill(*number, fits)?;
        }
        let is_all_cached = shares.iter().all(|(number, length)| {
            self.filled_bytes.get(*number).is_some_and(|filled| filled == length)
        });
        if !is_all_cached {
            // Pages will come and go, in whatever pieces the kernel likes.
            self.filled_bytes.clear();
        }
        Ok(())
    }

    /// True if each process here goes through its data in order, again and again, and the kernel keeps the data of none
    /// of them cached: together they touch more bytes than the page cache holds (several, `UNEVEN_UP_TO` times as many).
    fn is_loop_over_more(&self, work: &Workload) -> bool {
        let processes = self.part.workers(work).count();
        let touched_bytes = work.share_bytes() as f64 * processes as f64;
        let over = if processes > 1 { UNEVEN_UP_TO } else { 1.0 };
        is_warm(work) && work.seq_frac >= 1.0 && touched_bytes > over * self.cache_bytes() as f64
    }

    /// Drops pages that earlier visits left ahead of loops over more than the cache holds. A loop would meet these pages once and never
    /// again: the kernel gives up first the pages that were used longest ago, which are those that a loop asks for
    /// next.
    fn clear_ahead(&mut self, work: &Workload) -> Result<()> {
        let rate = larger(self.read_in_bytes_per_s, self.hints.layout_bytes_per_s);
        let reach_bytes = rate.map_or(u64::MAX, |rate| (rate * LOOP_REACH_S) as u64);
        for worker in self.part.workers(work) {
            let (number, base) = place(work, worker);
            self.forget(number, base..base + work.share_bytes().min(reach_bytes))?;
        }
        self.filled_bytes.clear();
        Ok(())
    }

    /// Drops the beginning of a file from the cache, where reading it in again is quick; says
    /// whether it was.
    fn drop_share(&mut self, number: usize, length: u64) -> Result<bool> {
        let rate = self.read_in_bytes_per_s.or(self.hints.layout_bytes_per_s);
        let expected_s = rate.map_or(0.0, |rate| length.min(self.cache_bytes()) as f64 / rate);
        if expected_s > REFILL_MAX_S || self.ground.is_memory() {
            return Ok(false);
        }
        self.forget(number, 0..length)?;
        Ok(true)
    }

    /// Fills the cache with the beginning of a file: a part of it streamed, the rest in single
    /// pages. Pages that came otherwise are dropped first, so that a visit finds the same cache
    /// whatever was run before it.
    fn fill(&mut self, number: usize, length: u64) -> Result<()> {
        let file = self.files.open_again(number, OpenAccess::Buffered)?;
        self.filled_bytes.resize(self.files.count(), 0);
        let is_filled = self.filled_bytes[number] == length;
        if is_filled && is_resident(&file, 0..length) {
            return Ok(());
        }
        let is_empty = self.drop_share(number, length)?;
        if is_empty {
            self.filled_bytes[number] = length;
        }
        let began_s = self.clock.now_s();
        let read_bytes = self.read_in_pieces(&file, length)?;
        // What was resident already would make storage look fast.
        if is_empty && read_bytes >= TELLS_RATE_BYTES {
            let took_s = (self.clock.now_s() - began_s).max(1e-6);
            self.read_in_bytes_per_s = Some(read_bytes as f64 / took_s);
        }
        Ok(())
    }

    /// Bytes of a file that the cache has room for, where so many files share it, and bytes that it holds.
    fn room_and_held(&self, file: &File, length: u64, files: usize) -> (u64, u64) {
        let held = resident(file, 0..length).map_or(0, |cached| cached.resident_bytes);
        (length.min(self.cache_bytes() / files as u64), held)
    }

    fn read_in_pieces(&self, file: &File, length: u64) -> Result<u64> {
        let streamed_bytes = (length as f64 * STREAMED_SHARE) as u64 & !0xFFF;
        // The stream comes last: its read-ahead then ends where the single pages begin.
        let pages = read_in(file, streamed_bytes..length, Pieces::Pages, &self.interrupt)?;
        Ok(pages + read_in(file, 0..streamed_bytes, Pieces::Stream, &self.interrupt)?)
    }

    /// Fills the cache once more, now that all descriptors of a visit are open: a filesystem of FUSE
    /// drops the pages of a file whenever it is opened, unless its server asks to keep them.
    pub(super) fn fill_again(&self, work: &Workload, files: &[File]) -> Result<()> {
        let is_fuse =
            self.ground.directory().is_some_and(|one| one.filesystem().starts_with("fuse"));
        if !is_fuse || !is_warm(work) || self.is_loop_over_more(work) {
            return Ok(());
        }
        let shares = shares(work, self.part);
        for (file, (_, length)) in files.iter().zip(&shares) {
            let (fits, cached) = self.room_and_held(file, *length, shares.len());
            if (cached as f64) < WARM_SHARE * fits as f64 {
                self.read_in_pieces(file, fits)?;
            }
        }
        Ok(())
    }
}
