//! A simulated device that misbehaves on request: requests that fail, credit that runs out, a slow
//! decline, visits that are slow for no reason.

use ioscape_model::units::MIB;
use ioscape_model::{Failed, Failure};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::spec::{Cost, Level, SimSpec, Trouble};
use crate::failures::{Failures, class};
use crate::rig::Class;

impl Trouble {
    fn rate(&self, kind: Failure) -> f64 {
        match kind {
            Failure::Io => self.error_rate,
            Failure::TimedOut => self.timeout_rate,
            Failure::Short => self.short_rate,
            _ => 0.0,
        }
    }

    /// Which part of the requests that could be made is made, where some of them time out: `slots`
    /// are in flight, and without trouble there are `ops_per_s`.
    pub(super) fn pace(&self, ops_per_s: f64, slots: f64) -> f64 {
        1.0 / (1.0 + self.timeout_rate * self.timeout_s * ops_per_s / slots)
    }
}

/// What has become of a device since it was made.
#[derive(Clone, Debug, Default)]
pub(super) struct Troubled {
    /// Bytes that the storage has moved.
    pub(super) moved_bytes: f64,
    /// Of this visit.
    is_slow: bool,
    /// Parts of failures that did not make a whole one yet.
    owed: [[f64; 4]; 4],
    failures: Failures,
}

impl Troubled {
    /// A visit begins.
    pub(super) fn begin(&mut self, trouble: &Trouble, chance: &mut Xoshiro256PlusPlus) {
        // Nothing is drawn for a device without trouble: its numbers stay as they were.
        self.is_slow = trouble.slow_visits > 0.0 && chance.random::<f64>() < trouble.slow_visits;
        self.failures = Failures::default();
    }

    /// Of the device, 1 being the law's.
    pub(super) fn speed(&self, trouble: &Trouble, now_s: f64) -> f64 {
        let is_spent = trouble.credit_bytes.is_some_and(|credit| self.moved_bytes >= credit as f64);
        let spent = if is_spent { trouble.spent_speed } else { 1.0 };
        let slow = if self.is_slow { trouble.slow_speed } else { 1.0 };
        let declined = (1.0 - trouble.decline_per_hour * now_s / 3600.0).max(0.01);
        spent * slow * declined
    }

    /// Of so many requests those that are done; the others are counted by what went wrong.
    pub(super) fn done(&mut self, trouble: &Trouble, of: Class, ops: u64, size: u64) -> u64 {
        let mut done = ops;
        for kind in Failure::ALL {
            let owed = &mut self.owed[of as usize][kind as usize];
            *owed += ops as f64 * trouble.rate(kind);
            let count = (owed.floor() as u64).min(done);
            if count == 0 {
                continue;
            }
            *owed -= count as f64;
            done -= count;
            self.failures.add(&Failed {
                class: class(of),
                failure: kind,
                count,
                first_offset: self.moved_bytes as u64 / MIB * MIB,
                text: text(kind, size),
            });
        }
        done
    }

    pub(super) fn take(&mut self) -> Vec<Failed> {
        std::mem::take(&mut self.failures).into_all()
    }
}

fn text(kind: Failure, size: u64) -> String {
    match kind {
        Failure::TimedOut => "Connection timed out (os error 110)".to_owned(),
        Failure::Short => format!("only {} bytes were moved", size / 2),
        _ => "Input/output error (os error 5)".to_owned(),
    }
}

impl SimSpec {
    /// This device at another speed: at a half everything takes twice as long.
    #[must_use]
    pub fn at_speed(&self, speed: f64) -> Self {
        let slower = |cost: Cost| Cost {
            fixed_us: cost.fixed_us / speed,
            bytes_per_s: cost.bytes_per_s * speed,
        };
        let mut spec = self.clone();
        for level in &mut spec.levels {
            *level = Level {
                ops_per_s_max: level.ops_per_s_max.map(|limit| limit * speed),
                bytes_per_s_max: level.bytes_per_s_max.map(|limit| limit * speed),
                read_random: slower(level.read_random),
                read_sequential: level.read_sequential.map(slower),
                write_random: level.write_random.map(slower),
                write_sequential: level.write_sequential.map(slower),
                ..level.clone()
            };
        }
        spec
    }
}

