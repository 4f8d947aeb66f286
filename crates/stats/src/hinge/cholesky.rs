//! Small symmetric positive systems, solved by Cholesky's root.

/// Lower triangular root of a symmetric matrix given by its lower half.
pub(super) fn root_of(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let mut root = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let rest = matrix[i][j] - dot(&root[i][..j], &root[j][..j]);
            if i == j {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                root[i][i] = rest.sqrt();
            } else {
                root[i][j] = rest / root[j][j];
            }
        }
    }
    Some(root)
}

/// Solves root·rootᵀ·x = right, in place.
pub(super) fn solve(root: &[Vec<f64>], right: &mut [f64]) {
    let n = root.len();
    for i in 0..n {
        right[i] = (right[i] - dot(&root[i][..i], &right[..i])) / root[i][i];
    }
    for i in (0..n).rev() {
        let below: f64 = (i + 1..n).map(|j| root[j][i] * right[j]).sum();
        right[i] = (right[i] - below) / root[i][i];
    }
}

/// Inner product.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
