//! Measures one workload: brings it to a steady state, takes windows until the interval is narrow
//! enough or the time is over, and says what was seen.
//!
//! Raw windows come from the [`Rig`]; a kept sample and its mean from `ioscape-stats`; what is
//! doubtful becomes a warning in the point. Windows are never left out for being slow.

mod doubts;
mod failures;
mod outcome;
mod settle;

use ioscape_engine::{Error, Rig, Window};
use ioscape_model::{End, EndReason, Point, Role, Rules, Workload};
use ioscape_stats::{Drift, Kept, Mean, Piece};

/// Confidence of the intervals inside a visit.
const CONFIDENCE: f64 = 0.95;
/// A window should hold this many requests, or chance alone makes windows differ.
const WINDOW_OPS_MIN: f64 = 200.0;
/// Windows grow up to this length, seconds, to hold them.
const WINDOW_MAX_S: f64 = 1.0;
/// So few windows are enough where they vary by less than [`QUIET_VARIATION`].
const QUIET_WINDOWS_MIN: u32 = 10;
/// Coefficient of variation of the windows of a quiet system.
const QUIET_VARIATION: f64 = 0.03;
/// Each check sees this many times the windows of the one before: looking after every window
/// would stop at the first lucky stretch.
const CHECK_FACTOR: f64 = 1.25;
/// Checks in a row that must pass, for the same reason.
const CHECKS_PASSED_MIN: u32 = 2;
/// A visit that has written its share runs in for so few windows, and counts so few.
const SPARING_WINDOWS_MIN: usize = 5;
/// So few requests in each are enough: all of them together hold as many as one window of others.
const SPARING_WINDOW_OPS: f64 = WINDOW_OPS_MIN / SPARING_WINDOWS_MIN as f64;
/// Length of these windows, seconds: short ones write little.
const SPARING_WINDOW_S: f64 = 0.02;
/// The shortest visit that has written its share, running in included, seconds.
pub(crate) const SPARING_VISIT_S: f64 = 2.0 * SPARING_WINDOWS_MIN as f64 * SPARING_WINDOW_S;
/// The drift a visit may end with, as a share of the precision asked for.
const DRIFT_OF_PRECISION: f64 = 0.5;

/// What is measured in one visit, and why.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The workload.
    pub work: &'a Workload,
    /// Why.
    pub role: Role,
    /// Which round of visits this belongs to, from 0.
    pub round: u32,
    /// Seed of this visit's requests; another for each visit, or what one visit left in the cache
    /// is what the next one asks for.
    pub seed: u64,
}

/// Progress of a visit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Files are laid out, the cache is brought into its state.
    Preparing,
    /// The workload runs; nothing counts yet.
    Settling {
        /// For so long, seconds.
        elapsed_s: f64,
    },
    /// A window was taken.
    Window {
        /// Windows so far.
        count: u32,
        /// Throughput so far.
        throughput_bytes_per_s: f64,
        /// Relative half-width of the interval at the last check; none before the first.
        half_width: Option<f64>,
    },
    /// The workers stop, what they wrote is made durable.
    Finishing,
}

/// Visits a workload once.
///
/// # Errors
/// What the rig reports: a request failed, there was no room, the run was interrupted, or no more
/// may be written and too little was measured by then.
pub fn measure(
    subject: &Subject<'_>,
    rules: &Rules,
    rig: &mut dyn Rig,
    on_event: &mut dyn FnMut(Event),
) -> Result<Point, Error> {
    measure_sparing(subject, rules, (rig, u64::MAX), on_event)
}

