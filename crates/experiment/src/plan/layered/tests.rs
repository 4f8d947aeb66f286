//! The order of a map with a data sheet, on formulas in place of devices.

use ioscape_model::{Access, DeviceLayer, Hints, Range, Ranges, Workload, datasheet};
use ioscape_test_support::header;

use super::super::formula::point;
use super::*;

const VISIT_S: f64 = 2.0;

/// A header with both layers, of this budget.
fn layered(budget_s: f64) -> Header {
    let ranges = Ranges::usual(2).with_sweeps();
    let span = Range { min: ranges.unique_bytes.min, max: 4 << 30 };
    let device = DeviceLayer {
        ranges: Ranges { unique_bytes: span, access: Access::Direct, ..ranges },
        room_bytes: 8 << 30,
    };
    Header {
        budget_s,
        hints: Hints { room_bytes: 16 << 30, ..Hints::default() },
        datasheet: datasheet::lines(span.max),
        device: Some(device),
        ..header(5, ranges)
    }
}

/// What is measured until the budget ends, each visit as long as the others.
fn course(header: &Header) -> Vec<Point> {
    course_of(header, |_| VISIT_S)
}

/// The points of a plan that is followed until the budget ends; a visit to a workload takes `visit_s` seconds.
fn course_of(header: &Header, visit_s: impl Fn(&Workload) -> f64) -> Vec<Point> {
    let mut plan = LayeredPlan::new(header);
    let mut points: Vec<Point> = Vec::new();
    let mut started_s = 0.0;
    loop {
        let seen = Seen::writing_freely(&points, started_s, header.budget_s);
        let Some(visit) = plan.next(&seen) else { return points };
        assert!(visit.workload.check().is_ok(), "{}", visit.workload);
        let elapsed_s = visit_s(&visit.workload);
        if started_s + elapsed_s > header.budget_s {
            return points;
        }
        points.push(Point { started_s, elapsed_s, ..point(&visit, 1e8) });
        started_s += elapsed_s;
    }
}

fn is_device(point: &Point) -> bool {
    point.workload.access == Access::Direct && point.role != Role::Named
}

#[test]
fn the_data_sheet_comes_first_then_the_cache_then_the_device() {
    let header = layered(180.0);
    let points = course(&header);
    let sheet: Vec<&Workload> = points[..9].iter().map(|point| &point.workload).collect();
    assert!(header.datasheet.iter().all(|line| sheet.contains(&&line.workload)), "{sheet:?}");
    assert_eq!(sheet[0].access, Access::Buffered, "the span is not laid out yet");
    let first_device = points.iter().position(is_device).expect("the device layer begins");
    let search = |point: &Point| matches!(point.role, Role::ReadBorder | Role::WriteBorder);
    let last_search = points.iter().rposition(search).expect("borders are looked for");
    assert!(last_search < first_device);
    let device = points.iter().filter(|point| is_device(point)).count();
    assert!((10..45).contains(&device), "{device} of {}", points.len());
}

#[test]
fn the_device_layer_has_its_share_of_a_longer_run_and_the_sheet_is_visited_again() {
    let points = course(&layered(900.0));
    let device = points.iter().filter(|point| is_device(point)).count() as f64;
    let sheet = points.iter().filter(|point| point.round == 1 && point.role == Role::Named);
    assert_eq!(sheet.count(), 9);
    let share = device / points.len() as f64;
    assert!((0.18..0.32).contains(&share), "{share}");
    let depths: std::collections::BTreeSet<u32> =
        points.iter().filter(|p| is_device(p)).map(|point| point.workload.depth).collect();
    assert!(depths.len() >= 4, "{depths:?}");
}

#[test]
fn layers_share_what_may_be_written_where_visits_that_write_are_over_soon() {
    let is_writing = |work: &Workload| work.read_frac < 1.0;
    let mut header = layered(250.0);
    header.limits.written_max_bytes = Some(16 << 30);
    let points = course_of(&header, |work| if is_writing(work) { VISIT_S / 10.0 } else { VISIT_S });
    let graphs_end = points.iter().rposition(|point| point.role == Role::OpenLoop).unwrap();
    let writing: Vec<&Point> = points[graphs_end..]
        .iter()
        .filter(|point| is_writing(&point.workload) && point.role != Role::Named)
        .take(40)
        .collect();
    let device = writing.iter().filter(|point| is_device(point)).count();
    assert!(writing.len() == 40 && (5..20).contains(&device), "{device} of {}", writing.len());
}

#[test]
fn graphs_of_the_device_layer_come_first_where_what_may_be_written_is_kept_for_them() {
    let header = layered(600.0);
    let mut plan = LayeredPlan::new(&header);
    let mut points: Vec<Point> = Vec::new();
    let mut next = |points: &[Point], device_is_due: bool| {
        let freely = Seen::writing_freely(points, points.len() as f64 * VISIT_S, 600.0);
        plan.next(&Seen { device_is_due, ..freely }).unwrap()
    };
    while points.len() < 12 {
        let visit = next(&points, false);
        points.push(point(&visit, 1e8));
    }
    assert!(!points.iter().any(is_device), "borders are still looked for");
    while points.len() < 40 {
        let visit = next(&points, true);
        points.push(point(&visit, 1e8));
    }
    let later = &points[12..];
    let drawn = later.iter().take_while(|point| is_device(point)).count();
    assert!((10..later.len()).contains(&drawn), "{drawn}, then the cache layer again");
    assert!(later[..drawn].iter().all(|point| point.role == Role::Family));
}

