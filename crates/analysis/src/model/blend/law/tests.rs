//! What holds for every law, whatever its parameters.

use ioscape_model::units::{KIB, MIB};
use ioscape_model::{Layout, State, Workload};
use proptest::prelude::*;

use super::super::caches::{PAGE_BYTES, READ, Shape};
use super::super::parameters::{Common, OfCache, PER_CACHE, TABLE, cache_at};
use super::{Law, PARTS, RESOURCES_LOG2, Times};

const SHAPE: Shape = Shape {
    counts: [2, 1],
    first_to_storage: [1, 0],
    read_copy_fixed_s: 8e-7,
    read_ahead_pages: None,
    written_back_from_bytes: None,
    write_waited: 0.5,
};

/// As Linux reads ahead by default.
const WINDOW_PAGES: f64 = 32.0;
const OF_LINUX: Shape = Shape {
    read_ahead_pages: Some(WINDOW_PAGES),
    written_back_from_bytes: Some(32.0 * MIB as f64),
    ..SHAPE
};

/// Parameters that a machine might have, as they are fitted.
fn usual() -> Vec<f64> {
    use Common::{
        DepthCopy, DepthOverlap, LimitShared, MemoryCost, ProcessorCache, Processors, ReadCopyRate,
        ReadLimit, ReadParallel, RequestLimit, Sync, SyncParallel, WriteCopyFixed, WriteCopyRate,
        WriteLimit, WriteParallel,
    };
    let common = [
        (WriteCopyFixed, -14.0),
        (ReadCopyRate, 22.0),
        (WriteCopyRate, 22.0),
        (ProcessorCache, 16.0),
        (MemoryCost, -1.0),
        (Processors, 0.7),
        (ReadParallel, 0.5),
        (WriteParallel, 0.0),
        (RequestLimit, 12.0),
        (ReadLimit, 21.0),
        (WriteLimit, 20.5),
        (LimitShared, 0.0),
        (DepthCopy, 0.0),
        (DepthOverlap, 0.0),
        (Sync, -8.0),
        (SyncParallel, 0.5),
    ];
    let cache = |ln_bytes: f64, ln_fixed_s: f64| [ln_bytes, ln_fixed_s, -0.5, 20.0];
    let caches = [cache(17.0, -11.0), cache(19.0, -8.0), cache(17.5, -10.0)];
    let mut at = vec![0.0; TABLE.len()];
    for (which, ln) in common {
        at[which as usize] = ln;
    }
    at.into_iter().chain(caches.into_iter().flatten()).collect()
}

/// A factor of two or three either way.
fn law() -> impl Strategy<Value = Law> {
    let around = usual();
    let by = proptest::collection::vec(-1.0..1.0_f64, around.len());
    (by, any::<bool>()).prop_map(move |(by, reads_ahead)| {
        let mut at: Vec<f64> = around.iter().zip(by).map(|(x, d)| x + d).collect();
        // The second cache lies beyond the first.
        at[cache_at(SHAPE, [0, 1], OfCache::Size)] =
            at[cache_at(SHAPE, [0, 0], OfCache::Size)] + 2.0;
        Law::from_scaled(if reads_ahead { OF_LINUX } else { SHAPE }, &at)
    })
}

/// A law with one parameter changed.
fn with(law: &Law, which: Common, value: f64) -> Law {
    let mut changed = law.clone();
    changed.values[which as usize] = value;
    changed
}

