//! Another program that has nothing but the plain data: it reads them from JSON and has to say
//! what the predictor says. It shares no code with it, for the page does not either.

use ioscape_model::portable::{
    PortableCurve, PortableDoubt, PortableLaw, PortablePredictor, PortableProcess,
};
use ioscape_model::{Region, RegionUniqueBytes, Workload};
use nalgebra::{DMatrix, DVector};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::model::{Sample, Training};
use crate::predict::Predictor;
use crate::predict::tests::{TRUTH, random, training};

const MIB: u64 = 1 << 20;

/// Everything that is held against the predictor, from a model and a workload.
struct Port<'a> {
    model: &'a PortablePredictor,
    work: &'a Workload,
}

fn held(bytes: f64, unique: f64) -> f64 {
    (bytes / unique).min(1.0)
}

/// What a request takes beyond caches in the mean, from its price beyond each of them and the share
/// that pays it; `power` is that of the share that a cache holds.
fn beyond(caches: &[&[f64]], unique: f64, power: f64, price: impl Fn(&[f64], f64) -> f64) -> f64 {
    let mut before = 0.0_f64;
    let mut total = 0.0;
    for (index, cache) in caches.iter().enumerate() {
        before = before.max(held(cache[0].exp(), unique).powf(power));
        let next = caches.get(index + 1);
        let next = next.map_or(1.0, |next| held(next[0].exp(), unique).powf(power));
        let here = next.max(before) - before;
        if here > 0.0 {
            total += here * price(cache, here);
        }
    }
    total
}

/// Seconds of copying for reads and for writes, of reading, of writing back; which part of the
/// requests is read from storage, and written to it; and how many requests' bytes are read there.
/// The last cache that reads find data in may be supposed to hold another share of them.
fn times(law: &PortableLaw, work: &Workload, found: Option<f64>) -> [f64; 7] {
    let at = &law.parameters;
    let (size, unique) = (work.size_mean as f64, work.unique_bytes as f64);
    let (reads, writes) = at[29..].split_at(5 * law.read_caches);
    let mut reads = reads.to_vec();
    if let (Some(share), Some(last)) = (found, reads.chunks_mut(5).last()) {
        last[0] = (share * unique).ln();
    }
    let reads: Vec<&[f64]> = reads.chunks(5).collect();
    let writes: Vec<&[f64]> = writes.chunks(5).collect();
    assert_eq!(writes.len(), law.write_caches);
    // Row 0 of a cache's figures is for requests at random, row 1 for sequential ones.
    let fixed = |cache: &[f64], row: f64| (cache[1] + row * cache[2]).exp();
    let moved = |cache: &[f64], row: f64| size / (cache[3] + row * cache[4]).exp();
    let copy = |first: usize, cost: f64, row: f64| {
        let in_memory = 1.0 - held(at[8].exp(), unique);
        let bytes_s = size / (at[first + 4] + row * at[first + 6]).exp();
        (at[first] + row * at[first + 2]).exp() + bytes_s * (1.0 + cost.exp() * in_memory)
    };
    let torn =
        |here: f64| 1.0 + at[13].exp() * (1.0 - 1.0 / (size / 4096.0).max(1.0)) * (1.0 - here);
    let read = |row: f64, dearer: f64, power: f64| {
        beyond(&reads, unique, power, |cache, here| {
            torn(here) * dearer * fixed(cache, row) + moved(cache, row)
        })
    };
    let write = |row: f64, power: f64| {
        beyond(&writes, unique, power, |cache, _| fixed(cache, row) + moved(cache, row))
    };
    let streaming = work.seq_frac.powf(at[21].exp());
    let either = |stream: f64, short: f64| streaming * stream + (1.0 - streaming) * short;
    let mix = |share: f64, random: f64, sequential: f64| {
        share * ((1.0 - work.seq_frac) * random + work.seq_frac * sequential)
    };
    let read_seq = either(read(1.0, 1.0, at[12].exp()), read(0.0, at[20].exp(), 1.0));
    let write_seq = either(write(1.0, at[22].exp()), write(1.0, 1.0));
    let (r, w) = (work.read_frac, 1.0 - work.read_frac);
    let size_of = |cache: &&[f64]| cache[0].exp();
    let largest = reads.iter().map(size_of).reduce(f64::max);
    let missed = |bytes: Option<f64>, power: f64| {
        bytes.map_or(0.0, |bytes| 1.0 - held(bytes, unique).powf(power))
    };
    let either_missed = |bytes: Option<f64>, power: f64| {
        mix(1.0, missed(bytes, 1.0), either(missed(bytes, power), missed(bytes, 1.0)))
    };
    let (eager, h) = (at[28].exp(), largest.map_or(0.0, |bytes| held(bytes, unique)));
    let q = work.seq_frac;
    let run = (q - q.powi(11)) * (1.0 + 1.1 * r) / (1.0 + size / 131_072.0);
    let ahead = (h * (1.0 - (-eager * 10.0_f64.ln()).exp()) + eager * run).exp();
    let over = r.max(0.1).powf(-eager / (1.0 + size / 1_048_576.0));
    let stream_missed = missed(largest, at[12].exp()) * over;
    let read_there =
        q * streaming * stream_missed + (1.0 - q * streaming) * missed(largest, 1.0) * ahead;
    [
        mix(r, copy(0, at[9], 0.0), copy(0, at[9], 1.0)),
        mix(w, copy(1, at[10], 0.0), copy(1, at[10], 1.0)),
        mix(r, read(0.0, 1.0, 1.0), read_seq),
        mix(w, write(0.0, 1.0), write_seq),
        r * either_missed(largest, at[12].exp()),
        w * either_missed(writes.first().map(size_of), at[22].exp()),
        r * read_there,
    ]
}

