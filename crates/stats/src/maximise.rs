//! The top of a function of a few variables, without derivatives: the simplex of Nelder and Mead
//! (1965) with the dimension-dependent factors of Gao and Han (2012), which keep it from
//! collapsing where there are more than two or three variables.

/// The simplex is as good as a point when the values at its corners differ by less.
const FLAT: f64 = 1e-10;

type Corner = (f64, Vec<f64>);

/// The best place found from `start` in at most so many `evaluations` of `f` (a few more where
/// they run out in the middle of a step). `step` is how far apart the first places are, in every
/// variable. Where `f` is not a number, the place is as bad as can be.
pub fn maximise(
    mut f: impl FnMut(&[f64]) -> f64,
    start: &[f64],
    step: f64,
    evaluations: usize,
) -> Vec<f64> {
    let n = start.len();
    let mut used = 0;
    let mut corner = |place: Vec<f64>, used: &mut usize| -> Corner {
        *used += 1;
        let value = f(&place);
        (if value.is_nan() { f64::NEG_INFINITY } else { value }, place)
    };
    let mut simplex = vec![corner(start.to_vec(), &mut used)];
    for variable in 0..n {
        let mut place = start.to_vec();
        place[variable] += step;
        simplex.push(corner(place, &mut used));
    }
    let dimensions = (n as f64).max(2.0);
    let expansion = 1.0 + 2.0 / dimensions;
    let contraction = 0.75 - 0.5 / dimensions;
    let shrinking = 1.0 - 1.0 / dimensions;
    loop {
        simplex.sort_by(|a, b| b.0.total_cmp(&a.0));
        if used >= evaluations || n == 0 || simplex[0].0 - simplex[n].0 < FLAT {
            return simplex.swap_remove(0).1;
        }
        let worst = simplex[n].clone();
        let middle = centre(&simplex[..n]);
        let reflected = corner(beyond(&middle, &worst.1, 1.0), &mut used);
        let next = if reflected.0 > simplex[0].0 {
            let expanded = corner(beyond(&middle, &worst.1, expansion), &mut used);
            if expanded.0 > reflected.0 { Some(expanded) } else { Some(reflected) }
        } else if reflected.0 > simplex[n - 1].0 {
            Some(reflected)
        } else {
            let side = if reflected.0 > worst.0 { contraction } else { -contraction };
            let contracted = corner(beyond(&middle, &worst.1, side), &mut used);
            (contracted.0 > worst.0.max(reflected.0)).then_some(contracted)
        };
        if let Some(next) = next {
            simplex[n] = next;
        } else {
            let best = simplex[0].1.clone();
            for shrunk in &mut simplex[1..] {
                *shrunk = corner(beyond(&best, &shrunk.1, -shrinking), &mut used);
            }
        }
    }
}

/// The mean of the corners' places.
fn centre(corners: &[Corner]) -> Vec<f64> {
    let mean = |variable: usize| {
        corners.iter().map(|(_, place)| place[variable]).sum::<f64>() / corners.len() as f64
    };
    (0..corners[0].1.len()).map(mean).collect()
}

/// From a place through the middle and beyond it, by this part of their distance.
fn beyond(middle: &[f64], from: &[f64], part: f64) -> Vec<f64> {
    middle.iter().zip(from).map(|(m, x)| m + part * (m - x)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's curved valley turned upside down: its top is at one in every variable.
    fn ridge(x: &[f64]) -> f64 {
        -x.windows(2)
            .map(|p| (1.0 - p[0]).powi(2) + 100.0 * (p[1] - p[0] * p[0]).powi(2))
            .sum::<f64>()
    }

    #[test]
    fn the_top_of_a_curved_ridge_is_found() {
        let starts = [[-1.2, 1.0], [2.0, -2.0], [0.0, 3.0]];
        for start in starts {
            let top = maximise(ridge, &start, 0.5, 400);
            assert!(top.iter().all(|x| (x - 1.0).abs() < 1e-3), "from {start:?}: {top:?}");
        }
    }

    #[test]
    fn many_variables_of_unlike_scale_are_climbed_too() {
        let weights = [1.0, 30.0, 0.1, 4.0, 100.0, 0.5, 9.0];
        let hill = |x: &[f64]| -> f64 {
            x.iter().zip(weights).enumerate().map(|(i, (x, w))| -w * (x - i as f64).powi(2)).sum()
        };
        let top = maximise(hill, &[1.0; 7], 1.0, 1500);
        assert!(hill(&top) > -1e-4, "{top:?}");
    }

    #[test]
    fn no_more_is_evaluated_than_allowed_and_the_best_place_is_kept() {
        let mut count = 0;
        let mut best = f64::NEG_INFINITY;
        let top = maximise(
            |x| {
                count += 1;
                best = best.max(ridge(x));
                ridge(x)
            },
            &[-1.2, 1.0],
            0.5,
            50,
        );
        assert!((ridge(&top) - best).abs() < 1e-12);
        assert!((50..=53).contains(&count), "{count}");
    }

    #[test]
    fn where_there_is_no_value_the_climb_turns_away() {
        let top = maximise(|x| if x[0] > 2.0 { f64::NAN } else { x[0] }, &[0.0], 0.7, 200);
        assert!(top[0] <= 2.0 && top[0] > 1.99, "{top:?}");
        assert!(maximise(|_| 1.0, &[], 1.0, 10).is_empty());
        assert_eq!(maximise(|_| f64::NAN, &[3.0], 1.0, 10).len(), 1);
    }
}
