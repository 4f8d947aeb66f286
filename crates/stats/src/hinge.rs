//! Fits a nested sum of hinges, y(x) = base + Σ riseⱼ · max(0, 1 − knotⱼ/x), with riseⱼ ≥ 0.
//!
//! This is the mean cost of uniform random access over x items when caches of knotⱼ items are
//! nested in each other: the share knotⱼ/x hits, under any replacement policy. In 1/x each
//! stretch between knots is a straight line, so that exact segmentation ([`crate::segment`])
//! gives the starting points and weighted least squares the rises. Noise is taken to be relative;
//! outliers count linearly (Huber 1964). A knot is kept only where it explains more than chance
//! could.

use crate::segment;
pub use crate::segment::Observation;

mod cholesky;
use cholesky::{dot, root_of, solve};

/// Relative residuals beyond this many standard deviations count linearly.
const HUBER_SD: f64 = 2.0;
/// The prior on the noise counts as this many observations.
const NOISE_PRIOR_COUNT: f64 = 8.0;
/// What a further knot must take off the deviance: five standard deviations.
const KNOT_PRICE: f64 = 25.0;
/// What is known of each parameter before anything was observed: a factor of e¹⁰ either way.
const PRIOR_INFORMATION: f64 = 0.01;
/// Knots searched for beyond those that are known.
const FREE_KNOTS_MAX: usize = 4;
/// Two knots are at least this factor apart.
const KNOT_RATIO_MIN: f64 = 1.4;

/// A knot whose place is known from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownKnot {
    /// Where.
    pub at: f64,
    /// Standard error of its logarithm.
    pub ln_se: f64,
}

/// One hinge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knot {
    /// Where it starts.
    pub at: f64,
    /// What y gains far beyond it.
    pub rise: f64,
    /// Standard error of ln `at` where that was known beforehand; it is then not moved.
    pub known_ln_se: Option<f64>,
}

/// The curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Hinges {
    /// y before the first knot.
    pub base: f64,
    /// Smallest first.
    pub knots: Vec<Knot>,
}

impl Hinges {
    /// y at x.
    pub fn value(&self, x: f64) -> f64 {
        self.base + self.knots.iter().map(|knot| knot.rise * hinge(knot.at, x)).sum::<f64>()
    }

    /// y far beyond a knot over y far before it, were the other knots far away.
    pub fn step(&self, knot_idx: usize) -> f64 {
        let before = self.level(knot_idx);
        (before + self.knots[knot_idx].rise) / before
    }

    /// The x at which a knot has raised y by `fraction` over what it would be without it.
    /// None where it never does.
    pub fn onset(&self, knot_idx: usize, fraction: f64) -> Option<f64> {
        // Beyond the earlier knots y is level − pull/x, so that
        // rise·(1 − at/x) = fraction·(level − pull/x) is linear in 1/x.
        let knot = self.knots[knot_idx];
        let pull: f64 = self.knots[..knot_idx].iter().map(|k| k.rise * k.at).sum();
        let rise_left = knot.rise - fraction * self.level(knot_idx);
        let x = (knot.rise * knot.at - fraction * pull) / rise_left;
        (rise_left > 0.0 && x >= knot.at).then_some(x)
    }

    /// y between a knot and the one before it, were they infinitely far apart.
    pub fn level(&self, knot_idx: usize) -> f64 {
        self.base + self.knots[..knot_idx].iter().map(|knot| knot.rise).sum::<f64>()
    }

    /// Derivatives of ln y(x) by ln base, then by ln rise and ln at of each knot.
    fn gradient(&self, x: f64) -> Vec<f64> {
        let y = self.value(x);
        let mut gradient = vec![self.base / y];
        for knot in &self.knots {
            let beyond = if x > knot.at { knot.at / x } else { 0.0 };
            gradient.push(knot.rise * hinge(knot.at, x) / y);
            gradient.push(-knot.rise * beyond / y);
        }
        gradient
    }
}

/// A fitted curve and how well it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The curve.
    pub curve: Hinges,
    /// Standard deviation of one observation, relative.
    pub noise: f64,
    /// Covariance of ln base, then of ln rise and ln at of each knot; row by row.
    covariance: Vec<Vec<f64>>,
}

impl Fit {
    /// Standard error of ln at.
    pub fn ln_knot_se(&self, knot_idx: usize) -> f64 {
        self.covariance[2 + 2 * knot_idx][2 + 2 * knot_idx].max(0.0).sqrt()
    }

