//! A simulated device that is a mechanism and not a law: pages that come and go, requests that
//! wait, processors that copy. Throughput is what becomes of it, so a method that predicts it has
//! not been told its form.
//!
//! Every request is made, in a time of its own; each process asks for what it would ask a file.
//! Simplified: a write of a part of a page does not read the rest; dirty pages stay for as long as
//! there are few; storage takes requests in their order.
//!
//! | file | holds |
//! |---|---|
//! | `pages` | the page cache |
//! | `storage` | the queue of requests and what they take |
//! | `run` | events: processes, processors; `run/reading`, `run/writing` what waits for pages |

mod pages;
mod run;
mod storage;

use hdrhistogram::Histogram;
use ioscape_model::units::MIB;
use ioscape_model::{Access, Hints, Spent, State, Workload};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use self::pages::PAGE;
use self::run::{Run, Setting, WindowCounts};
use super::files::{Files, stretch_s};
use super::noise::{NoiseStream, visit_seed};
use super::spec::{Machine, Noise, SimSpec};
use crate::error::{Error, Result};
use crate::rig::{Finished, Prepared, Rig, Window};

/// A machine, its files and its clock.
#[derive(Debug)]
pub(super) struct MachineRig {
    machine: Machine,
    files: Files,
    room_bytes: u64,
    sync_s: f64,
    noise: Noise,
    counters: bool,
    seed: u64,
    now_s: f64,
    /// What of the files the latest visit left in the cache.
    resident_bytes: u64,
    /// Until all that is dirty has been written.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    run: Run,
    noise: NoiseStream,
    rng: Xoshiro256PlusPlus,
    work: Workload,
}

impl MachineRig {
    pub(super) fn new(spec: &SimSpec, machine: Machine, seed: u64) -> Self {
        let sync_us = spec.sync_us.unwrap_or(machine.storage.write.fixed_us);
        Self {
            files: Files::new(spec),
            room_bytes: spec.room(),
            sync_s: sync_us * 1e-6,
            noise: spec.noise,
            counters: spec.counters,
            seed,
            now_s: 0.0,
            resident_bytes: 0,
            running: None,
            machine,
        }
    }

    /// Writes what is dirty; the seconds that takes.
    fn drain(&mut self) -> f64 {
        let Some(mut running) = self.running.take() else { return 0.0 };
        let drained_s = running.run.drain();
        self.files.written_bytes += running.run.storage.written_bytes;
        drained_s
    }

    /// Seen in a window, and how it ended.
    fn window_of(
        &self,
        running: &Running,
        seen: &WindowCounts,
        read_bytes: u64,
        length_s: f64,
    ) -> Window {
        let mut window = Window { length_s, classes: seen.classes, ..Window::default() };
        if !self.counters {
            return window;
        }
        let pages = &running.run.pages;
        let bytes = |count: u32| Some(u64::from(count) * PAGE);
        window.hit_fraction = match running.work.access {
            Access::Direct => Some(0.0),
            Access::Buffered => {
                (seen.asked_pages > 0).then(|| seen.hit_pages as f64 / seen.asked_pages as f64)
            }
        };
        window.device_read_bytes = Some(read_bytes);
        window.dirtied_bytes = Some(match running.work.access {
            Access::Direct => seen.classes[2].bytes + seen.classes[3].bytes,
            Access::Buffered => seen.dirtied_pages * PAGE,
        });
        window.resident_bytes = bytes(pages.resident());
        window.dirty_bytes = bytes(pages.dirty());
        window.writeback_bytes = bytes(pages.writing());
        window.cpu_s = Some(seen.copying_ns as f64 * 1e-9);
        window.stolen_fraction = Some(0.0);
        window
    }
}

impl Rig for MachineRig {
    fn engine(&self) -> &'static str {
        "sim"
    }

    fn hints(&self) -> Hints {
        let layout_s = stretch_s(self.machine.storage.write, MIB as f64);
        Hints { layout_bytes_per_s: Some(MIB as f64 / layout_s), ..Hints::default() }
    }

    fn now_s(&self) -> f64 {
        self.now_s
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        let quiesce = self.drain();
        let added_bytes = self.files.lay_out(work)?;
        let storage = &self.machine.storage;
        let layout = stretch_s(storage.write, added_bytes as f64);
        let is_cached = work.access == Access::Buffered && work.state == State::Warm;
        let cache_bytes = if is_cached { self.machine.cache.bytes } else { 0 };
        // What was written last is what the cache holds after a layout.
        let held_bytes = (self.resident_bytes + added_bytes).min(cache_bytes);
        let missing_bytes = work.unique_bytes.min(cache_bytes).saturating_sub(held_bytes);
        let warm_up = stretch_s(storage.read, missing_bytes as f64);
        let spent_s = Spent { layout, quiesce, warm_up, ..Spent::default() };
        self.now_s += spent_s.total();
        Ok(Prepared { spent_s, warnings: Vec::new() })
    }

    fn start(&mut self, work: &Workload, seed: u64) -> Result<()> {
        let visit_seed = visit_seed(self.seed, seed);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(visit_seed);
        let noise = NoiseStream::new(self.noise, &mut rng);
        let mut storage_rng = rng.clone();
        storage_rng.jump();
        let setting = Setting {
            room_bytes: self.room_bytes,
            sync_s: self.sync_s,
            response_cv: self.noise.response_cv,
            seed: visit_seed,
            written_max_bytes: self.files.may_write_bytes(0),
            rng: storage_rng,
        };
        let run = Run::new(&self.machine, work, setting);
        self.running = Some(Running { run, noise, rng, work: work.clone() });
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        let mut running = self.running.take().expect("a window is taken while workers run");
        let Running { run, noise, rng, .. } = &mut running;
        let read_before = run.storage.read_bytes;
        noise.advance(length_s, rng, &mut |stretch| run.pass(stretch.length_s, stretch.speed));
        self.now_s += length_s;
        let read_bytes = run.storage.read_bytes - read_before;
        let seen = std::mem::take(&mut run.seen);
        let (is_full, resident) = (run.is_full, run.pages.resident());
        let window = self.window_of(&running, &seen, read_bytes, length_s);
        self.resident_bytes = u64::from(resident) * PAGE;
        self.running = Some(running);
        if is_full { Err(Error::MaxWritten) } else { Ok(window) }
    }

    fn mark(&mut self) {
        if let Some(Running { run, .. }) = &mut self.running {
            run.response_ns.iter_mut().chain(&mut run.latency_ns).for_each(Histogram::reset);
        }
    }

    fn finish(&mut self, sync: bool) -> Result<Finished> {
        let run = &self.running.as_ref().expect("workers run").run;
        let (response_ns, latency_ns) = (run.response_ns.clone(), run.latency_ns.clone());
        let sync_s = sync.then(|| self.drain());
        self.now_s += sync_s.unwrap_or(0.0);
        Ok(Finished {
            response_ns,
            latency_ns,
            warnings: vec![],
            sync_s,
            failed: vec![],
            verified_bytes: None,
            began_ns: None,
            ranks: None,
        })
    }

    fn written_bytes(&self) -> u64 {
        let storage = self.running.as_ref().map_or(0, |running| running.run.storage.written_bytes);
        self.files.written_bytes + storage
    }

    fn limit_written(&mut self, most_bytes: u64) {
        self.files.written_max_bytes = Some(most_bytes);
    }

    fn may_write_bytes(&self) -> u64 {
        let coming_bytes = self.running.as_ref().map_or(0, |running| running.run.coming_bytes());
        self.files.may_write_bytes(coming_bytes)
    }
}

#[cfg(test)]
mod tests;
