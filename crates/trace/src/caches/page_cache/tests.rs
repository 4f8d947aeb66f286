//! Rules of the simulation, each on a few pages.

use super::{PageCache, Policy, Settings};
use crate::caches::PAGE_BYTES;
use crate::event::{Event, Flags, Op};

const FILE: u32 = 1;

fn cache(policy: Policy, memory_pages: u64) -> PageCache {
    let mut cache = PageCache::new(Settings::new(policy, memory_pages));
    cache.set_length(FILE, 10_000 * PAGE_BYTES);
    cache
}

fn event(op: Op, page: u64, pages: u64) -> Event {
    let (offset, length) = (page * PAGE_BYTES, pages * PAGE_BYTES);
    Event { stream: 1, handle: 1, file: FILE, offset, length, ..Event::new(0, op) }
}

fn advise(advice: u64) -> Event {
    Event { other: advice, ..event(Op::Advise, 0, 0) }
}

const RANDOM: u64 = 1;
const WILLNEED: u64 = 3;
const DONTNEED: u64 = 4;

#[test]
fn a_sequential_reader_reads_every_page_once_and_finds_nearly_all() {
    let mut cache = cache(Policy::PageCache, 1000);
    for page in 0..10_000 {
        cache.event(&event(Op::Read, page, 1));
    }
    let totals = cache.totals();
    assert_eq!(totals.read, 10_000);
    assert!(totals.hit_fraction() > 0.999, "{totals:?}");
    assert!(cache.held() <= 1000);
}

#[test]
fn a_file_that_one_call_copies_is_read_once() {
    let counters_ns = 5_000_000;
    let settings = Settings { counters_ns, ..Settings::new(Policy::PageCache, 1000) };
    let mut cache = PageCache::new(settings);
    cache.set_length(FILE, 10_000 * PAGE_BYTES);
    let duration_ns = Some(100 * counters_ns);
    cache.event(&Event { other: 2, duration_ns, ..event(Op::Copy, 0, 10_000) });
    assert_eq!(cache.totals().read, 10_000);
}

#[test]
fn random_reads_with_advice_read_what_was_asked_and_without_advice_more() {
    let read = |advice| {
        let mut cache = cache(Policy::PageCache, 4000);
        if advice {
            cache.event(&advise(RANDOM));
        }
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            cache.event(&event(Op::Read, (state >> 33) % 10_000, 1));
        }
        let totals = cache.totals();
        (totals.read, totals.random_misses + totals.sequential_misses)
    };
    let ((read_advised, missed), (read_plain, _)) = (read(true), read(false));
    assert_eq!(read_advised, missed);
    assert!(read_plain > read_advised + read_advised / 5, "{read_plain} {read_advised}");
}

#[test]
fn lru_and_fifo_read_page_by_page() {
    for (policy, expected) in [(Policy::Lru, 5), (Policy::Fifo, 6)] {
        let mut cache = cache(policy, 3);
        for page in [0, 1, 2, 0, 3, 0, 1] {
            cache.event(&event(Op::Read, page, 1));
        }
        assert_eq!(cache.totals().read, expected, "{}", policy.name());
    }
}

#[test]
fn pages_touched_twice_survive_a_scan() {
    let mut cache = cache(Policy::PageCache, 2000);
    cache.event(&advise(RANDOM));
    for _ in 0..3 {
        for page in (0..900).rev() {
            cache.event(&event(Op::Read, page, 1));
        }
    }
    for page in 1000..9000 {
        cache.event(&event(Op::Read, page, 1));
    }
    let kept = (0..900).filter(|page| cache.holds(FILE, *page)).count();
    assert!(kept > 800, "{kept}");
}

/// Pages read from storage where every third read goes on with a scan and the others are of few pages.
fn read_beside_a_scan(policy: Policy) -> u64 {
    let mut cache = cache(policy, 1000);
    cache.event(&advise(RANDOM));
    let mut state = 1_u64;
    for i in 0..60_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let page = if i % 3 == 0 { 1000 + i / 3 % 9000 } else { (state >> 33) % 600 };
        cache.event(&event(Op::Read, page, 1));
    }
    cache.totals().read
}