/// What storage spends on a request, seconds.
fn device_s(law: &PortableLaw, times: [f64; 7], size_mean: u64) -> f64 {
    let at = &law.parameters;
    let [_, _, reads, writes, read_requests, write_requests, read_there] = times;
    let share = reads / (reads + writes).max(f64::MIN_POSITIVE);
    let working = (reads / at[16].exp() + writes / at[17].exp())
        * (1.0 + 4.0 * at[18].exp() * share * (1.0 - share));
    let size = size_mean as f64;
    let requests = (read_requests + write_requests) / at[24].exp();
    let bytes = size * (read_there / at[25].exp() + write_requests / at[26].exp());
    (working.powi(8) + requests.powi(8) + bytes.powi(8)).powf(1.0 / 8.0)
}

fn response_s(law: &PortableLaw, times: [f64; 7], size_mean: u64, process_num: f64) -> f64 {
    let at = &law.parameters;
    let [copy_reads, copy_writes, reads, writes, ..] = times;
    let copy = copy_reads + copy_writes;
    let wait = copy + reads + writes / (1.0 + (-at[14]).exp());
    let device = device_s(law, times, size_mean);
    let scale = at[15].exp() * wait;
    let over = (device - wait) / scale;
    let alone = wait + scale * (over.max(0.0) + (-over.abs()).exp().ln_1p());
    let power = at[19].exp();
    let queue = (process_num.powf(power) - 1.0) * device.powf(power);
    let queued = (alone.powf(power) + queue).powf(1.0 / power);
    let sharing = at[23].exp();
    let shared = copy / at[11].exp();
    let both = |time: f64, shared: f64| {
        let longest = time.max(shared);
        longest
            * ((time / longest).powf(sharing) + (shared / longest).powf(sharing))
                .powf(1.0 / sharing)
    };
    both(queued, process_num * shared) * alone / both(alone, shared)
}

