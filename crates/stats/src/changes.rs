//! Cuts a series of several quantities where their level changes: exact dynamic programming over
//! constant pieces, a piece costing a penalty.
//!
//! For phases of a trace: thousands of windows of several quantities. It gives places alone. Runs
//! repeated over weeks, where a false alarm costs somebody a day, are searched by
//! [`change`](crate::change), with error rates and intervals.
//!
//! The cost of a piece is its sum of squares about its mean, in units of each quantity's own noise,
//! which is known from differences of neighbours (von Neumann, 1941): a few changes of level hardly
//! touch their median. The penalty grows with the logarithm of the length, as in Yao (1988,
//! "Estimating the number of change-points via Schwarz' criterion").

use crate::robust_sd;

/// Where pieces after the first start. `rows` have one value per quantity; `noise_min` is, per
/// quantity, the least noise that counts; pieces have at least `length_min` rows.
///
/// # Panics
/// Where rows have not as many values as `noise_min`.
pub fn changes(
    rows: &[Vec<f64>],
    noise_min: &[f64],
    length_min: usize,
    penalty: f64,
) -> Vec<usize> {
    let n = rows.len();
    let length_min = length_min.max(1);
    if n < 2 * length_min {
        return Vec::new();
    }
    let sums = Sums::over(rows, noise_min);
    let price = penalty * noise_min.len() as f64 * (n as f64).ln();
    let mut cost = vec![f64::INFINITY; n + 1];
    let mut from = vec![0; n + 1];
    cost[0] = -price;
    for end in length_min..=n {
        for start in 0..=end - length_min {
            let total = cost[start] + price + sums.cost(start, end);
            if total < cost[end] {
                (cost[end], from[end]) = (total, start);
            }
        }
    }
    let mut cuts = Vec::new();
    let mut end = from[n];
    while end > 0 {
        cuts.push(end);
        end = from[end];
    }
    cuts.reverse();
    cuts
}

/// Running sums of values and squares, in units of noise.
struct Sums {
    values: Vec<Vec<f64>>,
    squares: Vec<f64>,
}

impl Sums {
    fn over(rows: &[Vec<f64>], noise_min: &[f64]) -> Self {
        let noise: Vec<f64> = noise_min
            .iter()
            .enumerate()
            .map(|(quantity, least)| noise(rows, quantity).max(*least))
            .collect();
        let (mut values, mut squares) = (vec![vec![0.0; noise.len()]], vec![0.0]);
        let (mut value, mut square) = (vec![0.0; noise.len()], 0.0);
        for row in rows {
            assert_eq!(row.len(), noise.len(), "each row has a value per quantity");
            for (quantity, sum) in value.iter_mut().enumerate() {
                let scaled = row[quantity] / noise[quantity];
                *sum += scaled;
                square += scaled * scaled;
            }
            values.push(value.clone());
            squares.push(square);
        }
        Self { values, squares }
    }

    fn cost(&self, start: usize, end: usize) -> f64 {
        let length = (end - start) as f64;
        let sums = self.values[end].iter().zip(&self.values[start]);
        let about_zero: f64 = sums.map(|(to, from)| (to - from).powi(2) / length).sum();
        (self.squares[end] - self.squares[start] - about_zero).max(0.0)
    }
}

/// Standard deviation of a quantity between its changes.
fn noise(rows: &[Vec<f64>], quantity: usize) -> f64 {
    let steps = rows.windows(2).map(|pair| pair[1][quantity] - pair[0][quantity]);
    robust_sd(steps).unwrap_or(0.0) / 2.0_f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a trend, about ±1.
    fn jitter(at: usize) -> f64 {
        let mixed = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (at as u64 >> 1);
        let part = (mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f64 / f64::from(1 << 24);
        (part - 0.5) * 3.4
    }

    fn series(levels: &[(usize, f64, f64)]) -> Vec<Vec<f64>> {
        let rows = levels.iter().flat_map(|(n, a, b)| std::iter::repeat_n((*a, *b), *n));
        rows.enumerate().map(|(at, (a, b))| vec![a + jitter(at), b + jitter(at + 7)]).collect()
    }

    #[test]
    fn a_change_of_either_quantity_is_found() {
        let rows = series(&[(40, 0.0, 0.0), (50, 10.0, 0.0), (30, 10.0, 8.0)]);
        assert_eq!(changes(&rows, &[0.1, 0.1], 3, 2.0), [40, 90]);
    }

    #[test]
    fn noise_alone_is_one_piece() {
        assert_eq!(changes(&series(&[(200, 5.0, 1.0)]), &[0.1, 0.1], 3, 2.0), [0; 0]);
        assert_eq!(changes(&[], &[0.1], 3, 2.0), [0; 0]);
        assert_eq!(changes(&vec![vec![1.0]; 100], &[0.1], 3, 2.0), [0; 0]);
    }
}