    /// Standard error of ln step.
    pub fn ln_step_se(&self, knot_idx: usize) -> f64 {
        self.se(&self.derivatives(|curve| Some(curve.step(knot_idx))))
    }

    /// Standard error of ln onset.
    pub fn ln_onset_se(&self, knot_idx: usize, fraction: f64) -> f64 {
        self.se(&self.derivatives(|curve| curve.onset(knot_idx, fraction)))
    }

    /// Which of the candidates, observed once more, would tell most about a knot's onset.
    pub fn most_telling(&self, knot_idx: usize, fraction: f64, candidates: &[f64]) -> Option<f64> {
        let direction = self.derivatives(|curve| curve.onset(knot_idx, fraction));
        let gain = |x: f64| {
            // What one more observation takes off the variance (Sherman and Morrison).
            let gradient = self.curve.gradient(x);
            let moved = self.times(&gradient);
            let cut = dot(&direction, &moved);
            cut * cut / (self.noise * self.noise + dot(&gradient, &moved))
        };
        candidates.iter().copied().max_by(|a, b| gain(*a).total_cmp(&gain(*b)))
    }

    /// Derivatives of the logarithm of a figure of the curve, as [`Hinges::gradient`] orders them.
    fn derivatives(&self, figure: impl Fn(&Hinges) -> Option<f64>) -> Vec<f64> {
        const NUDGE: f64 = 1e-5;
        let Some(here) = figure(&self.curve) else { return vec![0.0; self.covariance.len()] };
        let nudged = |parameter: usize| {
            let mut curve = self.curve.clone();
            match parameter.checked_sub(1) {
                None => curve.base *= 1.0 + NUDGE,
                Some(i) if i % 2 == 0 => curve.knots[i / 2].rise *= 1.0 + NUDGE,
                Some(i) => curve.knots[i / 2].at *= 1.0 + NUDGE,
            }
            figure(&curve).map_or(0.0, |there| (there / here).ln() / NUDGE)
        };
        (0..self.covariance.len()).map(nudged).collect()
    }

    fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.covariance.iter().map(|row| dot(row, vector)).collect()
    }

    fn se(&self, direction: &[f64]) -> f64 {
        dot(direction, &self.times(direction)).max(0.0).sqrt()
    }
}

/// Fits as many knots as the observations bear out, those that are known included.
/// `noise` is what one observation is expected to scatter by, relative; what the residuals show
/// is weighed against it. None without observations.
pub fn fit(observations: &[Observation], known: &[KnownKnot], noise: f64) -> Option<Fit> {
    let mut sorted = observations.to_vec();
    sorted.retain(|o| o.x > 0.0 && o.y > 0.0 && o.x.is_finite() && o.y.is_finite());
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    if sorted.is_empty() {
        return None;
    }
    let fits = Ladder { sorted: &sorted, noise }.climb(known);
    let richest = fits.last()?;
    let spread: f64 =
        sorted.iter().map(|o| huber(ln_residual(richest, o) / noise) * noise * noise).sum();
    let free = sorted.len() as f64 - (1 + 2 * richest.knots.len() - known.len()) as f64;
    let noise =
        ((NOISE_PRIOR_COUNT * noise * noise + spread) / (NOISE_PRIOR_COUNT + free.max(0.0))).sqrt();
    let deviance = |curve: &Hinges| {
        sorted.iter().map(|o| huber(ln_residual(curve, o) / noise)).sum::<f64>()
            + KNOT_PRICE * curve.knots.len() as f64
    };
    let curve = fits.iter().min_by(|a, b| deviance(a).total_cmp(&deviance(b)))?.clone();
    let covariance = covariance(&sorted, &curve, noise);
    Some(Fit { curve, noise, covariance })
}

/// Fits with more and more knots, each starting from the one before and from the exact cut.
struct Ladder<'a> {
    sorted: &'a [Observation],
    noise: f64,
}

