//! Counts and bounds of the mechanism. Where chance is meant, the probability that a right program
//! fails stands there.

use proptest::prelude::*;

use super::*;
use crate::rig::Class;
use crate::sim::{Policy, SimRig};

fn workload(text: &str) -> Workload {
    Workload::parse(text).unwrap()
}

/// A cache of 8 MiB with a dirty limit of 2 MiB above four channels, no noise.
fn small() -> SimSpec {
    SimSpec::from_toml(
        r#"
        name = "small"
        sync_us = 500.0
        [ranges]
        unique_bytes = { min = "8MiB", max = "64MiB" }
        size_mean = { min = "4KiB", max = "1MiB" }
        process_num = { min = 1, max = 4 }
        [machine.cache]
        bytes = "8MiB"
        dirty_background_bytes = "1MiB"
        dirty_bytes = "2MiB"
        parallel = 2
        read = { fixed_us = 2.0, bytes_per_s = "1GB" }
        write = { fixed_us = 3.0, bytes_per_s = "1GB" }
        [machine.storage]
        channels = 4
        seek_us = 100.0
        seek_across_us = 100.0
        read = { fixed_us = 50.0, bytes_per_s = "200MB" }
        write = { fixed_us = 50.0, bytes_per_s = "200MB" }
        "#,
    )
    .unwrap()
}

fn changed(change: impl FnOnce(&mut Machine)) -> SimSpec {
    let mut spec = small();
    change(spec.machine.as_mut().unwrap());
    spec.check().unwrap();
    spec
}

/// A workload that has begun.
fn started(spec: &SimSpec, work: &Workload, seed: u64) -> Run {
    let machine = spec.machine.clone().unwrap();
    let mut rig = MachineRig::new(spec, machine, seed);
    rig.prepare(work).unwrap();
    rig.start(work, seed).unwrap();
    rig.running.unwrap().run
}

/// The windows of some seconds, each of 0.1 s, and what is left to say.
fn run(rig: &mut SimRig, work: &Workload, seed: u64, seconds: f64) -> (Vec<Window>, Finished) {
    rig.prepare(work).unwrap();
    rig.start(work, seed).unwrap();
    let count = (seconds / 0.1).round() as usize;
    let windows = (0..count).map(|_| rig.window(0.1).unwrap()).collect();
    (windows, rig.finish(true).unwrap())
}

/// Requests per second over four seconds, after one that does not count.
fn ops_per_s(spec: &SimSpec, text: &str) -> f64 {
    let (windows, _) = run(&mut SimRig::new(spec.clone(), 1), &workload(text), 1, 5.0);
    windows[10..].iter().map(Window::ops).sum::<u64>() as f64 / 4.0
}

/// Mean response time of a class, seconds.
fn response_s(spec: &SimSpec, text: &str, class: Class) -> f64 {
    let (windows, _) = run(&mut SimRig::new(spec.clone(), 1), &workload(text), 1, 5.0);
    let counts = windows.iter().map(|window| window.classes[class as usize]);
    let (ops, time_s) =
        counts.fold((0, 0.0), |(ops, time_s), count| (ops + count.ops, time_s + count.time_s));
    time_s / ops as f64
}

