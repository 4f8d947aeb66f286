//! The predictor in the page: a form over the fitted model, which the page's own script evaluates.
//! Nothing is predicted here.

use askama::Template;
use ioscape_model::Workload;
use ioscape_model::portable::PortablePredictor;
use ioscape_model::units::show_size;

use super::reproduce::shell_word;
use super::script_json;

const PREDICTOR: &str = include_str!("../../assets/predictor.js");
const FORM: &str = include_str!("../../assets/predictor-form.js");

/// A fitted model for the page.
#[derive(Clone, Copy, Debug)]
pub struct PagePredictor<'a> {
    /// The model.
    pub model: &'a PortablePredictor,
    /// The record's file name, for the command that predicts the same.
    pub record: &'a str,
}

/// The section of the page.
#[derive(Template)]
#[template(path = "predictor.html")]
pub(crate) struct PredictorSection {
    record: String,
    knobs: [Knob; 5],
    model: String,
    predictor: &'static str,
    form: &'static str,
}

/// A parameter that can be set.
struct Knob {
    key: &'static str,
    meaning: &'static str,
    /// The keyboard that a phone shows.
    inputmode: &'static str,
    /// What it is set to at first.
    value: String,
}

impl PredictorSection {
    pub(crate) fn of(page: &PagePredictor<'_>) -> Self {
        let usual = Workload::default();
        // Sizes are typed without a blank, as the command line takes them.
        let size = |key: &str, bytes: u64| {
            let range = page.model.measured.iter().find(|range| range.key == key);
            let inside = range.map_or(bytes, |range| bytes.min(range.max).max(range.min));
            show_size(inside as f64).replace(' ', "")
        };
        let knob = |key, meaning, inputmode, value| Knob { key, meaning, inputmode, value };
        Self {
            record: shell_word(page.record),
            knobs: [
                knob(
                    "unique_bytes",
                    "data touched, all processes together",
                    "text",
                    size("unique_bytes", usual.unique_bytes),
                ),
                knob("size_mean", "mean request size", "text", size("size_mean", usual.size_mean)),
                knob("read_frac", "share of reads", "decimal", usual.read_frac.to_string()),
                knob(
                    "seq_frac",
                    "share of sequential requests",
                    "decimal",
                    usual.seq_frac.to_string(),
                ),
                knob("process_num", "processes", "numeric", usual.process_num.to_string()),
            ],
            model: script_json(page.model),
            predictor: PREDICTOR,
            form: FORM,
        }
    }
}
