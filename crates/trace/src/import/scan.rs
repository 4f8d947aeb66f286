//! Numbers and words out of bytes, without a detour over strings.

/// Digits that fit into nanoseconds of a second.
const FRACTION_DIGITS: usize = 9;

/// A whole number, digits only.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value = 0_u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A number in hexadecimal digits, without a prefix.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0_u64, |value, &byte| {
        let digit = char::from(byte).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}

/// A number as C writes it: `12`, `-12`, `0x1f`, `0644`.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', rest @ ..] => i64::try_from(decimal(rest)?).ok().map(|value| -value),
        [b'0', b'x', rest @ ..] => hexadecimal(rest).map(u64::cast_signed),
        [b'0', rest @ ..] if !rest.is_empty() => rest.iter().try_fold(0_i64, |value, &byte| {
            let digit = char::from(byte).to_digit(8)?;
            value.checked_mul(8)?.checked_add(i64::from(digit))
        }),
        _ => i64::try_from(decimal(text)?).ok(),
    }
}

/// How many bytes at the start are digits.
fn digits(text: &[u8]) -> usize {
    text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len())
}

/// A time in units of `unit_ns` nanoseconds (at most 10⁹), as nanoseconds: exact where there are
/// no more than nine decimal places, which a float of seconds since 1970 is not.
pub(crate) fn nanoseconds(text: &[u8], unit_ns: u64) -> Option<u64> {
    let length = digits(text);
    match text.get(length) {
        None => decimal(text)?.checked_mul(unit_ns),
        Some(b'.') => {
            let whole = if length == 0 { 0 } else { decimal(&text[..length])? };
            let fraction = &text[length + 1..];
            let count = digits(fraction);
            if count < fraction.len() {
                return from_float(text, unit_ns);
            }
            let kept = &fraction[..count.min(FRACTION_DIGITS)];
            let part = if kept.is_empty() { 0 } else { decimal(kept)? };
            let part_ns = part * unit_ns / 10_u64.pow(kept.len() as u32);
            whole.checked_mul(unit_ns)?.checked_add(part_ns)
        }
        Some(_) => from_float(text, unit_ns),
    }
}

/// `1.5e+09`, as programs write that know floats only.
fn from_float(text: &[u8], unit_ns: u64) -> Option<u64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let value_ns = value * unit_ns as f64;
    (value_ns.is_finite() && (0.0..1.8e19).contains(&value_ns)).then_some(value_ns as u64)
}

/// Words between blanks.
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(crate) fn in_line(line: &'a [u8]) -> Self {
        Self { rest: line.trim_ascii() }
    }

    /// Everything that has not been taken yet, without blanks at its ends.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(u8::is_ascii_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_ascii_start();
        Some(word)
    }
}

/// The bytes before and after the first `mark`.
pub(crate) fn split_at_byte(text: &[u8], mark: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(mark, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// `8,0` or `8:0`.
pub(crate) fn device(text: &[u8], mark: u8) -> Option<(u32, u32)> {
    let (major, minor) = split_at_byte(text, mark)?;
    Some((u32::try_from(decimal(major)?).ok()?, u32::try_from(decimal(minor)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn times_are_exact_where_floats_are_not() {
        let check = |text: &str, unit_ns, expected| {
            assert_eq!(nanoseconds(text.as_bytes(), unit_ns), expected, "{text}");
        };
        check("1700000000.123456789", S, Some(1_700_000_000_123_456_789));
        check("1538323200", S, Some(1_538_323_200_000_000_000));
        check("128166372003061629", 100, Some(12_816_637_200_306_162_900));
        check("0.5", 1000, Some(500));
        check(".25", S, Some(250_000_000));
        check("12.", S, Some(12 * S));
        check("0.1234567899", S, Some(123_456_789));
        check("1.5e+09", S, Some(1_500_000_000 * S));
        for bad in ["", "-1", "1,5", "nan", "inf", "1e30", "99999999999999999999", "t"] {
            check(bad, S, None);
        }
    }

    #[test]
    fn numbers_are_read_as_c_writes_them() {
        assert_eq!(number(b"-12"), Some(-12));
        assert_eq!(number(b"0x1f"), Some(31));
        assert_eq!(number(b"0644"), Some(0o644));
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"0xffffffffffffffff"), Some(-1));
        for bad in [&b""[..], b"-", b"0x", b"x", b"9223372036854775808", b"1 "] {
            assert_eq!(number(bad), None);
        }
    }

    #[test]
    fn words_are_what_is_between_blanks() {
        let mut words = Words::in_line(b"  a\tbc  d e \r");
        assert_eq!(words.next(), Some(&b"a"[..]));
        assert_eq!(words.next(), Some(&b"bc"[..]));
        assert_eq!(words.rest(), b"d e");
        assert_eq!(words.count(), 2);
    }
}
