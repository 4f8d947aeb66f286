//! Vectors and demands made by hand: seconds are arithmetic.

use ioscape_model::app::{App, CacheRung, Category, Demand, DirtyRung, Misses, OverlapRung, Work};
use ioscape_model::{Element, ElementName as E, Figure, Terms};

use super::*;

fn element(name: E, time_s: f64, terms: Terms) -> Element {
    let time_s = Figure { value: time_s, low: time_s * 0.98, high: time_s * 1.02 };
    Element { name, time_s, terms, operations: 100, warnings: vec![] }
}

fn plain(name: E, time_s: f64) -> Element {
    element(name, time_s, Terms { per_call_s: time_s, ..Terms::default() })
}

/// A device with random reads of 100 µs, 1 GB/s in sequence, syncs of 5 ms.
fn vector() -> Vec<Element> {
    let by_bytes = |name, per_call_s: f64, per_byte_s: f64| {
        let terms = Terms { per_call_s, per_byte_s, ..Terms::default() };
        element(name, terms.time_s(4096.0, 0.0, 0.0), terms)
    };
    let sync = Terms { per_call_s: 4e-3, per_page_s: 1e-5, per_extent_s: 1e-3, per_byte_s: 0.0 };
    vec![
        by_bytes(E::ReadHit, 1e-6, 1e-10),
        by_bytes(E::ReadRandomMiss, 101e-6, 1e-9),
        by_bytes(E::ReadSequentialMiss, 0.0, 1e-9),
        by_bytes(E::Append, 2e-6, 5e-10),
        plain(E::AppendUnaligned, 6e-6),
        element(E::SyncGrown, sync.time_s(0.0, 1.0, 1.0), sync),
        plain(E::OpenCached, 2e-6),
        plain(E::WriteBack, 4e-6),
        plain(E::Processor, 1e-3),
    ]
}

fn system() -> System {
    System::new(vector(), 64e6)
}

fn app(demand: Demand) -> App {
    App { demand: Some(demand), ..App::default() }
}

fn category(count: u64) -> Category {
    Category { count, critical_frac: 1.0, ..Category::default() }
}

fn demand(categories: &[(&str, Category)]) -> Demand {
    let categories = categories.iter().map(|(word, c)| ((*word).to_owned(), c.clone()));
    Demand { categories: categories.collect(), ..Demand::default() }
}

