//! Percentiles whose truth is known: a smooth factor of the mean, and chance.

use ioscape_model::Figure;

use super::*;

/// Of reads that mostly hit, the slowest miss: what the mixture of requests makes of a tail.
fn truth(work: &Workload) -> [f64; 3] {
    let outgrown = (work.unique_bytes as f64 / TRUTH.read_cache_bytes).ln().clamp(-2.0, 2.0);
    let stalls = 1.0 - work.read_frac;
    [-0.3 - 0.1 * stalls, 1.0 + 0.5 * outgrown + stalls, 2.0 + 0.5 * outgrown + 1.5 * stalls]
}

fn with_tails(seed: u64, count: usize, sd: f64) -> Training {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let chance = Normal::new(0.0, sd).unwrap();
    let mut all = training(seed, count, 0.05);
    for sample in &mut all.samples {
        sample.ln_tail = Some(truth(&sample.workload).map(|ln| ln + chance.sample(&mut rng)));
    }
    all
}

#[test]
fn percentiles_follow_the_mean_and_their_intervals_hold() {
    const NEW: usize = 100;
    for seed in 0..3 {
        let predictor = Predictor::fit(with_tails(seed, 100, 0.1)).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(900 + seed);
        let chance = Normal::new(0.0, 0.1).unwrap();
        let (mut errors, mut inside) = (Vec::new(), 0);
        for _ in 0..NEW {
            let work = random(&mut rng);
            let times = predictor.predict("", &work).response_time_s;
            let in_flight_bytes = work.size_mean as f64 * f64::from(work.process_num);
            let mean_s = in_flight_bytes / TRUTH.ln_throughput(&work).exp();
            let [_, ln_p99, _] = truth(&work);
            let measured = mean_s * (ln_p99 + chance.sample(&mut rng)).exp();
            let Figure { value, low, high } = times.p99.unwrap();
            errors.push((value / measured).ln().abs());
            inside += usize::from(low <= measured && measured <= high);
            let [p50, p999] = [times.p50, times.p999].map(|figure| figure.unwrap().value);
            assert!(p50 <= value && value <= p999, "{p50} {value} {p999}");
        }
        let off = ioscape_stats::median(errors).unwrap();
        assert!(off < 0.15, "seed {seed}: p99 is off by {off} in the median");
        assert!(inside >= 80, "seed {seed}: {inside} of {NEW} inside");
    }
}

#[test]
fn a_record_without_percentiles_predicts_the_mean_alone() {
    let predictor = Predictor::fit(training(1, 60, 0.05)).unwrap();
    let times = predictor.predict("", &Workload::default()).response_time_s;
    assert!(times.mean.value > 0.0 && times.p50.is_none() && times.p999.is_none());
}
