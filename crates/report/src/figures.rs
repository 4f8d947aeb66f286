//! Figures as people read them: with unit and interval, and no digit that is not known.

use std::fmt::Write as _;

pub(crate) use ioscape_model::units::{show_percent as percent, show_size as size};
use ioscape_model::units::{show_seconds, three_digits};
use ioscape_model::{Interval, Workload};

const RATE_UNITS: [&str; 5] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
const BYTE_UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// What stands where a figure is unknown.
pub(crate) const UNKNOWN: &str = "–";

/// `1.91 GB/s (1.87–1.95)`.
pub(crate) fn rate(interval: &Interval) -> String {
    with_interval(interval, 1000.0, &RATE_UNITS)
}

/// `244 MiB (238–251)`.
pub(crate) fn bytes(interval: &Interval) -> String {
    with_interval(interval, 1024.0, &BYTE_UNITS)
}

/// `12300 /s (12100–12500)`.
pub(crate) fn per_second(interval: &Interval) -> String {
    with_interval(interval, f64::INFINITY, &["/s"])
}

/// `92 µs (80–110)`.
pub(crate) fn seconds(interval: &Interval) -> String {
    if interval.high <= interval.low || interval.mean >= 1.0 {
        return show_seconds(interval.mean);
    }
    with_interval(&interval.scaled(1e9), 1000.0, &["ns", "µs", "ms"])
}

/// `× 1.05 (0.98–1.12)`. Whether 1 lies inside decides the verdict: where an end would be rounded to 1
/// there are up to three digits more.
pub(crate) fn ratio(interval: &Interval) -> String {
    /// More digits than usual, at most.
    const FINER_MAX: i32 = 3;
    let shown = |finer| with_interval_finer(interval, f64::INFINITY, &[""], finer);
    let is_one = |end: &str| matches!(end.split_once('.'), Some(("1", zeros)) if zeros.bytes().all(|b| b == b'0'));
    let hides =
        |text: &str| text.split(['(', '–', ')']).skip(1).any(|end| end == "1" || is_one(end));
    let shown =
        (0..FINER_MAX).map(shown).find(|text| !hides(text)).unwrap_or_else(|| shown(FINER_MAX));
    format!("× {}", shown.replacen("  ", " ", 1).trim_end())
}

/// A share as a percentage, where it may be unknown.
pub(crate) fn percent_or_unknown(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| UNKNOWN.to_owned(), percent)
}

/// `64 MiB, 16 KiB, 50 % reads, 0 % sequential, 1 process`, and the keys that are not as usual.
pub(crate) fn workload(work: &Workload) -> String {
    let mut text = format!(
        "{}, {}, {} reads, {} sequential, {}",
        size(work.unique_bytes as f64),
        size(work.size_mean as f64),
        percent(work.read_frac),
        percent(work.seq_frac),
        count_es(work.process_num as usize, "process"),
    );
    for (key, value) in work.unusual_pairs() {
        let _ = write!(text, ", {key}={value}");
    }
    text
}

fn count_es(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}es") }
}

/// `1 point`, `2 points`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// The figure rounded to where its interval begins to say something: the last digit shown is at
/// least a twentieth and less than a half of the interval's half-width, but there are never fewer than two
/// digits and never more than three.
fn with_interval(interval: &Interval, base: f64, units: &[&str]) -> String {
    with_interval_finer(interval, base, units, 0)
}

/// With so many more digits.
fn with_interval_finer(interval: &Interval, base: f64, units: &[&str], finer: i32) -> String {
    let Interval { mean, low, high } = *interval;
    if !mean.is_finite() {
        return UNKNOWN.to_owned();
    }
    let mut unit = 0;
    let mut factor = 1.0;
    while mean / factor >= base * 0.9995 && unit + 1 < units.len() {
        factor *= base;
        unit += 1;
    }
    let half_width = (high - low) / 2.0 / factor;
    // Records may come from anybody: no unit fits what lies outside of these.
    let has_unit = (1e-12..1e18).contains(&(mean / factor));
    let known = half_width.is_finite() && half_width > 0.0 && has_unit;
    if !known {
        return format!("{} {}", three_digits(mean / factor), units[unit]);
    }
    let magnitude = decade(mean / factor);
    let place = decade(half_width / 2.0).clamp(magnitude - 2, magnitude - 1) - finer;
    let show = |value: f64, place: i32| rounded(value.max(0.0) / factor, place);
    // A lower end far below the rest has digits of its own.
    let place_low =
        if low > 0.0 { place.min(decade(low / factor).saturating_sub(1)) } else { place };
    let has_one_more = place == magnitude - 1 && high / factor >= 1.2 * 10f64.powi(magnitude + 1);
    let place_high = place + i32::from(has_one_more);
    let (mean, low, high) =
        (show(mean, place), show(low, place_low.max(place - 2)), show(high, place_high));
    format!("{mean} {} ({low}–{high})", units[unit])
}

fn decade(value: f64) -> i32 {
    value.log10().floor() as i32
}

fn rounded(value: f64, place: i32) -> String {
    let step = 10f64.powi(place);
    let decimals = usize::try_from(-place).unwrap_or(0);
    format!("{:.decimals$}", (value / step).round() * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(mean: f64, low: f64, high: f64) -> Interval {
        Interval { mean, low, high }
    }

    #[test]
    fn digits_end_where_the_interval_begins() {
        for (figure, shown) in [
            (interval(1.9123e9, 1.87e9, 1.95e9), "1.91 GB/s (1.87–1.95)"),
            (interval(1.9123e9, 1.4e9, 2.4e9), "1.9 GB/s (1.4–2.4)"),
            (interval(412.3e6, 372.3e6, 452.3e6), "410 MB/s (370–450)"),
            (interval(412.3e6, 411.9e6, 412.6e6), "412 MB/s (412–413)"),
            (interval(5.0e6, -20.0e6, 30.0e6), "5.0 MB/s (0.0–30)"),
            (interval(17.0e6, 17.0e6, 17.0e6), "17.0 MB/s"),
            (interval(f64::NAN, 0.0, 0.0), "–"),
            (interval(0.0, 0.0, 0.0), "0.00 B/s"),
            (interval(5e-324, 0.0, 1.0), "0.00 B/s"),
            (interval(1e10, 5e-324, 2e10), "10 GB/s (0.00–20)"),
        ] {
            assert_eq!(rate(&figure), shown);
        }
        assert_eq!(ratio(&interval(1.051, 0.982, 1.124)), "× 1.05 (0.98–1.12)");
        assert_eq!(ratio(&interval(0.5, 0.5, 0.5)), "× 0.50");
        assert_eq!(ratio(&interval(1.34, 1.04, 1.79)), "× 1.34 (1.04–1.79)");
        assert_eq!(ratio(&interval(1.4, 0.97, 2.04)), "× 1.4 (0.97–2.0)");
        assert_eq!(ratio(&interval(4.21, 2.68, 6.61)), "× 4.2 (2.7–6.6)");
        assert_eq!(ratio(&interval(8.75, 5.86, 13.07)), "× 8.8 (5.9–13)");
        assert_eq!(seconds(&interval(92.1e-6, 80e-6, 110e-6)), "92 µs (80–110)");
        assert_eq!(seconds(&Interval::exact(3.2)), "3.20 s");
        assert_eq!(bytes(&interval(255_852_544.0, 249e6, 262e6)), "244 MiB (237–250)");
        assert_eq!(per_second(&interval(12_345.0, 12_100.0, 12_600.0)), "12300 /s (12100–12600)");
    }
}
