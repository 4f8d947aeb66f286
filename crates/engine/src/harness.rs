//! What the tool itself spends on a request: drawn, timed and entered into its histogram, with no
//! I/O in between.

use std::sync::Arc;

use ioscape_model::{Code, Severity, Warning, Words, Workload};

use crate::clock::{Clock, Stopwatch};
use crate::engine::{Engine, null::Null};
use crate::request::Stream;
use crate::worker::{Shared, Task, Worker};

/// Of a request's mean time, what the harness may take without a word.
const SHARE_MAX: f64 = 0.05;
/// From here on it is the harness that is measured.
const SHARE_BOUND: f64 = 0.5;
/// In this time the harness makes tens of thousands of requests.
const SLICE_NS: u64 = 4_000_000;
const SLICES: usize = 5;

/// Seconds per request: the least of a few slices, since whatever else runs here only adds.
/// `None` where no thread can be had.
pub fn cost_s(clock: &Clock) -> Option<f64> {
    let shared = Shared::new();
    let watch = Stopwatch::calibrated();
    let work = Workload::default();
    let task = Task {
        stream: Stream::new(&work, 0, 0, 1),
        engine: Engine::OneByOne(Box::new(Null::new(watch))),
        schedule: None,
        watch,
        cpu: None,
    };
    let mut worker = Worker::spawn(Arc::clone(&shared), task).ok()?;
    let done = || worker.published.counts().iter().map(|class| class.ops).sum::<u64>();
    let mut least_s = f64::INFINITY;
    let (mut before, mut before_ns) = (done(), clock.now_ns());
    for _ in 0..SLICES {
        clock.sleep_until(before_ns + SLICE_NS);
        let (now, now_ns) = (done(), clock.now_ns());
        if now > before {
            least_s = least_s.min((now_ns - before_ns) as f64 * 1e-9 / (now - before) as f64);
        }
        (before, before_ns) = (now, now_ns);
    }
    shared.stop();
    worker.join().ok()?;
    least_s.is_finite().then_some(least_s)
}

/// Of an engine that makes no request: on a busy machine its time is not the least that was
/// measured, and still nothing else's.
pub(crate) fn all_there_is() -> Warning {
    let text = "the null engine makes no request: the result is what the tool itself costs";
    let remedy =
        "leave --engine null out to measure storage; read results as short as this with care";
    Warning::new(Code::HarnessCost, text, remedy)
}

/// Says so where requests are so short that the harness is part of the result.
pub(crate) fn doubt(cost_s: Option<f64>, response_mean_s: f64) -> Option<Warning> {
    let cost_s = cost_s.filter(|cost_s| *cost_s > SHARE_MAX * response_mean_s)?;
    let text = Words::new(
        "the tool spends {own_ns:.0} ns on a request, and a request took {request_ns:.0} ns: \
         {own_share:.0} of the time is its own",
    )
    .figure("own_ns", cost_s * 1e9)
    .figure("request_ns", response_mean_s * 1e9)
    .figure("own_share", cost_s / response_mean_s);
    let remedy = "read differences between such short requests with care";
    let is_all = cost_s > SHARE_BOUND * response_mean_s;
    let severity = if is_all { Severity::Warning } else { Severity::Note };
    Some(Warning::new(Code::HarnessCost, text, remedy).with_severity(severity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_costs_something_and_much_less_than_a_system_call_on_a_disk() {
        // Tens of nanoseconds when optimised; the least of five slices is wrong where the thread got
        // less than a hundredth of each of them.
        let cost_s = cost_s(&Clock::start()).unwrap();
        eprintln!("{:.1} ns per request", cost_s * 1e9);
        assert!((1e-9..100e-6).contains(&cost_s), "{cost_s}");
    }

    #[test]
    fn a_request_as_short_as_a_few_readings_of_the_clock_is_doubted() {
        assert!(doubt(Some(40e-9), 1e-6).is_none());
        assert!(doubt(None, 1e-9).is_none());
        let warning = doubt(Some(40e-9), 400e-9).unwrap();
        assert!(warning.text.contains("40 ns on a request, and a request took 400 ns: 10 %"));
        assert!((warning.figures["own_share"] - 0.1).abs() < 1e-9, "{:?}", warning.figures);
    }
}
