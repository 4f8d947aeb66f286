//! The predictor in the page: a form, the fitted model, and the module of WebAssembly that predicts
//! from it. Nothing is predicted here.

use askama::Template;
use ioscape_model::units::show_size;
use ioscape_model::{Range, Ranges, Workload};

use super::reproduce::shell_word;
use super::script_gzip;

const MODULE: &[u8] = include_bytes!("../../assets/predictor.wasm");
const FORM: &str = include_str!("../../assets/predictor.js");

/// A fitted model for the page.
#[derive(Clone, Copy, Debug)]
pub struct PagePredictor<'a> {
    /// The model, packed as the module loads it.
    pub model: &'a [u8],
    /// How far was measured: what the sliders span.
    pub measured: &'a Ranges,
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
    module: String,
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
    /// What was measured; none of a fraction.
    range: Option<Range>,
}

impl PredictorSection {
    pub(crate) fn new(page: &PagePredictor<'_>) -> Self {
        let usual = Workload::default();
        let Ranges { unique_bytes, size_mean, process_num, .. } = *page.measured;
        // Sizes are typed without a blank, as the command line takes them.
        let size = |key, meaning, range: Range, bytes: u64| {
            let inside = bytes.min(range.max).max(range.min);
            let value = show_size(inside as f64).replace(' ', "");
            Knob { key, meaning, inputmode: "text", value, range: Some(range) }
        };
        let fraction = |key, meaning, value: f64| Knob {
            key,
            meaning,
            inputmode: "decimal",
            value: value.to_string(),
            range: None,
        };
        let touched = "data touched, all processes together";
        Self {
            record: shell_word(page.record),
            knobs: [
                size("unique_bytes", touched, unique_bytes, usual.unique_bytes),
                size("size_mean", "mean request size", size_mean, usual.size_mean),
                fraction("read_frac", "share of reads", usual.read_frac),
                fraction("seq_frac", "share of sequential requests", usual.seq_frac),
                Knob {
                    key: "process_num",
                    meaning: "processes",
                    inputmode: "numeric",
                    value: usual.process_num.to_string(),
                    range: Some(process_num),
                },
            ],
            model: script_gzip(page.model),
            module: script_gzip(MODULE),
            form: FORM,
        }
    }
}