#[test]
fn generations_keep_pages_that_come_back_from_a_scan() {
    let [mglru, lru, fifo] = [Policy::Mglru, Policy::Lru, Policy::Fifo].map(read_beside_a_scan);
    let scanned = 20_000;
    assert!(mglru - scanned < (fifo - scanned) / 2, "{mglru} pages, {fifo} by FIFO, {lru} by LRU");
}

#[test]
fn generations_evict_in_order_what_was_touched_but_once() {
    let mut cache = cache(Policy::Mglru, 500);
    cache.event(&advise(RANDOM));
    for page in 0..2000 {
        cache.event(&event(Op::Read, page, 1));
    }
    assert!((1600..2000).all(|page| cache.holds(FILE, page)));
    assert!((0..1400).all(|page| !cache.holds(FILE, page)));
}

#[test]
fn generations_keep_mapped_pages_longer_than_pages_that_calls_read() {
    let mut cache = cache(Policy::Mglru, 500);
    cache.event(&advise(RANDOM));
    for page in 0..100 {
        cache.event(&event(Op::FaultR, 9000 + page, 0));
    }
    for page in 0..2000 {
        cache.event(&event(Op::Read, page, 1));
    }
    let kept = (9000..9100).filter(|page| cache.holds(FILE, *page)).count();
    assert_eq!(kept, 100);
}

#[test]
fn pages_that_come_back_soon_take_the_room_of_active_ones_that_are_used_no_more() {
    let mut cache = cache(Policy::PageCache, 1000);
    cache.event(&advise(RANDOM));
    for _ in 0..3 {
        for page in (9000..9500).rev() {
            cache.event(&event(Op::Read, page, 1));
        }
    }
    // A loop that is too long for what the active pages leave, but not for the memory.
    for _ in 0..10 {
        for page in (0..900).rev() {
            cache.event(&event(Op::Read, page, 1));
        }
    }
    let kept = (0..900).filter(|page| cache.holds(FILE, *page)).count();
    assert!(kept > 800, "{kept}");
}

#[test]
fn dirty_pages_are_written_back_beyond_the_limit_and_by_fsync() {
    let mut cache = cache(Policy::PageCache, 1000);
    for page in 0..500 {
        cache.event(&event(Op::Write, page, 1));
    }
    let before = cache.totals();
    assert!(before.written_back >= 400, "{before:?}");
    assert_eq!(before.read, 0);
    cache.event(&event(Op::Sync, 0, 0));
    assert_eq!(cache.totals().written_back, 500);
}

#[test]
fn a_page_written_in_part_is_read_unless_it_is_there_or_new() {
    let mut cache = cache(Policy::PageCache, 1000);
    let part = |page: u64| Event {
        offset: page * PAGE_BYTES + 500,
        length: 100,
        ..event(Op::Write, 0, 0)
    };
    cache.event(&part(5));
    cache.event(&part(5));
    cache.event(&part(10_000));
    assert_eq!(cache.totals().read, 1);
}

#[test]
fn truncation_deletion_and_advice_drop_pages() {
    let mut cache = cache(Policy::PageCache, 5000);
    let read_all = |cache: &mut PageCache| {
        for page in 0..1000 {
            cache.event(&event(Op::Read, page, 1));
        }
    };
    read_all(&mut cache);
    assert!(cache.held() >= 1000);
    cache.event(&advise(DONTNEED));
    assert_eq!(cache.held(), 0);
    cache.event(&advise(WILLNEED));
    assert_eq!(cache.held(), 1024);
    cache.event(&event(Op::Trunc, 100, 0));
    assert_eq!(cache.held(), 100);
    cache.event(&event(Op::Open, 0, 0));
    cache.event(&event(Op::Unlink, 0, 0));
    assert_eq!(cache.held(), 100);
    cache.event(&event(Op::Close, 0, 0));
    assert_eq!(cache.held(), 0);
}

