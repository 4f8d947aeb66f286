//! Cold visits that stay cold. What a workload brings into the page cache would soon answer it: a
//! thread drops the pages of its files again before more than a few in a hundred are there, at a pace
//! that follows from how fast they come. Needs no privilege.
//!
//! Pages just ahead of a sequential stream stay, for read-ahead is what a reader of a cold file gets.
//! Dirty pages cannot be dropped: to drop them starts their write-back, and they go once that is
//! done. Where requests write faster than storage takes it, what is dirty stays.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use ioscape_model::{Access, Code, State, Warning, Words, Workload};
use rustix::fs::Advice;
use rustix::time::{ClockId, clock_gettime};

use super::places::{Part, place_of_file, shares};
use crate::cachestat::counted;
use crate::clock::{Clock, fine_timers};
use crate::device_counter::DeviceCounter;
use crate::worker::{Published, Worker};

/// Pages are dropped when this share of the data is resident.
const DROP_SHARE: f64 = 0.04;
/// It is looked again when this part of the way to there may be gone …
const LOOK_SHARE: f64 = 0.5;
/// … but not sooner or later than this.
const LOOK_MIN_NS: u64 = 200_000;
const LOOK_MAX_NS: u64 = 20_000_000;
/// Where dropping did not help, it is tried again after this.
const AGAIN_NS: u64 = 5_000_000;
/// Before the workers, where processors are short.
const DROPPER_NICE: i32 = -10;
/// Kept ahead of each stream, at most this share of its data.
const AHEAD_SHARE_MAX: f64 = 0.02;
/// The device delivered at least this share of what was read, or something else answered.
const DELIVERED_MIN: f64 = 0.9;
/// Less than this was read by chance.
const READ_MIN_BYTES: u64 = 4 << 20;

/// Keeps a visit cold, from the start of its workers to their end.
pub(super) struct Cold {
    over: Arc<AtomicBool>,
    cpu_ns: Arc<AtomicU64>,
    cpu_told_ns: u64,
    thread: Option<JoinHandle<()>>,
    device_before_bytes: Option<u64>,
}

/// The thread's own.
struct Dropper {
    files: Vec<Held>,
    span_bytes: f64,
    /// Kept ahead of each stream, bytes; 0 where there is none.
    ahead_bytes: u64,
    clock: Clock,
    over: Arc<AtomicBool>,
    cpu_ns: Arc<AtomicU64>,
}

/// A file, and who uses it.
struct Held {
    file: File,
    length: u64,
    users: Vec<Arc<Published>>,
}

/// How much was there, and when.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    held_bytes: f64,
}

impl Cold {
    /// Begins to keep the files of a cold workload out of the cache; nothing to do for others.
    pub(super) fn begin(
        work: &Workload,
        (files, workers, part): (&[File], &[Worker], Part),
        read_ahead_bytes: u64,
        (clock, device): (Clock, Option<&DeviceCounter>),
    ) -> std::io::Result<Option<Self>> {
        if work.state != State::Cold || work.access == Access::Direct {
            return Ok(None);
        }
        let (over, cpu_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut held = Vec::new();
        let mut span_bytes = 0;
        for (number, (file, (_, length))) in files.iter().zip(shares(work, part)).enumerate() {
            span_bytes += length;
            let uses = |(index, _): &(usize, &Worker)| place_of_file(work, *index) == number;
            let users = (0..).zip(workers).filter(uses).map(|(_, w)| Arc::clone(&w.published));
            held.push(Held { file: file.try_clone()?, length, users: users.collect() });
        }
        let ahead_max = AHEAD_SHARE_MAX * work.share_bytes() as f64;
        let dropper = Dropper {
            files: held,
            span_bytes: span_bytes as f64,
            ahead_bytes: if work.seq_frac > 0.0 {
                read_ahead_bytes.min(ahead_max as u64)
            } else {
                0
            },
            clock,
            over: Arc::clone(&over),
            cpu_ns: Arc::clone(&cpu_ns),
        };
        let name = std::thread::Builder::new().name("ioscape-cold".into());
        let thread = Some(name.spawn(move || dropper.keep_cold())?);
        let device_before_bytes = device.and_then(DeviceCounter::read_bytes);
        Ok(Some(Self { over, cpu_ns, cpu_told_ns: 0, thread, device_before_bytes }))
    }

    /// Processor time that dropping took since this was asked last, seconds: none of the workload's.
    pub(super) fn cpu_s(&mut self) -> f64 {
        let now_ns = self.cpu_ns.load(Ordering::Relaxed);
        let since_ns = now_ns - std::mem::replace(&mut self.cpu_told_ns, now_ns);
        since_ns as f64 * 1e-9
    }

    /// Why the visit was not cold, at its end: the workers, which are done, read `read_bytes`.
    pub(super) fn doubt(self, read_bytes: u64, device: Option<&DeviceCounter>) -> Option<Warning> {
        let delivered_bytes = device?.read_bytes()?.saturating_sub(self.device_before_bytes?);
        doubt(read_bytes, delivered_bytes)
    }
}

impl Drop for Cold {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok(); // it only drops pages: nothing is lost with it
        }
    }
}

