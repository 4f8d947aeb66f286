//! Borders by the slope rule of Chen and Patterson (1994, section 8, Fig. 6): take the slope of
//! throughput over `unique_bytes`, both axes linear; a border lies where it is below the curve's
//! average slope, that is, where throughput falls faster than it does on the whole.
//!
//! The rule is theirs, the care about noise is ours. A slope is below the average where the curve
//! minus its average line falls. That difference is followed from one turning point to the next,
//! and a turn counts only where it exceeds three times the noise, so that a border must fall, and
//! a region between two borders must rise, by more than chance. Where in its band a border lies the
//! paper leaves open: here where half of the fall has happened, which depends little on how far
//! noise stretches the band.

use crate::focal::CurvePoint;

/// Repeatability that is assumed where the curve itself shows none: the median of the paper's
/// machines (Fig. 15).
pub const NOISE_MIN: f64 = 0.03;
/// A turn counts above so many times the noise.
const TURN_NOISES: f64 = 3.0;
/// A region has at least so many points.
const POINTS_MIN: usize = 3;

/// A stretch in which throughput falls faster than on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The last point before the fall, bytes.
    pub from_bytes: f64,
    /// The first point after it, bytes.
    pub to_bytes: f64,
    /// Where half of the fall has happened, bytes.
    pub border_bytes: f64,
    /// Where time per request is 10 % over what it was before, bytes.
    pub onset_bytes: f64,
    /// Throughput before the fall over throughput after it.
    pub step: f64,
}

/// What the slope rule makes of a curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slopes {
    /// Average slope, bytes per second per byte.
    pub average_per_s: f64,
    /// Relative noise that the falls were compared with.
    pub noise: f64,
    /// The borders, smallest first.
    pub bands: Vec<Band>,
}

/// Applies the rule to a throughput curve over `unique_bytes`, in any order.
pub fn slopes(curve: &[CurvePoint]) -> Slopes {
    let raw = prepared(curve);
    if raw.len() < 3 {
        return Slopes { noise: NOISE_MIN, ..Slopes::default() };
    }
    let fit = falling_fit(&raw);
    let noise = NOISE_MIN.max(residual(&raw, &fit));
    let average_per_s = slope(fit[0], fit[fit.len() - 1]);
    if average_per_s >= 0.0 {
        return Slopes { average_per_s: 0.0, noise, bands: Vec::new() };
    }
    let falls = falls(&fit, average_per_s, noise);
    let mut bands: Vec<Band> = falls.into_iter().map(|(from, to)| band(&fit[from..=to])).collect();
    while let Some(weakest) = beside_too_small_a_region(&bands, &fit) {
        bands.remove(weakest);
    }
    Slopes { average_per_s, noise, bands }
}

/// Of the bands beside a region with too few points, the one with the smaller step.
fn beside_too_small_a_region(bands: &[Band], fit: &[CurvePoint]) -> Option<usize> {
    let small = (0..=bands.len()).find(|&region| {
        let from = region.checked_sub(1).map_or(0.0, |before| bands[before].border_bytes);
        let to = bands.get(region).map_or(f64::INFINITY, |after| after.border_bytes);
        fit.iter().filter(|point| from < point.value && point.value <= to).count() < POINTS_MIN
    })?;
    let beside = small.saturating_sub(1)..(small + 1).min(bands.len());
    beside.min_by(|&a, &b| bands[a].step.total_cmp(&bands[b].step))
}

fn band(fall: &[CurvePoint]) -> Band {
    let (first, last) = (fall[0], fall[fall.len() - 1]);
    let half = f64::midpoint(first.throughput_bytes_per_s, last.throughput_bytes_per_s);
    let onset = (first.throughput_bytes_per_s / 1.1).max(last.throughput_bytes_per_s);
    Band {
        from_bytes: first.value,
        to_bytes: last.value,
        border_bytes: falls_to(fall, half),
        onset_bytes: falls_to(fall, onset),
        step: first.throughput_bytes_per_s / last.throughput_bytes_per_s,
    }
}

/// Where a falling stretch comes down to a level, on straight lines between its points.
fn falls_to(fall: &[CurvePoint], level: f64) -> f64 {
    let pair = fall.windows(2).find(|pair| pair[1].throughput_bytes_per_s <= level);
    let Some([a, b]) = pair else { return fall[fall.len() - 1].value };
    let height = a.throughput_bytes_per_s - b.throughput_bytes_per_s;
    let part = if height > 0.0 { (a.throughput_bytes_per_s - level) / height } else { 0.0 };
    a.value + part * (b.value - a.value)
}

/// Sorted, without what cannot be used, one point per value.
fn prepared(curve: &[CurvePoint]) -> Vec<CurvePoint> {
    let usable = |point: &&CurvePoint| {
        point.value > 0.0
            && point.throughput_bytes_per_s > 0.0
            && point.throughput_bytes_per_s.is_finite()
    };
    let mut points: Vec<CurvePoint> = curve.iter().filter(usable).copied().collect();
    points.sort_by(|a, b| a.value.total_cmp(&b.value));
    points.dedup_by(|later, earlier| later.value <= earlier.value);
    points
}

/// The non-increasing curve with the least squared distance: neighbours that rise are pooled
/// (pool adjacent violators, Ayer et al. 1955).
fn falling_fit(raw: &[CurvePoint]) -> Vec<CurvePoint> {
    let mut blocks: Vec<(f64, usize)> = Vec::with_capacity(raw.len());
    for point in raw {
        let mut block = (point.throughput_bytes_per_s, 1);
        while let Some(&(mean, count)) = blocks.last().filter(|(mean, _)| *mean < block.0) {
            let total = mean * count as f64 + block.0 * block.1 as f64;
            block = (total / (count + block.1) as f64, count + block.1);
            blocks.pop();
        }
        blocks.push(block);
    }
    let levels = blocks.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count));
    raw.iter()
        .zip(levels)
        .map(|(point, level)| CurvePoint { value: point.value, throughput_bytes_per_s: level })
        .collect()
}

