//! What a point says about a visit whose every figure is known beforehand.

use ioscape_engine::{Error, Rig, Window};
use ioscape_experiment::{Event, Subject, measure};
use ioscape_model::units::three_digits;
use ioscape_model::{Code, Point, Role, Rules, Severity, Workload};

use ioscape_test_support::{Stream, StreamSpec};

const GB: f64 = 1e9;

fn work(read_frac: f64) -> Workload {
    Workload { read_frac, ..Workload::default() }
}

fn visit_with(rig: &mut Stream, read_frac: f64, rules: &Rules) -> Point {
    let work = work(read_frac);
    let subject = Subject { work: &work, role: Role::Calibration, round: 2, seed: 11 };
    measure(&subject, rules, rig, &mut |_| {}).unwrap()
}

fn visit(rig: &mut Stream, read_frac: f64) -> Point {
    visit_with(rig, read_frac, &Rules::thorough())
}

fn codes(point: &Point) -> Vec<Code> {
    point.warnings.iter().map(|warning| warning.code).collect()
}

fn assert_close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-3, "{found} is not {expected}");
}

#[test]
fn a_quiet_visit_is_short_and_free_of_doubt() {
    let law = StreamSpec { variation: 0.005, ..StreamSpec::default() };
    let mut rig = Stream::new(law, 1);
    let point = visit(&mut rig, 1.0);
    assert!((point.throughput() / GB - 1.0).abs() < 0.01);
    assert!(point.steady && point.warnings.is_empty(), "{:?}", point.warnings);
    assert_eq!((point.windows, point.windows_cut), (13, 0));
    assert_eq!((point.round, point.role, point.seed), (2, Role::Calibration, 11));
    assert_eq!(point.engine, "stream");
    assert!(point.durable_bytes_per_s.is_none() && point.latency_s.is_none());
}

#[test]
fn the_parts_of_the_time_add_up() {
    let mut rig = Stream::new(StreamSpec::default(), 2);
    rig.sync_s = 1.5;
    let point = visit(&mut rig, 0.5);
    assert_close(point.spent_s.warm_up, 0.25);
    assert_close(point.spent_s.settling, 1.0);
    assert_close(point.spent_s.measuring, 0.1 * f64::from(point.windows + point.windows_cut));
    assert_close(point.spent_s.sync, 1.5);
    assert_close(point.spent_s.total(), point.elapsed_s);
    assert_close(rig.now_s(), point.started_s + point.elapsed_s);
}

#[test]
fn a_visit_that_may_write_no_more_counts_if_enough_was_measured() {
    let ended_after = |windows_max: usize| {
        let mut rig = Stream::new(StreamSpec::default(), 3);
        rig.windows_max = windows_max;
        let work = work(0.0);
        let subject = Subject { work: &work, role: Role::Calibration, round: 0, seed: 1 };
        measure(&subject, &Rules::thorough(), &mut rig, &mut |_| {})
    };
    // Ten windows to run in, and ten before a first look at them.
    for windows in [0, 5, 10, 19] {
        let ended = ended_after(windows);
        assert!(matches!(ended, Err(Error::MaxWritten)), "{windows}: {ended:?}");
    }
    let point = ended_after(20).unwrap();
    assert_eq!(point.windows + point.windows_cut, 10);
    assert!((point.throughput() / GB - 1.0).abs() < 0.1);
}

#[test]
fn requests_are_counted_by_class_and_response_times_follow() {
    let point = visit(&mut Stream::new(StreamSpec::default(), 3), 0.25);
    let (reads, writes) = (point.classes.read_rand, point.classes.write_rand);
    assert_eq!(point.classes.read_seq.ops + point.classes.write_seq.ops, 0);
    assert!((reads.ops as f64 / (reads.ops + writes.ops) as f64 - 0.25).abs() < 1e-3);
    assert_eq!(reads.bytes, reads.ops * 16384);
    let kept_s = 0.1 * f64::from(point.windows);
    assert_close((reads.ops + writes.ops) as f64 / kept_s, point.ops_per_s);
    assert_close((reads.bytes + writes.bytes) as f64 / kept_s, point.throughput());
    // 16 KiB at 1 GB/s; the quantiles to the three digits of a histogram.
    for response_s in [point.response_time_s.mean, point.response_time_s.p999, reads.mean_s] {
        assert_close(response_s, 16384.0 / GB);
    }
    assert!((writes.p99_s / (16384.0 / GB) - 1.0).abs() < 2e-3);
}

