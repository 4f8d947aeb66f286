//! Fits the law: least squares with priors, from two starts, allowing for what the law misses.

use ioscape_stats::least_squares::{self, Fit, Prior, Settings};
use ioscape_stats::{median, robust_sd};

use super::caches::Caches;
use super::law::Law;
use super::parallel_map::parallel_map;
use super::parameters::{Common, EXTRAS, LIMIT_OVER_SEEN, LIMITS};
use crate::model::training::FIXED_SD;
use crate::model::{Sample, Training};

/// Residuals beyond this many standard deviations count linearly; the inflated misfit leaves only a few there.
const HUBER: f64 = 2.0;
/// Misfit assumed by the first fits, from each start: standard deviation of ln throughput.
const MISFIT_START: f64 = 0.08;
/// Bounds of the misfit that is then measured, before it is inflated: no visit repeats better than the first, and a law
/// that misses by more than the second is of no use. Choices.
const MISFIT_MIN: f64 = 0.01;
const MISFIT_MAX: f64 = 0.3;
/// The measured misfit is inflated by this for the last fit: the law misses neighbouring samples in one
/// direction, so that 36 (its square) weigh no more than one that is independent.
/// With the law of commit f0dba86, held out: mean |ln error| 0.205 without, 0.180, 0.174, 0.175 with 4, 6 and 10.
const MISFIT_INFLATION: f64 = 6.0;
/// Misfit assumed for extras, which are too few for theirs to be measured.
const EXTRAS_MISFIT: f64 = 0.1;
/// In one start copying, and what storage serves at a time, are so much faster than expected: else a slow copy is found in
/// place of a limit. With 10 errors are alike; with 1 two volumes of 3000 requests and 125 MB per second were
/// off by 9.1 and 10.9 % (median), with 4 by 1.9 and 6.3 % (`docs/experiments.md`).
const FASTER_UNTIL_LIMITED: f64 = 4.0;
/// Steps of the search from each start: enough to tell the better.
const STEPS_FIRST: usize = 15;
/// Steps from the better of these ends.
const STEPS_LAST: usize = 60;
/// Steps when a few samples have come or gone since the last fit.
pub(super) const STEPS_AGAIN: usize = 8;

/// The fit to all samples, by the better of two starts, and the inflated misfit that it assumes.
pub(super) fn best_fit(
    training: &Training,
    samples: &[&Sample],
    caches: &Caches,
    priors: &[Prior],
) -> Option<(Fit, f64)> {
    let fit_from = |start: &Vec<f64>, inflated: f64, steps_max: usize| {
        fit_law(samples, caches, priors, start, (inflated, steps_max))
    };
    let fits = parallel_map(&starts(priors), |start| fit_from(start, MISFIT_START, STEPS_FIRST));
    let first = fits.into_iter().min_by(|one, other| one.cost.total_cmp(&other.cost))?;
    let law = Law::from_scaled(caches.shape(), &first.parameters);
    let inflated = inflated_misfit(&training.samples, &law);
    Some((fit_from(&first.parameters, inflated, STEPS_LAST), inflated))
}

/// Fits the law to samples, residuals in units of the sample's own error and the misfit: first to those without
/// extras; then, to the extras, the parameters that only they depend on and, within their doubt of the first fit, the
/// limits: what that found stays, what it left open is found. All other parameters stay as without extras, and so
/// does the cost, which is of the first fit.
pub(super) fn fit_law(
    samples: &[&Sample],
    caches: &Caches,
    priors: &[Prior],
    start: &[f64],
    (inflated, steps_max): (f64, usize),
) -> Fit {
    let (extras, others): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.workload.has_extras());
    let fit_to = |samples: &[&Sample], priors: &[Prior], start: &[f64], inflated: f64| {
        let residuals = |at: &[f64], out: &mut Vec<f64>| {
            let law = Law::from_scaled(caches.shape(), at);
            out.extend(
                samples.iter().map(|sample| residual(sample, &law) / sample.sd.hypot(inflated)),
            );
        };
        least_squares::fit(residuals, priors, start, Settings { huber: HUBER, steps_max })
    };
    let mut fit = fit_to(&others, priors, start, inflated);
    if !extras.is_empty() {
        let second_prior = |index: usize, at: &f64| match index {
            _ if EXTRAS.contains(&index) => priors[index],
            // A limit that one request at a time did not reach, and how far it is shared, is fitted again from
            // where that left it.
            _ if LIMITS.contains(&index) => Prior {
                mean: *at,
                sd: fit.covariance[(index, index)].max(0.0).sqrt().max(FIXED_SD),
            },
            _ => Prior { mean: *at, sd: FIXED_SD },
        };
        let priors: Vec<Prior> =
            fit.parameters.iter().enumerate().map(|(index, at)| second_prior(index, at)).collect();
        let extended = fit_to(&extras, &priors, &fit.parameters, EXTRAS_MISFIT);
        fit.parameters = extended.parameters;
        let again = || LIMITS.chain(EXTRAS);
        for row in again() {
            for column in again() {
                fit.covariance[(row, column)] = extended.covariance[(row, column)];
            }
        }
    }
    fit
}

/// ln(measured / said by the law).
pub(super) fn residual(sample: &Sample, law: &Law) -> f64 {
    sample.ln_throughput - law.ln_throughput(&sample.workload)
}

/// Where the search begins: the priors' means, and a place where limits bind first: each limit at a third, which
/// usually is the most that was seen, copying and what storage serves at a time faster. A limit that is far above what
/// was seen changes nothing and is not found. Four more starts, elsewhere in other parameters, made no prediction better
/// (`docs/experiments.md`).
fn starts(priors: &[Prior]) -> [Vec<f64>; 2] {
    use Common::{ReadCopyRate, ReadLimit, ReadParallel, RequestLimit};
    use Common::{WriteCopyRate, WriteLimit, WriteParallel};
    let mean: Vec<f64> = priors.iter().map(|prior| prior.mean).collect();
    let mut limited = mean.clone();
    let limits = [RequestLimit, ReadLimit, WriteLimit].map(|it| (it, LIMIT_OVER_SEEN.recip()));
    let rates = [ReadCopyRate, WriteCopyRate, ReadParallel, WriteParallel];
    for (which, factor) in limits.into_iter().chain(rates.map(|it| (it, FASTER_UNTIL_LIMITED))) {
        let is_held = priors[which as usize].sd <= FIXED_SD;
        limited[which as usize] += if is_held { 0.0 } else { factor.ln() };
    }
    [mean, limited]
}

/// The misfit beyond the samples' own errors, inflated: [`MISFIT_INFLATION`] times what exceeds
/// [`MISFIT_MIN`], which is taken for chance.
fn inflated_misfit(samples: &[Sample], law: &Law) -> f64 {
    let usual = robust_sd(samples.iter().map(|sample| residual(sample, law))).unwrap_or(0.0);
    let sd = median(samples.iter().map(|sample| sample.sd)).unwrap_or(0.0);
    let misfit = (usual.powi(2) - sd.powi(2)).max(0.0).sqrt().clamp(MISFIT_MIN, MISFIT_MAX);
    let alike = (misfit.powi(2) - MISFIT_MIN.powi(2)).sqrt();
    (MISFIT_INFLATION * alike).hypot(MISFIT_MIN)
}