/// Requests per second if all processes fare alike, as a logarithm, and what it adds that some
/// fare better; with a change made to all times.
fn ln_rates(law: &PortableLaw, work: &Workload, change: impl Fn([f64; 7]) -> [f64; 7]) -> [f64; 2] {
    let count = f64::from(work.process_num);
    let in_time = |times: [f64; 7], count: f64| response_s(law, times, work.size_mean, count);
    let even = times(law, work, None);
    let alike = (count / in_time(change(even), count)).ln();
    let last = 29 + 5 * law.read_caches.saturating_sub(1);
    let found = law.parameters.get(last).map_or(1.0, |ln| ln.exp() / work.unique_bytes as f64);
    let is_open = law.read_caches > 0 && work.process_num > 1 && work.read_frac > 0.0;
    if !is_open || !(0.53..1.0).contains(&found) {
        return [alike, 0.0];
    }
    let fast = times(law, work, Some(1.0));
    let growth = -(1.0 - found).ln() * (1.0 - in_time(fast, count) / in_time(even, count));
    let until = 1.0 - (-1.0_f64).exp();
    let winners = (count * (found - until) / (1.0 - until) + 0.5).max(1.0).min(count - 1.0);
    let losers = count - winners;
    let slow = times(law, work, Some((count * found - winners) / losers));
    let mut all = [0.0; 3];
    for (times, of) in [(change(fast), winners), (change(slow), losers)] {
        let rate = of / in_time(times, of);
        all[0] += rate;
        all[1] += rate * device_s(law, times, work.size_mean);
        all[2] += rate * (times[0] + times[1]) / law.parameters[11].exp();
    }
    let all_win = count / in_time(change(fast), count);
    let together = (all[0] / all[1].max(all[2]).max(1.0)).min(all_win);
    let likely = 1.0 / (1.0 + (-law.parameters[27]).exp());
    let weight = likely / (1.0 + (20.0 * (1.1 - growth)).exp());
    [alike, weight * (together.ln() - alike).max(0.0)]
}

fn ln_rate(law: &PortableLaw, work: &Workload, change: impl Fn([f64; 7]) -> [f64; 7]) -> f64 {
    ln_rates(law, work, change).iter().sum()
}

fn ln_throughput(law: &PortableLaw, work: &Workload) -> f64 {
    ln_rate(law, work, |times| times) + (work.size_mean as f64).ln()
}

/// Minus d ln X / d ln part, by differences to both sides.
fn elasticities(law: &PortableLaw, work: &Workload) -> [f64; 4] {
    std::array::from_fn(|part| {
        let moved = |by: f64| {
            ln_rate(law, work, |mut times| {
                times[part] *= 1.0 + by;
                // What reaches storage takes as much longer there.
                if part >= 2 {
                    times[part + 2] *= 1.0 + by;
                }
                if part == 2 {
                    times[6] *= 1.0 + by;
                }
                times
            })
        };
        (moved(-1e-5) - moved(1e-5)) / 2e-5
    })
}

fn covariance(law: &PortableLaw, process: &PortableProcess, a: &Workload, b: &Workload) -> f64 {
    let features = |work: &Workload| {
        let num = f64::from(work.process_num);
        [(work.size_mean as f64).ln(), work.read_frac, work.seq_frac, num.ln()]
    };
    let common: f64 =
        (0..4).map(|i| ((features(a)[i] - features(b)[i]) / process.lengths[i]).powi(2)).sum();
    let apart = (a.unique_bytes as f64 / b.unique_bytes as f64).ln();
    let (of_a, of_b) = (elasticities(law, a), elasticities(law, b));
    (0..4)
        .map(|part| {
            let length = process.unique_lengths[[0, 0, 1, 2][part]];
            let scaled = (5.0 * (common + (apart / length).powi(2))).sqrt();
            let correlation = (1.0 + scaled + scaled * scaled / 3.0) * (-scaled).exp();
            of_a[part] * of_b[part] * process.amplitudes[part].powi(2) * correlation
        })
        .sum()
}

fn height(curve: &PortableCurve, x: f64) -> f64 {
    let last = curve.x.len() - 1;
    let x = x.clamp(curve.x[0], curve.x[last]);
    let left = (0..last).rev().find(|i| curve.x[*i] <= x).unwrap_or(0);
    let Some(right) = curve.x.get(left + 1) else { return curve.y[left] };
    let width = right - curve.x[left];
    let t = (x - curve.x[left]) / width;
    let (t2, t3) = (t * t, t * t * t);
    (2.0 * t3 - 3.0 * t2 + 1.0) * curve.y[left]
        + (t3 - 2.0 * t2 + t) * width * curve.slope[left]
        + (3.0 * t2 - 2.0 * t3) * curve.y[left + 1]
        + (t3 - t2) * width * curve.slope[left + 1]
}

