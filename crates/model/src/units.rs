//! Sizes and durations as people type and read them. Nothing here knows what a size is for.

use parse_size::Config;

/// One kibibyte.
pub const KIB: u64 = 1 << 10;
/// One mebibyte.
pub const MIB: u64 = 1 << 20;
/// One gibibyte.
pub const GIB: u64 = 1 << 30;
/// Nothing that is asked for lasts longer, seconds: thirty years.
pub const DURATION_S_MAX: f64 = 1e9;

/// Reads a size: `KiB MiB GiB` are binary, `kB MB GB` decimal, bare `k m g` binary as in fio.
///
/// # Errors
/// One line that names the text and shows a form that works.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    // `parse-size` reads every unit as binary or every unit as decimal: a unit that ends in a
    // lone B is decimal here, everything else binary.
    let lower = text.to_ascii_lowercase();
    let letters = lower.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let decimal = matches!(letters, "kb" | "mb" | "gb" | "tb" | "pb" | "eb");
    let config = if decimal { Config::new().with_decimal() } else { Config::new().with_binary() };
    let wrong = || format!("`{text}` is not a size; write for example 64MiB, 64M or 64000000");
    if !has_few_digits(&lower) {
        return Err(wrong());
    }
    let bytes = config.parse_size(text).map_err(|_| wrong())?;
    if i64::try_from(bytes).is_ok() { Ok(bytes) } else { Err(wrong()) }
}

/// `parse-size` counts digits and exponents in numbers that overflow. Nineteen digits hold every
/// size that the kernel knows, and no size has an exponent of more than three.
fn has_few_digits(text: &str) -> bool {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    let exponent = text.split_once('e').map_or(0, |(_, exponent)| digits(exponent));
    digits(text) <= 19 && exponent <= 3
}

/// Reads a duration such as `90s`, `10m` or `1h30m`, in seconds. A bare number is refused.
///
/// # Errors
/// One line that names the text and shows a form that works.
pub fn parse_duration_s(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a duration; write for example 90s, 10m or 1h30m");
    let span: jiff::SignedDuration = text.trim().parse().map_err(|_| wrong())?;
    let seconds = span.as_secs_f64();
    if seconds > 0.0 && seconds <= DURATION_S_MAX { Ok(seconds) } else { Err(wrong()) }
}

/// Reads a fraction, `5%` or `0.05`, that must be above zero and below one.
///
/// # Errors
/// One line that names the text and shows a form that works.
pub fn parse_fraction(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let value = match trimmed.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => trimmed.parse::<f64>(),
    };
    match value {
        Ok(fraction) if fraction > 0.0 && fraction < 1.0 => Ok(fraction),
        _ => Err(format!("`{text}` is not a fraction; write for example 5% or 0.05")),
    }
}

/// A size in binary units with three significant digits: `256 MiB`, `4.00 KiB`, `17 B`.
pub fn show_bytes(bytes: f64) -> String {
    show_scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// A size that somebody chose or a place on an axis: `64 KiB` where it is whole, three significant
/// digits otherwise.
pub fn show_size(bytes: f64) -> String {
    let whole = |base: f64| (bytes / base - (bytes / base).round()).abs() < 0.001 * bytes / base;
    for (base, unit) in [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B")] {
        let base = base as f64;
        let fits = (base..1000.0 * base).contains(&bytes);
        if fits && whole(base) {
            return format!("{:.0} {unit}", bytes / base);
        }
    }
    show_bytes(bytes)
}

/// A share of the whole: `97 %`; one digit more next to the ends, where it tells something.
pub fn show_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let near_end = (percent > 0.0 && percent < 9.95) || (percent > 98.0 && percent < 99.95);
    if near_end { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A rate in decimal units, as storage is sold: `1.27 GB/s`.
pub fn show_rate(bytes_per_s: f64) -> String {
    show_scaled(bytes_per_s, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
}

/// Requests per second as the field writes them: `217`, `11.7k`, `1.20M`.
pub fn show_iops(per_s: f64) -> String {
    let shown = show_scaled(per_s, 1000.0, &["", "k", "M", "G"]);
    shown.replacen(' ', "", 1)
}

/// A time with three significant digits: `92.1 µs`, `3.20 s`, and from two minutes on `14 min`.
pub fn show_seconds(seconds: f64) -> String {
    if seconds >= 7200.0 {
        return format!("{:.1} h", seconds / 3600.0);
    }
    if seconds >= 120.0 {
        return format!("{:.0} min", seconds / 60.0);
    }
    if seconds >= 1.0 {
        return format!("{} s", three_digits(seconds));
    }
    show_scaled(seconds * 1e9, 1000.0, &["ns", "µs", "ms"])
}

/// A number with three significant digits and no exponent.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn show_scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut scaled = value;
    let mut unit = 0;
    while scaled >= base * 0.9995 && unit + 1 < units.len() {
        scaled /= base;
        unit += 1;
    }
    if unit == 0 {
        return format!("{scaled:.0} {}", units[0]);
    }
    format!("{} {}", three_digits(scaled), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_fio_users_mean_them() {
        for (text, bytes) in [
            ("4k", 4096),
            ("4K", 4096),
            ("4KiB", 4096),
            ("4kB", 4000),
            ("4 KB", 4000),
            ("1.5M", 1_572_864),
            ("1GB", 1_000_000_000),
            ("1GiB", GIB),
            ("123", 123),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "x", "-4k", "4q", "0x1000"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration_s("90s"), Ok(90.0));
        assert_eq!(parse_duration_s("10m"), Ok(600.0));
        assert_eq!(parse_duration_s("1h30m"), Ok(5400.0));
        for text in ["30", "", "-5s", "0s", "9999999h"] {
            assert!(parse_duration_s(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fractions_are_percent_or_plain() {
        assert_eq!(parse_fraction("5%"), Ok(0.05));
        assert_eq!(parse_fraction("0.05"), Ok(0.05));
        assert!(parse_fraction("150%").is_err());
        assert!(parse_fraction("0").is_err());
    }

    #[test]
    fn numbers_are_shown_with_three_digits_and_a_unit() {
        assert_eq!(show_bytes(268_435_456.0), "256 MiB");
        assert_eq!(show_bytes(4096.0), "4.00 KiB");
        assert_eq!(show_bytes(17.0), "17 B");
        for (bytes, shown) in [
            (65_536.0, "64 KiB"),
            (1_048_576.0, "1 MiB"),
            (50_000_000.0, "47.7 MiB"),
            (1.5e9, "1.40 GiB"),
            (2_199_023_255_552.0, "2.00 TiB"),
            (0.0, "0 B"),
        ] {
            assert_eq!(show_size(bytes), shown);
        }
        for (fraction, shown) in [(0.5, "50 %"), (0.034, "3.4 %"), (0.993, "99.3 %"), (0.0, "0 %")]
        {
            assert_eq!(show_percent(fraction), shown);
        }
        assert_eq!(show_rate(1.2749e9), "1.27 GB/s");
        assert_eq!(show_seconds(92.1e-6), "92.1 µs");
        assert_eq!(show_seconds(3.2), "3.20 s");
        assert_eq!(show_seconds(840.0), "14 min");
    }
}
