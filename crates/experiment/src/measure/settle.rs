//! Running a workload in: its first seconds do not count, and with writes nothing counts until
//! the amount of dirty data has stopped rising.
//!
//! While dirty pages pile up, a writer runs at the speed of memory; only once write-back keeps
//! pace with it, or the kernel slows it down, is its throughput one that lasts.

use ioscape_engine::{Class, Error, Rig, Window};
use ioscape_model::{Access, Rules, State, Workload};

use super::{Event, SPARING_WINDOW_S, SPARING_WINDOWS_MIN, has_written_share};

/// Dirty data counts as steady while it grows by less than this share of what is written.
const GROWTH_MAX: f64 = 0.02;
/// Requests per worker and slot of its queue before the windows may count.
const OPS_PER_SLOT_MIN: u64 = 2;

/// What running in showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settled {
    /// Requests per second towards the end of it.
    pub(super) ops_per_s: f64,
    /// Bytes written in it.
    pub(super) written_bytes: u64,
    /// Bytes a second that storage has taken or will take; `None` where no writes are spared.
    pub(super) spent_bytes_per_s: Option<f64>,
    /// Its longest window, seconds.
    pub(super) longest_s: f64,
    /// Whether it ended because all was calm, not because the time was over.
    pub(super) calm: bool,
}

/// Lets the workload run in. That may be over once the visit has written its share, so that less than
/// `spared_bytes` may still be written.
pub(super) fn settle(
    work: &Workload,
    rules: &Rules,
    (rig, spared_bytes): (&mut dyn Rig, u64),
    on_event: &mut dyn FnMut(Event),
) -> Result<Settled, Error> {
    let mut windows = Vec::new();
    let mut elapsed_s = 0.0;
    let mut calm = false;
    if work.state == State::Cold {
        // The first requests are what a cold start is about.
        return Ok(Settled {
            ops_per_s: f64::INFINITY,
            written_bytes: 0,
            spent_bytes_per_s: None,
            longest_s: 0.0,
            calm: true,
        });
    }
    let ramp_max_s = rules.ramp_max_s.max(rules.ramp_s);
    let left_before_bytes = (spared_bytes > 0).then(|| rig.may_write_bytes());
    let window_s =
        left_before_bytes.map_or(rules.window_s, |_| rules.window_s.min(SPARING_WINDOW_S));
    // Half a window of tolerance, so that rounding does not add one.
    let until = |limit_s: f64| limit_s - window_s / 2.0;
    while !calm && elapsed_s < until(ramp_max_s) {
        on_event(Event::Settling { elapsed_s });
        let window = rig.window(window_s)?;
        elapsed_s += window.length_s;
        windows.push(window);
        calm = elapsed_s >= until(rules.ramp_s)
            && went_round(&windows, work)
            && (work.read_frac >= 1.0 || is_level(&windows, rules.ramp_s));
        calm |= windows.len() >= SPARING_WINDOWS_MIN
            && has_written_share(rig, spared_bytes)
            && went_round(&windows, work)
            && (work.access == Access::Direct || is_level(&windows, elapsed_s / 2.0));
    }
    let spent_bytes_per_s = left_before_bytes.map(|before_bytes| {
        let spent_bytes = before_bytes.saturating_sub(rig.may_write_bytes());
        spent_bytes as f64 / elapsed_s.max(f64::MIN_POSITIVE)
    });
    let (_, last) = split_at_last(&windows, rules.ramp_s / 2.0);
    let ops: u64 = last.iter().map(Window::ops).sum();
    let length_s: f64 = last.iter().map(|window| window.length_s).sum();
    Ok(Settled {
        ops_per_s: if length_s > 0.0 { ops as f64 / length_s } else { 0.0 },
        written_bytes: windows.iter().map(written_bytes).sum(),
        spent_bytes_per_s,
        longest_s: longest_s(&windows),
        calm,
    })
}

