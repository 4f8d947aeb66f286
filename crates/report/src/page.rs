//! What all pages are made with: the style sheet, the scripts, graphs and their data.

use askama::Template;
use serde::Serialize;

use crate::chart::{Chart, Table};

pub(crate) const STYLE: &str =
    concat!(include_str!("../assets/report.css"), include_str!("../assets/predictor.css"));
pub(crate) const SCRIPT: &str = include_str!("../assets/report.js");
pub(crate) const PLOT: &str = include_str!("../assets/plot.min.js");
pub(crate) const PLOT_LICENSES: &str = include_str!("../assets/plot.LICENSES.txt");

/// A graph with its words and its table.
#[derive(Template)]
#[template(path = "figure.html")]
pub(crate) struct Figure {
    pub(crate) chart: Chart,
    table: Table,
    /// Class of the style sheet: how much room it gets.
    shape: &'static str,
}

impl Figure {
    pub(crate) fn new(chart: Chart, shape: &'static str) -> Self {
        Self { table: chart.table(), chart, shape }
    }
}

/// A script without indentation, comment lines and empty lines: it is a part of every page. No script holds text of
/// several lines.
pub(crate) fn dense(script: &str) -> String {
    let lines = script.lines().map(str::trim_start);
    let code = lines.filter(|line| !line.is_empty() && !line.starts_with("// "));
    code.flat_map(|line| [line, "\n"]).collect()
}

/// JSON that may stand inside a script element: a `<` in a string could end the element.
pub(crate) fn script_json<T: Serialize + ?Sized>(data: &T) -> String {
    let json = serde_json::to_string(data).expect("it is plain data");
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_script_keeps_its_lines_of_code() {
        assert_eq!(dense("// What.\nif (a) {\n  b(); // why\n\n}\n"), "if (a) {\nb(); // why\n}\n");
    }

    #[test]
    fn a_string_cannot_end_the_script_and_reads_back_whole() {
        let text = "</script><b>&\"'";
        let json = script_json(text);
        assert!(!json.contains('<'), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
