//! The highest rate of an open loop at which the 99th percentile of the latency stays below a
//! bound.
//!
//! A closed loop says how fast the workload can go at all. From there the rate goes up or down by
//! halves and doubles until one is found that keeps the bound and one that does not, and then
//! between both, on a logarithmic axis, until they are close. Every rate is visited a few times
//! unless the first visit is far from the bound; what most visits say counts. The interval reaches
//! from the highest rate that every visit kept to the lowest above it that none did.

use ioscape_model::{DONE_MIN, Point, Rules};

/// A visit this far below the bound, or above it, says enough alone.
const CLEAR: f64 = 2.0;
/// Requests that a 99th percentile is worth being taken of, and the longest that is waited for
/// them, seconds.
const REQUESTS_WANTED: f64 = 5000.0;
const MEASURE_MAX_S: f64 = 10.0;
/// Fewer than these make none.
const REQUESTS_MIN: f64 = 500.0;
/// The first rate tried, as a share of what the closed loop gave.
const FIRST_SHARE: f64 = 0.5;
/// No rate is tried beyond this many times what the closed loop gave.
const REACH: f64 = 8.0;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSearch {
    /// The bound of the 99th percentile, seconds.
    pub p99_max_s: f64,
    /// How close the rate that is kept and the one that is not are to be, as a fraction.
    pub precision: f64,
    /// Visits to a rate.
    pub rounds: u32,
}

/// What a visit to a rate gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateResult {
    /// 99th percentile of the latency from when requests were due, seconds.
    pub p99_s: f64,
    /// Requests done, per second.
    pub ops_per_s: f64,
}

/// A rate and its visits.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Requests per second that were due.
    pub rate_per_s: f64,
    /// What came of it.
    pub visits: Vec<RateResult>,
    /// How many of them kept the bound.
    pub kept: usize,
}

impl Trial {
    /// Whether most visits kept the bound.
    pub fn is_kept(&self) -> bool {
        2 * self.kept > self.visits.len()
    }
}

/// How the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Between a rate that is kept and one that is not.
    Found,
    /// Not even a rate so low that it makes hardly enough requests for a 99th percentile.
    NotReachable,
    /// Every rate that was tried was kept: the storage was never busy enough.
    NotSaturated,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How the search ended.
    pub ending: Ending,
    /// The highest rate that most visits kept, requests per second; none where no rate was.
    pub rate_per_s: Option<f64>,
    /// The highest rate that all visits kept, no lower one having failed.
    pub low_per_s: Option<f64>,
    /// The lowest rate above that no visit kept; none where all rates were kept.
    pub high_per_s: Option<f64>,
    /// All rates tried, lowest first.
    pub trials: Vec<Trial>,
}

/// Rules for a visit at a rate: long enough for a 99th percentile.
#[must_use]
pub fn rules(rate_per_s: f64) -> Rules {
    let usual = Rules::thorough();
    let wanted_s = (REQUESTS_WANTED / rate_per_s)
        .clamp(f64::from(usual.windows_min) * usual.window_s, MEASURE_MAX_S);
    Rules {
        windows_min: (wanted_s / usual.window_s).ceil() as u32,
        measure_max_s: wanted_s.max(usual.window_s),
        sync_at_end: false,
        ..usual
    }
}

impl RateResult {
    /// What a point of an open loop says.
    pub fn from_point(point: &Point) -> Self {
        let latency = point.latency_s.unwrap_or(point.response_time_s);
        Self { p99_s: latency.p99, ops_per_s: point.ops_per_s }
    }

    fn keeps(&self, rate_per_s: f64, question: &RateSearch) -> bool {
        self.p99_s <= question.p99_max_s && self.ops_per_s >= DONE_MIN * rate_per_s
    }

    /// Whether another visit would hardly say otherwise.
    fn is_clear(&self, question: &RateSearch) -> bool {
        self.p99_s * CLEAR <= question.p99_max_s || self.p99_s >= question.p99_max_s * CLEAR
    }
}

/// Looks for the rate. `visit` makes one visit at a rate; `closed_ops_per_s` is what the workload
/// gave in a closed loop.
///
/// # Errors
/// What a visit reports.
pub fn search<E>(
    question: &RateSearch,
    closed_ops_per_s: f64,
    visit: &mut dyn FnMut(f64, u32) -> Result<RateResult, E>,
) -> Result<Answer, E> {
    let mut trials: Vec<Trial> = Vec::new();
    let least = REQUESTS_MIN / MEASURE_MAX_S;
    let most = (closed_ops_per_s * REACH).max(2.0 * least);
    let mut rate = (closed_ops_per_s * FIRST_SHARE).clamp(least, most);
    let (mut kept, mut broken): (Option<f64>, Option<f64>) = (None, None);
    loop {
        let trial = try_rate(question, rate, visit)?;
        if trial.is_kept() {
            kept = Some(rate);
        } else {
            broken = Some(rate);
        }
        trials.push(trial);
        rate = match (kept, broken) {
            (Some(kept), Some(broken)) if broken <= kept * (1.0 + question.precision) => break,
            (Some(kept), Some(broken)) => (kept * broken).sqrt(),
            (Some(kept), None) if kept >= most => break,
            (Some(kept), None) => (kept * 2.0).min(most),
            (None, _) if rate <= least => break,
            (None, _) => (rate / 2.0).max(least),
        };
    }
    trials.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    Ok(answer(trials, kept, broken))
}

