//! Requests of a workload, drawn from one seed before anything is timed.
//!
//! Every worker has a table of draws (size, direction, sequential or not). In the timed loop a
//! request costs a table look-up, a number from the generator and a multiplication. When the
//! table is used up it is gone through again; places are drawn for every request, so that no pass
//! repeats the addresses of another.

use std::io;
use std::path::Path;

use ioscape_model::{SeqScope, SizeDist, Workload};
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::Error;
use crate::rig::Class;

/// Draws in the tables of all workers together: the realised mean size is within 0.4 % of the
/// law's (one standard error), and the tables (8 bytes a draw) are made in milliseconds and take
/// little from a small memory limit and from the processor's caches.
const TABLE_DRAWS: usize = 1 << 16;
const TABLE_DRAWS_MIN: u64 = 1 << 11;
/// Slow targets never get through a large table, and its sizes bound the buffer.
const TABLE_BYTES_MAX: u64 = 64 << 30;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Within the worker's file, bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Direction and kind.
    pub class: Class,
    /// When it is to begin, by the worker's stopwatch; 0 is at once.
    pub due_ns: u64,
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it was.
    pub op: Op,
    /// When it was submitted, by the worker's stopwatch.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
}

impl Op {
    /// The error of this request, where it failed.
    #[cold]
    pub(crate) fn failed(&self, path: &Path, source: io::Error) -> Error {
        Error::Request {
            direction: if self.class.is_read() { "read" } else { "write" },
            offset: self.offset,
            length: self.length,
            path: path.to_owned(),
            source,
        }
    }
}

/// A length with a class in its lowest two bits: the table is read from end to end all the time.
#[derive(Clone, Copy, Debug)]
struct Draw(u64);

impl Draw {
    fn new(length: u64, class: Class) -> Self {
        Self(length << 2 | class as u64)
    }

    #[inline]
    fn length(self) -> u64 {
        self.0 >> 2
    }

    #[inline]
    fn class(self) -> Class {
        match self.0 & 3 {
            0 => Class::ReadSeq,
            1 => Class::ReadRand,
            2 => Class::WriteSeq,
            _ => Class::WriteRand,
        }
    }
}

/// The address thread of one process (Chen and Patterson 1994, section 5).
#[derive(Clone, Debug)]
pub struct Stream {
    draws: Vec<Draw>,
    next: usize,
    rng: Xoshiro256PlusPlus,
    share: u64,
    /// Where the share begins in its file.
    base: u64,
    /// Power of two that offsets are multiples of.
    align_shift: u32,
    scope: SeqScope,
    /// Where the previous request ended; by direction (write, read) where the scope says so.
    ended: [u64; 2],
}

impl Stream {
    /// The stream of worker `worker` (from 0), whose share begins at `base` in its file.
    pub fn new(work: &Workload, worker: u32, base: u64, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..worker {
            rng.jump(); // 2^128 draws apart: no two workers overlap
        }
        let share = work.share_bytes();
        let sizes = Sizes::new(work);
        let share_of_draws = TABLE_DRAWS as u64 / u64::from(work.process_num);
        let count = (TABLE_BYTES_MAX / work.size_mean).min(share_of_draws).max(TABLE_DRAWS_MIN);
        let draw = |_| {
            let length = sizes.draw(&mut rng);
            let read = rng.random::<f64>() < work.read_frac;
            let sequential = rng.random::<f64>() < work.seq_frac;
            Draw::new(length, Class::new(read, sequential))
        };
        let draws = (0..count).map(draw).collect();
        Self {
            draws,
            next: 0,
            rng,
            share,
            base,
            align_shift: work.align.trailing_zeros(),
            scope: work.seq_scope,
            ended: [0; 2],
        }
    }

    /// The longest request there will be, bytes.
    pub fn length_max(&self) -> u64 {
        self.draws.iter().map(|draw| draw.length()).max().unwrap_or(0)
    }