/// The longest window, seconds.
pub(super) fn longest_s(windows: &[Window]) -> f64 {
    windows.iter().map(|window| window.length_s).fold(0.0, f64::max)
}

/// Whether every worker has had its turn.
fn went_round(windows: &[Window], work: &Workload) -> bool {
    let slots = u64::from(work.process_num) * u64::from(work.depth);
    windows.iter().map(Window::ops).sum::<u64>() >= OPS_PER_SLOT_MIN * slots
}

/// Whether dirty data has stopped rising over the last `stretch_s`: it grew by a negligible part
/// of what was written, or it stayed below where it had been before, which is what it does when
/// writers are being slowed down. True where it cannot be seen.
fn is_level(windows: &[Window], stretch_s: f64) -> bool {
    let (before, stretch) = split_at_last(windows, stretch_s);
    let highest = |windows: &[Window]| windows.iter().filter_map(backlog_bytes).max();
    match (highest(before), highest(stretch)) {
        (_, None) => true,
        (Some(before), Some(now)) if now <= before => true,
        _ => growth_of_written(stretch).is_some_and(|growth| growth.abs() < GROWTH_MAX),
    }
}

/// Growth of dirty data over the windows as a share of what was written in them; none where
/// nothing is known of it, or nothing was written and others made it grow.
pub(super) fn growth_of_written(windows: &[Window]) -> Option<f64> {
    let (first, rest) = windows.split_first()?;
    let grown = backlog_bytes(rest.last()?)?.cast_signed() - backlog_bytes(first)?.cast_signed();
    let written: u64 = rest.iter().map(written_bytes).sum();
    (written > 0).then(|| grown as f64 / written as f64)
}

/// Data that storage has still to be given.
fn backlog_bytes(window: &Window) -> Option<u64> {
    Some(window.dirty_bytes? + window.writeback_bytes.unwrap_or(0))
}

/// The windows that end within the last `stretch_s`, and those before them.
fn split_at_last(windows: &[Window], stretch_s: f64) -> (&[Window], &[Window]) {
    let mut from = windows.len();
    let mut length_s = 0.0;
    while from > 0 && length_s + windows[from - 1].length_s / 2.0 < stretch_s {
        from -= 1;
        length_s += windows[from].length_s;
    }
    windows.split_at(from)
}

/// Bytes written in a window.
pub(super) fn written_bytes(window: &Window) -> u64 {
    window.classes[Class::WriteSeq as usize].bytes + window.classes[Class::WriteRand as usize].bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use ioscape_engine::ClassCount;

    /// Windows of 0.1 s that write 10 MB each, with this much dirty at their ends, MB.
    fn writing(dirty_mb: impl IntoIterator<Item = u64>) -> Vec<Window> {
        let mut classes = [ClassCount::default(); 4];
        classes[3] = ClassCount { ops: 100, bytes: 10_000_000, time_s: 0.1 };
        dirty_mb
            .into_iter()
            .map(|megabytes| Window {
                length_s: 0.1,
                classes,
                dirty_bytes: Some(megabytes * 1_000_000),
                ..Window::default()
            })
            .collect()
    }

    #[test]
    fn dirty_data_that_piles_up_is_not_level() {
        assert!(!is_level(&writing((1..=20).map(|i| 10 * i)), 1.0));
        assert!(!is_level(&writing((1..=20).map(|i| 100 + i)), 1.0));
    }

    #[test]
    fn dirty_data_that_stays_or_bounces_below_its_peak_is_level() {
        assert!(is_level(&writing([80; 20]), 1.0));
        let throttled = (1..=10).map(|i| 10 * i).chain((0..10).map(|i| 90 + i % 3));
        assert!(is_level(&writing(throttled), 1.0));
    }

    #[test]
    fn what_cannot_be_seen_does_not_hold_up() {
        let blind = Window { dirty_bytes: None, ..writing([0])[0] };
        assert!(is_level(&[blind; 10], 1.0));
    }
}