impl Port<'_> {
    /// Logarithm of the throughput and the variance of that.
    fn guess(&self) -> (f64, f64) {
        let (law, work) = (&self.model.law, self.work);
        let plain = ln_throughput(law, work);
        match &self.model.doubt {
            PortableDoubt::Process(process) => {
                let (correction, variance) = Self::correction(law, process, work);
                (plain + correction, variance)
            }
            PortableDoubt::Law { misfit, covariance } => {
                let moved = |index: usize, by: f64| {
                    let mut law = law.clone();
                    law.parameters[index] += by;
                    ln_throughput(&law, work)
                };
                let count = law.parameters.len();
                let slopes = DVector::from_fn(count, |i, _| (moved(i, 1e-4) - plain) / 1e-4);
                let at = |row: usize, column: usize| row * (row + 1) / 2 + column;
                let full =
                    DMatrix::from_fn(count, count, |i, j| covariance[at(i.max(j), i.min(j))]);
                (plain, slopes.dot(&(full * &slopes)).max(0.0) + misfit * misfit)
            }
        }
    }

    fn correction(law: &PortableLaw, process: &PortableProcess, work: &Workload) -> (f64, f64) {
        let works: Vec<Workload> = (0..process.missed.len())
            .map(|i| Workload {
                unique_bytes: process.unique_bytes[i],
                size_mean: process.size_mean[i],
                read_frac: process.read_frac[i],
                seq_frac: process.seq_frac[i],
                process_num: process.process_num[i],
                ..Workload::default()
            })
            .collect();
        let count = works.len();
        let mut kernel =
            DMatrix::from_fn(count, count, |i, j| covariance(law, process, &works[i], &works[j]));
        for (i, noise) in process.noise.iter().enumerate() {
            kernel[(i, i)] += noise;
        }
        let cross = DVector::from_fn(count, |i, _| covariance(law, process, &works[i], work));
        let missed = DVector::from_column_slice(&process.missed);
        let factors = kernel.lu();
        let mean = cross.dot(&factors.solve(&missed).unwrap());
        let explained = cross.dot(&factors.solve(&cross).unwrap());
        (mean, (covariance(law, process, work, work) - explained).max(0.0))
    }

    /// Value, low and high.
    fn throughput(&self) -> [f64; 3] {
        let (guess, mut variance) = self.guess();
        if let Some(noise) = self.model.noise {
            let of = elasticities(&self.model.law, self.work);
            variance += (0..4).map(|i| (of[i] * noise[[0, 0, 1, 2][i]]).powi(2)).sum::<f64>();
        }
        variance += (0.3 * ln_rates(&self.model.law, self.work, |times| times)[1]).powi(2);
        let by = &self.model.calibration;
        let here = by.factor * (variance + by.shared_variance).sqrt();
        let half = here.hypot(by.score_usual * by.elsewhere_sd).max(by.half_width_min);
        let half = half + by.wider_outside * self.outside();
        [guess.exp(), (guess - half).exp(), (guess + half).exp()]
    }

    fn value(&self, key: &str) -> f64 {
        serde_json::to_value(self.work).unwrap()[key].as_f64().unwrap()
    }

    fn outside(&self) -> f64 {
        let over = |value: f64, min: u64, max: u64| {
            (value / max as f64).max(min as f64 / value).max(1.0).ln()
        };
        self.model.measured.iter().map(|r| over(self.value(&r.key), r.min, r.max)).sum()
    }

    fn product(&self) -> f64 {
        let axes = ["unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num"];
        let families = &self.model.product.as_ref().unwrap().families;
        let unique = self.work.unique_bytes as f64;
        let family = families.iter().find(|f| f.from <= unique && unique <= f.to).unwrap();
        let curves = family.curves.iter().map(|curve| {
            let key = axes[curve.axis];
            let value = self.value(key);
            let here = if key.ends_with("_frac") { value } else { value.ln() };
            height(curve, here) - height(curve, family.focal[curve.axis])
        });
        (family.ln_throughput + curves.sum::<f64>()).exp()
    }
}

