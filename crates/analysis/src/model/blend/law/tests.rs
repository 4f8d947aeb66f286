//! What holds for every law, whatever its parameters.

use ioscape_model::Workload;
use ioscape_model::units::{KIB, MIB};
use proptest::prelude::*;

use super::super::extras::Extras;
use super::{CLASSES, COMMON, Cache, Law, Load, PARTS, PER_CACHE, Shape, held, shares_beyond};

pub(in super::super) const SHAPE: Shape = Shape { read_caches: 2, write_caches: 1 };

/// Parameters that a machine might have.
pub(in super::super) fn usual() -> Vec<f64> {
    let common = [
        -14.0, -14.0, 0.0, 0.0, 22.0, 22.0, 0.0, 0.0, 16.0, -1.0, -1.0, 0.7, 0.1, -1.0, 0.0, -2.0,
        0.5, 0.0, -2.0, 0.7, -0.3, 1.8, 0.5, 1.8, 12.0, 21.0, 20.5, 1.0, 0.0,
    ];
    assert_eq!(common.len(), COMMON);
    let cache = |ln_bytes: f64, ln_fixed_s: f64| [ln_bytes, ln_fixed_s, -0.5, 20.0, 0.3];
    let caches = [cache(17.0, -11.0), cache(19.0, -8.0), cache(17.5, -10.0)];
    assert_eq!(caches[0].len(), PER_CACHE);
    common.into_iter().chain(caches.into_iter().flatten()).collect()
}

/// A factor of two or three either way.
fn law() -> impl Strategy<Value = Law> {
    let around = usual();
    proptest::collection::vec(-1.0..1.0_f64, around.len()).prop_map(move |by| {
        let mut at: Vec<f64> = around.iter().zip(by).map(|(x, d)| x + d).collect();
        // The second cache lies beyond the first.
        at[COMMON + PER_CACHE] = at[COMMON] + 2.0;
        Law::of(SHAPE, &at)
    })
}

/// The same where no process ever fares better than another.
fn alike(law: &Law) -> Law {
    Law { unevenness: 0.0, ..law.clone() }
}

#[test]
fn buffers_of_requests_in_flight_push_data_out_of_the_processors_cache() {
    let law = Law::of(SHAPE, &usual());
    let small = Workload { unique_bytes: 4 * MIB, size_mean: MIB, ..Workload::default() };
    let deep = Workload { depth: 16, ..small.clone() };
    assert!(law.copy_time_s(&deep) > 1.1 * law.copy_time_s(&small));
    let short = |depth: u32| Workload { depth, size_mean: 4 * KIB, ..small.clone() };
    assert!((law.copy_time_s(&short(16)) / law.copy_time_s(&short(1)) - 1.0).abs() < 1e-12);
}

fn work() -> impl Strategy<Value = Workload> {
    (3.0..10.0_f64, 2.0..10.0_f64, 0.0..=1.0_f64, 0.0..=1.0_f64, 1..8_u32).prop_map(
        |(unique, size, read_frac, seq_frac, process_num)| Workload {
            unique_bytes: (unique.exp2() * MIB as f64) as u64,
            size_mean: (size.exp2() * KIB as f64) as u64,
            read_frac,
            seq_frac,
            process_num,
            ..Workload::default()
        },
    )
}

proptest! {
    #[test]
    fn what_is_served_beyond_caches_in_any_order_is_what_the_largest_does_not_hold(
        sizes in proptest::collection::vec(10.0..24.0_f64, 1..4),
        work in work(),
    ) {
        let caches: Vec<Cache> =
            sizes.iter().map(|ln| Cache::of(&[*ln, -10.0, 0.0, 20.0, 0.0])).collect();
        let beyond: f64 = shares_beyond(&caches, &work, 1.0).map(|(_, share)| share).sum();
        let largest = held(caches[0].bytes, &work);
        prop_assert!((beyond - (1.0 - largest)).abs() < 1e-9 || beyond < 1.0 - largest);
        prop_assert!((0.0..=1.0).contains(&beyond));
    }

    #[test]
    fn the_parts_of_a_requests_time_explain_all_of_it(law in law(), work in work()) {
        // Time twice as long in every part is twice the time: Euler's theorem.
        let elasticities: [f64; PARTS] = law.elasticities(&work);
        let sum: f64 = elasticities.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-2, "{sum}");
        prop_assert!(elasticities.iter().all(|e| *e > -0.3));
    }

    #[test]
    fn class_times_add_up_to_the_response_time_of_one_process(law in law(), work in work()) {
        let work = Workload { process_num: 1, depth: 1, ..work };
        let (ln_throughput, times_s): (f64, [f64; CLASSES]) = law.alone(&work);
        prop_assert!((ln_throughput - law.ln_throughput(&work)).abs() < 1e-9);
        let shares = law.classes(&work).map(|class| class.share);
        let mean_s: f64 = times_s.iter().zip(shares).map(|(time, share)| time * share).sum();
        let response_s = law.response_s(&law.times(&work), Load::of(&work));
        // What holds up writers has nobody to hold up where nobody writes.
        prop_assume!(work.read_frac < 0.999);
        prop_assert!((mean_s / response_s - 1.0).abs() < 1e-9, "{mean_s} {response_s}");
    }

    #[test]
    fn more_data_is_never_faster_and_more_processes_never_slower(law in law(), work in work()) {
        // As long as all fare alike: who wins and who loses depends on how many there are.
        let law = alike(&law);
        let more_data = Workload { unique_bytes: 2 * work.unique_bytes, ..work.clone() };
        let more_processes = Workload { process_num: work.process_num + 1, ..work.clone() };
        let here = law.ln_throughput(&work);
        prop_assert!(law.ln_throughput(&more_processes) >= here - 1e-6);
        // Several levels may cost less the deeper they are: only one is asked.
        let reads = |work: &Workload| {
            law.copy_time_s(&Workload { read_frac: 1.0, seq_frac: 0.0, ..work.clone() })
        };
        prop_assert!(reads(&more_data) >= reads(&work) * (1.0 - 1e-9));
    }

    #[test]
    fn a_deeper_queue_is_never_slower_and_an_fdatasync_never_for_nothing(
        law in law(), work in work(), depth in 1_u32..32,
        copy_costs in [0.2..4.0_f64, 0.2..4.0_f64],
    ) {
        let at = |depth: u32| law.ln_throughput(&Workload { depth, ..work.clone() });
        prop_assert!((at(1) - law.ln_throughput(&work)).abs() < 1e-12);
        // With nothing in the processors' cache: buffers of more requests may push out what is.
        let law = Law { processor_cache_bytes: 1.0, ..alike(&law) };
        // With no limit in sight.
        let limitless = law.clone().with_extras(Extras::limitless());
        let at = |depth: u32| limitless.ln_throughput(&Workload { depth, ..work.clone() });
        prop_assert!(at(depth + 1) >= at(depth) - 1e-6, "{} {}", at(depth), at(depth + 1));
        // With copies that cost less in flight, or more.
        let handing = law.clone().with_extras(Extras::limitless().copying_at(copy_costs));
        let by = |process_num: u32| {
            handing.ln_throughput(&Workload { depth, process_num, ..work.clone() })
        };
        let (here, more) = (by(work.process_num), by(work.process_num + 1));
        prop_assert!(more >= here - 1e-6, "{here} {more}");
        let synced = |fsync_every: u32| {
            limitless.ln_throughput(&Workload { fsync_every, ..work.clone() })
        };
        prop_assert!(synced(depth + 1) >= synced(depth) - 1e-6);
    }
}
