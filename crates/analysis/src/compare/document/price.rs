//! What a system gives for its money, and whether it is worth what it costs more.

use ioscape_model::{
    Comparison, Figure, PriceComparison, PricePerformance, SystemComparison, Verdict, Worth,
};

use super::Against;

const MEGABYTE: f64 = 1e6;

/// Whether throughput grows by more than the price, in the mean and for each workload in range.
pub(super) fn worth(
    price_ratio: f64,
    system: &SystemComparison,
    comparisons: &[Comparison],
) -> PriceComparison {
    let judge = |ratio: &Figure| match ratio {
        ratio if ratio.low > price_ratio => Worth::WorthIt,
        ratio if ratio.high < price_ratio => Worth::NotWorthIt,
        _ => Worth::CannotBeSaid,
    };
    let all = system.geometric_mean.or(system.measured);
    let in_range = comparisons.iter().filter(|c| c.verdict != Verdict::OutOfRange);
    PriceComparison {
        price_ratio,
        worth: all.map_or(Worth::CannotBeSaid, |sum| judge(&sum.ratio)),
        workloads: in_range.map(|c| (c.name.clone(), judge(&c.ratio))).collect(),
    }
}

/// Throughput for the price, of the workloads that are in range everywhere; the baseline first, as
/// its price. All systems were compared on the same workloads.
pub(super) fn performance(
    baseline: &str,
    against: &[Against],
    prices: &[f64],
) -> Vec<PricePerformance> {
    let Some(first) = against.first() else { return vec![] };
    let is_everywhere = |place: &usize| {
        against.iter().all(|other| other.comparisons[*place].verdict != Verdict::OutOfRange)
    };
    let kept: Vec<usize> = (0..first.comparisons.len()).filter(is_everywhere).collect();
    let rates = |all: &[Comparison], rate: fn(&Comparison) -> f64| -> Vec<(String, f64)> {
        kept.iter().map(|place| (all[*place].name.clone(), rate(&all[*place]))).collect()
    };
    let of_baseline =
        (baseline, rates(&first.comparisons, |comparison| comparison.baseline_bytes_per_s));
    let others = against.iter().map(|other| {
        let rates = rates(&other.comparisons, |comparison| comparison.throughput_bytes_per_s);
        (other.system.record.as_str(), rates)
    });
    let all = std::iter::once(of_baseline).chain(others).zip(prices);
    all.map(|((record, rates), price)| for_money(record, *price, rates)).collect()
}

/// What a record's throughputs, bytes per second, are for its price.
fn for_money(record: &str, price: f64, rates: Vec<(String, f64)>) -> PricePerformance {
    let per_unit = |(name, rate): (String, f64)| (name, rate / MEGABYTE / price);
    let workloads: Vec<(String, f64)> = rates.into_iter().map(per_unit).collect();
    let ln_sum: f64 = workloads.iter().map(|(_, per_unit)| per_unit.ln()).sum();
    let mean = (!workloads.is_empty()).then(|| (ln_sum / workloads.len() as f64).exp());
    PricePerformance {
        record: record.to_owned(),
        price,
        mb_per_s_per_unit: mean,
        workloads: workloads.into_iter().collect(),
    }
}
