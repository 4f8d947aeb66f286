//! Visits at a rate, beside the closed loop of the same workload.

use crate::{Point, ResponseTime, Role, Workload};

/// Least share of the requests due that are done where a rate is kept.
pub const DONE_MIN: f64 = 0.98;

/// Requests that came at a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLoop {
    /// With its rate.
    pub workload: Workload,
    /// The rate over what the same workload did in a closed loop.
    pub share: f64,
    /// Requests done, per second.
    pub ops_per_s: f64,
    /// Latency from when each request was due.
    pub latency_s: ResponseTime,
}

/// The open loops among these visits whose closed loop was visited, too.
pub fn open_loops(points: &[Point]) -> Vec<OpenLoop> {
    let at_rates = points.iter().filter(|point| point.role == Role::OpenLoop);
    let mut found: Vec<OpenLoop> = at_rates.filter_map(|point| open_loop(point, points)).collect();
    found.sort_by(|a, b| a.share.total_cmp(&b.share));
    found
}

fn open_loop(point: &Point, points: &[Point]) -> Option<OpenLoop> {
    let closed = point.workload.closed_loop();
    let of_closed = points.iter().filter(|point| point.workload == closed);
    let done: Vec<f64> = of_closed.map(|point| point.ops_per_s).collect();
    let share = point.workload.rate * done.len() as f64 / done.iter().sum::<f64>();
    let latency_s = point.latency_s.filter(|latency| latency.p50 > 0.0)?;
    share.is_finite().then(|| OpenLoop {
        workload: point.workload.clone(),
        share,
        ops_per_s: point.ops_per_s,
        latency_s,
    })
}