impl Ladder<'_> {
    fn climb(&self, known: &[KnownKnot]) -> Vec<Hinges> {
        let mut knots: Vec<Knot> = known
            .iter()
            .map(|knot| Knot { at: knot.at, rise: 0.0, known_ln_se: Some(knot.ln_se) })
            .collect();
        knots.sort_by(|a, b| a.at.total_cmp(&b.at));
        let distinct = self.sorted.chunk_by(|a, b| a.x >= b.x).count();
        let free_max = FREE_KNOTS_MAX.min(distinct.saturating_sub(1) / 2 + 1);
        let cuts = segment::cuts(self.sorted, free_max + knots.len() + 1);
        let mut fits = vec![self.polish(&knots)];
        let mut unpaid = 0;
        for _ in 0..free_max {
            let last = &fits[fits.len() - 1];
            let pieces = last.knots.len() + 2;
            let from_cut = cuts.get(pieces - 1).and_then(|cut| self.start_from_cut(cut, &knots));
            let starts = [self.start_from_fewer(last), from_cut];
            let polished = starts.iter().flatten().map(|start| self.polish(start));
            let Some(best) = polished.min_by(|a, b| self.cost(a).total_cmp(&self.cost(b))) else {
                break;
            };
            // A knot may pay only together with the next one; two that do not end the climb.
            let paid = self.cost(last) - self.cost(&best) >= KNOT_PRICE;
            unpaid = if paid { 0 } else { unpaid + 1 };
            fits.push(best);
            if unpaid == 2 {
                break;
            }
        }
        fits
    }

    /// The knots of a fit and one more, in the gap where it helps most.
    fn start_from_fewer(&self, fewer: &Hinges) -> Option<Vec<Knot>> {
        let weights = self.weights(fewer);
        let gaps = self.sorted.windows(2).filter(|pair| pair[1].x > pair[0].x);
        let tried = gaps.filter_map(|pair| {
            let knots = with_knot(&fewer.knots, (pair[0].x * pair[1].x).sqrt())?;
            let cost = self.cost(&self.rises(&knots, &weights));
            Some((knots, cost))
        });
        tried.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(knots, _)| knots)
    }

    /// Knots in the gaps of an exact cut; a known knot replaces the nearest of them.
    fn start_from_cut(&self, cut: &[usize], known: &[Knot]) -> Option<Vec<Knot>> {
        let mut places: Vec<f64> = cut
            .iter()
            .map(|start| (self.sorted[start - 1].x * self.sorted[*start].x).sqrt())
            .collect();
        for knot in known {
            let distance = |place: &f64| (place / knot.at).ln().abs();
            let nearest = (0..places.len())
                .min_by(|a, b| distance(&places[*a]).total_cmp(&distance(&places[*b])))?;
            places.remove(nearest);
        }
        places.iter().try_fold(known.to_vec(), |knots, place| with_knot(&knots, *place))
    }

    /// Moves each free knot in turn to where the curve fits best, twice round.
    fn polish(&self, start: &[Knot]) -> Hinges {
        let flat = Hinges { base: 1.0, knots: Vec::new() };
        let mut weights: Vec<f64> = self.sorted.iter().map(|o| 1.0 / (o.y * o.y)).collect();
        let mut curve = flat;
        let mut knots = start.to_vec();
        for _ in 0..3 {
            for knot_idx in 0..knots.len() {
                if knots[knot_idx].known_ln_se.is_none() {
                    self.place(&mut knots, knot_idx, &weights);
                }
            }
            curve = self.rises(&knots, &weights);
            weights = self.weights(&curve);
        }
        curve
    }

    /// Moves one knot between its neighbours.
    fn place(&self, knots: &mut [Knot], knot_idx: usize, weights: &[f64]) {
        const GRID: usize = 12;
        let first_x = self.sorted[0].x;
        let last_x = self.sorted[self.sorted.len() - 1].x;
        let low = if knot_idx == 0 { first_x } else { knots[knot_idx - 1].at * KNOT_RATIO_MIN };
        let high = knots.get(knot_idx + 1).map_or(last_x, |next| next.at / KNOT_RATIO_MIN);
        if low >= high {
            return;
        }
        let mut cost = |ln_at: f64| {
            knots[knot_idx].at = ln_at.exp();
            self.cost(&self.rises(knots, weights))
        };
        let (low, high) = (low.ln(), high.ln());
        let here = cheapest_on_grid(&mut cost, (low, high), GRID);
        let width = (high - low) / GRID as f64;
        let best = golden_section(&mut cost, (here - width).max(low), (here + width).min(high));
        knots[knot_idx].at = best.exp();
    }

    /// Base and rises, none below zero, for given knots.
    fn rises(&self, knots: &[Knot], weights: &[f64]) -> Hinges {
        let mut active = vec![true; knots.len() + 1];
        loop {
            let solution = self.solve(knots, weights, &active);
            let negative = (1..solution.len())
                .filter(|i| solution[*i] < 0.0)
                .min_by(|a, b| solution[*a].total_cmp(&solution[*b]));
            if let Some(i) = negative {
                active[i] = false;
                continue;
            }
            let placed =
                knots.iter().zip(&solution[1..]).map(|(k, rise)| Knot { rise: *rise, ..*k });
            return Hinges { base: solution[0], knots: placed.collect() };
        }
    }

    fn solve(&self, knots: &[Knot], weights: &[f64], active: &[bool]) -> Vec<f64> {
        let n = active.len();
        let mut matrix = vec![vec![0.0; n]; n];
        let mut right = vec![0.0; n];
        let mut row = vec![1.0; n];
        for (observation, weight) in self.sorted.iter().zip(weights) {
            for (i, knot) in knots.iter().enumerate() {
                row[i + 1] = if active[i + 1] { hinge(knot.at, observation.x) } else { 0.0 };
            }
            for i in 0..n {
                for j in 0..=i {
                    matrix[i][j] += weight * row[i] * row[j];
                }
                right[i] += weight * row[i] * observation.y;
            }
        }
        // A touch of ridge, in each unit of its own: two hinges that meet the same observations
        // are then told apart somehow, and one that meets none stays at zero.
        for (i, row) in matrix.iter_mut().enumerate().skip(1) {
            row[i] = if row[i] > 0.0 { row[i] * (1.0 + 1e-10) } else { 1.0 };
        }
        if let Some(root) = root_of(&matrix) {
            solve(&root, &mut right);
        }
        right
    }

    /// Weights that make least squares near the curve what it is in logarithms, and hold outliers
    /// down. (y − ŷ)² / (y·ŷ) is ln²(y/ŷ) to the third order, and forgives neither side.
    fn weights(&self, curve: &Hinges) -> Vec<f64> {
        let weight = |o: &Observation| {
            let far = (ln_residual(curve, o) / self.noise).abs() / HUBER_SD;
            1.0 / (curve.value(o.x) * o.y * far.max(1.0))
        };
        self.sorted.iter().map(weight).collect()
    }

    fn cost(&self, curve: &Hinges) -> f64 {
        self.sorted.iter().map(|o| huber(ln_residual(curve, o) / self.noise)).sum()
    }
}