#[cfg(test)]
mod tests {
    use ioscape_model::Workload;

    use super::*;
    use crate::{Rig, SimRig};

    fn device(change: impl FnOnce(&mut Trouble)) -> SimRig {
        let mut spec = SimSpec::preset("nvme").unwrap();
        spec.noise = super::super::Noise::default();
        change(&mut spec.trouble);
        spec.check().unwrap();
        SimRig::new(spec, 3)
    }

    /// Requests per second over two seconds, and what failed.
    fn run(rig: &mut SimRig, text: &str) -> (f64, Vec<Failed>) {
        let work = Workload::parse(text).unwrap();
        rig.prepare(&work).unwrap();
        rig.start(&work, 1).unwrap();
        let ops: u64 = (0..20).map(|_| rig.window(0.1).unwrap().ops()).sum();
        (ops as f64 / 2.0, rig.finish(false).unwrap().failed)
    }

    const READS: &str = "unique_bytes=8GiB,size_mean=16k,read_frac=1,seq_frac=0";

    #[test]
    fn failures_come_at_the_rate_asked_for_and_are_no_requests() {
        let (all, none) = run(&mut device(|_| {}), READS);
        assert_eq!(none, vec![]);
        let (done, failed) = run(
            &mut device(|trouble| {
                trouble.error_rate = 0.01;
                trouble.short_rate = 0.02;
            }),
            READS,
        );
        assert!((done / all - 0.97).abs() < 1e-3, "{done} of {all}");
        let count =
            |kind| failed.iter().filter(|f| f.failure == kind).map(|f| f.count).sum::<u64>();
        assert!((count(Failure::Io) as f64 / (2.0 * all) / 0.01 - 1.0).abs() < 0.01);
        assert!((count(Failure::Short) as f64 / (2.0 * all) / 0.02 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_request_that_times_out_keeps_its_process_waiting() {
        let (all, _) = run(&mut device(|_| {}), READS);
        let slow = |trouble: &mut Trouble| {
            trouble.timeout_rate = 0.001;
            trouble.timeout_s = 1000.0 / all;
        };
        // Each thousandth takes as long as a thousand others: half of the time goes.
        let (done, failed) = run(&mut device(slow), READS);
        assert!((done / all - 0.5).abs() < 0.01, "{done} of {all}");
        assert_eq!(failed[0].failure, Failure::TimedOut);
    }

    #[test]
    fn credit_is_spent_by_what_the_storage_moves() {
        let spend = |trouble: &mut Trouble| {
            trouble.credit_bytes = Some(64 * MIB);
            trouble.spent_speed = 0.25;
        };
        let cached = "unique_bytes=8MiB,size_mean=16k,read_frac=1,seq_frac=0";
        let (full, _) = run(&mut device(|_| {}), cached);
        let mut rig = device(spend);
        let (fresh, _) = run(&mut rig, cached);
        assert!((fresh / full - 1.0).abs() < 1e-6, "what is cached spends nothing");
        run(&mut rig, READS);
        let (spent, _) = run(&mut rig, cached);
        assert!((spent / full - 0.25).abs() < 1e-3, "{spent} of {full}");
    }

    #[test]
    fn a_description_with_trouble_reads_back_and_one_that_cannot_be_is_refused() {
        let mut spec = SimSpec::preset("hdd").unwrap();
        assert!(!spec.to_toml().contains("trouble"));
        spec.trouble.error_rate = 0.25;
        spec.trouble.credit_bytes = Some(MIB);
        assert_eq!(SimSpec::from_toml(&spec.to_toml()).unwrap(), spec);
        spec.trouble.short_rate = 0.8;
        assert!(spec.check().unwrap_err().to_string().contains("must not exceed 1 together"));
    }
}