#[test]
fn durable_throughput_counts_the_final_sync_in() {
    let mut rig = Stream::new(StreamSpec { variation: 0.001, ..StreamSpec::default() }, 4);
    rig.sync_s = 3.9;
    let point = visit(&mut rig, 0.0);
    // What was written while settling is flushed as well, so it counts as well.
    let ran_s = point.spent_s.settling + point.spent_s.measuring;
    let expected = point.throughput() * ran_s / (ran_s + 3.9);
    assert_close(point.durable_bytes_per_s.unwrap(), expected);
    let unasked = Rules { sync_at_end: false, ..Rules::thorough() };
    assert_eq!(visit_with(&mut rig, 0.0, &unasked).durable_bytes_per_s, None);
}

#[test]
fn a_beginning_that_was_faster_counts_in_no_throughput() {
    let law = StreamSpec { transient: 2.0, variation: 0.001, ..StreamSpec::default() };
    let mut rig = Stream::new(law, 4);
    rig.sync_s = 0.1;
    let point = visit(&mut rig, 0.5);
    let durable = point.durable_bytes_per_s.unwrap();
    assert!(durable <= point.throughput(), "{durable} of {}", point.throughput());
    assert!(durable > 0.95 * point.throughput(), "{durable} of {}", point.throughput());
}

#[test]
fn counters_become_shares_of_what_was_asked_for() {
    let decorate = |window: &mut Window, _: f64| {
        window.hit_fraction = Some(0.75);
        window.resident_bytes = Some(48 << 20);
        window.device_read_bytes = Some(window.classes[1].bytes * 2);
        window.dirtied_bytes = Some(window.classes[3].bytes / 4);
        window.dirty_bytes = Some(5000);
        window.writeback_bytes = Some(300);
        window.cpu_s = Some(1e-6 * window.ops() as f64);
    };
    let point = visit(&mut Stream::new(StreamSpec::default(), 5).decorated(decorate), 0.5);
    assert_close(point.hit_fraction.unwrap(), 0.75);
    assert_eq!(point.resident_bytes, Some(48 << 20));
    assert_close(point.read_amplification.unwrap(), 2.0);
    assert_close(point.write_absorbed_fraction.unwrap(), 0.75);
    assert_eq!((point.dirty_bytes, point.writeback_bytes), (Some(5000), Some(300)));
    assert_close(point.cpu_s_per_op.unwrap(), 1e-6);
}

#[test]
fn what_is_not_known_stays_unknown() {
    let point = visit(&mut Stream::new(StreamSpec::default(), 6), 1.0);
    assert_eq!(point.hit_fraction, None);
    assert_eq!(point.read_amplification, None);
    assert_eq!(point.write_absorbed_fraction, None);
    assert_eq!(point.cpu_s_per_op, None);
    let writer = Stream::new(StreamSpec::default(), 6)
        .decorated(|window, _| window.device_read_bytes = Some(0));
    assert_eq!(visit(&mut { writer }, 0.0).read_amplification, None, "nothing was read");
}

#[test]
fn windows_grow_until_they_hold_enough_requests() {
    let slow =
        StreamSpec { bytes_per_s: 16384.0 * 500.0, variation: 0.01, ..StreamSpec::default() };
    let mut rig = Stream::new(slow, 7);
    visit(&mut rig, 1.0);
    let last = rig.lengths_s.last().unwrap();
    assert!((0.35..0.45).contains(last), "{last}");
}