/// Sorted knots with one more, or None where it would come too close to another.
fn with_knot(knots: &[Knot], at: f64) -> Option<Vec<Knot>> {
    if knots.iter().any(|knot| (knot.at / at).ln().abs() < KNOT_RATIO_MIN.ln()) {
        return None;
    }
    let mut more = knots.to_vec();
    more.push(Knot { at, rise: 0.0, known_ln_se: None });
    more.sort_by(|a, b| a.at.total_cmp(&b.at));
    Some(more)
}

fn hinge(at: f64, x: f64) -> f64 {
    (1.0 - at / x).max(0.0)
}

fn ln_residual(curve: &Hinges, observation: &Observation) -> f64 {
    (observation.y / curve.value(observation.x).max(f64::MIN_POSITIVE)).ln()
}

/// The square, linear beyond [`HUBER_SD`].
fn huber(residual_sd: f64) -> f64 {
    let size = residual_sd.abs();
    if size <= HUBER_SD { size * size } else { HUBER_SD * (2.0 * size - HUBER_SD) }
}

/// Inverse of the information in the observations and in what was known of the knots. A trace of
/// prior keeps it finite where nothing was observed.
fn covariance(sorted: &[Observation], curve: &Hinges, noise: f64) -> Vec<Vec<f64>> {
    let n = 1 + 2 * curve.knots.len();
    let mut information = vec![vec![0.0; n]; n];
    for (i, row) in information.iter_mut().enumerate() {
        row[i] = PRIOR_INFORMATION;
    }
    for (i, knot) in curve.knots.iter().enumerate() {
        if let Some(ln_se) = knot.known_ln_se {
            information[2 + 2 * i][2 + 2 * i] += 1.0 / (ln_se * ln_se);
        }
    }
    for observation in sorted {
        let gradient = curve.gradient(observation.x);
        for i in 0..n {
            for j in 0..n {
                information[i][j] += gradient[i] * gradient[j] / (noise * noise);
            }
        }
    }
    let root = root_of(&information);
    let column = |i: usize| {
        let mut unit = vec![0.0; n];
        unit[i] = 1.0;
        match &root {
            Some(root) => solve(root, &mut unit),
            // What cannot be inverted leaves nothing known but the prior.
            None => unit[i] = 1.0 / PRIOR_INFORMATION,
        }
        unit
    };
    (0..n).map(column).collect()
}

