//! Colour on a terminal, or none.

use crate::chart::Ink;

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Bold,
    Dim,
    Warning,
    Serious,
    Curve(Ink),
}

/// Knows whether to use colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    color: bool,
}

impl Paint {
    pub(super) fn new(color: bool) -> Self {
        Self { color }
    }

    /// The text with its escape sequences.
    pub(super) fn styled(self, text: &str, style: Style) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Warning => "33",
            Style::Serious => "1;31",
            // The nearest of the 256 colours to Okabe and Ito's.
            Style::Curve(Ink::Read) => "38;5;39",
            Style::Curve(Ink::Write) => "38;5;208",
            Style::Curve(Ink::Mixed) => "38;5;36",
            Style::Curve(_) => "38;5;245",
        };
        if self.color && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