fn residual(raw: &[CurvePoint], fit: &[CurvePoint]) -> f64 {
    let squares = raw.iter().zip(fit).map(|(point, level)| {
        (point.throughput_bytes_per_s / level.throughput_bytes_per_s).ln().powi(2)
    });
    (squares.sum::<f64>() / raw.len() as f64).sqrt()
}

fn slope(a: CurvePoint, b: CurvePoint) -> f64 {
    (b.throughput_bytes_per_s - a.throughput_bytes_per_s) / (b.value - a.value)
}

/// The falls of the curve minus its average line, as indices of their first and last point.
fn falls(fit: &[CurvePoint], average_per_s: f64, noise: f64) -> Vec<(usize, usize)> {
    let above_line = |index: usize| {
        let point: CurvePoint = fit[index];
        point.throughput_bytes_per_s - average_per_s * (point.value - fit[0].value)
    };
    let chance = |index: usize| TURN_NOISES * noise * fit[index].throughput_bytes_per_s;
    let mut falls = Vec::new();
    let mut high = 0;
    // Where the fall that is under way has come to so far.
    let mut low = None;
    for index in 1..fit.len() {
        match low {
            None if above_line(high) - above_line(index) > chance(high) => low = Some(index),
            None if above_line(index) > above_line(high) => high = index,
            Some(lowest) if above_line(index) - above_line(lowest) > chance(index) => {
                falls.push((high, lowest));
                (high, low) = (index, None);
            }
            Some(lowest) if above_line(index) < above_line(lowest) => low = Some(index),
            _ => {}
        }
    }
    falls.extend(low.map(|lowest| (high, lowest)));
    falls
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    /// Throughput of plateaus behind caches, `(capacity in MiB, time added by missing it)`, with a
    /// ripple of up to `noise` that differs from point to point and from seed to seed.
    fn hierarchy(end: f64, caches: &[(f64, f64)], noise: f64, seed: u64) -> Vec<CurvePoint> {
        let ripple = |index: u64| {
            let mixed = (index + 1 + 1000 * seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
            1.0 + noise * (2.0 * (mixed as f64 / (1_u64 << 53) as f64) - 1.0)
        };
        (0..24_u64)
            .map(|index| {
                let size = end.powf(index as f64 / 23.0);
                let missed =
                    |&(capacity, time): &(f64, f64)| time * (1.0 - capacity / size).max(0.0);
                let time: f64 = 1.0 + caches.iter().map(missed).sum::<f64>();
                CurvePoint { value: size * MIB, throughput_bytes_per_s: 1e8 / time * ripple(index) }
            })
            .collect()
    }

    fn borders(curve: &[CurvePoint]) -> Vec<f64> {
        slopes(curve).bands.iter().map(|band| band.border_bytes / MIB).collect()
    }

    #[test]
    fn one_two_and_three_plateaus_are_told_apart_under_noise() {
        for seed in 0..40 {
            for noise in [0.0, 0.02, 0.04] {
                assert_eq!(borders(&hierarchy(100.0, &[], noise, seed)), [] as [f64; 0]);
                let one = borders(&hierarchy(60.0, &[(20.0, 5.0)], noise, seed));
                assert_eq!(one.len(), 1, "noise {noise} seed {seed}: {one:?}");
                assert!(one[0] > 19.0 && one[0] < 25.0, "{one:?}");
                let two = borders(&hierarchy(60.0, &[(3.0, 1.5), (20.0, 6.0)], noise, seed));
                assert_eq!(two.len(), 2, "noise {noise} seed {seed}: {two:?}");
                assert!(two[0] > 2.8 && two[0] < 5.0 && two[1] > 19.0 && two[1] < 28.0, "{two:?}");
            }
        }
    }

    #[test]
    fn the_average_slope_is_end_to_end_on_linear_axes() {
        let curve = hierarchy(60.0, &[(20.0, 5.0)], 0.0, 0);
        let after = 1e8 / (1.0 + 5.0 * (1.0 - 20.0 / 60.0));
        let expected = (after - 1e8) / (59.0 * MIB);
        assert!((slopes(&curve).average_per_s / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn onset_border_and_band_lie_in_order() {
        for band in slopes(&hierarchy(60.0, &[(20.0, 50.0)], 0.02, 1)).bands {
            assert!(band.from_bytes <= band.onset_bytes && band.onset_bytes <= band.border_bytes);
            assert!(band.border_bytes <= band.to_bytes && band.step > 2.0, "{band:?}");
        }
    }

    #[test]
    fn order_and_unusable_points_do_not_matter() {
        let mut curve = hierarchy(60.0, &[(20.0, 5.0)], 0.02, 1);
        let expected = borders(&curve);
        curve.reverse();
        curve.push(CurvePoint { value: 30.0 * MIB, throughput_bytes_per_s: 0.0 });
        curve.push(CurvePoint { value: 5.0 * MIB, throughput_bytes_per_s: f64::NAN });
        assert_eq!(borders(&curve), expected);
        assert_eq!(borders(&curve[..2]), [] as [f64; 0]);
    }

    #[test]
    fn a_curve_that_rises_has_no_border() {
        let mut rising = hierarchy(60.0, &[(20.0, 5.0)], 0.02, 1);
        for point in &mut rising {
            point.throughput_bytes_per_s = 1e16 / point.throughput_bytes_per_s;
        }
        assert_eq!(borders(&rising), [] as [f64; 0]);
    }
}
