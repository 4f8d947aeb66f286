//! One workload in characters, as `measure` answers.

use ioscape_model::units::{show_bytes, show_percent, show_rate, show_seconds, three_digits};
use ioscape_model::{Estimate, Point, Ranks, Warning};

/// What a workload got, and the visits behind it.
pub fn estimate_text(estimate: &Estimate, points: &[Point]) -> String {
    let rate = &estimate.throughput_bytes_per_s;
    let response = &estimate.response_time_s;
    let mut lines = vec![
        format!("workload       {}", estimate.workload),
        format!(
            "throughput     {} ({} to {}, 95 %, {} visits)",
            show_rate(rate.mean),
            show_rate(rate.low),
            show_rate(rate.high),
            estimate.visits
        ),
    ];
    if let Some(durable) = estimate.durable_bytes_per_s {
        lines.push(format!("durable        {} with the final fdatasync", show_rate(durable)));
    }
    lines.push(format!("requests       {} per second", three_digits(estimate.ops_per_s.mean)));
    lines.push(format!(
        "response time  mean {}, p50 {}, p99 {}, p99.9 {}, longest {}",
        show_seconds(response.mean),
        show_seconds(response.p50),
        show_seconds(response.p99),
        show_seconds(response.p999),
        show_seconds(response.max)
    ));
    if let Some(latency) = &estimate.latency_s {
        lines.push(format!(
            "latency        mean {}, p50 {}, p99 {}, p99.9 {}, longest {}, from when requests were \
             due",
            show_seconds(latency.mean),
            show_seconds(latency.p50),
            show_seconds(latency.p99),
            show_seconds(latency.p999),
            show_seconds(latency.max)
        ));
    }
    if let Some(hit) = estimate.hit_fraction {
        lines.push(format!("cached         {:.1} % of the requested pages", hit * 100.0));
    }
    if let Some(resident) = points.last().and_then(|point| point.resident_bytes) {
        lines.push(format!("resident       {}", show_bytes(resident as f64)));
    }
    let verified_bytes: Option<u64> = points.iter().map(|point| point.verified_bytes).sum();
    if let Some(bytes) = verified_bytes.filter(|_| !points.is_empty()) {
        lines.push(format!("verified       {} were read and compared", show_bytes(bytes as f64)));
    }
    lines.extend(points.last().and_then(|point| point.ranks.as_ref()).map(ranks));
    lines.extend(estimate.warnings.iter().map(doubt));
    lines.join("\n")
}

/// A line on the ranks in the last visit.
fn ranks(ranks: &Ranks) -> String {
    let shares = || ranks.each.iter().filter(|rank| rank.processes > 0).map(|rank| rank.share);
    format!(
        "ranks          {}, shares {} to {}, slowest rank {}, began within {}",
        ranks.each.len(),
        show_percent(shares().fold(f64::INFINITY, f64::min)),
        show_percent(shares().fold(0.0, f64::max)),
        ranks.slowest,
        show_seconds(ranks.start_spread_s)
    )
}

fn doubt(warning: &Warning) -> String {
    format!("doubt          {}; {}", warning.text, warning.remedy)
}
