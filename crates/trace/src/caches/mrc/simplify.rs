//! Few points in place of many, none of which is far off: the swing filter (Elmeleegy et al., "Online
//! Piece-wise Linear Approximation of Numerical Streams with Precision Guarantees", VLDB 2009).

/// A place on several falling curves at once.
pub(crate) type CurvePoint<const N: usize> = (u64, [f64; N]);

/// Corners of lines that pass every point within `slack`, in the order of the points, whose places grow.
pub(crate) fn simplified<const N: usize>(
    points: impl IntoIterator<Item = CurvePoint<N>>,
    slack: f64,
) -> Vec<CurvePoint<N>> {
    let mut points = points.into_iter();
    let Some(first) = points.next() else { return Vec::new() };
    let (mut corners, mut before) = (vec![first], first);
    let mut cone = Cone::new(first);
    for point in points {
        if !cone.narrow(point, slack) {
            let corner = cone.at(before);
            corners.push(corner);
            cone = Cone::new(corner);
            cone.narrow(point, slack);
        }
        before = point;
    }
    if before.0 > first.0 {
        corners.push(cone.at(before));
    }
    corners
}

/// The lines from one corner that pass all points since within the slack: slopes from low to high.
struct Cone<const N: usize> {
    corner: CurvePoint<N>,
    low: [f64; N],
    high: [f64; N],
}

impl<const N: usize> Cone<N> {
    const fn new(corner: CurvePoint<N>) -> Self {
        Self { corner, low: [f64::NEG_INFINITY; N], high: [f64::INFINITY; N] }
    }

    /// Keeps the lines that pass this point, too; false, and all of them, where none does.
    fn narrow(&mut self, point: CurvePoint<N>, slack: f64) -> bool {
        let run = (point.0 - self.corner.0) as f64;
        let (mut low, mut high) = (self.low, self.high);
        for side in 0..N {
            let rise = point.1[side] - self.corner.1[side];
            low[side] = low[side].max((rise - slack) / run);
            high[side] = high[side].min((rise + slack) / run);
        }
        let is_passed = low.iter().zip(&high).all(|(low, high)| low <= high);
        if is_passed {
            (self.low, self.high) = (low, high);
        }
        is_passed
    }

    /// Where a line of the cone is at the place of a point: as near to it as may be.
    fn at(&self, point: CurvePoint<N>) -> CurvePoint<N> {
        let run = (point.0 - self.corner.0) as f64;
        let mut values = self.corner.1;
        for (side, value) in values.iter_mut().enumerate() {
            let slope = (point.1[side] - *value) / run;
            *value += slope.clamp(self.low[side], self.high[side]) * run;
        }
        (point.0, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value_at(corners: &[CurvePoint<1>], place: u64) -> f64 {
        let next = corners.partition_point(|(at, _)| *at < place).max(1);
        let ((a, [low]), (b, [high])) = (corners[next - 1], corners[next]);
        low + (high - low) * (place - a) as f64 / (b - a) as f64
    }

    proptest! {
        #[test]
        fn no_point_is_further_off_than_the_slack(
            falls in prop::collection::vec(0.0..30.0_f64, 2..300),
            slack in 0.1..20.0_f64,
        ) {
            let mut level = 0.0;
            let points: Vec<CurvePoint<1>> = (0..).zip(falls).map(|(at, fall)| {
                level -= if fall > 25.0 { 100.0 } else { fall / 10.0 };
                (at, [level])
            }).collect();
            let corners = simplified(points.clone(), slack);
            for (place, [value]) in points {
                let off = (value_at(&corners, place) - value).abs();
                prop_assert!(off <= slack + 1e-6, "{off} at {place}");
            }
        }
    }

    #[test]
    fn a_cliff_takes_four_corners() {
        let cliff = (0..10_000_u64).map(|at| (at, [if at < 5000 { 1.0 } else { 0.0 }]));
        let corners = simplified(cliff, 0.01);
        assert!(corners.len() <= 4, "{corners:?}");
    }
}
