//! The known law comes back out of the windows.

use ioscape_model::Workload;

use super::*;
use crate::error::Error;
use crate::rig::{Class, Finished, Rig, Window};

fn workload(text: &str) -> Workload {
    Workload::parse(text).unwrap()
}

/// A cache of 64 MiB with a dirty limit of 16 MiB, no noise.
fn two_levels() -> SimSpec {
    SimSpec::from_toml(
        r#"
        name = "two-levels"
        [ranges]
        unique_bytes = { min = "8MiB", max = "1GiB" }
        size_mean = { min = "4KiB", max = "1MiB" }
        process_num = { min = 1, max = 4 }
        [[level]]
        name = "cache"
        read_bytes = "64MiB"
        write_bytes = "16MiB"
        read_random = { fixed_us = 10.0, bytes_per_s = "1GB" }
        [[level]]
        name = "disk"
        parallel = 4
        read_random = { fixed_us = 1000.0, bytes_per_s = "100MB" }
        read_sequential = { fixed_us = 50.0, bytes_per_s = "100MB" }
        write_random = { fixed_us = 500.0, bytes_per_s = "100MB" }
        "#,
    )
    .unwrap()
}

/// Runs a workload for `seconds` in windows of 0.1 s.
fn run(rig: &mut SimRig, work: &Workload, seed: u64, seconds: f64) -> (Vec<Window>, Finished) {
    rig.prepare(work).unwrap();
    rig.start(work, seed).unwrap();
    let count = (seconds / 0.1).round() as usize;
    let windows = (0..count).map(|_| rig.window(0.1).unwrap()).collect();
    (windows, rig.finish(true).unwrap())
}

fn throughput(windows: &[Window]) -> f64 {
    let bytes: u64 = windows.iter().map(Window::bytes).sum();
    bytes as f64 / windows.iter().map(|window| window.length_s).sum::<f64>()
}

#[track_caller]
fn close(value: f64, expected: f64, tolerance: f64) {
    let error = (value / expected - 1.0).abs();
    assert!(error <= tolerance, "{value} is not {expected}: {:.2} % off", error * 100.0);
}

#[test]
fn time_is_a_mixture_of_hits_and_misses() {
    let spec = two_levels();
    // Half of the reads hit: (10 + 4.096)/2 + (1000 + 40.96)/2 microseconds.
    let work = workload("unique_bytes=128MiB,size_mean=4096,read_frac=1,seq_frac=0");
    close(spec.expected_throughput(&work), 4096.0 / 527.528e-6, 1e-9);
    // An eighth of the writes is absorbed.
    let work = Workload { read_frac: 0.0, ..work };
    let expected_s = 14.096e-6 / 8.0 + 540.96e-6 * 7.0 / 8.0;
    close(spec.expected_throughput(&work), 4096.0 / expected_s, 1e-9);
    // Below both sizes nothing reaches the disk.
    let work = workload("unique_bytes=16MiB,size_mean=4096");
    close(spec.expected_throughput(&work), 4096.0 / 14.096e-6, 1e-9);
}

#[test]
fn concurrency_helps_until_the_busiest_level_is_full() {
    let spec = two_levels();
    let missing = |processes: u32| Workload {
        process_num: processes,
        ..workload("unique_bytes=64GiB,size_mean=4096,read_frac=1,seq_frac=0")
    };
    let rate = |processes| spec.performance(&missing(processes)).ops_per_s;
    assert!(rate(2) > 1.5 * rate(1));
    let full = 4.0 / 1040.96e-6;
    assert!(rate(64) < full && rate(64) > 0.9 * full, "{}", rate(64));
    // Little's law holds with the stretched response times.
    close(spec.performance(&missing(8)).response_s() * rate(8), 8.0, 1e-9);
}

#[test]
fn a_limit_on_requests_binds_even_one_process() {
    let mut spec = two_levels();
    spec.levels[1].ops_per_s_max = Some(100.0);
    let work = workload("unique_bytes=64GiB,size_mean=4096,read_frac=1,seq_frac=1");
    close(spec.performance(&work).ops_per_s, 100.0, 0.01);
}

#[test]
fn direct_access_goes_to_the_storage() {
    let work = workload("unique_bytes=16MiB,size_mean=4096,read_frac=1,seq_frac=0,access=direct");
    close(two_levels().expected_throughput(&work), 4096.0 / 1040.96e-6, 1e-9);
}