/// As [`measure`], but once the visit has written as much as its share, layout aside, it takes no more
/// windows than the fewest that can be judged. A device that writes 3 GB/s would use up all that a run
/// may write in two visits.
pub(crate) fn measure_sparing(
    subject: &Subject<'_>,
    rules: &Rules,
    (rig, share_bytes): (&mut dyn Rig, u64),
    on_event: &mut dyn FnMut(Event),
) -> Result<Point, Error> {
    let started_s = rig.now_s();
    on_event(Event::Preparing);
    let prepared = rig.prepare(subject.work)?;

    let settling_from_s = rig.now_s();
    let spared_bytes = match subject.work.read_frac {
        1.0.. => 0,
        _ => rig.may_write_bytes().saturating_sub(share_bytes),
    };
    rig.start(subject.work, subject.seed)?;
    let shown = look(subject.work, rules, (rig, spared_bytes), on_event);
    if let Err(Error::MaxWritten) = shown {
        rig.finish(false)?;
    }
    let (settled, measuring_from_s, taken) = shown?;

    let finishing_from_s = rig.now_s();
    on_event(Event::Finishing);
    let sync = rules.sync_at_end && subject.work.read_frac < 1.0;
    let finished = rig.finish(sync)?;
    let ended_s = rig.now_s();

    let mut spent_s = prepared.spent_s;
    spent_s.settling += measuring_from_s - settling_from_s;
    spent_s.measuring += finishing_from_s - measuring_from_s;
    spent_s.sync += ended_s - finishing_from_s;
    Ok(outcome::FinishedVisit {
        subject,
        rules,
        engine: rig.engine(),
        started_s,
        elapsed_s: ended_s - started_s,
        spent_s,
        earlier_warnings: prepared.warnings,
        settled,
        taken: &taken,
        finished: &finished,
    }
    .into_point())
}

/// Whether a visit has written its share: it leaves `spared_bytes` to others, where that is any.
fn has_written_share(rig: &dyn Rig, spared_bytes: u64) -> bool {
    spared_bytes > 0 && rig.may_write_bytes() < spared_bytes
}

/// Lets the workload run in and takes its windows. Between the two is when these began.
fn look(
    work: &Workload,
    rules: &Rules,
    (rig, spared_bytes): (&mut dyn Rig, u64),
    on_event: &mut dyn FnMut(Event),
) -> Result<(settle::Settled, f64, Taken), Error> {
    let settled = settle::settle(work, rules, (rig, spared_bytes), on_event)?;
    let measuring_from_s = rig.now_s();
    rig.mark();
    let mut length_s = window_length_s(rules, settled.ops_per_s);
    if let Some(spent_bytes_per_s) = settled.spent_bytes_per_s {
        let left_bytes = rig.may_write_bytes().saturating_sub(spared_bytes) as f64;
        if spent_bytes_per_s * length_s * f64::from(rules.windows_min) > left_bytes {
            // Shorter windows, as long as they hold enough requests.
            length_s = length_s.min((SPARING_WINDOW_OPS / settled.ops_per_s).max(SPARING_WINDOW_S));
        }
    }
    let taken = take_windows(rules, length_s, (rig, spared_bytes), on_event)?;
    Ok((settled, measuring_from_s, taken))
}

/// The raw windows of a visit, and the same as a series of bytes over seconds.
#[derive(Clone, Debug, Default)]
struct Taken {
    /// How long each window was to be, seconds.
    asked_s: f64,
    windows: Vec<Window>,
    series: Vec<Piece>,
}

/// The last line of a record whose visits were made on this rig.
pub fn end(reason: EndReason, points: &[Point], rig: &dyn Rig) -> End {
    End {
        written_bytes: rig.written_bytes(),
        device_written_bytes: rig.device_written_bytes(),
        ..End::after(reason, points, rig.now_s())
    }
}

/// What a look at the series says.
#[derive(Clone, Copy, Debug)]
struct Check {
    cut: usize,
    mean: Mean,
    drift: Drift,
    variation: f64,
}

impl Check {
    fn new(series: &[Piece]) -> Self {
        let kept = Kept::from_series(series);
        Self {
            cut: kept.cut(),
            mean: kept.mean(),
            drift: kept.drift(),
            variation: kept.variation(),
        }
    }

    fn passes(&self, rules: &Rules, count: usize) -> bool {
        // Where a beginning had to be cut off, nothing is quiet yet.
        let quiet = self.cut == 0 && self.variation < QUIET_VARIATION;
        (quiet || count - self.cut >= rules.windows_min as usize)
            && self.drift.is_over(DRIFT_OF_PRECISION * rules.precision)
            && self.half_width() <= rules.precision
    }