    /// Mean length of the requests in the table, bytes.
    pub fn length_mean(&self) -> f64 {
        self.draws.iter().map(|draw| draw.length() as f64).sum::<f64>() / self.draws.len() as f64
    }

    /// The next requests.
    pub fn fill(&mut self, ops: &mut [Op]) {
        ops.fill_with(|| self.next_op());
    }

    /// The next request.
    #[inline]
    pub fn next_op(&mut self) -> Op {
        let draw = self.draws[self.next];
        self.next = if self.next + 1 == self.draws.len() { 0 } else { self.next + 1 };
        let (length, class) = (draw.length(), draw.class());
        let thread = match self.scope {
            SeqScope::Any => 0,
            SeqScope::Direction => usize::from(class.is_read()),
        };
        let places = ((self.share - length) >> self.align_shift) + 1;
        let place = (u128::from(self.rng.next_u64()) * u128::from(places)) >> 64;
        let elsewhere = (place as u64) << self.align_shift;
        let ended = self.ended[thread];
        let onwards = if ended + length > self.share { 0 } else { ended };
        let position = if class.is_sequential() { onwards } else { elsewhere };
        self.ended[thread] = position + length;
        Op { offset: self.base + position, length, class, due_ns: 0 }
    }
}

/// The law of sizes, with the scale that makes the mean right after redrawing and rounding.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    law: SizeDist,
    scale: f64,
    align: u64,
    most: u64,
}

impl Sizes {
    fn new(work: &Workload) -> Self {
        let mut sizes = Self {
            law: work.size_dist,
            scale: work.size_mean as f64,
            align: work.align,
            most: work.share_bytes() / 2,
        };
        if sizes.law != SizeDist::Fixed {
            sizes.scale = sizes.scale_for(work.size_mean as f64);
        }
        sizes
    }

