//! What the windows of a visit show that its number does not: doubts that follow from the counters
//! and from the shape of the series.

use ioscape_model::units::three_digits;
use ioscape_model::{Access, Code, State, Warning, Words, Workload};
use ioscape_stats::Piece;

/// A window this many times as long as it was to be, and longer by this, was not ours to end.
const HELD_UP_FACTOR: f64 = 3.0;
const HELD_UP_S: f64 = 0.25;
/// Found in the page cache: most of it.
const CACHED: f64 = 0.5;
/// Of a cold visit, what may be found there.
const COLD_HIT_MAX: f64 = 0.1;
/// Device bytes over bytes asked for, where few requests go on from the one before.
const AMPLIFIED: f64 = 2.0;
const SEQUENTIAL_MAX: f64 = 0.2;
/// Two groups of windows: at least so many windows, each group at least this share of them, their
/// means this far apart in standard deviations within, and by this factor.
const GROUPED_MIN: usize = 10;
const GROUP_SHARE: f64 = 0.15;
const APART_SIGMAS: f64 = 5.0;
const APART_RATIO: f64 = 1.5;

/// What was seen in a visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// How long windows were to be, and the longest that was: while the workload ran in, and then.
    pub(super) lengths_s: [(f64, f64); 2],
    pub(super) hit_fraction: Option<f64>,
    pub(super) read_amplification: Option<f64>,
}

impl Shown {
    /// All doubts that follow from it.
    pub(super) fn doubts(&self, work: &Workload, series: &[Piece]) -> Vec<Warning> {
        let all = [
            held_up(self.lengths_s),
            not_cold(work, self.hit_fraction),
            depth_ignored(work, self.hit_fraction),
            amplified(work, self.read_amplification),
            two_speeds(series),
        ];
        all.into_iter().flatten().collect()
    }
}

/// A process that was stopped, or a machine that stood still: no window ends in time then.
fn held_up(lengths_s: [(f64, f64); 2]) -> Option<Warning> {
    let (usual_s, longest_s) = lengths_s
        .into_iter()
        .find(|(usual_s, longest_s)| *longest_s > HELD_UP_FACTOR * usual_s + HELD_UP_S)?;
    let text = Words::new(
        "a window of {usual_s} lasted {longest_s}: this process was stopped, or the whole machine \
         stood still",
    )
    .figure("usual_s", usual_s)
    .figure("longest_s", longest_s);
    Some(Warning::new(Code::ClockJump, text, "measure again while nothing stops it"))
}

/// A cold visit that does not stay cold: what was moved came faster than it could be dropped, or was
/// written and is not on storage yet.
fn not_cold(work: &Workload, hit_fraction: Option<f64>) -> Option<Warning> {
    let hit = hit_fraction.filter(|hit| *hit > COLD_HIT_MAX)?;
    (work.state == State::Cold && work.access == Access::Buffered).then(|| {
        let text = Words::new(
            "state=cold was asked for, but {hit_share} of the requested pages were in the page \
             cache: they came faster than they could be dropped, or were written and not on storage \
             yet",
        )
        .figure("hit_share", hit);
        let remedy = "use access=direct to see storage alone, or more unique_bytes than memory";
        Warning::new(Code::CacheState, text, remedy)
    })
}

/// The page cache is copied from by the process itself, one request at a time.
fn depth_ignored(work: &Workload, hit_fraction: Option<f64>) -> Option<Warning> {
    let hit = hit_fraction.filter(|hit| *hit > CACHED)?;
    (work.depth > 1 && work.access == Access::Buffered).then(|| {
        let text = Words::new(
            "depth={depth} was asked for, but {hit_share} of the requested pages were in the page \
             cache, and these are copied one request after the other",
        )
        .figure("depth", f64::from(work.depth))
        .figure("hit_share", hit);
        let remedy = "use access=direct to have requests in flight together";
        Warning::new(Code::DepthIgnored, text, remedy)
    })
}

/// Random reads that bring in what nobody asked for.
fn amplified(work: &Workload, read_amplification: Option<f64>) -> Option<Warning> {
    let factor = read_amplification.filter(|factor| *factor > AMPLIFIED)?;
    (work.seq_frac <= SEQUENTIAL_MAX && work.access == Access::Buffered).then(|| {
        let text = Words::new(
            "storage delivered {times} times what was read: read-ahead takes most of its throughput",
        )
        .figure("read_amplification", factor)
        .name("times", three_digits(factor));
        let remedy = "lower read_ahead_kb of the device (`blockdev --setra`), if your programs will \
                      run with less";
        Warning::new(Code::ReadAhead, text, remedy)
    })
}