/// The cheapest of `n` places spread evenly over an interval.
fn cheapest_on_grid(cost: &mut impl FnMut(f64) -> f64, ends: (f64, f64), n: usize) -> f64 {
    let place = |i: usize| ends.0 + (ends.1 - ends.0) * (i as f64 + 0.5) / n as f64;
    let costs: Vec<f64> = (0..n).map(|i| cost(place(i))).collect();
    place((0..n).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0))
}

/// The lowest place of a function with one minimum between `low` and `high` (Kiefer 1953).
fn golden_section(cost: &mut impl FnMut(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let mut left = high - GOLDEN * (high - low);
    let mut right = low + GOLDEN * (high - low);
    let (mut cost_left, mut cost_right) = (cost(left), cost(right));
    while high - low > 2e-3 {
        if cost_left <= cost_right {
            high = right;
            (right, cost_right) = (left, cost_left);
            left = high - GOLDEN * (high - low);
            cost_left = cost(left);
        } else {
            low = left;
            (left, cost_left) = (right, cost_right);
            right = low + GOLDEN * (high - low);
            cost_right = cost(right);
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observe(curve: &Hinges, scatter: f64) -> Vec<Observation> {
        // A fixed zigzag instead of chance: +, −, +, −.
        let sign = |i: i32| if i % 2 == 0 { 1.0 } else { -1.0 };
        let at = |i: i32| 10.0 * 1.25_f64.powi(i);
        (0..24)
            .map(|i| (at(i), 1.0 + sign(i) * scatter))
            .map(|(x, factor)| Observation { x, y: curve.value(x) * factor })
            .collect()
    }

    fn two_knots() -> Hinges {
        let knot = |at, rise| Knot { at, rise, known_ln_se: None };
        Hinges { base: 2e-9, knots: vec![knot(33.0, 6e-9), knot(310.0, 500e-9)] }
    }

    #[test]
    fn a_curve_without_noise_comes_back_exactly() {
        let fit = fit(&observe(&two_knots(), 0.0), &[], 0.03).unwrap();
        assert_eq!(fit.curve.knots.len(), 2);
        for (found, truth) in fit.curve.knots.iter().zip(&two_knots().knots) {
            assert!((found.at / truth.at - 1.0).abs() < 0.005, "{found:?}");
            assert!((found.rise / truth.rise - 1.0).abs() < 0.01, "{found:?}");
        }
    }

    #[test]
    fn steps_and_onsets_follow_from_the_curve() {
        let curve = two_knots();
        assert!((curve.step(0) - 4.0).abs() < 1e-12);
        assert!((curve.step(1) - 508.0 / 8.0).abs() < 1e-12);
        for knot_idx in 0..2 {
            let onset = curve.onset(knot_idx, 0.1).unwrap();
            let without = Hinges { knots: curve.knots[..knot_idx].to_vec(), base: curve.base };
            let with = Hinges { knots: curve.knots[..=knot_idx].to_vec(), base: curve.base };
            assert!((with.value(onset) / without.value(onset) - 1.1).abs() < 1e-9);
        }
        let mut shallow = two_knots();
        shallow.knots[0].rise = 0.05 * shallow.base;
        assert_eq!(shallow.onset(0, 0.1), None);
    }

    #[test]
    fn noise_is_read_off_the_residuals_and_makes_no_knots() {
        let flat = Hinges { base: 3e-9, knots: Vec::new() };
        let fit = fit(&observe(&flat, 0.2), &[], 0.03).unwrap();
        assert_eq!(fit.curve.knots, []);
        assert!(fit.noise > 0.08, "{}", fit.noise);
    }

    #[test]
    fn a_known_knot_stays_where_it_is() {
        let known = KnownKnot { at: 36.0, ln_se: 0.01 };
        let fit = fit(&observe(&two_knots(), 0.01), &[known], 0.03).unwrap();
        let knot = fit.curve.knots.iter().find(|knot| knot.known_ln_se.is_some()).unwrap();
        assert!((knot.at - 36.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_to_fit_is_no_fit() {
        assert_eq!(fit(&[], &[], 0.03), None);
        let broken = Observation { x: f64::NAN, y: 1.0 };
        assert_eq!(fit(&[broken], &[], 0.03), None);
        assert!(fit(&[Observation { x: 1.0, y: 1.0 }], &[], 0.03).is_some());
    }

    #[test]
    fn what_cannot_be_told_apart_is_unknown_and_not_exact() {
        let curve = two_knots();
        let covariance = covariance(&observe(&curve, 0.0), &curve, f64::NAN);
        assert!((0..5).all(|i| covariance[i][i] >= 100.0), "{covariance:?}");
    }
}