    /// Rounded to a multiple of `align`, at least one; `None` where it has to be redrawn.
    fn rounded(&self, multiple: f64) -> Option<u64> {
        if multiple <= 0.0 {
            return None;
        }
        let units = (self.scale * multiple / self.align as f64).round().max(1.0);
        let length = units as u64 * self.align;
        (length <= self.most).then_some(length)
    }

    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let multiple = match self.law {
                SizeDist::Fixed => return self.scale as u64,
                SizeDist::Normal => 1.0 + Distribution::<f64>::sample(&StandardNormal, rng),
                SizeDist::Exponential => Distribution::<f64>::sample(&Exp1, rng),
            };
            if let Some(length) = self.rounded(multiple) {
                return length;
            }
        }
    }

    /// The mean of the law at this scale, by integrating its density over what is not redrawn.
    fn mean(&self) -> f64 {
        const STEPS: u32 = 4000;
        const MULTIPLE_MAX: f64 = 12.0;
        let (mut weight, mut sum) = (0.0, 0.0);
        for step in 0..STEPS {
            let multiple = (f64::from(step) + 0.5) / f64::from(STEPS) * MULTIPLE_MAX;
            let density = match self.law {
                SizeDist::Exponential => (-multiple).exp(),
                _ => (-(multiple - 1.0) * (multiple - 1.0) / 2.0).exp(),
            };
            if let Some(length) = self.rounded(multiple) {
                weight += density;
                sum += density * length as f64;
            }
        }
        if weight > 0.0 { sum / weight } else { f64::INFINITY }
    }

    /// Bisection on the scale; the mean rises with it.
    fn scale_for(&self, mean: f64) -> f64 {
        let (mut low, mut high) = (mean * 1e-3, mean * 2.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            let reached = Self { scale: middle, ..*self }.mean();
            if (reached / mean - 1.0).abs() < 1e-4 {
                return middle;
            }
            if reached < mean { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(text: &str, seed: u64) -> Stream {
        Stream::new(&Workload::parse(text).unwrap(), 0, 0, seed)
    }

    #[test]
    fn the_mean_size_is_kept_whatever_the_law() {
        for law in ["normal", "fixed", "exponential"] {
            for size in [4096, 8192, 12_288, 65_536, 1 << 20] {
                let text = format!("unique_bytes=64MiB,size_mean={size},size_dist={law}");
                let stream = stream(&text, 7);
                let ratio = stream.length_mean() / f64::from(size);
                let error = 0.01 + 3.0 / (stream.draws.len() as f64).sqrt();
                assert!((ratio - 1.0).abs() < error, "{law} {size}: {ratio}");
            }
        }
    }

    #[test]
    fn large_normal_sizes_keep_three_fifths_of_their_variation() {
        // Redrawing above zero leaves CV 0.62 of the 1 that a normal law cannot have.
        let stream = stream("unique_bytes=1GiB,size_mean=256k", 3);
        let mean = stream.length_mean();
        let variance = stream.draws.iter().map(|d| (d.length() as f64 - mean).powi(2)).sum::<f64>()
            / stream.draws.len() as f64;
        assert!((variance.sqrt() / mean - 0.62).abs() < 0.02);
    }

    #[test]
    fn fractions_are_those_asked_for() {
        let stream = stream("read_frac=0.3,seq_frac=0.8", 11);
        let count = |wanted: &[Class]| {
            stream.draws.iter().filter(|draw| wanted.contains(&draw.class())).count() as f64
                / stream.draws.len() as f64
        };
        assert!((count(&[Class::ReadSeq, Class::ReadRand]) - 0.3).abs() < 0.01);
        assert!((count(&[Class::ReadSeq, Class::WriteSeq]) - 0.8).abs() < 0.01);
    }

    #[test]
    fn a_sequential_request_follows_the_previous_one_whatever_its_direction() {
        let mut stream = stream("seq_frac=1,unique_bytes=4MiB", 5);
        let mut ended = 0;
        for _ in 0..10_000 {
            let op = stream.next_op();
            assert!(op.offset == ended || (op.offset == 0 && ended + op.length > 4 << 20));
            ended = op.offset + op.length;
        }
    }

    #[test]
    fn with_direction_scope_each_direction_has_its_own_thread() {
        let mut stream = stream("seq_frac=1,unique_bytes=4MiB,seq_scope=direction", 5);
        let mut ended = [0, 0];
        for _ in 0..10_000 {
            let op = stream.next_op();
            let ended = &mut ended[usize::from(op.class == Class::ReadSeq)];
            assert!(op.offset == *ended || op.offset == 0);
            *ended = op.offset + op.length;
        }
    }

    #[test]
    fn random_requests_cover_the_share_evenly_and_stay_inside_over_many_passes() {
        let text = "seq_frac=0,unique_bytes=4MiB,size_mean=4k,size_dist=fixed";
        let mut stream = Stream::new(&Workload::parse(text).unwrap(), 1, 4 << 20, 9);
        let mut counts = vec![0_u32; 1024];
        let requests = 5 * TABLE_DRAWS;
        for _ in 0..requests {
            let op = stream.next_op();
            counts[((op.offset - (4 << 20)) / 4096) as usize] += 1;
        }
        // χ² with 1023 degrees of freedom: mean 1023, standard deviation 45.
        let expected = requests as f64 / 1024.0;
        let chi: f64 = counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
        assert!((chi - 1023.0).abs() < 6.0 * 45.0, "{chi}");
    }

    #[test]
    fn one_seed_gives_one_stream_and_workers_differ() {
        let work = Workload::default();
        let draw = |worker, seed| {
            let mut stream = Stream::new(&work, worker, 0, seed);
            (0..100).map(|_| stream.next_op()).collect::<Vec<_>>()
        };
        assert_eq!(draw(0, 1), draw(0, 1));
        assert_ne!(draw(0, 1), draw(1, 1));
        assert_ne!(draw(0, 1), draw(0, 2));
    }

    #[test]
    fn no_draw_exceeds_half_a_share() {
        let stream = stream("unique_bytes=512KiB,size_mean=64k,size_dist=exponential", 2);
        assert!(stream.length_max() <= 256 << 10);
        assert!((stream.length_mean() / 65_536.0 - 1.0).abs() < 0.02);
    }
}
