//! The page of a validation: one file, nothing is loaded, opens from disk. The report of the record
//! shows the same graphs and tables as its prediction check.

use askama::Template;

use super::{Row, ValidationPage, cost, extent, graphs, rows, sentences};
use crate::chart::Chart;
use crate::doubts::{self, Doubt};
use crate::facts::{self, Fact};
use crate::mark::page_mark;
use crate::page::{Figure, PLOT, PLOT_LICENSES, SCRIPT, STYLE, script_json};
use crate::sample::Samples;

/// Predictions held against measurements: what the page of a validation and the report show alike.
pub(crate) struct Check {
    pub(crate) scatter: Figure,
    pub(crate) extent: String,
    pub(crate) sentences: Vec<String>,
    pub(crate) errors: Errors,
}

/// The tables and graphs of the errors.
#[derive(Template)]
#[template(path = "errors.html")]
pub(crate) struct Errors {
    rows: Vec<Row>,
    dropped: u64,
    cost: String,
    distribution: Figure,
    parameters: Vec<Figure>,
}

impl Check {
    /// Arranges what is known.
    pub(crate) fn from_page(page: &ValidationPage<'_>) -> Self {
        let validation = page.validation;
        let parameters = graphs::over_parameters(validation).into_iter();
        Self {
            scatter: Figure::new(graphs::scatter(page), "landscape"),
            extent: extent(validation),
            sentences: sentences(page),
            errors: Errors {
                rows: rows(validation),
                dropped: validation.models.values().map(|errors| errors.dropped).max().unwrap_or(0),
                cost: cost(page),
                distribution: Figure::new(graphs::distribution(validation), "wide"),
                parameters: parameters.map(|chart| Figure::new(chart, "small")).collect(),
            },
        }
    }

    /// All of its graphs.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &Figure> {
        let errors = &self.errors;
        [&self.scatter, &errors.distribution].into_iter().chain(&errors.parameters)
    }

    /// Whether nothing was measured twice.
    fn is_empty(&self) -> bool {
        self.errors.rows.len() < 2
    }
}

/// Renders the page.
pub fn validation_html(page: &ValidationPage<'_>) -> String {
    let (record, trial, validation) = (page.record, page.trial, page.validation);
    let check = Check::from_page(page);
    let charts: Vec<&Chart> = check.figures().map(|figure| &figure.chart).collect();
    let data = script_json(&charts);
    let page = Page {
        mark: page_mark([trial]),
        style: STYLE,
        script: SCRIPT,
        plot: PLOT,
        plot_licenses: PLOT_LICENSES,
        data,
        path: &trial.header.target.path,
        storage: facts::storage(&trial.header),
        facts: facts::first_facts(&trial.header),
        record: &validation.record,
        doubts: doubts::doubts(trial, &Samples::from_record(trial)),
        recorded: format!("seed {}, {}", record.header.seed, record.header.start_time),
        tool: format!("{} {}", trial.header.tool.name, trial.header.tool.version),
        start_time: &trial.header.start_time,
        check,
    };
    page.render().expect("the template writes into a string")
}

#[derive(Template)]
#[template(path = "validation.html")]
struct Page<'a> {
    mark: String,
    style: &'static str,
    script: &'static str,
    plot: &'static str,
    plot_licenses: &'static str,
    data: String,
    path: &'a str,
    storage: String,
    facts: Vec<Fact>,
    record: &'a str,
    doubts: Vec<Doubt>,
    recorded: String,
    tool: String,
    start_time: &'a str,
    check: Check,
}