#[test]
fn requests_in_flight_overlap_on_the_storage_but_are_copied_one_by_one() {
    let spec = two_levels();
    let rate = |text: &str| spec.performance(&workload(text)).ops_per_s;
    let direct = "unique_bytes=1GiB,size_mean=4096,read_frac=1,seq_frac=0,access=direct,depth=";
    let buffered = "unique_bytes=1GiB,size_mean=4096,read_frac=1,seq_frac=0,depth=";
    for base in [direct, buffered] {
        let at = |depth: u32| rate(&format!("{base}{depth}"));
        assert!(at(2) > 1.5 * at(1), "{base}");
        assert!(at(64) > 0.9 * at(1024) && at(64) < 5.0 * at(1), "{base}: four at a time");
    }
    // All in the cache: a process copies as fast as ever, whatever it keeps in flight.
    let cached = "unique_bytes=16MiB,size_mean=4096,depth=";
    close(rate(&format!("{cached}32")), rate(&format!("{cached}1")), 1e-9);
}

#[test]
fn writes_that_are_synced_pay_for_the_storage_and_for_their_part_of_the_sync() {
    let spec = SimSpec { sync_us: Some(3000.0), ..two_levels() };
    let time_us = |text: &str| {
        let work = workload(&format!("unique_bytes=16MiB,size_mean=4096,read_frac=0,{text}"));
        1e6 / spec.performance(&work).ops_per_s
    };
    // A copy of 14.096 us, and a write of 540.96 us.
    let copy_us = 10.0 + 4.096;
    close(time_us("seq_frac=0,fsync_every=1"), copy_us + 540.96 + 3000.0, 1e-9);
    close(time_us("seq_frac=0,fsync_every=8"), copy_us + 540.96 / 4.0 + 3000.0 / 8.0, 1e-9);
    close(time_us("seq_frac=0,fsync_every=1,access=direct"), 540.96 + 3000.0, 1e-9);
    close(time_us("seq_frac=0"), copy_us, 1e-9);
    let work = workload("unique_bytes=16MiB,size_mean=4096,read_frac=0,fsync_every=2");
    let (windows, _) = run(&mut SimRig::new(spec.clone(), 1), &work, 1, 10.0);
    close(throughput(&windows), spec.expected_throughput(&work), 0.01);
    let last = windows.last().unwrap();
    assert_eq!(last.dirtied_bytes, Some(last.bytes()), "all of it reaches the storage");
    assert!(last.dirty_bytes.unwrap() <= 2 * 4096);
}

/// Stalls of one second every twenty of work, at a tenth of the rate that the device gives: what a
/// stall leaves is done with long before the next one.
fn stalled(depth: u32) -> (f64, Finished, Vec<Window>) {
    let noise = Noise { stall_every_s: 20.0, stall_s: 1.0, ..Noise::default() };
    let spec = SimSpec { noise, ..two_levels() };
    let closed = workload(&format!(
        "unique_bytes=1GiB,size_mean=4096,read_frac=1,seq_frac=0,access=direct,depth={depth}"
    ));
    let rate = spec.performance(&closed).ops_per_s / 10.0;
    let work = Workload { rate, ..closed };
    let (windows, finished) = run(&mut SimRig::new(spec, 3), &work, 1, 4000.0);
    (rate, finished, windows)
}

#[test]
fn a_stall_is_felt_by_all_who_come_in_it_at_any_depth() {
    for depth in [1, 32] {
        let (rate, finished, windows) = stalled(depth);
        let ops: u64 = windows.iter().map(Window::ops).sum();
        close(ops as f64 / 4000.0, rate, 0.001);
        // The wait of those who come at `a` in a stall is 1 - 0.9 a, until it is zero: of every 21 s
        // the share (1 - y) / 0.9 / 21 waits longer than y.
        let stalls =
            f64::from(windows.windows(2).fold(0_u32, |count, pair| {
                count + u32::from(pair[0].ops() > 0 && pair[1].ops() == 0)
            }));
        let every_s = 4000.0 / stalls;
        let wait_s = |tail: f64| 1.0 - tail * every_s * 0.9;
        let latency = finished.latency_ns.unwrap();
        assert_eq!(latency.len(), ops);
        for quantile in [0.99, 0.999] {
            let seen_s = latency.value_at_quantile(quantile) as f64 * 1e-9;
            close(seen_s, wait_s(1.0 - quantile), 0.05);
        }
        // The closed figure hides it.
        let response = &finished.response_ns[Class::ReadRand as usize];
        assert!(response.value_at_quantile(0.999) < 10_000_000);
    }
}

