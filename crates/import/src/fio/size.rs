//! Sizes as fio's options spell them, and tables of sizes. Nothing here knows what a job is.

use ioscape_model::SizeDist;

/// Coefficients of variation half-way between those of the laws: fixed 0, normal 0.62,
/// exponential 1.
const FIXED_BELOW: f64 = 0.31;
const NORMAL_BELOW: f64 = 0.81;
/// No law of ours varies that much.
const VARIATION_MAX: f64 = 1.5;
/// Offsets need not be aligned to more than a page.
const ALIGN_MAX: u64 = 4096;
/// More sizes than fio takes.
const PARTS_MAX: usize = 64;

/// Reads a size as fio does: `4k` is 4096 and `4ki` is 4000, unless `kb_base` is 1000.
pub(super) fn bytes(text: &str, kb_base: u64) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a plain size in bytes, k, m, g or t");
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let letters = unit.strip_suffix('b').unwrap_or(unit);
    let (letter, base) = match letters.strip_suffix('i') {
        Some(letter) => (letter, if kb_base == 1000 { 1024 } else { 1000 }),
        None => (letters, kb_base),
    };
    let power = match letter {
        "" if letters.is_empty() => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(wrong()),
    };
    let factor = u64::checked_pow(base, power).ok_or_else(wrong)?;
    number.checked_mul(factor).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

/// The sizes of a job's requests and how often each is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sizes {
    parts: Vec<(u64, f64)>,
    /// Smallest and largest of a uniform law.
    range: Option<(u64, u64)>,
}

impl Sizes {
    pub(super) fn fixed(bytes: u64) -> Self {
        Self { parts: vec![(bytes, 1.0)], range: None }
    }

    /// `4k/10:64k/90`; shares that are left out divide what is left evenly.
    pub(super) fn split(text: &str, kb_base: u64) -> Result<Self, String> {
        let wrong = |why: &str| format!("bssplit={text}: {why}");
        let mut parts = Vec::new();
        for part in text.split(':') {
            let (size, percent) = part.split_once('/').unwrap_or((part, ""));
            let percent = match percent.trim() {
                "" => None,
                number => {
                    Some(number.parse::<u32>().map_err(|_| wrong("a share is no percentage"))?)
                }
            };
            parts.push((bytes(size, kb_base)?, percent));
        }
        let given: u64 = parts.iter().filter_map(|part| part.1).map(u64::from).sum();
        let open = parts.iter().filter(|part| part.1.is_none()).count();
        if parts.len() > PARTS_MAX || given > 100 || (open == 0 && given != 100) {
            return Err(wrong("the shares do not add up to 100"));
        }
        let rest = (100 - given) as f64 / open.max(1) as f64;
        let share = |part: &(u64, Option<u32>)| part.1.map_or(rest, f64::from) / 100.0;
        let parts: Vec<(u64, f64)> = parts.iter().map(|part| (part.0, share(part))).collect();
        Ok(Self { parts: parts.into_iter().filter(|part| part.1 > 0.0).collect(), range: None })
    }

    /// `4k-64k`, uniform.
    pub(super) fn range(text: &str, kb_base: u64) -> Result<Self, String> {
        let (low, high) =
            text.split_once('-').ok_or_else(|| format!("bsrange={text} is no range"))?;
        let (low, high) = (bytes(low, kb_base)?, bytes(high, kb_base)?);
        if low > high {
            return Err(format!("bsrange={text} ends before it begins"));
        }
        Ok(Self { parts: vec![(low, 0.5), (high, 0.5)], range: Some((low, high)) })
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| part.0 == self.parts[0].0)
    }

    pub(super) fn mean_bytes(&self) -> f64 {
        self.parts.iter().map(|(size, share)| *size as f64 * share).sum()
    }

    /// Standard deviation over mean.
    pub(super) fn variation(&self) -> f64 {
        let mean = self.mean_bytes();
        let variance = match self.range {
            Some((low, high)) => (high as f64 - low as f64).powi(2) / 12.0,
            None => {
                self.parts.iter().map(|(size, share)| (*size as f64 - mean).powi(2) * share).sum()
            }
        };
        variance.sqrt() / mean
    }

    /// The law that varies as much.
    pub(super) fn law(&self) -> Result<SizeDist, String> {
        match self.variation() {
            v if v < FIXED_BELOW => Ok(SizeDist::Fixed),
            v if v < NORMAL_BELOW => Ok(SizeDist::Normal),
            v if v <= VARIATION_MAX => Ok(SizeDist::Exponential),
            v => Err(format!("the sizes vary too much (coefficient of variation {v:.1})")),
        }
    }

    /// The largest power of two that all sizes are multiples of, a page at most.
    pub(super) fn align_bytes(&self) -> u64 {
        let one = |size: u64| 1 << size.trailing_zeros().min(ALIGN_MAX.trailing_zeros());
        self.parts.iter().map(|part| one(part.0)).min().unwrap_or(ALIGN_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_fio_3_33_reads_them() {
        for (text, read) in [
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4ki", 4000),
            ("4KiB", 4000),
            ("4m", 4 << 20),
            ("4mib", 4_000_000),
            ("4096", 4096),
            ("1g", 1 << 30),
        ] {
            assert_eq!(bytes(text, 1024), Ok(read), "{text}");
        }
        assert_eq!((bytes("4k", 1000), bytes("4ki", 1000)), (Ok(4000), Ok(4096)));
        for text in
            ["", "k", "50%", "4z", "(4*1024)", "0", "-4k", "i", "99999999999999999999", "9t9"]
        {
            assert!(bytes(text, 1024).is_err(), "{text}");
        }
        assert!(bytes("99999999999t", 1024).is_err(), "more than there is");
    }

    #[test]
    fn tables_have_a_mean_and_a_law() {
        let sizes = Sizes::split("4k/25:8k/50:12k/25", 1024).unwrap();
        assert!((sizes.mean_bytes() - 8192.0).abs() < 1e-9);
        assert_eq!((sizes.law(), sizes.align_bytes()), (Ok(SizeDist::Normal), 4096));
        let open = Sizes::split("4k/50:8k/:16k/", 1024).unwrap();
        assert!((open.mean_bytes() - 8192.0).abs() < 1e-9);
        let range = Sizes::range("512-64k", 1024).unwrap();
        assert_eq!((range.law(), range.align_bytes()), (Ok(SizeDist::Normal), 512));
        let fixed = Sizes::fixed(65_536);
        assert_eq!((fixed.law(), fixed.is_fixed()), (Ok(SizeDist::Fixed), true));
        for wrong in ["4k/60:8k/60", "4k/x", "4k/50", "", "4k/50:/50"] {
            assert!(Sizes::split(wrong, 1024).is_err(), "{wrong}");
        }
        assert!(Sizes::range("8k-4k", 1024).is_err());
        assert!(Sizes::split("4k/99:16m/1", 1024).unwrap().law().is_err());
    }
}