fn value(system: &System, demand: &Demand) -> f64 {
    predict(system, &app(demand.clone())).unwrap().seconds.value
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn counts_times_times_along_the_critical_path() {
    let log = demand(&[
        ("append_unaligned", Category { bytes: 4120 * 1000, ..category(1000) }),
        ("sync_grown", Category { pages: 2000, extents: 1000, ..category(1000) }),
        ("open_cached", Category { critical_frac: 0.5, ..category(1) }),
    ]);
    let work = Work { processor_s: 0.25, idle_s: 0.5, other_s: 0.125, ..Work::default() };
    let log = Demand { work, ..log };
    let expected = 6e-3 + 1000.0 * (4e-3 + 2e-5 + 1e-3) + 1e-6 + 0.875;
    near(value(&system(), &log), expected);
    let said = predict(&system(), &app(log)).unwrap();
    assert_eq!(said.terms[0].category, "sync_grown");
    near(said.terms[0].seconds, 5.02);
    near(said.unclassified_frac, 0.0);
    let Figure { value, low, high } = said.seconds;
    assert!(low < value && value < high && high / low < 2.0, "{:?}", said.seconds);
}

#[test]
fn what_no_element_prices_counts_as_it_was_recorded_and_is_said() {
    let odd = Category { mean_s: Some(2e-3), ..category(100) };
    let asked = demand(&[("extended_attribute", odd), ("open_cached", category(100))]);
    near(value(&system(), &asked), 0.2 + 2e-4);
    let said = predict(&system(), &app(asked)).unwrap();
    near(said.unclassified_frac, 0.5);
    assert!(said.warnings[0].contains("50 % of the calls"), "{:?}", said.warnings);
}

#[test]
fn further_pieces_of_a_sync_cost_what_they_do_where_files_are_overwritten() {
    let over = Terms { per_call_s: 2e-3, per_extent_s: 3e-3, ..Terms::default() };
    let overwritten = element(E::SyncOverwritten, over.time_s(0.0, 1.0, 1.0), over);
    let mut elements = vector();
    elements.retain(|element| element.name != E::SyncGrown);
    elements.extend([plain(E::SyncGrown, 2.5e-3), overwritten]);
    let system = System::new(elements, 64e6);
    let grown = Category { pages: 200, extents: 150, ..category(100) };
    near(value(&system, &demand(&[("sync_grown", grown)])), 100.0 * 2.5e-3 + 50.0 * 3e-3);
}

#[test]
fn names_in_memory_are_never_missed_and_a_directory_on_storage_is_a_read() {
    let mut elements = vector();
    elements.extend([plain(E::StatCached, 1e-6), plain(E::ReaddirMissed, 1e-5)]);
    let system = System::new(elements, 64e6);
    let missed = Category { mean_s: Some(1e-3), ..category(1000) };
    let asked = demand(&[("stat_missed", missed)]);
    let cached_s = value(&System { is_in_memory: true, ..system.clone() }, &asked);
    assert!((cached_s / 1e-3 - 1.0).abs() < 0.01, "{cached_s}");
    near(value(&system, &asked), 1.0);
    let listed = |pages| Category { pages, ..category(10) };
    near(value(&system, &demand(&[("readdir_missed", listed(30))])), 10.0 * 102.0 * 1e-5);
    near(value(&system, &demand(&[("readdir_missed", listed(5000))])), 5000.0 * 1e-5);
    let mut listing = vector();
    listing.push(plain(E::ReaddirEntry, 2e-7));
    let in_memory = System { is_in_memory: true, ..System::new(listing, 64e6) };
    near(value(&in_memory, &demand(&[("readdir_missed", listed(30))])), 30.0 * 2e-7);
}

fn reader() -> Demand {
    let misses = |requests: f64| Misses {
        random_requests: requests,
        random_pages: requests,
        sequential_pages: requests * 10.0,
        ..Misses::default()
    };
    let rung = |memory_bytes: u64, requests: f64| CacheRung {
        memory_bytes,
        cold: misses(requests),
        as_recorded: misses(requests),
    };
    let reads = Category { bytes: 4096 * 10_000, ..category(10_000) };
    Demand {
        caches: vec![rung(8_000_000, 5000.0), rung(64_000_000, 1000.0), rung(128_000_000, 0.0)],
        ..demand(&[("read_hit", reads)])
    }
}

#[test]
fn misses_are_those_of_the_memory_there_is() {
    let hits = 1e-2 + 4096e4 * 1e-10;
    let random = 1000.0 * 100e-6 + 1000.0 * 4096.0 * 9e-10;
    let sequential = 10_000.0 * 4096.0 * 9e-10;
    near(value(&system(), &reader()), hits + random + sequential);
    let larger = system().changed(&WhatIf { memory_bytes: Some(1e9), ..WhatIf::default() });
    near(value(&larger.unwrap(), &reader()), hits);
    // Time between reads in sequence hides what it can, and no more.
    let rung = |limit_s, seconds| OverlapRung { limit_s, seconds };
    let overlap = vec![rung(1e-5, 1e-2), rung(1e-3, 1e3)];
    let hidden = Demand { overlap: overlap.clone(), sequential_bytes: 4096, ..reader() };
    near(value(&system(), &hidden), hits + random);
    // Read-ahead that fetches next to nothing hides next to nothing.
    let short = System { read_ahead_bytes: 4096.0, ..system() };
    let little = Demand { overlap, sequential_bytes: 40_960_000, ..reader() };
    let left = sequential - 1e-2 * 4096.0 * 1e-9 / 1e-5;
    near(value(&short, &little), hits + random + left);
}

#[test]
fn more_memory_and_faster_devices_are_never_slower() {
    let mut before = f64::INFINITY;
    for step in 0..60 {
        let memory_bytes = Some(4e6 * 1.1_f64.powi(step));
        let changed = system().changed(&WhatIf { memory_bytes, ..WhatIf::default() }).unwrap();
        let now = value(&changed, &reader());
        assert!(now <= before + 1e-12, "{memory_bytes:?}: {now} after {before}");
        before = now;
    }
    let mut before = f64::INFINITY;
    for factor in [0.25, 0.5, 1.0, 2.0, 4.0] {
        let change = WhatIf { device_factor: Some(factor), ..WhatIf::default() };
        let now = value(&system().changed(&change).unwrap(), &reader());
        assert!(now < before, "{factor}: {now} after {before}");
        before = now;
    }
    let none = WhatIf { device_factor: Some(0.0), ..WhatIf::default() };
    assert!(matches!(system().changed(&none), Err(NoAnswer::Change(_))));
}

#[test]
fn the_busiest_resource_sets_the_least_time() {
    let writes = Category { bytes: 400 << 20, ..category(400) };
    let rung = |dirty_bytes: u64, pages: u64| DirtyRung { dirty_bytes, pages };
    let rungs = vec![rung(1 << 20, 100_000), rung(1 << 30, 0)];
    let asked = Demand { write_back: rungs, ..demand(&[("append", writes)]) };
    let slow = System { dirty_bytes: (1e6, 1e6 + 4096.0 * 1000.0), ..system() };
    // 100,000 pages at 4 µs, less the thousand that may stay dirty.
    near(value(&slow, &asked), 99_000.0 * 4e-6);
    let roomy = System { dirty_bytes: (4e9, 8e9), ..system() };
    near(value(&roomy, &asked), 400.0 * 2e-6 + f64::from(400 << 20) * 5e-10);
    // Four streams' work takes at least half of it on two processors.
    let work = Work { processor_s: 1.0, processor_total_s: 4.0, ..Work::default() };
    let busy = Demand { work, ..Demand::default() };
    near(value(&System { cpus: 2.0, ..system() }, &busy), 2.0);
    near(value(&System { cpus: 8.0, ..system() }, &busy), 1.0);
    // A quota of half a processor.
    near(value(&System { cpus: 0.5, ..system() }, &busy), 8.0);
}

/// A thousand names, each a tenth of a read: threads looked at them side by side, but a device of 200 requests
/// per second takes half a second for a hundred reads, in whatever order they come.
#[test]
fn reads_share_the_device_however_many_wait_side_by_side() {
    let names = Category { critical_frac: 0.05, ..category(1000) };
    let asked = demand(&[("stat_missed", names)]);
    let elements = vec![plain(E::StatMissed, 500e-6), plain(E::ReadRandomMiss, 5e-3)];
    let free = System::new(elements, 64e6);
    near(value(&free, &asked), 0.05 * 1000.0 * 500e-6);
    let most_read = Some(MostRead { requests_per_s: 200.0, bytes_per_s: 1e8 });
    let limited = System { most_read, ..free };
    near(value(&limited, &asked), 0.5);
    let twice = limited.changed(&WhatIf { device_factor: Some(2.0), ..WhatIf::default() }).unwrap();
    near(value(&twice, &asked), 0.25);
}

#[test]
fn processors_are_compared_by_the_same_loop_or_by_their_name() {
    let work = Work { processor_s: 1.0, ..Work::default() };
    let mut asked = Demand { work, ..Demand::default() };
    near(value(&system(), &asked), 1.0);
    asked.machine.processor_s = Some(2e-3);
    near(value(&system(), &asked), 0.5);
    asked.machine.processor_s = None;
    asked.machine.cpu_model = "another".to_owned();
    let said = predict(&system(), &app(asked)).unwrap();
    near(said.seconds.value, 1.0);
    assert!(said.warnings[0].contains("another kind of processor"), "{:?}", said.warnings);
}

#[test]
fn a_model_without_counts_is_refused_and_one_without_calls_takes_no_time() {
    assert_eq!(predict(&system(), &App::default()), Err(NoAnswer::NoDemand));
    near(value(&system(), &Demand::default()), 0.0);
}

#[test]
fn an_element_that_was_disturbed_gives_way_to_what_was_recorded() {
    let close = |low: f64, high: f64| {
        let mut element = plain(E::Close, 400e-6);
        (element.time_s.low, element.time_s.high) = (low, high);
        let recorded = Category { mean_s: Some(1e-6), ..category(1000) };
        value(&System::new(vec![element], 64e6), &demand(&[("close", recorded)]))
    };
    // As unsure as systems differ: half way between, by logarithms.
    near(close(0.0, 2.0 * 1.96 * 400e-6), 20e-3);
    assert!((close(392e-6, 408e-6) / 0.4 - 1.0).abs() < 1e-3);
}

#[test]
fn systems_that_share_their_errors_are_told_apart_more_surely() {
    let syncs = |count| Category { pages: count, extents: count, ..category(count) };
    let answer = |per_call_s: f64, work_s: f64| {
        let mut elements = vector();
        elements[5].terms.per_call_s = per_call_s;
        let work = Work { processor_s: work_s, ..Work::default() };
        let asked = Demand { work, ..demand(&[("sync_grown", syncs(1000))]) };
        predict(&System::new(elements, 64e6), &app(asked)).unwrap()
    };
    let ranked = rank(&[answer(8e-3, 1.0), answer(4e-3, 1.0), answer(4.2e-3, 1.0)]);
    let order: Vec<(usize, bool)> = ranked.iter().map(|r| (r.place, r.is_slower)).collect();
    assert_eq!(order, [(1, false), (2, false), (0, true)]);
    assert!(rank(&[]).is_empty());
}

#[test]
fn a_deadline_is_missed_as_often_as_the_interval_says() {
    let work = Work { processor_s: 10.0, ..Work::default() };
    let said = predict(&system(), &app(Demand { work, ..Demand::default() })).unwrap();
    assert!((said.risk_beyond(said.seconds.value) - 0.5).abs() < 1e-6);
    assert!((said.risk_beyond(said.seconds.high) - 0.05).abs() < 1e-3);
    assert!((said.risk_beyond(said.seconds.low) - 0.95).abs() < 1e-3);
}
