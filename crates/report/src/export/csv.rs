//! CSV as RFC 4180 has it: a line of names, commas, quotes where they are needed. What is not
//! known is empty.

use super::table::{Table, Values};

impl Table {
    /// The table as CSV.
    pub fn csv(&self) -> String {
        let names = self.columns.iter().map(|column| quoted(&column.name));
        let mut text = names.collect::<Vec<_>>().join(",") + "\n";
        for row in 0..self.rows {
            let fields = self.columns.iter().map(|column| field(&column.values, row));
            text.push_str(&fields.collect::<Vec<_>>().join(","));
            text.push('\n');
        }
        text
    }
}

fn field(values: &Values, row: usize) -> String {
    match values {
        Values::Integer(all) => all[row].map(|value| value.to_string()),
        // With a point or an exponent, so that a column of whole numbers stays one of reals.
        Values::Real(all) => all[row].map(|value| format!("{value:?}")),
        Values::Truth(all) => all[row].map(|value| value.to_string()),
        Values::Text(all) => all[row].as_deref().map(quoted),
    }
    .unwrap_or_default()
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_is_quoted() {
        assert_eq!(quoted("plain text"), "plain text");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"yes\"\n"), "\"say \"\"yes\"\"\n\"");
    }
}
