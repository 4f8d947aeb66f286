//! A device's reserve: it is fast until that is used up, and at rest it comes back. Drives
//! take writes into a part of their flash that is written quickly (an SLC cache); volumes of clouds
//! are served above their base rate on credit.

use std::borrow::Cow;

use ioscape_model::Workload;

use super::spec::{Cost, Level, Reserve, SimSpec};

/// Of all requests, those that storage serves: with less it rests.
const LOAD_MIN: f64 = 0.01;

/// How much of it is used up, from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    share: f64,
}

impl Used {
    /// Storage has been at work for so long, and has taken so many bytes.
    pub(super) fn work(&mut self, reserve: &Reserve, length_s: f64, written_bytes: f64) {
        let used = match (reserve.write_bytes, reserve.load_s) {
            (Some(_), _) if written_bytes <= 0.0 => return self.rest(reserve, length_s),
            (Some(bytes), _) => written_bytes / bytes as f64,
            (None, load_s) => length_s / load_s.unwrap_or(f64::INFINITY),
        };
        self.share = (self.share + used).min(1.0);
    }

    /// It has not.
    pub(super) fn rest(&mut self, reserve: &Reserve, length_s: f64) {
        self.share = (self.share - length_s / reserve.rest_s).max(0.0);
    }

    /// A part of the requests was served by storage.
    pub(super) fn pass(
        &mut self,
        reserve: &Reserve,
        (length_s, storage_share): (f64, f64),
        written_bytes: f64,
    ) {
        if storage_share < LOAD_MIN {
            self.rest(reserve, length_s);
        } else {
            self.work(reserve, length_s, written_bytes);
        }
    }

    fn is_spent(self) -> bool {
        self.share >= 1.0
    }
}

impl SimSpec {
    /// The device as it is for a workload when its reserve is used up; as it is, where it has none.
    #[must_use]
    pub fn spent(&self, work: &Workload) -> Cow<'_, Self> {
        let Some(reserve) = &self.reserve else { return Cow::Borrowed(self) };
        let write_speed = reserve.spent_speed;
        let read_speed = if reserve.load_s.is_some() { write_speed } else { 1.0 };
        // Reads and writes share the limits of a level in proportion.
        let both = work.read_frac / read_speed + (1.0 - work.read_frac) / write_speed;
        let slower = |cost: Cost, speed: f64| Cost {
            fixed_us: cost.fixed_us / speed,
            bytes_per_s: cost.bytes_per_s * speed,
        };
        let mut spec = self.clone();
        if let Some(storage) = spec.levels.last_mut() {
            let written = |sequential| Some(slower(storage.cost(false, sequential), write_speed));
            *storage = Level {
                ops_per_s_max: storage.ops_per_s_max.map(|limit| limit / both),
                bytes_per_s_max: storage.bytes_per_s_max.map(|limit| limit / both),
                read_random: slower(storage.read_random, read_speed),
                read_sequential: storage.read_sequential.map(|cost| slower(cost, read_speed)),
                write_random: written(false),
                write_sequential: written(true),
                ..storage.clone()
            };
        }
        Cow::Owned(spec)
    }

    /// The device as it is now for a workload.
    pub(super) fn with_used(&self, used: Used, work: &Workload) -> Cow<'_, Self> {
        if used.is_spent() { self.spent(work) } else { Cow::Borrowed(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rig, SimRig};

    const WRITES: &str = "unique_bytes=256MiB,size_mean=1MiB,size_dist=fixed,read_frac=0,seq_frac=1,access=direct,\
         depth=8,align=4k";

    fn device(reserve: Reserve) -> SimSpec {
        let mut spec = SimSpec::preset("nvme").unwrap();
        spec.noise = super::super::Noise::default();
        spec.reserve = Some(reserve);
        spec.check().unwrap();
        spec
    }

    /// Bytes per second in each of so many windows.
    fn rates(rig: &mut SimRig, text: &str, windows: usize) -> Vec<f64> {
        let work = Workload::parse(text).unwrap();
        rig.prepare(&work).unwrap();
        rig.start(&work, 1).unwrap();
        let rates = (0..windows).map(|_| rig.window(0.1).unwrap().bytes() as f64 * 10.0).collect();
        rig.finish(false).unwrap();
        rates
    }

    fn near(rate: f64, expected: f64) -> bool {
        (rate / expected - 1.0).abs() < 0.01
    }

    #[test]
    fn writes_are_fast_until_the_reserve_is_used_up_and_again_after_a_rest() {
        let spec = device(Reserve {
            write_bytes: Some(4 << 30),
            load_s: None,
            spent_speed: 0.25,
            rest_s: 2.0,
        });
        let work = Workload::parse(WRITES).unwrap();
        let full = spec.expected_throughput(&work);
        let spent = spec.spent(&work).expected_throughput(&work);
        assert!(near(spent, full / 4.0), "{spent} of {full}");
        let mut rig = SimRig::new(spec, 1);
        let course = rates(&mut rig, WRITES, 40);
        let fast = course.iter().take_while(|rate| near(**rate, full)).count();
        assert!(course[fast..].iter().all(|rate| near(*rate, spent)));
        // What was laid out before is of the reserve, too.
        let bytes = fast as f64 * 0.1 * full + f64::from(256 << 20);
        assert!((bytes / (4_u64 << 30) as f64 - 1.0).abs() < 0.08, "{bytes}");
        let reads = "unique_bytes=256MiB,size_mean=4k,size_dist=fixed,read_frac=1,access=direct";
        let read = rates(&mut rig, reads, 25);
        assert!(near(read[24], read[0]), "reads are not slower, and let it rest");
        assert!(near(rates(&mut rig, WRITES, 1)[0], full));
    }

    #[test]
    fn credit_ends_after_so_many_seconds_of_load_of_any_kind() {
        let spec = device(Reserve {
            write_bytes: None,
            load_s: Some(3.0),
            spent_speed: 0.5,
            rest_s: 100.0,
        });
        let reads = "unique_bytes=8GiB,size_mean=4k,size_dist=fixed,read_frac=1,seq_frac=0,\
                     access=direct,depth=32";
        let mut rig = SimRig::new(spec, 1);
        let cached = "unique_bytes=8MiB,size_mean=4k,size_dist=fixed,read_frac=1,seq_frac=0";
        let quick = rates(&mut rig, cached, 50);
        assert!(near(quick[49], quick[0]), "what is cached is no load");
        // Laying eight gigabytes out takes longer than the credit lasts.
        let course = rates(&mut rig, reads, 10);
        assert!(near(course[9], course[0]));
        let text = "unique_bytes=8MiB,size_mean=4k,size_dist=fixed,read_frac=1,access=direct";
        let full = SimSpec { reserve: None, ..rig.spec().clone() };
        let work = Workload::parse(text).unwrap();
        let slow = rates(&mut rig, text, 1)[0];
        assert!(near(slow, full.expected_throughput(&work) / 2.0));
    }

    #[test]
    fn a_reserve_reads_back_and_one_that_cannot_be_is_refused() {
        let mut spec = SimSpec::preset("hdd").unwrap();
        assert!(!spec.to_toml().contains("reserve"));
        let reserve =
            Reserve { write_bytes: Some(4096), load_s: None, spent_speed: 0.5, rest_s: 1.0 };
        spec.reserve = Some(reserve);
        assert_eq!(SimSpec::from_toml(&spec.to_toml()).unwrap(), spec);
        spec.reserve = Some(Reserve { load_s: Some(1.0), ..reserve });
        assert!(spec.check().unwrap_err().to_string().contains("one of the two"));
    }
}