/// A law of storage without limits.
fn limitless(law: &Law) -> Law {
    [Common::RequestLimit, Common::ReadLimit, Common::WriteLimit]
        .into_iter()
        .fold(law.clone(), |law, which| with(&law, which, 1e18))
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

#[test]
fn places_in_the_table_are_those_that_the_law_asks_for() {
    use Common::{
        DepthCopy, DepthOverlap, LimitShared, MemoryCost, ProcessorCache, Processors, ReadCopyRate,
        ReadLimit, ReadParallel, RequestLimit, Sync, SyncParallel, WriteCopyFixed, WriteCopyRate,
        WriteLimit, WriteParallel,
    };
    let law = Law::from_scaled(SHAPE, &usual());
    let places = [
        (WriteCopyFixed, "a_w"),
        (ReadCopyRate, "b_r"),
        (WriteCopyRate, "b_w"),
        (ProcessorCache, "L"),
        (MemoryCost, "κ"),
        (Processors, "P"),
        (ReadParallel, "m_r"),
        (WriteParallel, "m_w"),
        (RequestLimit, "R"),
        (ReadLimit, "B_r"),
        (WriteLimit, "B_w"),
        (LimitShared, "σ"),
        (DepthCopy, "ξ"),
        (DepthOverlap, "μ"),
        (Sync, "Y"),
        (SyncParallel, "m_f"),
    ];
    assert_eq!(places.len(), TABLE.len());
    assert!(places.into_iter().all(|(which, symbol)| TABLE[which as usize].symbol == symbol));
    assert_eq!(PER_CACHE[OfCache::MissRate as usize].name, "beyond_bytes_per_s");
    assert!((law.get(Common::LimitShared) - 0.5).abs() < 1e-12, "a share");
    assert!((law.cache(1, 0, OfCache::Size).ln() - 17.5).abs() < 1e-12);
}

#[test]
fn reads_and_writes_share_a_limit_or_have_one_each() {
    let law = with(&limitless(&Law::from_scaled(SHAPE, &usual())), Common::RequestLimit, 1.0);
    let times = Times {
        copy: [0.0; 2],
        storage: [0.0; 2],
        waited: 0.0,
        streamed: 0.0,
        read_misses: 0.0,
        requests: [0.5; 2],
        bytes: [0.0; 2],
        write_back_s: 0.0,
    };
    let busy_s = |shared: f64| with(&law, Common::LimitShared, shared).busy_s(&times, 1.0);
    assert!((busy_s(1.0) - 1.0).abs() < 1e-9);
    assert!(
        (busy_s(0.0) - 0.5 * 2.0_f64.powf(f64::from(1_u32 << RESOURCES_LOG2).recip())).abs() < 1e-9
    );
}

#[test]
fn buffers_of_requests_in_flight_push_data_out_of_the_processors_cache() {
    let law = Law::from_scaled(SHAPE, &usual());
    let small = Workload { unique_bytes: 4 * MIB, size_mean: MIB, ..Workload::default() };
    let deep = Workload { depth: 16, ..small.clone() };
    assert!(law.copy_time_s(&deep) > 1.1 * law.copy_time_s(&small));
    let short = |depth: u32| Workload { depth, size_mean: 4 * KIB, ..small.clone() };
    assert!((law.copy_time_s(&short(16)) / law.copy_time_s(&short(1)) - 1.0).abs() < 1e-12);
}

#[test]
fn what_is_read_in_vain_is_what_the_kernels_rules_say() {
    // By a simpler simulation than the example `read_ahead` of ioscape-trace, which counts 4 to 17 % less,
    // where 28 % of the data are cached: window, pages, share in sequence, pages in vain for each miss.
    let counted = [
        (640.0, 4, 0.6, 19.3),
        (640.0, 4, 0.9, 17.5),
        (640.0, 8, 0.39, 20.1),
        (640.0, 35, 0.39, 47.0),
        (640.0, 35, 0.9, 54.2),
        (640.0, 117, 0.39, 122.7),
        (640.0, 117, 0.9, 79.3),
    ];
    for (window_pages, pages, seq_frac, in_vain) in counted {
        let size_mean = pages * PAGE_BYTES as u64;
        let work = Workload { size_mean, seq_frac, read_frac: 1.0, ..Workload::default() };
        let said = Law::vain_bytes(&work, window_pages) / PAGE_BYTES;
        // What is read beside random requests is left out: most of it where these are large.
        assert!((in_vain / 1.75..in_vain * 1.3).contains(&said), "{pages} {seq_frac}: {said}");
    }
    let at = |seq_frac: f64, read_frac: f64| {
        let work = Workload { size_mean: 16 * KIB, seq_frac, read_frac, ..Workload::default() };
        Law::vain_bytes(&work, WINDOW_PAGES)
    };
    assert!(at(0.0, 1.0) + at(1.0, 1.0) < 1e-9, "no run ends");
    assert!(at(0.5, 0.25) < at(0.5, 1.0), "writes break runs off before a window is begun");
}

#[test]
fn what_is_read_in_vain_counts_where_storage_serves_it() {
    // All of it is in the farther cache: nothing gets to storage.
    let law = Law::from_scaled(OF_LINUX, &usual());
    let work =
        Workload { unique_bytes: 150 * MIB, read_frac: 1.0, seq_frac: 0.5, ..Workload::default() };
    let times = law.times(&work);
    assert!(times.read_misses > 0.5 && times.bytes[READ] <= 0.0);
    let far = law.times(&Workload { unique_bytes: 1024 * MIB, ..work });
    assert!(far.bytes[READ] > far.requests[READ] * 16.0 * KIB as f64);
}

#[test]
fn processes_with_files_of_their_own_do_not_share_a_full_cache_evenly() {
    let mut law = Law::from_scaled(OF_LINUX, &usual());
    law.values[cache_at(OF_LINUX, [READ, 0], OfCache::Size)] = 210.0 * MIB as f64;
    let work = |mib: u64, process_num| Workload {
        unique_bytes: mib * MIB,
        process_num,
        read_frac: 1.0,
        ..Workload::default()
    };
    let full = work(256, 4);
    // Three of four files fit; the fourth process finds 18 of 64 MiB.
    let [ahead, other] = law.shared_unevenly(&full, &law.times(&full)).unwrap();
    assert_eq!((ahead.process_num, ahead.unique_bytes), (3, 192 * MIB));
    assert_eq!((other.process_num, other.unique_bytes / MIB), (1, 210 * 64 / 18));
    let ln_rate = |work: &Workload| law.ln_requests_per_s(&law.times(work), work);
    let even = ln_rate(&work(256, 4));
    let uneven = (ln_rate(&ahead).exp() + ln_rate(&other).exp()).ln();
    assert!(uneven > even + 0.4, "most of them wait for nothing");
    let said = law.ln_throughput(&work(256, 4)) - (16.0 * KIB as f64).ln();
    assert!((said - f64::midpoint(even, uneven)).abs() < 1e-9, "half way");
    let shares = |changed: Workload| law.shared_unevenly(&changed, &law.times(&changed)).is_some();
    assert!(!shares(work(200, 4)), "all is cached");
    assert!(!shares(work(500, 4)), "all miss too much for one to get ahead");
    assert!(!shares(work(256, 1)), "one process has the cache to itself");
    assert!(!shares(Workload { layout: Layout::Shared, ..work(256, 4) }), "one file for all");
    assert!(!shares(Workload { state: State::Cold, ..work(256, 4) }));
    assert!(!shares(Workload { read_frac: 0.0, ..work(256, 4) }), "who writes misses nothing");
    law.shape.read_ahead_pages = None;
    assert!(law.shared_unevenly(&full, &law.times(&full)).is_none(), "no kernel's page cache");
}

#[test]
fn writing_back_takes_processor_time_as_far_as_storage_takes_what_is_written() {
    let mut law = Law::from_scaled(OF_LINUX, &usual());
    law.values[cache_at(OF_LINUX, [1, 0], OfCache::MissFixed)] = 1e-7;
    law.values[cache_at(OF_LINUX, [1, 0], OfCache::MissRate)] = 1e10;
    let at = |mib: u64, read_frac: f64, fsync_every: u32| {
        let work = Workload { unique_bytes: mib * MIB, read_frac, ..Workload::default() };
        let times = law.times(&Workload { fsync_every, ..work });
        times.write_back_s / (times.copy[0] + times.copy[1])
    };
    assert!(at(32, 0.0, 0) <= 0.0 && at(64, 1.0, 0) <= 0.0 && at(64, 0.0, 8) <= 0.0);
    assert!(at(64, 0.0, 0) > 0.0 && at(64, 0.5, 0) < at(64, 0.0, 0));
    // Half of the data stay dirty; each byte of the others costs twice its copy.
    let writes = Workload { unique_bytes: 64 * MIB, read_frac: 0.0, ..Workload::default() };
    let times = law.times(&writes);
    let copied_s = 16.0 * KIB as f64 / law.get(Common::WriteCopyRate);
    let over = times.write_back_s / copied_s;
    assert!((over - 1.0).abs() < 1e-9, "{over}");
    let without = Times { write_back_s: 0.0, ..times };
    let all_s = |times: &Times| limitless(&law).queued_s(times, 8.0, 1.0);
    assert!(all_s(&times) > 1.1 * all_s(&without));
    // Storage that takes a MB/s keeps no processor busy.
    let mut slow = law.clone();
    slow.values[cache_at(OF_LINUX, [1, 0], OfCache::MissRate)] = 1e6;
    let work = Workload { unique_bytes: 512 * MIB, read_frac: 0.0, ..Workload::default() };
    assert!(slow.times(&work).write_back_s < 0.01 * slow.times(&work).copy[1]);
}

proptest! {
    #[test]
    fn beyond_caches_in_any_order_is_what_the_largest_does_not_hold(
        law in law(), work in work(), sizes in [10.0..24.0_f64, 10.0..24.0_f64],
    ) {
        let mut law = law;
        for (index, ln) in sizes.into_iter().enumerate() {
            law.values[cache_at(SHAPE, [0, index], OfCache::Size)] = ln.exp();
        }
        let beyond: f64 = law.miss_shares(0, &work).sum();
        let held = (sizes[0].exp() / work.unique_bytes as f64).min(1.0);
        prop_assert!((beyond - (1.0 - held)).abs() < 1e-9);
        prop_assert!(law.miss_shares(0, &work).all(|share| (0.0..=1.0).contains(&share)));
    }

    #[test]
    fn the_parts_of_a_requests_time_explain_all_of_it(
        law in law(), work in work(),
    ) {
        // Time twice as long in every part is twice the time: Euler's theorem.
        let elasticities: [f64; PARTS] = law.elasticities(&work);
        let sum: f64 = elasticities.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-2, "{sum}");
        prop_assert!(elasticities.iter().all(|e| *e > -0.3));
    }

    #[test]
    fn more_data_is_never_copied_faster_and_more_processes_are_never_slower(
        law in law(), work in work(),
    ) {
        let more_data = Workload { unique_bytes: 2 * work.unique_bytes, ..work.clone() };
        // Of one file: those with files of their own may share a cache more evenly if they are more.
        let one_file = Workload { layout: Layout::Shared, ..work.clone() };
        let here = law.ln_throughput(&one_file);
        let more_processes = Workload { process_num: work.process_num + 1, ..one_file };
        prop_assert!(law.ln_throughput(&more_processes) >= here - 1e-6);
        prop_assert!(law.copy_time_s(&more_data) >= law.copy_time_s(&work) * (1.0 - 1e-9));
    }

    #[test]
    fn a_deeper_queue_is_never_slower_and_an_fdatasync_never_for_nothing(
        law in law(), work in work(), depth in 1_u32..32,
    ) {
        let at = |law: &Law, depth: u32| law.ln_throughput(&Workload { depth, ..work.clone() });
        prop_assert!((at(&law, 1) - law.ln_throughput(&work)).abs() < 1e-12);
        // With nothing in the processors' cache, or buffers of more requests would push out what is;
        // with copies and storage that are no worse with many in flight.
        let law = [(Common::ProcessorCache, 1.0), (Common::DepthCopy, 1.0), (Common::DepthOverlap, 1.0)]
            .into_iter()
            .fold(limitless(&law), |law, (which, value)| with(&law, which, value));
        let (here, deeper) = (at(&law, depth), at(&law, depth + 1));
        prop_assert!(deeper >= here - 1e-6, "{here} {deeper}");
        let synced =
            |fsync_every: u32| law.ln_throughput(&Workload { fsync_every, ..work.clone() });
        prop_assert!(synced(depth + 1) >= synced(depth) - 1e-6);
    }
}