#[test]
fn windows_without_noise_give_the_law_exactly() {
    let spec = two_levels();
    for text in ["unique_bytes=32MiB", "unique_bytes=512MiB,process_num=4,read_frac=0.7"] {
        let work = workload(text);
        let (windows, finished) = run(&mut SimRig::new(spec.clone(), 1), &work, 7, 10.0);
        close(throughput(&windows), spec.expected_throughput(&work), 0.002);
        let performance = spec.performance(&work);
        for class in Class::ALL {
            let ops: u64 = windows.iter().map(|w| w.classes[class as usize].ops).sum();
            let time_s: f64 = windows.iter().map(|w| w.classes[class as usize].time_s).sum();
            let histogram = &finished.response_ns[class as usize];
            assert_eq!(histogram.len(), ops, "{class:?}");
            let expected_s = performance.class_response_s(class).unwrap();
            close(time_s / ops as f64, expected_s, 0.05);
            close(histogram.mean() * 1e-9, expected_s, 0.05);
        }
    }
}

#[test]
fn the_mean_over_noisy_visits_is_the_law() {
    let mut spec = two_levels();
    spec.noise = Noise {
        between_cv: 0.04,
        within_cv: 0.15,
        within_correlation: 0.7,
        response_cv: 0.5,
        ..Noise::default()
    };
    let work = workload("unique_bytes=128MiB");
    let mut rig = SimRig::new(spec.clone(), 3);
    let visits: Vec<f64> =
        (0..60).map(|seed| throughput(&run(&mut rig, &work, seed, 10.0).0)).collect();
    let mean = visits.iter().sum::<f64>() / 60.0;
    close(mean, spec.expected_throughput(&work), 0.02);
    let variance = visits.iter().map(|visit| (visit / mean - 1.0).powi(2)).sum::<f64>() / 59.0;
    // 4 % between visits, and what 100 correlated windows leave of 15 %: 3.6 %.
    close(variance.sqrt(), 0.054, 0.35);
}

#[test]
fn the_start_transient_fades_with_its_time_constant() {
    let mut spec = two_levels();
    spec.noise = Noise { transient_amplitude: 0.5, transient_s: 1.0, ..Noise::default() };
    let work = workload("unique_bytes=32MiB");
    let (windows, _) = run(&mut SimRig::new(spec.clone(), 1), &work, 1, 10.0);
    let expected = spec.expected_throughput(&work);
    close(throughput(&windows[..1]), expected * (1.0 - 0.5 * (-0.05_f64).exp()), 0.01);
    close(throughput(&windows[10..11]), expected * (1.0 - 0.5 * (-1.05_f64).exp()), 0.01);
    close(throughput(&windows[90..]), expected, 0.01);
}

#[test]
fn stalls_are_part_of_the_truth() {
    let mut spec = two_levels();
    spec.noise = Noise { stall_every_s: 1.0, stall_s: 0.25, ..Noise::default() };
    let work = workload("unique_bytes=32MiB");
    let (windows, _) = run(&mut SimRig::new(spec.clone(), 1), &work, 1, 1000.0);
    assert!(windows.iter().any(|window| window.ops() == 0));
    close(throughput(&windows), spec.expected_throughput(&work), 0.02);
}

#[test]
fn preparing_costs_simulated_time_for_layout_and_warm_up() {
    let mut rig = SimRig::new(two_levels(), 1);
    let large = workload("unique_bytes=256MiB");
    let first = rig.prepare(&large).unwrap().spent_s;
    // 256 MiB at 100 MB/s, and half a millisecond for each MiB.
    close(first.layout, 256.0 * (0.010_485_76 + 0.0005), 1e-6);
    assert_eq!(rig.written_bytes(), 256 << 20);
    close(rig.now_s(), first.total(), 1e-12);
    assert!(rig.prepare(&large).unwrap().spent_s.total() < 1e-9, "all there already");
    let refused = rig.prepare(&workload("unique_bytes=16GiB")).unwrap_err();
    assert!(matches!(refused, Error::NoRoom { .. }), "{refused}");
}

#[test]
fn no_more_reaches_a_device_than_may_be_written_whatever_is_dirty() {
    const MOST: u64 = 300 << 20;
    let mut rig = SimRig::new(two_levels(), 1);
    rig.limit_written(MOST);
    let work = workload("unique_bytes=256MiB,read_frac=0");
    rig.prepare(&work).unwrap();
    assert_eq!(rig.may_write_bytes(), 44 << 20);
    rig.start(&work, 1).unwrap();
    let ended = (0..1000).find_map(|_| rig.window(0.1).err()).unwrap();
    assert!(matches!(ended, Error::MaxWritten), "{ended}");
    rig.finish(true).unwrap();
    assert_eq!((rig.written_bytes(), rig.may_write_bytes()), (MOST, 0));
    let refused = rig.prepare(&workload("unique_bytes=257MiB")).unwrap_err();
    assert!(matches!(refused, Error::MaxWritten), "{refused}");
    rig.prepare(&workload("unique_bytes=256MiB")).unwrap();
}

