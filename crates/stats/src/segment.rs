//! Cuts a curve into pieces by exact dynamic programming.
//!
//! The first piece is a constant, every later one a straight line in 1/x: the pieces of a nested
//! sum of hinges (see [`crate::hinge`]). Residuals are relative, for noise grows with the value.
//! How many pieces there should be is decided by the caller. The recursion is Bellman's (1961,
//! "On the approximation of curves by line segments using dynamic programming").

/// One value of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Where; above zero.
    pub x: f64,
    /// What; above zero.
    pub y: f64,
}

/// The cheapest way to cut sorted observations into 1, 2, … `pieces_max` pieces: for each number
/// of pieces, the indices at which the second and later pieces start.
pub fn cuts(sorted: &[Observation], pieces_max: usize) -> Vec<Vec<usize>> {
    let n = sorted.len();
    let pieces_max = pieces_max.min(n);
    let moments = Moments::from_sorted(sorted);
    // `cost[end]` is that of the best cut of the first `end` observations; `from[pieces][end]` is
    // where the last of its pieces starts.
    let mut cost: Vec<f64> = (0..=n).map(|end| moments.constant_cost(end)).collect();
    let mut from: Vec<Vec<usize>> = vec![vec![0; n + 1]];
    let mut found = vec![Vec::new()];
    for pieces in 2..=pieces_max {
        let mut cheapest = vec![f64::INFINITY; n + 1];
        let mut starts = vec![0; n + 1];
        for end in pieces..=n {
            for (start, before) in cost.iter().enumerate().take(end).skip(pieces - 1) {
                let total = before + moments.line_cost(start, end);
                if total < cheapest[end] {
                    cheapest[end] = total;
                    starts[end] = start;
                }
            }
        }
        cost = cheapest;
        from.push(starts);
        let mut end = n;
        let mut cut: Vec<usize> = (1..pieces)
            .rev()
            .map(|piece| {
                end = from[piece][end];
                end
            })
            .collect();
        cut.reverse();
        found.push(cut);
    }
    found
}

/// Running sums that give the cost of any piece in constant time.
struct Moments {
    /// Per prefix: Σw, Σwz, Σwz², Σwy, Σwyz, Σwy², with z = 1/x and w = 1/y².
    sums: Vec<[f64; 6]>,
}

impl Moments {
    fn from_sorted(sorted: &[Observation]) -> Self {
        // Scaled to about one, so that the differences of sums keep their digits.
        let x_scale = sorted.first().map_or(1.0, |first| first.x);
        let y_scale = sorted.first().map_or(1.0, |first| first.y);
        let mut sums = vec![[0.0; 6]];
        let mut sum = [0.0; 6];
        for observation in sorted {
            let z = x_scale / observation.x;
            let y = observation.y / y_scale;
            let weight = 1.0 / (y * y);
            let terms = [1.0, z, z * z, y, y * z, y * y];
            for (total, term) in sum.iter_mut().zip(terms) {
                *total += weight * term;
            }
            sums.push(sum);
        }
        Self { sums }
    }

    fn between(&self, start: usize, end: usize) -> [f64; 6] {
        std::array::from_fn(|i| self.sums[end][i] - self.sums[start][i])
    }

    fn constant_cost(&self, end: usize) -> f64 {
        let [w, _, _, wy, _, wyy] = self.between(0, end);
        if w > 0.0 { (wyy - wy * wy / w).max(0.0) } else { 0.0 }
    }

    fn line_cost(&self, start: usize, end: usize) -> f64 {
        let [w, wz, wzz, wy, wyz, wyy] = self.between(start, end);
        let about_mean = wyy - wy * wy / w;
        let spread = wzz - wz * wz / w;
        // Observations at one x leave the slope open: the line is then as good as a constant.
        if spread <= 1e-12 * wzz {
            return about_mean.max(0.0);
        }
        let slope_part = wyz - wz * wy / w;
        (about_mean - slope_part * slope_part / spread).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(y: impl Fn(f64) -> f64) -> Vec<Observation> {
        (0..12).map(|i| 1.5_f64.powi(i)).map(|x| Observation { x, y: y(x) }).collect()
    }

    #[test]
    fn a_constant_and_two_lines_are_cut_where_they_meet() {
        // Knots at 4 and 20; 1.5^3 = 3.4, 1.5^4 = 5.1, 1.5^7 = 17, 1.5^8 = 26.
        let hinge = |x: f64, knot: f64| (1.0 - knot / x).max(0.0);
        let points = curve(|x| 2e-9 + 3e-9 * hinge(x, 4.0) + 40e-9 * hinge(x, 20.0));
        assert_eq!(cuts(&points, 3)[2], vec![4, 8]);
    }

    #[test]
    fn the_best_cut_is_never_worse_than_any_other() {
        let points = curve(|x| 1.0 + (x * 12.9898).sin().abs());
        let moments = Moments::from_sorted(&points);
        let cost = |a: usize, b: usize| {
            moments.constant_cost(a) + moments.line_cost(a, b) + moments.line_cost(b, 12)
        };
        let best = &cuts(&points, 3)[2];
        for a in 1..11 {
            for b in a + 1..12 {
                assert!(cost(best[0], best[1]) <= cost(a, b) + 1e-12);
            }
        }
    }

    #[test]
    fn few_observations_are_cut_into_few_pieces() {
        assert_eq!(cuts(&curve(|_| 1.0)[..2], 5).len(), 2);
        assert_eq!(cuts(&[], 3), vec![Vec::<usize>::new()]);
    }
}
