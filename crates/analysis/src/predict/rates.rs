//! Latency at rates as it was measured, over what follows from closed loops.
//!
//! A closed loop hides two things: while the machine stalls it makes no requests, where an open loop
//! makes them all and each waits; and near its highest rate a limit holds requests back that lower rates
//! never meet. So the open loops of a map say by what factor the mean and each percentile differ from
//! what was predicted, over the share of the highest rate, and other workloads are taken to differ by
//! as much at that share.

use ioscape_model::{Figure, OpenLoop, PredictedTime};
use serde::{Deserialize, Serialize};

use super::Predictor;

/// Mean, p50, p99, p99.9.
const TIMES: usize = 4;
/// Fewer rates make no curve.
const RATES_MIN: usize = 3;
/// Half-width of a corrected latency's interval, as a part of the correction: another hour stalls more
/// or less, and other workloads are not hit alike.
const UNSURE_OF_CORRECTION: f64 = 0.5;

/// Factors by which measured latencies exceed predicted ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Rates {
    /// Shares of the highest rate, lowest first.
    shares: Vec<f64>,
    /// At each of them, logarithms of the factors.
    factors: Vec<[f64; TIMES]>,
}

impl Rates {
    /// From the open loops of a map; `None` where they are too few or percentiles are not predicted.
    pub(super) fn learn(predictor: &Predictor, open: &[OpenLoop]) -> Option<Self> {
        if open.len() < RATES_MIN {
            return None;
        }
        let measured = |OpenLoop { latency_s, .. }: &OpenLoop| {
            [latency_s.mean, latency_s.p50, latency_s.p99, latency_s.p999]
        };
        let measured = rising(open.iter().map(measured).collect());
        let factors = open.iter().zip(measured).map(|(open, measured)| {
            let said = predictor.latency_at_share(&open.workload, open.share);
            let said = [Some(said.mean), said.p50, said.p99, said.p999];
            let mut factors = [0.0; TIMES];
            for ((factor, said), measured) in factors.iter_mut().zip(said).zip(measured) {
                *factor = (measured / said?.value).ln();
            }
            Some(factors)
        });
        let factors: Vec<[f64; TIMES]> = factors.collect::<Option<_>>()?;
        let shares = open.iter().map(|open| open.share).collect();
        let are_finite = factors.iter().flatten().all(|factor| factor.is_finite());
        are_finite.then_some(Self { shares, factors })
    }

    /// The latency at this share of the highest rate, as measured ones differ from predicted ones.
    pub(super) fn correct(&self, time: &PredictedTime, share: f64) -> PredictedTime {
        let factors = self.at(share);
        let scaled = |figure: Figure, factor: f64| {
            let unsure = UNSURE_OF_CORRECTION * factor.abs();
            Figure {
                value: figure.value * factor.exp(),
                low: figure.low * (factor - unsure).exp(),
                high: figure.high * (factor + unsure).exp(),
            }
        };
        let mut least = 0.0_f64;
        let mut percentile = |figure: Option<Figure>, factor: f64| {
            let figure = scaled(figure?, factor);
            // A higher percentile is never below a lower one.
            let up = (least / figure.value).max(1.0);
            least = least.max(figure.value);
            let Figure { value, low, high } = figure;
            Some(Figure { value: value * up, low: low * up, high: high * up })
        };
        PredictedTime {
            mean: scaled(time.mean, factors[0]),
            p50: percentile(time.p50, factors[1]),
            p99: percentile(time.p99, factors[2]),
            p999: percentile(time.p999, factors[3]),
        }
    }

    /// Factors between the rates that were measured, straight; beyond them those of the last.
    fn at(&self, share: f64) -> [f64; TIMES] {
        let last = self.shares.len() - 1;
        let above = self.shares.iter().position(|known| *known >= share).unwrap_or(last).max(1);
        let (low, high) = (self.shares[above - 1], self.shares[above]);
        let part = ((share - low) / (high - low).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        std::array::from_fn(|which| {
            let [from, to] = [above - 1, above].map(|index| self.factors[index][which]);
            from + part * (to - from)
        })
    }
}

/// Latencies that never fall with the rate: neighbours that do are given their geometric mean (pool
/// adjacent violators; Ayer et al. 1955).
fn rising(measured: Vec<[f64; TIMES]>) -> Vec<[f64; TIMES]> {
    let mut rising = measured;
    for which in 0..TIMES {
        let mut pools: Vec<(f64, usize)> = Vec::new();
        for times in &rising {
            pools.push((times[which].ln(), 1));
            while let [.., (before, many), (last, few)] = pools[..]
                && before > last
            {
                let count = many + few;
                let mean = (before * many as f64 + last * few as f64) / count as f64;
                pools.truncate(pools.len() - 2);
                pools.push((mean, count));
            }
        }
        let values = pools.into_iter().flat_map(|(ln, count)| std::iter::repeat_n(ln, count));
        for (times, ln) in rising.iter_mut().zip(values) {
            times[which] = ln.exp();
        }
    }
    rising
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_never_fall_with_the_rate() {
        let column = |values: &[f64]| values.iter().map(|v| [*v; TIMES]).collect::<Vec<_>>();
        let near = |found: Vec<[f64; TIMES]>, expected: &[f64]| {
            let off = found.iter().zip(expected).map(|(f, e)| (f[2] / e).ln().abs());
            assert!(off.fold(0.0, f64::max) < 1e-9, "{found:?}");
        };
        near(rising(column(&[1.0, 2.0, 3.0])), &[1.0, 2.0, 3.0]);
        near(rising(column(&[1.0, 8.0, 2.0, 5.0])), &[1.0, 4.0, 4.0, 5.0]);
        near(rising(column(&[8.0, 1.0, 1.0])), &[2.0, 2.0, 2.0]);
    }

    #[test]
    fn what_was_measured_at_rates_moves_what_is_said_of_others_at_the_same_share() {
        let figure = |value: f64| Figure { value, low: value / 1.5, high: value * 1.5 };
        let [p50, p99, p999] = [1e-4, 2e-4, 3e-4].map(|time| Some(figure(time)));
        let time = PredictedTime { mean: figure(1e-4), p50, p99, p999 };
        let factors = [[0.0; TIMES], [0.0, 0.0, 100_f64.ln(), 0.0]];
        let rates = Rates { shares: vec![0.5, 0.9], factors: factors.into() };
        assert_eq!(rates.correct(&time, 0.2), time);
        let p99 = |share: f64| rates.correct(&time, share).p99.unwrap();
        assert!((p99(0.7).value / 2e-3 - 1.0).abs() < 1e-9, "{:?}", p99(0.7));
        assert!((p99(1.5).value / 2e-2 - 1.0).abs() < 1e-9, "{:?}", p99(1.5));
        assert!(p99(1.5).high / p99(1.5).low > 50.0);
        let p999 = rates.correct(&time, 0.9).p999.unwrap();
        assert!(p999.value >= p99(0.9).value, "{p999:?}");
    }
}