#[test]
fn where_writes_run_out_lines_that_write_are_visited_again_before_the_graphs() {
    let second_visits = |budget_s: f64| {
        let header = layered(budget_s);
        let mut plan = LayeredPlan::new(&header);
        let mut points: Vec<Point> = Vec::new();
        for index in 0..30 {
            let elapsed_s = f64::from(index) * VISIT_S;
            let freely = Seen::writing_freely(&points, elapsed_s, budget_s);
            let visit = plan.next(&Seen { spares_writes: index >= 12, ..freely }).unwrap();
            points.push(point(&visit, 1e8));
        }
        assert!(points.iter().any(|point| point.role == Role::Family));
        let is_second = |point: &Point| point.round == 1 && point.role == Role::Named;
        let places = points.iter().enumerate().filter(|(_, point)| is_second(point));
        places.map(|(place, point)| (place, point.workload.read_frac < 1.0)).collect::<Vec<_>>()
    };
    assert_eq!(second_visits(600.0), (12..17).map(|place| (place, true)).collect::<Vec<_>>());
    assert_eq!(second_visits(180.0), []);
}

#[test]
fn in_short_runs_several_processes_come_first_in_the_cache_and_last_on_the_device() {
    let points = course(&layered(180.0));
    let families = |of_device: bool| {
        let drawn = points
            .iter()
            .filter(move |point| point.role == Role::Family && is_device(point) == of_device);
        drawn.map(|point| point.workload.process_num == 1)
    };
    assert_eq!(families(false).next(), Some(false));
    assert!(families(true).take_while(|is_single| *is_single).count() >= 8);
    assert!(families(true).any(|is_single| !is_single));
}

#[test]
fn a_quick_run_holds_the_data_sheet_round_by_round_and_nothing_else() {
    let points = course(&Header { is_quick: true, ..layered(60.0) });
    assert_eq!(points.len(), 30);
    for (place, point) in points.iter().enumerate() {
        assert_eq!((point.round as usize, point.role), (place / 9, Role::Named));
    }
}

#[test]
fn what_may_not_be_written_is_left_out_and_reading_goes_on() {
    let header = layered(300.0);
    let mut plan = LayeredPlan::new(&header);
    let mut points: Vec<Point> = Vec::new();
    for index in 0..40 {
        let elapsed_s = f64::from(index);
        let seen =
            Seen { reads_only: index > 5, ..Seen::writing_freely(&points, elapsed_s, 300.0) };
        let visit = plan.next(&seen).expect("there is something to read");
        assert!(index <= 5 || visit.workload.read_frac >= 1.0, "{}", visit.workload);
        points.push(point(&visit, 1e8));
    }
}

#[test]
fn once_only_reads_are_left_graphs_of_the_cache_layer_come_before_those_of_the_device() {
    let header = layered(180.0);
    let mut points = course(&header);
    let drawn = |point: &Point| point.role == Role::Family && !is_device(point);
    let first = points.iter().position(drawn).expect("the cache layer has graphs");
    points.truncate(first + 4);
    let mut plan = LayeredPlan::new(&header);
    (0..points.len()).for_each(|known| {
        plan.next(&Seen::writing_freely(&points[..known], known as f64 * VISIT_S, 180.0));
    });
    let mut layers: Vec<bool> = Vec::new();
    while points.len() < 90 {
        let elapsed_s = points.len() as f64 * VISIT_S;
        let seen = Seen { reads_only: true, ..Seen::writing_freely(&points, elapsed_s, 180.0) };
        let Some(visit) = plan.next(&seen) else { break };
        let point = Point { elapsed_s: VISIT_S, started_s: elapsed_s, ..point(&visit, 1e8) };
        if point.role == Role::Family {
            layers.push(is_device(&point));
        }
        points.push(point);
    }
    let caches = layers.iter().take_while(|is_device| !**is_device).count();
    assert!(caches >= 4 && layers.contains(&true), "{layers:?}");
}

#[test]
fn a_run_that_goes_on_decides_as_it_did() {
    let header = layered(180.0);
    let points = course(&header);
    for made in [0, 5, 9, 20, 50, points.len() - 1] {
        let mut fresh = LayeredPlan::new(&header);
        let mut next = None;
        for known in 0..=made {
            let elapsed_s = known as f64 * VISIT_S;
            let shown = &points[..known];
            let seen = Seen::writing_freely(shown, elapsed_s, 180.0);
            next = fresh.next(&seen);
        }
        assert_eq!(next.map(|visit| visit.workload), Some(points[made].workload.clone()));
    }
}

