//! A line of a record with a check over its own text, so that a bit that rotted in a number is
//! noticed and not believed, and with the check of the line before, so that a line that was lost,
//! doubled or moved is noticed too.
//!
//! The check is the last field, `"check":"1c291ca3"`: the CRC-32 (IEEE 802.3) of every byte of the
//! line before its comma. Before it stands `"after":"5f0e9b21"`, the check of the line before; the
//! first line has none. Readers that do not know them see two unknown fields more. A line without a
//! check is read unchecked, and so is what follows it: records of before it existed, and lines from
//! which somebody took it.

use std::collections::HashSet;

use crate::{Code, Line, Severity, Warning};

const AFTER: &[u8] = b",\"after\":\"";
const CHECK: &[u8] = b",\"check\":\"";
const CLOSE: &[u8] = b"\"";
const DIGITS: usize = 8;
/// So many places are named where lines are missing.
const PLACES_NAMED: usize = 5;

/// The end of a record, to which the next line is joined: the check of its last line, where that
/// has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain(Option<u32>);

impl Chain {
    /// The text of the next line, its checks and the newline included, and the end that it makes.
    ///
    /// # Errors
    /// When the line cannot be JSON, or holds what no reader would take.
    pub fn seal(self, line: &Line) -> std::io::Result<(Vec<u8>, Self)> {
        line.check().map_err(std::io::Error::other)?;
        let mut text = serde_json::to_vec(line)?;
        text.pop(); // the brace
        if let Some(before) = self.0 {
            push(&mut text, AFTER, before);
        }
        let check = crc32(&text);
        push(&mut text, CHECK, check);
        text.extend_from_slice(b"}\n");
        Ok((text, Self(Some(check))))
    }
}

fn push(text: &mut Vec<u8>, open: &[u8], check: u32) {
    text.extend_from_slice(open);
    text.extend_from_slice(format!("{check:08x}").as_bytes());
    text.extend_from_slice(CLOSE);
}

/// What the end of a line says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// It has no check.
    None,
    /// The text is not what its check says.
    Broken,
    /// The text is what was written.
    Whole {
        /// Its check.
        check: u32,
        /// The check of the line before it, where it names one.
        after: Option<u32>,
    },
}

impl Seal {
    /// Of the text of a line.
    pub(crate) fn from_text(text: &[u8]) -> Self {
        let text = text.trim_ascii_end();
        let Some((content, check)) = text.strip_suffix(b"}").and_then(|text| pull(text, CHECK))
        else {
            return Self::None;
        };
        // As text, for a digit's case is a bit too.
        if format!("{:08x}", crc32(content)).as_bytes() != check {
            return Self::Broken;
        }
        let number = |digits: &[u8]| u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
        let after = pull(content, AFTER).and_then(|(_, after)| number(after));
        Self::Whole { check: crc32(content), after }
    }
}

/// A text without the last of its fields, and the digits that this holds.
fn pull<'a>(text: &'a [u8], open: &[u8]) -> Option<(&'a [u8], &'a [u8; DIGITS])> {
    let (before, digits) = text.strip_suffix(CLOSE)?.split_last_chunk()?;
    Some((before.strip_suffix(open)?, digits))
}

/// Follows the chain while a record is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Follower {
    end: Chain,
    /// Each line's own check and the one that it names: a line with both of another is its copy.
    seen: HashSet<(u32, u32)>,
    /// Lines before which others are missing, and lines that are copies, counted from 1.
    gaps: Vec<usize>,
    copies: Vec<usize>,
}

impl Follower {
    /// Takes the next line; false where it is a copy of an earlier one.
    pub(crate) fn take(&mut self, seal: Seal, number: usize) -> bool {
        let Seal::Whole { check, after } = seal else {
            self.end = Chain(None);
            return true;
        };
        if after.is_some_and(|after| !self.seen.insert((check, after))) {
            self.copies.push(number);
            return false;
        }
        if let (Some(after), Chain(Some(before))) = (after, self.end)
            && after != before
        {
            self.gaps.push(number);
        }
        self.end = Chain(Some(check));
        true
    }

    /// Where the next line is to be joined.
    pub(crate) fn end(&self) -> Chain {
        self.end
    }

    /// What is to be doubted, where not all lines are there as they were written.
    pub(crate) fn doubt(&self) -> Option<Warning> {
        let gaps = (!self.gaps.is_empty())
            .then(|| format!("lines are missing or out of order before {}", places(&self.gaps)));
        let copies = (!self.copies.is_empty())
            .then(|| format!("copies of other lines are left out: {}", places(&self.copies)));
        let text = [gaps, copies].into_iter().flatten().collect::<Vec<_>>().join("; ");
        let remedy = "restore the record from a copy, or measure again";
        let doubt = || Warning::new(Code::Altered, text.clone(), remedy);
        (!text.is_empty()).then(|| doubt().with_severity(Severity::Serious))
    }
}