/// A record with two regions, each with its family, on a system that the law only nearly knows:
/// request sizes have this much of a wave of their own.
fn explored(seed: u64, wave: f64) -> Training {
    let mut training = training(seed, 60, 0.03);
    let sample = training.samples[0].clone();
    for (name, from, to) in [("cache", 8, 256), ("storage", 256, 1024)] {
        let focal = Workload { unique_bytes: u64::midpoint(from, to) * MIB, ..Workload::default() };
        let mut family = vec![focal.clone()];
        family
            .extend([4, 8, 64, 256].map(|kib| Workload { size_mean: kib << 10, ..focal.clone() }));
        family.extend([0.0, 0.2, 1.0].map(|read_frac| Workload { read_frac, ..focal.clone() }));
        family.extend([0.0, 0.7, 1.0].map(|seq_frac| Workload { seq_frac, ..focal.clone() }));
        family.extend([2, 3, 4].map(|process_num| Workload { process_num, ..focal.clone() }));
        training.samples.extend(family.into_iter().map(|workload| Sample {
            ln_throughput: TRUTH.ln_throughput(&workload),
            workload,
            ..sample.clone()
        }));
        let (from, to) = ((from * MIB) as f64, (to * MIB) as f64);
        let unique_bytes = RegionUniqueBytes { from, to, focal: focal.unique_bytes as f64 };
        training.regions.push(Region { name: name.into(), unique_bytes, focal, revision: 0 });
    }
    for sample in &mut training.samples {
        sample.ln_throughput += wave * (2.0 * (sample.workload.size_mean as f64).ln()).sin();
    }
    training
}

fn near(ours: f64, theirs: f64, what: &str) {
    assert!((ours / theirs - 1.0).abs() < 1e-4, "{what}: {ours}, not {theirs}");
}

/// Whether the law was corrected; all answers are held against those of the predictor.
fn check(seed: u64, wave: f64) -> bool {
    let mut training = explored(seed, wave);
    if seed.is_multiple_of(2) {
        training.host.kernel = "6.18".to_owned();
    }
    let predictor = Predictor::fit(training.clone()).unwrap();
    let json = serde_json::to_string(&predictor.portable()).unwrap();
    let model: PortablePredictor = serde_json::from_str(&json).unwrap();
    assert_eq!(model, predictor.portable(), "nothing is lost on the way");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
    let mut works: Vec<Workload> = (0..30).map(|_| random(&mut rng)).collect();
    works.push(Workload { process_num: 16, size_mean: 3 << 19, ..works[0].clone() });
    // Just beyond the cache, where some of several processes win.
    for (process_num, mib, read_frac) in [(2, 270, 1.0), (4, 300, 0.8), (3, 350, 1.0)] {
        let seq_frac = 0.2;
        let unique_bytes = mib * MIB;
        works.push(Workload {
            unique_bytes,
            process_num,
            read_frac,
            seq_frac,
            ..Workload::default()
        });
        let [_, apart] = ln_rates(&model.law, &works[works.len() - 1], |times| times);
        assert!(apart > 0.02 || training.host.kernel.is_empty(), "{mib} MiB: {apart}");
    }
    for work in &works {
        let expected = predictor.predict("", work);
        let port = Port { model: &model, work };
        let figure = expected.throughput_bytes_per_s;
        let [value, low, high] = port.throughput();
        near(value, figure.value, &format!("{work}"));
        near(low, figure.low, &format!("{work}: low"));
        near(high, figure.high, &format!("{work}: high"));
        near(port.product(), expected.product_throughput_bytes_per_s, &format!("{work}: product"));
        let unique = work.unique_bytes as f64;
        let region = model.regions.iter().find(|region| unique < region.to);
        assert_eq!(region.or(model.regions.last()).unwrap().name, expected.region, "{work}");
        let is_near = port.outside() < model.calibration.range_slack.ln();
        assert!(is_near || !expected.in_range, "{work}");
    }
    matches!(model.doubt, PortableDoubt::Process(_))
}

#[test]
fn plain_data_hold_all_that_a_prediction_rests_on() {
    assert!(check(1, 0.25), "a wave that no law of time knows is learnt");
    assert!(check(2, 0.25), "under a kernel, too");
    assert!((0..8).any(|seed| !check(seed, 0.0)), "what the law explains is left alone");
}

#[test]
#[should_panic(expected = "learnt with these caches")]
fn what_samples_taught_does_not_hold_for_other_caches() {
    let predictor = Predictor::fit(explored(1, 0.25)).unwrap();
    let found = predictor.caches();
    let wanted = crate::predict::Caches { read_bytes: found.read_bytes.map(|b| 2.0 * b), ..found };
    predictor.with_caches(&wanted).unwrap().portable();
}