fn try_rate<E>(
    question: &RateSearch,
    rate_per_s: f64,
    visit: &mut dyn FnMut(f64, u32) -> Result<RateResult, E>,
) -> Result<Trial, E> {
    let mut trial = Trial { rate_per_s, visits: Vec::new(), kept: 0 };
    for round in 0..question.rounds {
        let made = visit(rate_per_s, round)?;
        trial.visits.push(made);
        trial.kept += usize::from(made.keeps(rate_per_s, question));
        if round == 0 && made.is_clear(question) {
            break;
        }
    }
    Ok(trial)
}

/// Trials lowest rate first; where the search stood at its end.
fn answer(trials: Vec<Trial>, kept: Option<f64>, broken: Option<f64>) -> Answer {
    let all_kept = |trial: &&Trial| trial.kept == trial.visits.len();
    let low = trials.iter().take_while(all_kept).last().map(|trial| trial.rate_per_s);
    let none_kept = |trial: &&Trial| trial.kept == 0;
    let high = trials.iter().rev().take_while(none_kept).last().map(|trial| trial.rate_per_s);
    let ending = match (kept, broken) {
        (None, _) => Ending::NotReachable,
        (Some(_), None) => Ending::NotSaturated,
        (Some(_), Some(_)) => Ending::Found,
    };
    Answer {
        ending,
        rate_per_s: kept,
        // Where even the lowest rate failed once, nothing is known to be kept for sure.
        low_per_s: kept.map(|_| low.unwrap_or(0.0)),
        high_per_s: high,
        trials,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const QUESTION: RateSearch = RateSearch { p99_max_s: 2e-3, precision: 0.05, rounds: 3 };

    /// A device of 1000 requests per second: p99 = 0.1 ms / (1 − ρ), with factors of noise in turn.
    fn sought(question: &RateSearch, noise: &[f64], law: impl Fn(f64) -> f64) -> Answer {
        let mut count = 0;
        search::<Infallible>(question, 1000.0, &mut |rate, _| {
            count += 1;
            let p99_s = law(rate) * noise[count % noise.len()];
            Ok(RateResult { p99_s, ops_per_s: rate.min(1000.0) })
        })
        .unwrap()
    }

    fn queue(rate: f64) -> f64 {
        if rate < 1000.0 { 1e-4 / (1.0 - rate / 1000.0) } else { 1.0 }
    }

    #[test]
    fn the_rate_lies_between_one_that_is_kept_and_one_that_is_not() {
        // 0.1 ms / (1 − ρ) = 2 ms at ρ = 0.95.
        let answer = sought(&QUESTION, &[1.0], queue);
        assert_eq!(answer.ending, Ending::Found);
        let (low, high) = (answer.low_per_s.unwrap(), answer.high_per_s.unwrap());
        assert!(low <= 950.0 && 950.0 < high && high <= 1.05 * low, "{low} {high}");
        assert_eq!(answer.rate_per_s, Some(low));
        assert!(answer.trials.len() < 12, "{}", answer.trials.len());
        assert!(answer.trials.is_sorted_by(|a, b| a.rate_per_s < b.rate_per_s));
    }

    #[test]
    fn visits_that_disagree_widen_the_interval() {
        let answer = sought(&QUESTION, &[0.6, 1.0, 1.7], queue);
        let (low, high) = (answer.low_per_s.unwrap(), answer.high_per_s.unwrap());
        assert!(low <= 950.0 && 950.0 <= high && high > 1.05 * low, "{low} {high}");
    }

    #[test]
    fn a_bound_below_what_one_request_takes_is_not_reachable() {
        let answer = sought(&RateSearch { p99_max_s: 5e-5, ..QUESTION }, &[1.0], queue);
        assert_eq!(answer.ending, Ending::NotReachable);
        assert_eq!((answer.rate_per_s, answer.low_per_s), (None, None));
        assert!(answer.high_per_s.unwrap() <= 50.0 + 1e-9);
    }

    #[test]
    fn what_is_never_busy_is_not_said_to_have_a_highest_rate() {
        let mut visit = |rate: f64, _: u32| Ok(RateResult { p99_s: 1e-4, ops_per_s: rate });
        let answer = search::<Infallible>(&QUESTION, 1000.0, &mut visit).unwrap();
        assert_eq!(answer.ending, Ending::NotSaturated);
        assert_eq!((answer.rate_per_s, answer.high_per_s), (Some(8000.0), None));
    }

    #[test]
    fn a_rate_that_falls_behind_is_not_kept_however_short_its_latencies() {
        let mut visit =
            |rate: f64, _: u32| Ok(RateResult { p99_s: 1e-4, ops_per_s: rate.min(700.0) });
        let answer = search::<Infallible>(&QUESTION, 1000.0, &mut visit).unwrap();
        let rate = answer.rate_per_s.unwrap();
        assert!((0.95..=1.03).contains(&(rate / 700.0)), "{rate}");
    }

    #[test]
    fn a_visit_is_long_enough_for_its_percentile() {
        for (rate, seconds) in [(100.0, 10.0), (1000.0, 5.0), (1e6, 2.0)] {
            let rules = rules(rate);
            let least_s = f64::from(rules.windows_min) * rules.window_s;
            assert!((least_s - seconds).abs() < 0.11 && rules.measure_max_s >= least_s - 0.11);
        }
    }
}
