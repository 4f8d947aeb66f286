//! What a record looks like: one HTML page that opens from disk, and a summary for the terminal.
//!
//! Pure functions of the record: no clock, no host name, no file is opened; the same record gives
//! the same page, byte for byte. The words and figures are decided here in Rust (`landscape`,
//! `family`, `summary`, `sayings`, `doubts`, `course`, `facts`); `html` and `text` only arrange
//! them. A graph is a `chart::Chart`, which the page's script draws, the table below it lists and
//! the terminal plots in characters, so that the three cannot disagree.

mod answers;
mod application;
mod chart;
mod comparison;
mod costs;
mod course;
mod datasheet;
mod doubts;
pub mod export;
mod facts;
mod family;
mod figures;
mod glossary;
mod history;
mod hosts;
mod html;
mod landscape;
mod mark;
mod page;
mod rates;
mod replays;
mod responses;
mod sample;
mod sayings;
mod suite;
mod summary;
mod text;
mod validation;
mod vector;

pub use answers::Answers;
pub use application::application_html;
pub use comparison::{ComparedSystem, ComparisonPage, comparison_html};
pub use datasheet::datasheet_line;
pub use doubts::bearing_doubts;
pub use history::page::{history_html, history_mark};
pub use history::{history_check_markdown, history_openmetrics};
pub use html::{PagePredictor, ReportPage, html};
pub use mark::page_mark;
pub use suite::{page::suite_html, show as suite_figure};
pub use text::{
    ApplicationPrediction, PredictionBasis, Summary, TimePart, WhatIf, application_ranking_text,
    application_text, application_time_text, caches_text, checkup_text, comparison_text,
    estimate_text, history_check_text, history_text, predictions_text, suite_text, text,
    validation_text, wrap,
};
pub use validation::{ValidationPage, page::validation_html};