    /// Relative half-width of the interval: what the scatter says and how far the mean may lag.
    fn half_width(&self) -> f64 {
        self.mean.relative_half_width(CONFIDENCE).hypot(self.drift.lag())
    }
}

/// Long enough for [`WINDOW_OPS_MIN`] requests, but never so long that fewer windows than the
/// rules ask for fit the time.
fn window_length_s(rules: &Rules, ops_per_s: f64) -> f64 {
    let longest_s = (rules.measure_max_s / f64::from(rules.windows_min.max(1))).min(WINDOW_MAX_S);
    (WINDOW_OPS_MIN / ops_per_s).min(longest_s).max(rules.window_s)
}

fn take_windows(
    rules: &Rules,
    length_s: f64,
    (rig, spared_bytes): (&mut dyn Rig, u64),
    on_event: &mut dyn FnMut(Event),
) -> Result<Taken, Error> {
    let mut taken = Taken { asked_s: length_s, ..Taken::default() };
    let mut bytes = 0.0;
    let mut elapsed_s = 0.0;
    let mut half_width = None;
    let mut passed = 0;
    let first_check = QUIET_WINDOWS_MIN.min(rules.windows_min);
    let mut next_check = first_check;
    // Half a window of tolerance, so that rounding does not add one to the time allowed.
    while passed < CHECKS_PASSED_MIN && elapsed_s + length_s / 2.0 < rules.measure_max_s {
        let window = match rig.window(length_s) {
            // As at the end of the time.
            Err(Error::MaxWritten) if taken.windows.len() >= first_check as usize => break,
            window => window?,
        };
        bytes += window.bytes() as f64;
        elapsed_s += window.length_s;
        taken.series.push(Piece { amount: window.bytes() as f64, length: window.length_s });
        taken.windows.push(window);
        let count = taken.series.len() as u32;
        if count >= next_check {
            let check = Check::new(&taken.series);
            passed = if check.passes(rules, taken.series.len()) { passed + 1 } else { 0 };
            half_width = Some(check.half_width());
            next_check = following_check(count, rules.windows_min);
        }
        on_event(Event::Window {
            count,
            throughput_bytes_per_s: bytes / elapsed_s.max(f64::MIN_POSITIVE),
            half_width,
        });
        if taken.windows.len() >= SPARING_WINDOWS_MIN && has_written_share(rig, spared_bytes) {
            break;
        }
    }
    Ok(taken)
}

/// The next check, not skipping the first one at which an unquiet visit may pass.
fn following_check(count: u32, windows_min: u32) -> u32 {
    let next = (f64::from(count) * CHECK_FACTOR).ceil() as u32;
    if count < windows_min { next.min(windows_min) } else { next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_geometric_and_meet_the_fewest_windows() {
        let checks = |windows_min: u32| -> Vec<u32> {
            let first = QUIET_WINDOWS_MIN.min(windows_min);
            std::iter::successors(Some(first), |&count| Some(following_check(count, windows_min)))
                .take(6)
                .collect()
        };
        assert_eq!(checks(20), [10, 13, 17, 20, 25, 32]);
        assert_eq!(checks(15), [10, 13, 15, 19, 24, 30]);
        assert_eq!(checks(4), [4, 5, 7, 9, 12, 15]);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exact by construction")]
    fn windows_grow_for_slow_targets_but_stay_as_many_as_the_rules_ask_for() {
        let length = |rules: Rules, ops_per_s: f64| window_length_s(&rules, ops_per_s);
        assert_eq!(length(Rules::thorough(), 1e6), 0.1);
        assert_eq!(length(Rules::thorough(), 500.0), 0.4);
        assert_eq!(length(Rules::thorough(), 10.0), 1.0);
        assert_eq!(length(Rules::thorough(), 0.0), 1.0);
        let brief = Rules::brief();
        let longest_s = brief.measure_max_s / f64::from(brief.windows_min);
        assert_eq!(length(brief, 10.0), longest_s);
    }
}
