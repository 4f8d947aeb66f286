//! Where on a curve the other graphs are held (Chen and Patterson 1994, sections 7 and 8).
//!
//! Their first attempt took the *75 % point*: the least restrictive value that gives at least
//! 75 % of the curve's maximum, least restrictive being what is easier for a programmer to do.
//! Their second took the value *half-way* between the curve's minimum and maximum. Both are read
//! off the curve between measured points where the axis allows it.

use ioscape_model::graph::GOOD_FRACTION;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The parameter's value: bytes, a fraction or a count.
    pub value: f64,
    /// What was measured there.
    pub throughput_bytes_per_s: f64,
}

/// How values between two points of an axis are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Sizes: half-way between 1 and 4 is 2.
    Logarithmic,
    /// Fractions.
    Linear,
    /// Counts: there is nothing between two values that were measured.
    Counted,
}

/// Which values of a parameter restrict a program less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Easier {
    /// The smaller: request sizes, processes, fractions that must be sequential or reads.
    Smaller,
    /// The larger: the data that may be touched.
    Larger,
}

/// The least and the greatest value with at least 75 % of the curve's maximum: the shaded range of
/// Fig. 4. `None` for a curve without points.
pub fn good_range(curve: &[CurvePoint], axis: Axis) -> Option<(f64, f64)> {
    let curve = sorted(curve);
    let level = GOOD_FRACTION * highest(&curve)?;
    let good = |point: &CurvePoint| point.throughput_bytes_per_s >= level;
    let first = curve.iter().position(good)?;
    let last = curve.iter().rposition(good)?;
    let low = match first.checked_sub(1) {
        Some(before) => crossing(curve[before], curve[first], level, axis),
        None => curve[first].value,
    };
    let high = match curve.get(last + 1) {
        Some(after) => crossing(*after, curve[last], level, axis),
        None => curve[last].value,
    };
    Some((low, high))
}

/// The 75 % point: the easier end of the good range.
pub fn least_restrictive(curve: &[CurvePoint], axis: Axis, easier: Easier) -> Option<f64> {
    good_range(curve, axis).map(|(low, high)| match easier {
        Easier::Smaller => low,
        Easier::Larger => high,
    })
}

/// The smallest value at which the curve passes half-way between its minimum and its maximum. On
/// a counted axis, the measured value that comes nearest to it, the smaller of two. A curve that
/// varies by less than the factor `1 + noise` says nothing: its smallest value.
pub fn half_way(curve: &[CurvePoint], axis: Axis, noise: f64) -> Option<f64> {
    let curve = sorted(curve);
    let high = highest(&curve)?;
    let low = curve.iter().map(|point| point.throughput_bytes_per_s).fold(high, f64::min);
    if high <= low * (1.0 + noise) {
        return curve.first().map(|point| point.value);
    }
    let level = f64::midpoint(low, high);
    if axis == Axis::Counted {
        // Two values are as far from half-way as each other: a hair decides for the smaller one.
        let distance = |point: &CurvePoint| (point.throughput_bytes_per_s - level).abs();
        let nearest = curve.iter().map(distance).fold(f64::INFINITY, f64::min);
        let found = curve.iter().find(|point| distance(point) <= nearest * (1.0 + 1e-9));
        return found.map(|point| point.value);
    }
    curve.windows(2).find_map(|pair| {
        let (a, b) = (pair[0], pair[1]);
        let passes = (a.throughput_bytes_per_s < level) != (b.throughput_bytes_per_s < level);
        passes.then(|| crossing(a, b, level, axis))
    })
}

/// Where the line from a point below the level to one above it passes the level. On a counted
/// axis, the point that is good.
fn crossing(from: CurvePoint, to: CurvePoint, level: f64, axis: Axis) -> f64 {
    let rise = to.throughput_bytes_per_s - from.throughput_bytes_per_s;
    if rise == 0.0 {
        return to.value;
    }
    let part = (level - from.throughput_bytes_per_s) / rise;
    match axis {
        Axis::Counted => to.value,
        Axis::Linear => from.value + part * (to.value - from.value),
        Axis::Logarithmic => from.value * (to.value / from.value).powf(part),
    }
}

fn sorted(curve: &[CurvePoint]) -> Vec<CurvePoint> {
    let usable = |point: &&CurvePoint| point.throughput_bytes_per_s > 0.0;
    let mut curve: Vec<CurvePoint> = curve.iter().filter(usable).copied().collect();
    curve.sort_by(|a, b| a.value.total_cmp(&b.value));
    curve
}

fn highest(curve: &[CurvePoint]) -> Option<f64> {
    curve.iter().map(|point| point.throughput_bytes_per_s).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<CurvePoint> {
        let point = |&(value, throughput_bytes_per_s)| CurvePoint { value, throughput_bytes_per_s };
        points.iter().map(point).collect()
    }

    #[test]
    fn the_good_range_is_read_between_the_points() {
        let hill = curve(&[(1.0, 50.0), (4.0, 100.0), (16.0, 90.0), (64.0, 60.0)]);
        let (low, high) = good_range(&hill, Axis::Logarithmic).unwrap();
        assert!((low - 2.0).abs() < 1e-9 && (high - 32.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(good_range(&hill, Axis::Counted), Some((4.0, 16.0)));
        assert_eq!(least_restrictive(&hill, Axis::Counted, Easier::Larger), Some(16.0));
        assert_eq!(least_restrictive(&hill, Axis::Counted, Easier::Smaller), Some(4.0));
    }

    #[test]
    fn a_curve_that_is_good_everywhere_gives_its_easiest_end() {
        let flat = curve(&[(1.0, 90.0), (0.0, 80.0), (0.5, 100.0)]);
        assert_eq!(least_restrictive(&flat, Axis::Linear, Easier::Smaller), Some(0.0));
        assert_eq!(least_restrictive(&flat, Axis::Linear, Easier::Larger), Some(1.0));
        assert_eq!(good_range(&[], Axis::Linear), None);
    }

    #[test]
    fn half_way_is_between_minimum_and_maximum_not_half_of_the_maximum() {
        let rising = curve(&[(4.0, 60.0), (16.0, 100.0), (64.0, 140.0)]);
        assert_eq!(half_way(&rising, Axis::Logarithmic, 0.0), Some(16.0));
        let falling = curve(&[(1.0, 100.0), (4.0, 0.001)]);
        let found = half_way(&falling, Axis::Logarithmic, 0.0).unwrap();
        assert!((found - 2.0).abs() < 1e-4, "{found}");
    }

    #[test]
    fn of_two_counts_the_smaller_is_half_way() {
        assert_eq!(half_way(&curve(&[(1.0, 10.0), (2.0, 19.0)]), Axis::Counted, 0.0), Some(1.0));
        assert_eq!(half_way(&curve(&[(1.0, 19.3), (2.0, 10.1)]), Axis::Counted, 0.0), Some(1.0));
        let many = curve(&[(1.0, 10.0), (2.0, 18.0), (4.0, 29.0), (8.0, 42.0), (16.0, 45.0)]);
        assert_eq!(half_way(&many, Axis::Counted, 0.0), Some(4.0));
    }

    #[test]
    fn a_flat_curve_says_nothing_and_gives_its_smallest_value() {
        let flat = curve(&[(1.0, 10.0), (2.0, 10.4), (4.0, 10.2)]);
        assert_eq!(half_way(&flat, Axis::Counted, 0.1), Some(1.0));
        assert_eq!(half_way(&curve(&[(7.0, 1.0)]), Axis::Linear, 0.0), Some(7.0));
    }
}
