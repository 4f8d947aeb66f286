//! A simulated device of either kind as one rig.

use ioscape_model::{Hints, Workload};

use super::device::LawRig;
use super::machine::MachineRig;
use super::spec::SimSpec;
use crate::error::Result;
use crate::rig::{Finished, Prepared, Rig, Window};

/// A simulated device.
pub struct SimRig {
    spec: SimSpec,
    rig: Box<dyn Rig + Send>,
}

impl SimRig {
    /// A device of this description. The seed and a visit's own seed fix all chance.
    pub fn new(spec: SimSpec, seed: u64) -> Self {
        let rig: Box<dyn Rig + Send> = match &spec.machine {
            Some(machine) => Box::new(MachineRig::new(&spec, machine.clone(), seed)),
            None => Box::new(LawRig::new(spec.clone(), seed)),
        };
        Self { spec, rig }
    }

    /// The description.
    pub fn spec(&self) -> &SimSpec {
        &self.spec
    }
}

impl Rig for SimRig {
    fn engine(&self) -> &'static str {
        "sim"
    }

    fn hints(&self) -> Hints {
        Hints {
            read_cache_bytes: self.spec.hints.read_cache_bytes.map(|bytes| bytes as f64),
            write_cache_bytes: self.spec.hints.write_cache_bytes.map(|bytes| bytes as f64),
            counters: self.spec.counters,
            in_memory: self.spec.hints.in_memory,
            room_bytes: self.spec.room(),
            ..self.rig.hints()
        }
    }

    fn now_s(&self) -> f64 {
        self.rig.now_s()
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        self.rig.prepare(work)
    }

    fn start(&mut self, work: &Workload, seed: u64) -> Result<()> {
        self.rig.start(work, seed)
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        self.rig.window(length_s)
    }

    fn mark(&mut self) {
        self.rig.mark();
    }

    fn finish(&mut self, sync: bool) -> Result<Finished> {
        self.rig.finish(sync)
    }

    fn written_bytes(&self) -> u64 {
        self.rig.written_bytes()
    }

    fn limit_written(&mut self, most_bytes: u64) {
        self.rig.limit_written(most_bytes);
    }

    fn may_write_bytes(&self) -> u64 {
        self.rig.may_write_bytes()
    }
}
