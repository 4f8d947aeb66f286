//! A smooth curve through points that never overshoots them: piecewise cubic, monotone wherever
//! the points are (Fritsch and Butland 1984; also known as PCHIP).

use serde::{Deserialize, Serialize};

/// The curve. Outside its points it stays at the nearest one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MonotoneCubic {
    x: Vec<f64>,
    y: Vec<f64>,
    slope: Vec<f64>,
}

impl MonotoneCubic {
    /// The curve through points in any order; of several with the same `x` the first counts.
    /// `None` without points.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let mut points = points.to_vec();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|next, kept| next.0 <= kept.0);
        if points.is_empty() {
            return None;
        }
        let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        let slope = slopes(&x, &y);
        Some(Self { x, y, slope })
    }

    /// The curve's height.
    pub fn at(&self, x: f64) -> f64 {
        let last = self.x.len() - 1;
        let right = self.x.partition_point(|known| *known < x);
        if right == 0 || right > last {
            return self.y[right.min(last)];
        }
        let left = right - 1;
        let width = self.x[right] - self.x[left];
        // Hermite's cubic: heights and slopes at both ends, weighted over the part gone.
        let part = (x - self.x[left]) / width;
        let rest = 1.0 - part;
        let from = self.y[left] * (1.0 + 2.0 * part) + self.slope[left] * width * part;
        let to = self.y[right] * (1.0 + 2.0 * rest) - self.slope[right] * width * rest;
        rest * rest * from + part * part * to
    }
}

fn slopes(x: &[f64], y: &[f64]) -> Vec<f64> {
    let last = x.len() - 1;
    let width: Vec<f64> = x.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let rise: Vec<f64> = (0..last).map(|i| (y[i + 1] - y[i]) / width[i]).collect();
    if last < 2 {
        return vec![rise.first().copied().unwrap_or(0.0); x.len()];
    }
    let at = |i: usize| match i {
        0 => at_the_end((width[0], width[1]), (rise[0], rise[1])),
        i if i == last => at_the_end((width[i - 1], width[i - 2]), (rise[i - 1], rise[i - 2])),
        _ => inside((width[i - 1], width[i]), (rise[i - 1], rise[i])),
    };
    (0..=last).map(at).collect()
}

/// Flat at a turn; otherwise the harmonic mean of both sides, the nearer one weighing more.
fn inside(width: (f64, f64), rise: (f64, f64)) -> f64 {
    if rise.0 * rise.1 <= 0.0 {
        return 0.0;
    }
    let (before, after) = (width.0 + 2.0 * width.1, 2.0 * width.0 + width.1);
    (before + after) / (before / rise.0 + after / rise.1)
}

/// The slope of the parabola through the last three points, kept from turning round before the
/// last one. The nearer interval first.
fn at_the_end(width: (f64, f64), rise: (f64, f64)) -> f64 {
    let slope = ((2.0 * width.0 + width.1) * rise.0 - width.0 * rise.1) / (width.0 + width.1);
    if slope * rise.0 <= 0.0 {
        0.0
    } else if rise.0 * rise.1 < 0.0 && slope.abs() > 3.0 * rise.0.abs() {
        3.0 * rise.0
    } else {
        slope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{a} is not {b}");
    }

    #[test]
    fn the_curve_goes_through_its_points_in_whatever_order_they_come() {
        let points = [(3.0, -1.0), (0.0, 2.0), (1.0, 2.5), (7.0, 0.25), (1.0, 99.0)];
        let curve = MonotoneCubic::through(&points).unwrap();
        for (x, y) in &points[..4] {
            near(curve.at(*x), *y);
        }
        near(curve.at(-5.0), 2.0);
        near(curve.at(50.0), 0.25);
    }

    #[test]
    fn between_points_it_is_what_can_be_done_by_hand() {
        // Rises 1 and 3 over widths 1: slope inside 2·1·3/(1 + 3) = 1.5, at the ends
        // (3·1 − 3)/2 = 0 and (3·3 − 1)/2 = 4.
        let curve = MonotoneCubic::through(&[(0.0, 0.0), (1.0, 1.0), (2.0, 4.0)]).unwrap();
        // Hermite in the middle: mean of the heights plus an eighth of the difference in slope.
        near(curve.at(0.5), 0.5 + (0.0 - 1.5) / 8.0);
        near(curve.at(1.5), 2.5 + (1.5 - 4.0) / 8.0);
        // Widths 1 and 2, rises 2 and 1: weights 5 and 4, (5 + 4)/(5/2 + 4/1) = 18/13.
        let uneven = MonotoneCubic::through(&[(0.0, 0.0), (1.0, 2.0), (3.0, 4.0)]).unwrap();
        near(uneven.slope[1], 18.0 / 13.0);
    }

    #[test]
    fn it_never_leaves_the_range_of_neighbouring_points() {
        let points = [(0.0, 1.0), (1.0, 1.0), (1.1, 20.0), (2.0, 20.5), (6.0, 3.0), (6.5, 2.9)];
        let curve = MonotoneCubic::through(&points).unwrap();
        for pair in points.windows(2) {
            let (low, high) = (pair[0].1.min(pair[1].1), pair[0].1.max(pair[1].1));
            for step in 0..=50 {
                let x = pair[0].0 + (pair[1].0 - pair[0].0) * f64::from(step) / 50.0;
                let y = curve.at(x);
                assert!((low - 1e-12..=high + 1e-12).contains(&y), "{x}: {y}");
            }
        }
    }

    #[test]
    fn one_point_is_a_level_and_two_are_a_line() {
        near(MonotoneCubic::through(&[(1.0, 5.0)]).unwrap().at(9.0), 5.0);
        near(MonotoneCubic::through(&[(0.0, 0.0), (4.0, 2.0)]).unwrap().at(1.0), 0.5);
        assert_eq!(MonotoneCubic::through(&[]), None);
    }
}