impl Dropper {
    fn keep_cold(&self) {
        fine_timers();
        // A busy machine must not let the cache fill meanwhile. Not everybody may have this.
        rustix::process::setpriority_process(None, DROPPER_NICE).ok();
        let drop_bytes = DROP_SHARE * self.span_bytes;
        let mut told_bytes = self.told_bytes();
        let mut since = self.look(told_bytes);
        while !self.over.load(Ordering::Relaxed) {
            let now = self.look(told_bytes);
            let wait_ns = if now.held_bytes < drop_bytes {
                next_look_ns(since, now, drop_bytes)
            } else {
                self.files.iter().for_each(|held| held.forget(self.ahead_bytes));
                told_bytes = self.told_bytes();
                since = self.look(told_bytes);
                if since.held_bytes < drop_bytes { LOOK_MIN_NS } else { AGAIN_NS }
            };
            self.cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
            self.clock.sleep_until(self.clock.now_ns() + wait_ns);
        }
    }

    /// How much of the files is in the cache; where the kernel cannot say so quickly, as much as was moved
    /// since `told_bytes`.
    fn look(&self, told_bytes: u64) -> Look {
        let here = |held: &Held| Some(counted(&held.file, 0..held.length)?.resident_bytes);
        let held_bytes: Option<u64> = self.files.iter().map(here).sum();
        let moved_bytes = || self.told_bytes() - told_bytes;
        let at_ns = self.clock.now_ns();
        Look { at_ns, held_bytes: held_bytes.unwrap_or_else(moved_bytes) as f64 }
    }

    /// Read and written by the workers so far.
    fn told_bytes(&self) -> u64 {
        let users = self.files.iter().flat_map(|held| &held.users);
        users.map(|user| user.counts().iter().map(|class| class.bytes).sum::<u64>()).sum()
    }
}

impl Held {
    /// Drops all pages but those just ahead of a stream. Those that are dirty stay for now.
    fn forget(&self, ahead_bytes: u64) {
        let mut ahead: Vec<u64> = self.users.iter().map(|user| user.position()).collect();
        ahead.sort_unstable();
        let mut from = 0;
        for position in ahead.into_iter().filter(|_| ahead_bytes > 0) {
            self.forget_range(from, position);
            from = from.max(position + ahead_bytes);
        }
        self.forget_range(from, self.length);
    }

    fn forget_range(&self, from: u64, to: u64) {
        let length = std::num::NonZeroU64::new(to.saturating_sub(from));
        if length.is_some() {
            // What cannot be dropped is seen as resident.
            rustix::fs::fadvise(&self.file, from, length, Advice::DontNeed).ok();
        }
    }
}

/// How long until so much may be there that it is worth a look.
fn next_look_ns(since: Look, now: Look, drop_bytes: f64) -> u64 {
    let grown_bytes = now.held_bytes - since.held_bytes;
    let passed_ns = now.at_ns.saturating_sub(since.at_ns) as f64;
    if grown_bytes <= 0.0 {
        return LOOK_MAX_NS;
    }
    let left_ns = (drop_bytes - now.held_bytes) / grown_bytes * passed_ns;
    ((LOOK_SHARE * left_ns) as u64).clamp(LOOK_MIN_NS, LOOK_MAX_NS)
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Read by the workload, and delivered by the device's own count, for all who read from it: less is
/// not cold.
fn doubt(read_bytes: u64, delivered_bytes: u64) -> Option<Warning> {
    let is_cold = delivered_bytes as f64 >= DELIVERED_MIN * read_bytes as f64;
    if is_cold || read_bytes < READ_MIN_BYTES {
        return None;
    }
    let text = Words::new(
        "state=cold was asked for, and the device counted {delivered_bytes} of the {read_bytes} \
         that were read: a cache answered the rest",
    )
    .figure("delivered_bytes", delivered_bytes as f64)
    .figure("read_bytes", read_bytes as f64);
    let remedy =
        "take more unique_bytes, fewer writes, or access=direct, which no page cache answers";
    Some(Warning::new(Code::CacheState, text, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_look_comes_before_the_cache_has_filled() {
        let look = |at_ns, held: u64| Look { at_ns, held_bytes: (held * MIB) as f64 };
        let drop_bytes = (40 * MIB) as f64;
        // 10 MiB in 4 ms: the other 30 take 12 ms.
        assert_eq!(next_look_ns(look(0, 0), look(4_000_000, 10), drop_bytes), 6_000_000);
        assert_eq!(next_look_ns(look(0, 0), look(4_000_000, 0), drop_bytes), LOOK_MAX_NS);
        assert_eq!(next_look_ns(look(0, 0), look(100_000, 39), drop_bytes), LOOK_MIN_NS);
    }

    #[test]
    fn what_the_device_did_not_deliver_was_not_cold() {
        assert_eq!(doubt(500 * MIB, 520 * MIB), None);
        assert_eq!(doubt(MIB, 0), None, "by chance");
        let Warning { text, figures, .. } = doubt(500 * MIB, 100 * MIB).unwrap();
        assert!(text.contains("counted 100 MiB of the 500 MiB"), "{text}");
        let figures = ["delivered_bytes", "read_bytes"].map(|name| figures[name] as u64);
        assert_eq!(figures, [100 * MIB, 500 * MIB]);
    }
}