/// Two speeds in one visit, which never ran at their mean.
fn two_speeds(series: &[Piece]) -> Option<Warning> {
    let mut rates: Vec<f64> =
        series.iter().map(|piece| piece.amount / piece.length.max(f64::MIN_POSITIVE)).collect();
    if rates.len() < GROUPED_MIN {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let least = ((rates.len() as f64 * GROUP_SHARE).ceil() as usize).max(2);
    let split = (least..=rates.len() - least)
        .map(|at| (at, scatter(&rates[..at]) + scatter(&rates[at..])))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (slow, fast) = rates.split_at(split.0);
    let within = (split.1 / rates.len() as f64).sqrt();
    let (low, high) = (mean(slow), mean(fast));
    (high - low > APART_SIGMAS * within && high > APART_RATIO * low).then(|| {
        let text = Words::new(
            "{slow_share} of the time it ran at {slow_bytes_per_s}, otherwise at \
             {fast_bytes_per_s}, and never at the mean",
        )
        .figure("slow_share", slow.len() as f64 / rates.len() as f64)
        .figure("slow_bytes_per_s", low)
        .figure("fast_bytes_per_s", high);
        let remedy = "look at both speeds apart, and find out what switches between them";
        Warning::new(Code::Bistable, text, remedy)
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Squared distances from the mean.
fn scatter(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rates: impl IntoIterator<Item = f64>) -> Vec<Piece> {
        rates.into_iter().map(|rate| Piece { amount: rate * 0.1, length: 0.1 }).collect()
    }

    #[test]
    fn two_speeds_are_told_from_one_that_scatters() {
        let ripple = |index: i32| f64::from(index * 37 % 19) / 19.0;
        let switching =
            (0..40).map(|i| if i % 3 == 0 { 4e8 } else { 1e9 } * (1.0 + 0.1 * ripple(i)));
        let warning = two_speeds(&series(switching)).unwrap();
        assert!(warning.text.starts_with("35 % of the time"), "{}", warning.text);
        let figure = |name: &str| warning.figures[name];
        assert!((figure("slow_share") - 0.35).abs() < 1e-12, "{:?}", warning.figures);
        assert!((4e8..4.4e8).contains(&figure("slow_bytes_per_s")), "{:?}", warning.figures);
        assert!((1e9..1.1e9).contains(&figure("fast_bytes_per_s")), "{:?}", warning.figures);
        assert_eq!(two_speeds(&series((0..40).map(|i| 1e9 * (0.5 + ripple(i))))), None);
        assert_eq!(two_speeds(&series((0..40).map(|i| 1e9 * (1.0 + f64::from(i) / 10.0)))), None);
        assert_eq!(two_speeds(&series([1e9, 2e9, 1e9, 2e9])), None, "too few to tell");
        assert_eq!(two_speeds(&series((0..40).map(|_| 0.0))), None);
    }

    #[test]
    fn a_window_that_nobody_ended_is_pointed_out() {
        assert_eq!(held_up([(0.1, 0.5), (0.1, 0.4)]), None);
        let warning = held_up([(0.1, 0.1), (0.1, 2.6)]).unwrap();
        assert!(warning.text.contains("100 ms lasted 2.60 s"), "{}", warning.text);
        let figures: Vec<f64> = warning.figures.into_values().collect();
        assert_eq!(figures, [2.6, 0.1], "longest_s, usual_s");
        let text = held_up([(0.1, 20.1), (0.1, 0.1)]).unwrap().text;
        assert!(text.contains("100 ms lasted 20.1 s"), "{text}");
    }

    #[test]
    fn what_the_page_cache_answers_is_neither_cold_nor_deep() {
        let work = |text: &str| Workload::parse(text).unwrap();
        assert!(not_cold(&work("state=cold"), Some(0.9)).is_some());
        assert!(not_cold(&work("state=cold"), Some(0.2)).is_some());
        assert_eq!(not_cold(&work("state=cold"), Some(0.04)), None);
        assert_eq!(not_cold(&work("state=warm"), Some(0.9)), None);
        let warning = depth_ignored(&work("depth=8"), Some(0.9)).unwrap();
        assert!(warning.text.starts_with("depth=8 was asked for, but 90 % of"), "{}", warning.text);
        assert_eq!(warning.figures.into_values().collect::<Vec<_>>(), [8.0, 0.9]);
        assert_eq!(depth_ignored(&work("depth=8,access=direct"), Some(0.9)), None);
        assert!(amplified(&work("seq_frac=0"), Some(8.0)).is_some());
        assert_eq!(amplified(&work("seq_frac=0.5"), Some(8.0)), None);
    }
}
