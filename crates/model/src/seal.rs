//! A line of a record with a check over its own text, so that a bit that rotted in a number is
//! noticed and not believed.
//!
//! The check is the last field, `"check":"1c291ca3"`: the CRC-32 (IEEE 802.3) of every byte of the
//! line before its comma. Readers that do not know it see one unknown field more. A line without it
//! is read unchecked: records of before it existed, and lines from which somebody took it.

use crate::Line;

const OPEN: &[u8] = b",\"check\":\"";
const CLOSE: &[u8] = b"\"}";
const DIGITS: usize = 8;

/// The text of a line, its check and the newline included.
///
/// # Errors
/// When the line cannot be JSON.
pub fn sealed(line: &Line) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.pop(); // the brace
    let check = crc32(&text);
    text.extend_from_slice(OPEN);
    text.extend_from_slice(format!("{check:08x}").as_bytes());
    text.extend_from_slice(CLOSE);
    text.push(b'\n');
    Ok(text)
}

/// Whether the text of a line is what its check says; so is one without a check.
pub(crate) fn holds(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let Some(before) = text.strip_suffix(CLOSE) else { return true };
    let Some((before, digits)) = before.split_last_chunk::<DIGITS>() else { return true };
    let Some(content) = before.strip_suffix(OPEN) else { return true };
    format!("{:08x}", crc32(content)).as_bytes() == digits
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

    #[test]
    fn a_sealed_line_reads_back_and_no_flipped_bit_in_it_goes_unseen() {
        let line = Line::Warning(Warning::new(Code::Leftover, "a text", "a remedy"));
        let text = sealed(&line).unwrap();
        assert!(holds(&text));
        assert_eq!(serde_json::from_slice::<Line>(&text).unwrap(), line);
        for bit in 0..(text.len() - 1) * 8 {
            let mut rotten = text.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            let read = serde_json::from_slice::<Line>(&rotten);
            let is_seen = !holds(&rotten) || read.is_err();
            assert!(is_seen || read.unwrap() == line, "bit {bit} changed what the line says");
        }
    }

    #[test]
    fn a_line_without_a_check_is_read_unchecked() {
        for text in ["", "{}", "}", "{\"kind\":\"end\"}\n", ",\"check\":\"x\"}", "\"}"] {
            assert!(holds(text.as_bytes()), "{text}");
        }
        assert!(!holds(b"{,\"check\":\"00000000\"}"));
    }
}