#[test]
fn windows_without_a_request_count_and_are_survived() {
    // A request takes 2.5 s; some windows of a second see none.
    let crawling =
        StreamSpec { bytes_per_s: 0.4 * 16384.0, variation: 0.001, ..StreamSpec::default() };
    let point = visit(&mut Stream::new(crawling, 8), 1.0);
    assert!((point.ops_per_s / 0.4 - 1.0).abs() < 0.1, "{}", point.ops_per_s);
    assert!(point.throughput_bytes_per_s.low <= 0.4 * 16384.0);
    assert!(point.throughput_bytes_per_s.high >= 0.4 * 16384.0);
    let few = point.warnings.iter().find(|warning| warning.code == Code::FewRequests).unwrap();
    assert_eq!(few.severity, Severity::Note);
    let shown = format!("only {} requests stand behind", few.figures["requests"]);
    assert!(few.text.starts_with(&shown), "{}", few.text);
}

#[test]
fn a_visit_in_which_nothing_happens_ends_and_says_so() {
    let point =
        visit(&mut Stream::new(StreamSpec { bytes_per_s: 0.0, ..StreamSpec::default() }, 9), 1.0);
    assert!(point.throughput().abs() < 1e-300);
    assert!(!point.steady);
    assert!(point.elapsed_s < 40.0);
    let worst = point.warnings.iter().max_by_key(|warning| warning.severity).unwrap();
    assert_eq!((worst.code, worst.severity), (Code::NotSteady, Severity::Serious));
    // Infinities would be lost in JSON.
    let interval = point.throughput_bytes_per_s;
    assert!(interval.low.is_finite() && interval.high.is_finite());
}

#[test]
fn a_visit_that_cannot_be_precise_ends_in_time_and_says_how_precise_it_is() {
    let wild = StreamSpec { variation: 0.8, autocorrelation: 0.7, ..StreamSpec::default() };
    let point = visit(&mut Stream::new(wild, 10), 1.0);
    assert_close(point.spent_s.measuring, 30.0);
    assert!(codes(&point).contains(&Code::NotPrecise));
    assert!(point.throughput_bytes_per_s.relative_half_width() > 0.05);
}

#[test]
fn a_visit_that_drifts_to_the_end_is_not_steady() {
    let drifting = StreamSpec { transient: 3.0, transient_s: 10.0, ..StreamSpec::default() };
    let point = visit(&mut Stream::new(drifting, 11), 1.0);
    assert!(!point.steady);
    let warning = &point.warnings[0];
    assert_eq!(warning.code, Code::NotSteady);
    assert!(warning.text.contains("lower"), "{}", warning.text);
    assert!((-0.5..-0.02).contains(&warning.figures["drift_share"]), "{:?}", warning.figures);
    // The interval reaches well below the mean, towards where the throughput is going.
    assert!(point.throughput_bytes_per_s.relative_half_width() > 0.1);
}

#[test]
fn stolen_time_is_reported_where_it_matters() {
    let stolen = |decorate: fn(&mut Window, f64)| {
        codes(&visit(&mut Stream::new(StreamSpec::default(), 12).decorated(decorate), 1.0))
    };
    assert_eq!(stolen(|window, _| window.stolen_fraction = Some(0.05)), [Code::StolenTime]);
    assert_eq!(stolen(|window, _| window.stolen_fraction = Some(0.01)), []);
}

#[test]
fn writers_run_in_until_dirty_data_stops_rising() {
    // Rises for three seconds, then bounces below its peak.
    let decorate = |window: &mut Window, since_s: f64| {
        let bounce = if ((since_s * 10.0).round() as u64).is_multiple_of(2) { 0.0 } else { 0.02 };
        let level = (since_s / 3.0).min(1.0 - bounce);
        window.dirty_bytes = Some((level * 2e9) as u64);
        window.writeback_bytes = Some(0);
    };
    let rig = || Stream::new(StreamSpec::default(), 13).decorated(decorate);
    let writing = visit(&mut rig(), 0.0);
    assert!((3.0..4.6).contains(&writing.spent_s.settling), "{}", writing.spent_s.settling);
    assert!(writing.steady);
    let reading = visit(&mut rig(), 1.0);
    assert_close(reading.spent_s.settling, 1.0);
}

