//! Where words leave: answers on stdout, messages on stderr. An answer that is lost is an error;
//! control characters out of paths and records reach no terminal.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Context;
use clap::builder::StyledStr;
use serde::Serialize;

/// Writes a line for people. It never goes to stdout, which belongs to answers. Where stderr cannot
/// be written there is nobody left to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", one_line(line));
}

/// Writes an answer, which is text or a JSON document.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn answer(text: &str) -> anyhow::Result<()> {
    raw(format!("{}\n", escaped(text.trim_end(), colours(&io::stdout()))).as_bytes())
}

/// Version of the JSON documents that commands answer with. Fields may be added under the same
/// version; one that goes, or means something else, makes a new one.
const ANSWER_VERSION: u32 = 1;

/// A document with its version in front.
#[derive(Serialize)]
struct Versioned<'a, T> {
    format_version: u32,
    #[serde(flatten)]
    document: &'a T,
}

/// An answer as a JSON document that says its version.
///
/// # Errors
/// When it is no object.
pub(crate) fn json(document: &impl Serialize) -> anyhow::Result<String> {
    let versioned = Versioned { format_version: ANSWER_VERSION, document };
    Ok(serde_json::to_string_pretty(&versioned)?)
}

/// Writes an answer that other programs read, byte for byte.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn raw(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    arrived(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Judges how writing to stdout went. A reader that has gone away (`| head`) is no error of ours.
///
/// # Errors
/// Every other failure.
pub(crate) fn arrived(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the answer to stdout"),
    }
}

/// Writes what is wrong with the flags, which takes several lines.
pub(crate) fn complain(text: &StyledStr) {
    let stderr = io::stderr();
    let shown = escaped(styled(text, &stderr).trim_end(), colours(&stderr));
    let _ = writeln!(stderr.lock(), "{shown}");
}

/// Help or a complaint as it may go to this stream.
pub(crate) fn styled(text: &StyledStr, stream: &impl IsTerminal) -> String {
    match colours(stream) {
        Colours::Kept => text.ansi().to_string(),
        Colours::Escaped => text.to_string(),
    }
}

/// Whether an answer may have colours.
pub(crate) fn is_colourful() -> bool {
    colours(&io::stdout()) == Colours::Kept
}

fn colours(stream: &impl IsTerminal) -> Colours {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let plain = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if stream.is_terminal() && !refused && !plain { Colours::Kept } else { Colours::Escaped }
}

/// Text for one line: a path that holds the end of a line does not end this one.
pub(crate) fn one_line(text: &str) -> String {
    escaped(text, Colours::Escaped).replace('\n', "\\u000a")
}

/// What becomes of the sequences that set colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colours {
    /// They stay; what moves the cursor or does anything else is written out all the same.
    Kept,
    /// They are written out like every other control character.
    Escaped,
}

/// Text in which each control character but the end of a line is written out as `\u001b`, which
/// leaves a JSON document what it was.
fn escaped(text: &str, colours: Colours) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let kept = match colours {
            Colours::Kept => colour_length(rest),
            Colours::Escaped => 0,
        };
        let length = if kept > 0 { kept } else { c.len_utf8() };
        if kept == 0 && c.is_control() && c != '\n' {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    shown
}

/// Bytes of the sequence at the beginning of `text` that sets a colour or a weight; 0 where there
/// is none.
fn colour_length(text: &str) -> usize {
    let Some(inside) = text.strip_prefix("\u{1b}[") else { return 0 };
    let parameters = inside.bytes().take_while(|b| b.is_ascii_digit() || *b == b';').count();
    if inside[parameters..].starts_with('m') { parameters + 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out_and_colours_stay_where_they_are_wanted() {
        let check = |text: &str, colours, shown: &str| assert_eq!(escaped(text, colours), shown);
        check(
            "a\u{1b}[2Jb\r\u{7}\nc\u{9b}1m",
            Colours::Escaped,
            "a\\u001b[2Jb\\u000d\\u0007\nc\\u009b1m",
        );
        check("\u{1b}[1;31mü\u{1b}[0m", Colours::Kept, "\u{1b}[1;31mü\u{1b}[0m");
        check("\u{1b}[1;31mü", Colours::Escaped, "\\u001b[1;31mü");
        check(
            "\u{1b}[2J\u{1b}]0;x\u{7}\u{1b}[1",
            Colours::Kept,
            "\\u001b[2J\\u001b]0;x\\u0007\\u001b[1",
        );
        assert_eq!(one_line("a\nb\tc"), "a\\u000ab\\u0009c");
    }

    #[test]
    fn a_document_says_the_same_when_its_control_characters_are_written_out() {
        let value = serde_json::json!({ "path": "a\u{1b}[2J\u{7f}\u{9b}\n\t" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = escaped(&text, Colours::Escaped);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn only_a_reader_that_has_gone_away_is_no_error() {
        let lost = |kind| arrived(Err(io::Error::from(kind))).is_err();
        assert!(!lost(ErrorKind::BrokenPipe));
        assert!(lost(ErrorKind::StorageFull) && lost(ErrorKind::WouldBlock));
    }
}