/// `line 3, 17 and 4 more`.
fn places(lines: &[usize]) -> String {
    let named: Vec<String> = lines.iter().take(PLACES_NAMED).map(usize::to_string).collect();
    let more = lines.len().saturating_sub(PLACES_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("line {}{more}", named.join(", "))
}

/// Bit by bit: a record is a megabyte or two, read once.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let step = |sum: u32, byte: &u8| {
        let shift = |sum: u32, _| (sum >> 1) ^ (POLYNOMIAL & (sum & 1).wrapping_neg());
        (0..8).fold(sum ^ u32::from(*byte), shift)
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Warning};

    #[test]
    fn the_check_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    fn warning(text: &str) -> Line {
        Line::Warning(Warning::new(Code::Leftover, text, "a remedy"))
    }

    /// The texts of lines that follow each other.
    fn chained(count: usize) -> Vec<Vec<u8>> {
        let mut chain = Chain::default();
        let seal = |place: usize| {
            let (text, end) = chain.seal(&warning(&format!("text {place}"))).unwrap();
            chain = end;
            text
        };
        (0..count).map(seal).collect()
    }

    #[test]
    fn a_sealed_line_reads_back_and_no_flipped_bit_in_it_goes_unseen() {
        for text in chained(2) {
            let line = serde_json::from_slice::<Line>(&text).unwrap();
            assert!(matches!(Seal::from_text(&text), Seal::Whole { .. }));
            for bit in 0..(text.len() - 1) * 8 {
                let mut rotten = text.clone();
                rotten[bit / 8] ^= 1 << (bit % 8);
                let read = serde_json::from_slice::<Line>(&rotten);
                let is_seen = Seal::from_text(&rotten) != Seal::from_text(&text) || read.is_err();
                assert!(is_seen || read.unwrap() == line, "bit {bit} changed what the line says");
            }
        }
    }

    #[test]
    fn a_line_without_a_check_is_read_unchecked() {
        for text in ["", "{}", "}", "{\"kind\":\"end\"}\n", ",\"check\":\"x\"}", "\"}"] {
            assert_eq!(Seal::from_text(text.as_bytes()), Seal::None, "{text}");
        }
        assert_eq!(Seal::from_text(b"{,\"check\":\"00000000\"}"), Seal::Broken);
        let mut lines = chained(3);
        let unchecked = br#"{"kind":"warning"}"#;
        lines[1] = unchecked.to_vec();
        assert_eq!(followed(&lines).doubt(), None);
    }

    fn followed(lines: &[Vec<u8>]) -> Follower {
        let mut follower = Follower::default();
        for (index, text) in lines.iter().enumerate() {
            follower.take(Seal::from_text(text), index + 1);
        }
        follower
    }

    #[test]
    fn each_line_is_joined_to_the_one_before() {
        let lines = chained(9);
        let check = |doubt: &str, lines: &[Vec<u8>]| {
            let found = followed(lines).doubt().map(|warning| warning.text);
            assert_eq!(found.unwrap_or_default(), doubt);
        };
        check("", &lines);
        check("", &lines[..4]);
        let mut lost = lines.clone();
        lost.drain(3..5);
        check("lines are missing or out of order before line 4", &lost);
        let mut swapped = lines.clone();
        swapped.swap(2, 6);
        check("lines are missing or out of order before line 3, 4, 7, 8", &swapped);
        let mut doubled = lines.clone();
        doubled.insert(5, lines[4].clone());
        doubled.push(lines[2].clone());
        check("copies of other lines are left out: line 6, 11", &doubled);
        let mut mixed: Vec<Vec<u8>> = lines.iter().skip(1).step_by(2).cloned().collect();
        mixed.extend(lines.iter().step_by(2).skip(1).cloned());
        check("lines are missing or out of order before line 2, 3, 4, 5, 6 and 2 more", &mixed);
    }

    #[test]
    fn what_no_reader_would_take_is_not_written() {
        let map = crate::Map {
            datasheet: vec![],
            revision: 1,
            provisional: false,
            repeatability: None,
            elapsed_s: -1.0,
            log: vec![],
        };
        let error = Chain::default().seal(&Line::Map(map)).unwrap_err().to_string();
        assert_eq!(error, "elapsed_s is -1.0; it can be 0 or more, below 2^63");
    }
}