#[test]
fn direct_transfers_pass_by_and_writes_drop_what_they_replace() {
    let mut cache = cache(Policy::PageCache, 1000);
    let direct = |op, page| Event { flags: Flags::DIRECT, ..event(op, page, 1) };
    cache.event(&event(Op::Read, 0, 4));
    let held = cache.held();
    cache.event(&direct(Op::Read, 100));
    assert_eq!(cache.held(), held);
    cache.event(&direct(Op::Write, 0));
    assert_eq!(cache.held(), held - 1);
    assert_eq!(cache.totals().direct_read_bytes, PAGE_BYTES);
    assert_eq!(cache.totals().direct_written_bytes, PAGE_BYTES);
}

#[test]
fn memory_is_never_exceeded_and_ample_memory_reads_everything_once() {
    for policy in [Policy::PageCache, Policy::Mglru, Policy::Lru, Policy::Fifo] {
        for memory in [64, 500, 20_000] {
            let mut cache = cache(policy, memory);
            let mut state = 1_u64;
            for _ in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let page = (state >> 33) % 9990;
                let op = if state.is_multiple_of(5) { Op::Write } else { Op::Read };
                cache.event(&event(op, page, 1 + (state >> 20) % 8));
                assert!(cache.held() <= memory.max(64), "{}", policy.name());
            }
            if memory == 20_000 {
                assert!(cache.totals().read <= 10_000);
            }
        }
    }
}

#[test]
fn mapped_pages_are_read_around_the_first_touch() {
    let mut cache = cache(Policy::PageCache, 1000);
    cache.event(&event(Op::FaultR, 100, 0));
    assert!(cache.holds(FILE, 84) && cache.holds(FILE, 115));
    assert_eq!(cache.totals().read_mapped, 32);
}

/// Pages of a mapping that are left after a scan as long as all memory.
fn left_of_mapping(end: Option<Event>) -> usize {
    let mut cache = cache(Policy::PageCache, 500);
    cache.event(&advise(RANDOM));
    for page in 9000..9100 {
        cache.event(&event(Op::FaultR, page, 0));
    }
    if let Some(end) = end {
        cache.event(&end);
    }
    for page in 0..450 {
        cache.event(&event(Op::Read, page, 1));
    }
    (9000..9100).filter(|page| cache.holds(FILE, *page)).count()
}

#[test]
fn mapped_pages_are_spared_as_long_as_they_are_mapped() {
    let ends = [Op::Exit, Op::Exec].map(|op| Event { file: 0, ..event(op, 0, 0) });
    let unmapped = event(Op::Munmap, 9000, 100);
    assert_eq!(left_of_mapping(None), 100);
    for end in ends.into_iter().chain([unmapped]) {
        assert!(left_of_mapping(Some(end)) < 60, "{:?}", end.op);
    }
    let elsewhere = [event(Op::Munmap, 0, 100), Event { stream: 2, file: 0, ..ends[0] }];
    for other in elsewhere {
        assert_eq!(left_of_mapping(Some(other)), 100, "{:?}", other.op);
    }
}

#[test]
fn pages_around_a_fault_are_mapped_if_they_are_there_and_read_only_with_read_around() {
    let read = |advice| {
        let mut cache = cache(Policy::PageCache, 4000);
        if advice {
            cache.event(&Event { handle: 0, ..advise(RANDOM) });
        }
        for window in 0..100 {
            // The touched page, then those around it.
            cache.event(&Event { handle: 0, ..event(Op::FaultR, window * 64 + 5, 1) });
            cache.event(&Event { handle: 0, ..event(Op::FaultR, window * 64, 16) });
        }
        cache.totals().read
    };
    assert_eq!(read(true), 100);
    assert!(read(false) > 1600, "{}", read(false));
}