#[test]
fn counters_show_the_hit_fraction_and_the_dirty_limit() {
    let work = workload("unique_bytes=256MiB");
    let (windows, finished) = run(&mut SimRig::new(two_levels(), 1), &work, 1, 20.0);
    let last = windows.last().unwrap();
    close(last.hit_fraction.unwrap(), 0.25, 1e-12);
    assert_eq!(last.resident_bytes, Some(64 << 20));
    assert_eq!(last.dirty_bytes, Some(16 << 20));
    let missed = last.device_read_bytes.unwrap() as f64;
    close(missed / (last.classes[0].bytes + last.classes[1].bytes) as f64, 0.75, 0.01);
    assert!(finished.sync_s.unwrap() > 0.1);
    let without = SimSpec { counters: false, ..two_levels() };
    let (windows, _) = run(&mut SimRig::new(without, 1), &work, 1, 1.0);
    assert_eq!(windows[0].hit_fraction.or(windows[0].cpu_s), None);
}

#[test]
fn a_device_that_fails_says_what_failed_and_stays_failed() {
    let spec = SimSpec { error_after_requests: Some(5000), ..two_levels() };
    let work = workload("unique_bytes=32MiB");
    let mut rig = SimRig::new(spec, 1);
    for _ in 0..2 {
        rig.prepare(&work).unwrap();
        rig.start(&work, 1).unwrap();
        let error = (0..100).find_map(|_| rig.window(0.1).err()).unwrap();
        assert!(matches!(error, Error::Request { .. }), "{error}");
        assert!(error.to_string().contains("sim:two-levels"), "{error}");
    }
}

#[test]
fn the_same_seeds_give_the_same_visit_whatever_ran_before() {
    let spec = SimSpec::preset("nvme").unwrap();
    let work = workload("unique_bytes=64MiB");
    let fresh = run(&mut SimRig::new(spec.clone(), 5), &work, 11, 2.0).0;
    let mut used = SimRig::new(spec.clone(), 5);
    run(&mut used, &workload("unique_bytes=32MiB"), 3, 1.0);
    assert_eq!(run(&mut used, &work, 11, 2.0).0, fresh);
    assert_ne!(run(&mut used, &work, 12, 2.0).0, fresh);
}

#[test]
fn every_preset_reads_back_and_serves_all_corners_of_its_ranges() {
    for name in SimSpec::names() {
        let spec = SimSpec::preset(name).unwrap();
        assert_eq!(spec.name, name);
        assert_eq!(SimSpec::from_toml(&spec.to_toml()).unwrap(), spec, "{name}");
        let ranges = spec.ranges();
        let middle = Workload { unique_bytes: ranges.unique_bytes.max, ..Workload::default() };
        middle.check().unwrap();
        for unique_bytes in [ranges.unique_bytes.min, ranges.unique_bytes.max] {
            for size_mean in [ranges.size_mean.min, ranges.size_mean.max] {
                for process_num in [ranges.process_num.min as u32, ranges.process_num.max as u32] {
                    let work = Workload { unique_bytes, size_mean, process_num, ..middle.clone() };
                    let truth = spec.expected_throughput(&work);
                    assert!(truth.is_finite() && truth > 1e4, "{name} {work}: {truth}");
                }
            }
        }
    }
}

#[test]
fn a_wrong_description_is_refused_with_one_line_that_says_what_to_try() {
    let good = two_levels().to_toml();
    for (from, to, part) in [
        ("read_bytes = 67108864", "read_byts = 67108864", "unknown field `read_byts`"),
        ("read_bytes = 67108864\n", "", "needs read_bytes"),
        ("read_bytes = 67108864", "read_bytes = \"64 potatoes\"", "not a size"),
        ("parallel = 4.0", "parallel = 0.0", "above 0"),
        ("min = 1\n", "min = 0\n", "ranges.process_num.min is 0; it can be 1 to 65536"),
        ("min = 1\n", "min = 100000\n", "it can be 1 to 65536"),
        ("between_cv = 0.0", "between_cv = -1.0", "0.03 is usual"),
    ] {
        assert!(good.contains(from), "{from} is not in\n{good}");
        let message = SimSpec::from_toml(&good.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let message = SimSpec::preset("nmve").unwrap_err().to_string();
    assert!(message.contains("nmve") && message.contains("sparcstation-1plus"), "{message}");
}

#[test]
fn ten_simulated_minutes_are_short_work() {
    let mut rig = SimRig::new(SimSpec::preset("nvme").unwrap(), 1);
    let work = workload("unique_bytes=1GiB,process_num=4");
    let (windows, _) = run(&mut rig, &work, 1, 600.0);
    // About a billion requests: were they made one by one, this test would not end.
    assert!(windows.iter().map(Window::ops).sum::<u64>() > 10_000_000);
    assert!(rig.now_s() >= 600.0);
}