#[track_caller]
fn close(value: f64, expected: f64, tolerance: f64) {
    let error = (value / expected - 1.0).abs();
    assert!(error <= tolerance, "{value} is not {expected}: {:.2} % off", error * 100.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The page asked for and what is cached are independent, so hits are a fair coin: five
    /// standard errors are missed by a right program once in 1.7 million cases.
    #[test]
    fn the_capacity_is_where_it_is(seed: u64, unique_mib in 9_u64..64, is_lru: bool) {
        let policy = if is_lru { Policy::Lru } else { Policy::TwoLists };
        let spec = changed(|machine| machine.cache.policy = policy);
        let work = workload(&format!(
            "unique_bytes={unique_mib}MiB,size_mean=4k,size_dist=fixed,read_frac=1,seq_frac=0"
        ));
        let mut run = started(&spec, &work, seed);
        run.pass(2.0, 1.0);
        let (asked, hit) = (run.seen.asked_pages as f64, run.seen.hit_pages as f64);
        prop_assert!(asked > 5000.0);
        let expected = 8.0 / unique_mib as f64;
        let error = (expected * (1.0 - expected) / asked).sqrt();
        prop_assert!((hit / asked - expected).abs() < 5.0 * error, "{hit} of {asked}: {expected}");
    }

    #[test]
    fn storage_reads_what_was_missed_and_what_was_read_ahead(
        seed: u64, seq in 0.0_f64..=1.0, size_kib in 4_u64..512, processes in 1_u32..5,
        depth in 1_u32..4, unique_mib in 32_u64..64,
    ) {
        let work = workload(&format!(
            "unique_bytes={unique_mib}MiB,size_mean={size_kib}k,read_frac=1,seq_frac={seq},\
             process_num={processes},depth={depth}"
        ));
        let mut run = started(&small(), &work, seed);
        run.pass(0.5, 1.0);
        let pages = run.seen.missed_reads + run.pages.unused + run.pages.fresh();
        prop_assert_eq!(run.storage.read_bytes, pages * PAGE);
        prop_assert_eq!(run.storage.written_bytes, 0);
    }

    #[test]
    fn each_page_is_written_once_for_each_time_it_becomes_dirty_and_few_are_dirty_at_any_time(
        seed: u64, seq in 0.0_f64..=1.0, read in 0.0_f64..0.9, size_kib in 4_u64..256,
        processes in 1_u32..5, fsync_every in 0_u32..4, depth in 1_u32..4,
    ) {
        let work = workload(&format!(
            "unique_bytes=24MiB,size_mean={size_kib}k,read_frac={read},seq_frac={seq},\
             process_num={processes},fsync_every={fsync_every},depth={depth}"
        ));
        let mut run = started(&small(), &work, seed);
        let limit = (2 << 20) / PAGE;
        while run.step(500_000_000) {
            prop_assert!(u64::from(run.pages.unclean()) <= limit);
            prop_assert!(run.pages.resident() <= run.pages.capacity());
        }
        let (dirtied, dirty) = (run.seen.dirtied_pages, u64::from(run.pages.dirty()));
        prop_assert!(dirtied > 0);
        prop_assert_eq!(run.storage.written_bytes, (dirtied - dirty) * PAGE);
        run.drain();
        prop_assert_eq!(run.pages.unclean(), 0);
        prop_assert_eq!(run.storage.written_bytes, dirtied * PAGE);
    }

    /// With a process and a request at a time nothing else makes pages dirty.
    #[test]
    fn a_synced_write_ends_when_nothing_of_it_is_dirty(seed: u64, size_kib in 4_u64..256) {
        let work = workload(&format!(
            "unique_bytes=24MiB,size_mean={size_kib}k,read_frac=0,fsync_every=1"
        ));
        let mut run = started(&small(), &work, seed);
        let ops = |run: &Run| run.seen.classes.iter().map(|count| count.ops).sum::<u64>();
        let mut seen = 0;
        while seen < 20 {
            prop_assert!(run.step(u64::MAX));
            if ops(&run) > seen {
                seen = ops(&run);
                prop_assert_eq!(run.pages.unclean(), 0);
            }
        }
    }
}

#[test]
fn requests_in_flight_help_up_to_the_number_of_channels() {
    let rate = |depth: u32| {
        ops_per_s(
            &small(),
            &format!(
                "unique_bytes=64MiB,size_mean=64k,read_frac=1,seq_frac=0,access=direct,depth={depth}"
            ),
        )
    };
    let one = rate(1);
    close(rate(2), 2.0 * one, 0.03);
    close(rate(4), 4.0 * one, 0.03);
    close(rate(64), rate(4), 0.03);
}

#[test]
fn a_limit_is_kept_and_lets_a_moment_be_saved_up() {
    let spec = changed(|machine| machine.storage.ops_per_s_max = Some(1000.0));
    let text = "unique_bytes=64MiB,size_mean=4k,read_frac=1,seq_frac=0,access=direct,depth=8";
    close(ops_per_s(&spec, text), 1000.0, 0.005);
    let spec = changed(|machine| machine.storage.bytes_per_s_max = Some(8e6));
    let text = "unique_bytes=64MiB,size_mean=8000,align=1,size_dist=fixed,access=direct,depth=8,\
                seq_frac=0,read_frac=0.5";
    close(ops_per_s(&spec, text), 1000.0, 0.005);
}

#[test]
fn streams_are_read_ahead_and_random_reads_pay_the_seek() {
    let one = changed(|machine| machine.storage.channels = 1);
    let rate = |seq: u32| {
        ops_per_s(&one, &format!("unique_bytes=64MiB,size_mean=16k,read_frac=1,seq_frac={seq}"))
    };
    // Windows of 128 KiB: 50 us and 655 us each, eight requests; no seek but at the file's end.
    close(rate(1), 8.0 / 705e-6, 0.05);
    assert!(rate(0) < 0.5 * rate(1), "{} and {}", rate(0), rate(1));
}

#[test]
fn a_scan_that_comes_round_finds_nothing_of_a_cache_half_its_size() {
    for policy in [Policy::Lru, Policy::TwoLists] {
        let spec = changed(|machine| machine.cache.policy = policy);
        let work = workload("unique_bytes=16MiB,size_mean=64k,read_frac=1,seq_frac=1");
        let mut run = started(&spec, &work, 1);
        run.pass(1.0, 1.0);
        assert!(run.seen.asked_pages > 10_000);
        assert_eq!(run.seen.hit_pages, 0, "{policy:?}");
    }
}

#[test]
fn write_back_slows_reads() {
    let disk = changed(|machine| machine.storage.channels = 1);
    let at = |read: f64| {
        let text =
            format!("unique_bytes=64MiB,size_mean=4k,seq_frac=0,process_num=2,read_frac={read}");
        response_s(&disk, &text, Class::ReadRand)
    };
    assert!(at(0.5) > 1.3 * at(1.0), "{} and {}", at(0.5), at(1.0));
}

#[test]
fn what_is_cached_is_copied_by_as_many_processors_as_there_are() {
    let rate = |processes: u32| {
        let text = format!("unique_bytes=4MiB,size_mean=4k,read_frac=1,process_num={processes}");
        ops_per_s(&small(), &text)
    };
    close(rate(2), 2.0 * rate(1), 0.01);
    close(rate(4), rate(2), 0.01);
}

#[test]
fn an_open_loop_keeps_its_rate_and_its_latency_has_the_wait() {
    let work = workload("unique_bytes=24MiB,read_frac=1,rate=500");
    let (windows, finished) = run(&mut SimRig::new(small(), 1), &work, 1, 10.0);
    let ops: u64 = windows.iter().map(Window::ops).sum();
    close(ops as f64, 5000.0, 0.01);
    let latency = finished.latency_ns.unwrap();
    let response_ns: f64 =
        finished.response_ns.iter().map(|times| times.mean() * times.len() as f64).sum();
    assert_eq!(latency.len(), ops);
    assert!(latency.mean() * ops as f64 >= 0.999 * response_ns);
}

#[test]
fn a_cold_start_finds_nothing() {
    let work = workload("unique_bytes=8MiB,size_mean=4k,read_frac=1,seq_frac=0,state=cold");
    let (windows, _) = run(&mut SimRig::new(small(), 1), &work, 1, 0.1);
    assert!(windows[0].hit_fraction.unwrap() < 0.5);
    let warm = Workload { state: State::Warm, ..work };
    let (windows, _) = run(&mut SimRig::new(small(), 1), &warm, 1, 0.1);
    assert_eq!(windows[0].device_read_bytes, Some(0));
}

#[test]
fn the_same_seeds_give_the_same_visit_whatever_ran_before() {
    for name in SimSpec::machine_names() {
        let spec = SimSpec::preset(name).unwrap();
        let work = workload("unique_bytes=512MiB,process_num=2");
        let fresh = run(&mut SimRig::new(spec.clone(), 5), &work, 11, 1.0).0;
        let mut used = SimRig::new(spec.clone(), 5);
        run(&mut used, &workload("unique_bytes=32MiB"), 3, 1.0);
        assert_eq!(run(&mut used, &work, 11, 1.0).0, fresh);
        assert_ne!(run(&mut used, &work, 12, 1.0).0, fresh);
    }
}

#[test]
fn no_more_reaches_a_machine_than_may_be_written_whatever_is_dirty() {
    const MOST: u64 = 40 << 20;
    for access in ["direct", "buffered"] {
        let mut rig = SimRig::new(small(), 1);
        rig.limit_written(MOST);
        let work = workload(&format!("unique_bytes=24MiB,read_frac=0,access={access}"));
        rig.prepare(&work).unwrap();
        assert_eq!(rig.may_write_bytes(), 16 << 20);
        rig.start(&work, 1).unwrap();
        let ended = (0..1000).find_map(|_| rig.window(0.1).err()).unwrap();
        assert!(matches!(ended, Error::MaxWritten), "{ended}");
        rig.finish(true).unwrap();
        assert!(rig.written_bytes() <= MOST && rig.written_bytes() > MOST - (1 << 20));
        assert_eq!(rig.may_write_bytes(), MOST - rig.written_bytes());
    }
}

#[test]
fn a_visit_that_is_not_synced_is_written_back_before_the_next_one() {
    let mut rig = SimRig::new(small(), 1);
    let work = workload("unique_bytes=8MiB,read_frac=0");
    rig.prepare(&work).unwrap();
    rig.start(&work, 1).unwrap();
    let dirty_bytes = (0..10).map(|_| rig.window(0.1).unwrap()).last().unwrap().dirty_bytes;
    rig.finish(false).unwrap();
    let before_bytes = rig.written_bytes();
    let spent_s = rig.prepare(&work).unwrap().spent_s;
    assert!(spent_s.quiesce > 0.0 && dirty_bytes > Some(0));
    assert_eq!(Some(rig.written_bytes() - before_bytes), dirty_bytes);
}

#[test]
fn a_wrong_machine_is_refused_with_one_line_that_says_what_to_try() {
    let good = small().to_toml();
    assert_eq!(SimSpec::from_toml(&good).unwrap(), small());
    for (from, to, part) in [
        ("dirty_bytes = 2097152", "dirty_bytes = 8388608", "0.8 of cache.bytes"),
        ("channels = 4", "channels = 0", "from 1 to 4096"),
        ("fixed_us = 2.0", "fixed_us = 0.0", "0.5 or more"),
        ("max = 67108864", "max = \"1TiB\"", "64 GiB at most"),
        ("policy = \"two_lists\"", "policy = \"clock\"", "unknown variant `clock`"),
        ("[machine.cache]", "[trouble]\nerror_rate = 0.1\n[machine.cache]", "no trouble"),
    ] {
        assert!(good.contains(from), "{from} is not in\n{good}");
        let message = SimSpec::from_toml(&good.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.contains(part) && !message.contains('\n'), "{message}");
    }
}

#[test]
fn presets_read_back_and_serve_all_corners_of_their_ranges() {
    for name in SimSpec::machine_names() {
        let spec = SimSpec::preset(name).unwrap();
        assert_eq!(
            (spec.name.as_str(), SimSpec::from_toml(&spec.to_toml()).unwrap()),
            (name, spec.clone())
        );
        let ranges = spec.ranges();
        for unique_bytes in [ranges.unique_bytes.min, ranges.unique_bytes.max] {
            for size_mean in [ranges.size_mean.min, unique_bytes / 32] {
                for process_num in [1, 4] {
                    let work =
                        Workload { unique_bytes, size_mean, process_num, ..Workload::default() };
                    work.check().unwrap();
                    let (windows, _) = run(&mut SimRig::new(spec.clone(), 1), &work, 1, 1.0);
                    assert!(windows.iter().map(Window::ops).sum::<u64>() > 0, "{name} {work}");
                }
            }
        }
    }
}
