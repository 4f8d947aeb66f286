//! A rig without a device: its throughput is a known law with noise, its clock a number. Thousands
//! of windows cost nothing, and the truth is known.

use hdrhistogram::Histogram;
use ioscape_engine::error::Result;
use ioscape_engine::{Class, ClassCount, Error, Finished, Prepared, Rig, Window};
use ioscape_model::Hints;
use ioscape_model::{Spent, Workload};
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The noise is drawn anew this often, seconds.
const STEP_S: f64 = 0.1;

/// The law of a stream of requests.
#[derive(Clone, Copy, Debug)]
pub struct StreamSpec {
    /// Throughput in the steady state.
    pub bytes_per_s: f64,
    /// Bytes of each request.
    pub request_bytes: f64,
    /// Throughput at the start over that of the steady state, less one.
    pub transient: f64,
    /// How fast the difference vanishes.
    pub transient_s: f64,
    /// Coefficient of variation of a tenth of a second.
    pub variation: f64,
    /// Autocorrelation of neighbouring tenths of a second.
    pub autocorrelation: f64,
}

impl Default for StreamSpec {
    fn default() -> Self {
        Self {
            bytes_per_s: 1e9,
            request_bytes: 16384.0,
            transient: 0.0,
            transient_s: 0.5,
            variation: 0.02,
            autocorrelation: 0.0,
        }
    }
}

/// The rig of a law. What its counters show besides throughput is set window by window by `decorate`.
pub struct Stream {
    law: StreamSpec,
    decorate: fn(&mut Window, f64),
    chance: Xoshiro256PlusPlus,
    now_s: f64,
    started_s: f64,
    normal: f64,
    owed_ops: f64,
    response_ns: [Histogram<u64>; 4],
    read_frac: f64,
    /// How long a final fdatasync takes.
    pub sync_s: f64,
    /// Lengths of the windows so far.
    pub lengths_s: Vec<f64>,
    /// After so many no more may be written.
    pub windows_max: usize,
}

impl Stream {
    /// One of this law, quiet but for throughput.
    pub fn new(law: StreamSpec, seed: u64) -> Self {
        Self {
            law,
            decorate: |_, _| {},
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
            now_s: 0.0,
            started_s: 0.0,
            normal: 0.0,
            owed_ops: 0.0,
            response_ns: histograms(),
            read_frac: 1.0,
            sync_s: 0.0,
            lengths_s: Vec::new(),
            windows_max: usize::MAX,
        }
    }

    /// One whose windows are changed by `decorate`, which is told the seconds since the visit began.
    #[must_use]
    pub fn decorated(mut self, decorate: fn(&mut Window, f64)) -> Self {
        self.decorate = decorate;
        self
    }

    fn standard_normal(&mut self) -> f64 {
        self.chance.sample(StandardNormal)
    }

    /// Bytes of one step: log-normal around the law, so that the mean is the law's.
    fn step_bytes(&mut self) -> f64 {
        let StreamSpec { autocorrelation: likeness, variation, .. } = self.law;
        self.normal =
            likeness * self.normal + (1.0 - likeness.powi(2)).sqrt() * self.standard_normal();
        let sigma = variation.powi(2).ln_1p().sqrt();
        let noise = (sigma * self.normal - sigma * sigma / 2.0).exp();
        let since_s = self.now_s - self.started_s;
        let transient = self.law.transient * (-since_s / self.law.transient_s).exp();
        self.law.bytes_per_s * STEP_S * (1.0 + transient) * noise
    }
}

fn histograms() -> [Histogram<u64>; 4] {
    std::array::from_fn(|_| Histogram::new(3).unwrap())
}

impl Rig for Stream {
    fn engine(&self) -> &'static str {
        "stream"
    }

    fn hints(&self) -> Hints {
        Hints::default()
    }

    fn now_s(&self) -> f64 {
        self.now_s
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        self.read_frac = work.read_frac;
        self.now_s += 0.25;
        let spent_s = Spent { warm_up: 0.25, ..Spent::default() };
        Ok(Prepared { spent_s, ..Prepared::default() })
    }

    fn start(&mut self, _: &Workload, _: u64) -> Result<()> {
        self.started_s = self.now_s;
        self.normal = self.standard_normal();
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        if self.lengths_s.len() >= self.windows_max {
            return Err(Error::MaxWritten);
        }
        let steps = (length_s / STEP_S).round().max(1.0) as usize;
        let mut window = Window::default();
        for _ in 0..steps {
            self.owed_ops += self.step_bytes() / self.law.request_bytes;
            self.now_s += STEP_S;
            window.length_s += STEP_S;
        }
        let ops = self.owed_ops.floor();
        self.owed_ops -= ops;
        let read_ops = (ops * self.read_frac).round();
        for (class, ops) in [(Class::ReadRand, read_ops), (Class::WriteRand, ops - read_ops)] {
            let bytes = (ops * self.law.request_bytes) as u64;
            let response_s = self.law.request_bytes / self.law.bytes_per_s;
            window.classes[class as usize] =
                ClassCount { ops: ops as u64, bytes, time_s: ops * response_s };
            let response_ns = ((response_s * 1e9) as u64).max(1);
            self.response_ns[class as usize].record_n(response_ns, ops as u64).unwrap();
        }
        (self.decorate)(&mut window, self.now_s - self.started_s);
        self.lengths_s.push(window.length_s);
        Ok(window)
    }

    fn mark(&mut self) {
        self.response_ns = histograms();
    }

    fn finish(&mut self, sync: bool) -> Result<Finished> {
        let response_ns = std::mem::replace(&mut self.response_ns, histograms());
        let sync_s = sync.then_some(self.sync_s);
        self.now_s += sync_s.unwrap_or(0.0);
        Ok(Finished {
            response_ns,
            latency_ns: None,
            warnings: vec![],
            sync_s,
            failed: vec![],
            verified_bytes: None,
            began_ns: None,
            ranks: None,
        })
    }

    fn written_bytes(&self) -> u64 {
        0
    }
}