#[test]
fn throughput_that_memory_takes_is_not_called_steady() {
    let decorate =
        |window: &mut Window, since_s: f64| window.dirty_bytes = Some((since_s * 5e8) as u64);
    let point = visit(&mut Stream::new(StreamSpec::default(), 14).decorated(decorate), 0.0);
    assert_close(point.spent_s.settling, 5.0);
    assert!(!point.steady);
    let warning = &point.warnings[0];
    let shown = format!("{} % of what", three_digits(warning.figures["growth_share"] * 100.0));
    assert!(warning.text.starts_with(&shown), "{}", warning.text);
    assert!(warning.text.contains("was added to the dirty data"));
}

#[test]
fn dirty_data_of_others_does_not_make_a_slow_reader_unsteady() {
    let decorate =
        |window: &mut Window, since_s: f64| window.dirty_bytes = Some((since_s * 5e8) as u64);
    // The run-in ends by the clock: not every worker had its turn in five seconds.
    let crawling = StreamSpec { bytes_per_s: 0.3 * 16384.0, ..StreamSpec::default() };
    let point = visit(&mut Stream::new(crawling, 17).decorated(decorate), 1.0);
    assert_close(point.spent_s.settling, 5.0);
    assert!(!codes(&point).contains(&Code::NotSteady));
}

#[test]
fn events_tell_the_story_in_order() {
    let work = work(1.0);
    let subject = Subject { work: &work, role: Role::Measure, round: 0, seed: 1 };
    let mut events = Vec::new();
    let point = measure(
        &subject,
        &Rules::thorough(),
        &mut Stream::new(StreamSpec::default(), 15),
        &mut |event| {
            events.push(event);
        },
    )
    .unwrap();
    assert_eq!(events.first(), Some(&Event::Preparing));
    assert_eq!(events.last(), Some(&Event::Finishing));
    let windows: Vec<u32> = events
        .iter()
        .filter_map(|event| match event {
            Event::Window { count, .. } => Some(*count),
            _ => None,
        })
        .collect();
    assert_eq!(windows, (1..=point.windows + point.windows_cut).collect::<Vec<_>>());
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Settling { elapsed_s } if *elapsed_s > 0.5))
    );
}

#[test]
fn the_unit_of_the_target_does_not_change_the_verdict() {
    // The same noise on targets a thousand times apart: the same windows, the same relative width.
    let point = |bytes_per_s: f64| {
        let law = StreamSpec {
            bytes_per_s,
            request_bytes: bytes_per_s / 1e6,
            variation: 0.1,
            ..StreamSpec::default()
        };
        visit(&mut Stream::new(law, 16), 1.0)
    };
    let (small, large) = (point(1e9), point(1e12));
    assert_eq!(small.windows, large.windows);
    assert_close(
        small.throughput_bytes_per_s.relative_half_width(),
        large.throughput_bytes_per_s.relative_half_width(),
    );
}

/// Nobody ends this window for 20 s.
fn hold_up(window: &mut Window) {
    window.length_s = 20.0;
}

#[test]
fn standing_still_is_pointed_out_whenever_it_begins() {
    let law = StreamSpec { variation: 0.005, ..StreamSpec::default() };
    let running_in: fn(&mut Window, f64) = |window, since_s| {
        if (0.45..0.55).contains(&since_s) {
            hold_up(window);
        }
    };
    // The first window that counts leaves no time for a second one.
    let counting: fn(&mut Window, f64) = |window, since_s| {
        if since_s > 1.05 {
            hold_up(window);
        }
    };
    for decorate in [running_in, counting] {
        let point = visit(&mut Stream::new(law, 1).decorated(decorate), 1.0);
        assert!(codes(&point).contains(&Code::ClockJump), "{:?}", point.warnings);
    }
}