#[test]
fn over_ranks_the_data_sheet_is_also_measured_from_more_hosts() {
    let ranks = vec![ioscape_model::RankPlace::default(); 3];
    let hosts = Some(Hosts { ranks, ..Hosts::default() });
    for (budget_s, from_hosts) in [(300.0, &[2, 3][..]), (100.0, &[3])] {
        let header = Header { hosts: hosts.clone(), ..layered(budget_s) };
        let mut plan = LayeredPlan::new(&header);
        let mut points: Vec<Point> = Vec::new();
        for _ in 0..30 {
            let seen = Seen::writing_freely(&points, points.len() as f64, budget_s);
            let Some(visit) = plan.next(&seen) else { break };
            points.push(point(&visit, 1e8));
        }
        let (sheet, rest) = points.split_at(9);
        assert!(sheet.iter().all(|point| point.workload.process_num == 1));
        let (over, rest) = rest.split_at(4 * from_hosts.len());
        let from: Vec<u32> = over.iter().map(|point| point.workload.process_num).collect();
        assert_eq!(from, from_hosts.repeat(4));
        assert!(over.iter().all(|point| point.role == Role::Named));
        assert!(!rest.is_empty(), "the rest of the plan follows");
    }
}

#[test]
fn what_was_asked_for_is_visited_in_a_minute_too() {
    let asked: Vec<Workload> = ["oltp", "scan", "log-append"]
        .map(|name| ioscape_model::named::named(name).expect("it has a name"))
        .to_vec();
    for budget_s in [30.0, 45.0, 60.0, 61.0, 62.0] {
        let header =
            Header { asked: asked.clone(), datasheet: vec![], device: None, ..layered(budget_s) };
        let points = course(&header);
        let is_there = |work: &Workload| points.iter().any(|point| point.workload == *work);
        assert!(asked.iter().all(is_there), "{budget_s} s");
        let first = points.iter().position(|point| asked.contains(&point.workload)).unwrap_or(0);
        assert!(first >= points.len() / 2 - 1, "{budget_s} s: from {first} of {} on", points.len());
    }
}

#[test]
fn named_workloads_are_visited_once_each_where_there_is_room_for_them() {
    let visits = |points: &[Point], name: &str| {
        let work = ioscape_model::named::named(name).expect("it has a name");
        points.iter().filter(|point| point.workload == work).count()
    };
    let header = layered(600.0);
    let points = course(&header);
    for name in ioscape_model::named::names() {
        assert_eq!(visits(&points, name), 1, "{name}");
    }
    let is_sheet = |work: &Workload| header.datasheet.iter().any(|line| line.workload == *work);
    let is_named = |point: &Point| point.role == Role::Named && !is_sheet(&point.workload);
    let first = points.iter().position(is_named).unwrap();
    let open = points.iter().rposition(|point| point.role == Role::OpenLoop).unwrap();
    assert!(open < first && points[..first].iter().filter(|point| is_device(point)).count() > 10);
    // All of them would take more than a quarter of what is left of two minutes.
    let short = course(&layered(120.0));
    assert!(ioscape_model::named::names().all(|name| visits(&short, name) == 0));
    // What lies outside of the ranges is not visited.
    let within = |narrow: &dyn Fn(&mut Ranges)| {
        let mut header = layered(600.0);
        narrow(&mut header.ranges);
        let points = course(&header);
        ["mail", "scan", "log-append"].map(|name| visits(&points, name))
    };
    assert_eq!(within(&|ranges| ranges.unique_bytes.max = 300 << 20), [1, 0, 1]);
    assert_eq!(within(&|ranges| ranges.process_num.max = 2), [0, 1, 1]);
    assert_eq!(within(&|ranges| ranges.size_mean.max = 64 << 10), [1, 0, 1]);
}

#[test]
fn once_the_graphs_are_there_one_line_is_measured_at_rates() {
    let header = layered(600.0);
    let points = course(&header);
    let open: Vec<&Point> = points.iter().filter(|point| point.role == Role::OpenLoop).collect();
    let line = &header.datasheet.iter().find(|line| line.name == datasheet::RATE_LINE).unwrap();
    let closed = points.iter().find(|point| point.workload == line.workload).unwrap();
    let shares: Vec<f64> =
        open.iter().map(|point| point.workload.rate / closed.ops_per_s).collect();
    assert_eq!(shares.len(), RATE_SHARES.len(), "{shares:?}");
    let off = shares.iter().zip(RATE_SHARES).map(|(share, asked)| (share / asked - 1.0).abs());
    assert!(off.fold(0.0, f64::max) < 0.01, "{shares:?}");
    let first_open = points.iter().position(|point| point.role == Role::OpenLoop).unwrap();
    let last_graph = points.iter().rposition(|point| point.role == Role::Family).unwrap();
    assert!(points[..first_open].iter().filter(|point| is_device(point)).count() > 10);
    assert!(first_open < points.len() - 20 || last_graph < first_open);
    let short = course(&layered(180.0));
    assert!(short.iter().all(|point| point.role != Role::OpenLoop));
}
