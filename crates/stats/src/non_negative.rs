//! Weighted linear least squares whose coefficients may not fall below 0 (Lawson and Hanson 1974,
//! chapter 23). There are few coefficients here, so every set of them that is left out is tried: the
//! best one without a negative coefficient is the answer, exactly.

use nalgebra::{DMatrix, DVector};

/// One observation: its row, what was seen, and how much it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// One value for each coefficient.
    pub row: Vec<f64>,
    /// What was seen.
    pub value: f64,
    /// Weight of the squared difference.
    pub weight: f64,
}

/// Most coefficients: all their sets are tried.
const COLUMNS_MAX: usize = 8;

/// Coefficients, none below 0, that minimise the weighted sum of squared differences.
///
/// # Panics
/// With more than 8 coefficients, or rows of other lengths.
pub fn non_negative(observations: &[Observation], columns: usize) -> Vec<f64> {
    assert!(columns <= COLUMNS_MAX, "all sets of coefficients are tried");
    let mut best = (vec![0.0; columns], cost(observations, &vec![0.0; columns]));
    for set in 1_usize..1 << columns {
        let used: Vec<usize> = (0..columns).filter(|column| set >> column & 1 == 1).collect();
        let Some(found) = solve(observations, &used) else { continue };
        if found.iter().any(|value| *value < 0.0) {
            continue;
        }
        let mut coefficients = vec![0.0; columns];
        for (column, value) in used.iter().zip(found) {
            coefficients[*column] = value;
        }
        let its_cost = cost(observations, &coefficients);
        // Fewer coefficients come first: more have to be better.
        if its_cost < best.1 {
            best = (coefficients, its_cost);
        }
    }
    best.0
}

fn cost(observations: &[Observation], coefficients: &[f64]) -> f64 {
    let off = |seen: &Observation| {
        let fitted: f64 = seen.row.iter().zip(coefficients).map(|(x, c)| x * c).sum();
        seen.weight * (seen.value - fitted).powi(2)
    };
    observations.iter().map(off).sum()
}

/// Unbounded least squares over some columns, each scaled to its own size.
fn solve(observations: &[Observation], used: &[usize]) -> Option<Vec<f64>> {
    let scale = |column: &usize| {
        let of = observations.iter().map(|seen| seen.row[*column].abs());
        of.fold(f64::MIN_POSITIVE, f64::max)
    };
    let scales: Vec<f64> = used.iter().map(scale).collect();
    let rows = DMatrix::from_fn(observations.len(), used.len(), |row, column| {
        let seen = &observations[row];
        seen.row[used[column]] / scales[column] * seen.weight.sqrt()
    });
    let values = observations.iter().map(|seen| seen.value * seen.weight.sqrt());
    let values = DVector::from_iterator(observations.len(), values);
    let normal = rows.tr_mul(&rows);
    let solved = normal.cholesky()?.solve(&rows.tr_mul(&values));
    let found: Vec<f64> = solved.iter().zip(&scales).map(|(value, scale)| value / scale).collect();
    found.iter().all(|value| value.is_finite()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(rows: &[(&[f64], f64)]) -> Vec<Observation> {
        let of = |(row, value): &(&[f64], f64)| Observation {
            row: row.to_vec(),
            value: *value,
            weight: value.powi(-2),
        };
        rows.iter().map(of).collect()
    }

    #[test]
    fn a_plane_is_found_again() {
        // 3 + 0.5 a + 2 b, with columns of sizes that lie far apart.
        let truth = |a: f64, b: f64| 3e-6 + 0.5e-9 * a + 2e-6 * b;
        let places = [(16.0, 1.0), (4096.0, 1.0), (65536.0, 4.0), (1e6, 2.0), (1e6, 16.0)];
        let rows: Vec<[f64; 3]> = places.iter().map(|(a, b)| [1.0, *a, *b]).collect();
        let seen: Vec<(&[f64], f64)> =
            rows.iter().zip(places).map(|(row, (a, b))| (row.as_slice(), truth(a, b))).collect();
        let found = non_negative(&observed(&seen), 3);
        for (found, truth) in found.iter().zip([3e-6, 0.5e-9, 2e-6]) {
            assert!((found / truth - 1.0).abs() < 1e-6, "{found} for {truth}");
        }
    }

    #[test]
    fn what_would_be_negative_is_0_and_the_rest_makes_the_best_of_it() {
        // Falls with x: the best without a negative slope is the mean.
        let seen = [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)].map(|(x, value)| Observation {
            row: vec![1.0, x],
            value,
            weight: 1.0,
        });
        let found = non_negative(&seen, 2);
        assert!((found[0] - 2.0).abs() < 1e-12 && found[1] == 0.0, "{found:?}");
    }

    #[test]
    fn columns_that_say_the_same_are_no_trouble() {
        let rows = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]];
        let seen = rows.map(|row| Observation { value: row[0], row: row.to_vec(), weight: 1.0 });
        let found = non_negative(&seen, 2);
        assert!((found[0] + 2.0 * found[1] - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(non_negative(&[], 2), [0.0, 0.0]);
    }
}
