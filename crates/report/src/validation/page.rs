//! The page of a validation: one file, nothing is loaded, opens from disk.

use askama::Template;

use super::{Row, ValidationPage, cost, extent, graphs, rows, sentences};
use crate::chart::Chart;
use crate::doubts::{self, Doubt};
use crate::facts::{self, Fact};
use crate::html::{Figure, PLOT, PLOT_LICENSES, SCRIPT, STYLE, script_json};
use crate::sample::Samples;

/// Renders the page.
pub fn validation_html(page: &ValidationPage<'_>) -> String {
    let (record, trial, validation) = (page.record, page.trial, page.validation);
    let scatter = graphs::scatter(page);
    let distribution = graphs::distribution(validation);
    let parameters = graphs::over_parameters(validation);
    let all: Vec<&Chart> = [&scatter, &distribution].into_iter().chain(&parameters).collect();
    let data = script_json(&all);
    let page = Page {
        style: STYLE,
        script: SCRIPT,
        plot: PLOT,
        plot_licenses: PLOT_LICENSES,
        data,
        path: &trial.header.target.path,
        storage: facts::storage(&trial.header),
        facts: facts::first_facts(&trial.header),
        record: &validation.record,
        extent: extent(validation),
        rows: rows(validation),
        dropped: validation.models.values().map(|errors| errors.dropped).max().unwrap_or(0),
        cost: cost(page),
        sentences: sentences(page),
        doubts: doubts::doubts(trial, &Samples::of(trial)),
        recorded: format!("seed {}, {}", record.header.seed, record.header.start_time),
        tool: format!("{} {}", trial.header.tool.name, trial.header.tool.version),
        start_time: &trial.header.start_time,
        scatter: Figure::new(scatter, "landscape"),
        distribution: Figure::new(distribution, "wide"),
        parameters: parameters.into_iter().map(|chart| Figure::new(chart, "small")).collect(),
    };
    page.render().expect("the template writes into a string")
}

#[derive(Template)]
#[template(path = "validation.html")]
struct Page<'a> {
    style: &'static str,
    script: &'static str,
    plot: &'static str,
    plot_licenses: &'static str,
    data: String,
    path: &'a str,
    storage: String,
    facts: Vec<Fact>,
    record: &'a str,
    extent: String,
    rows: Vec<Row>,
    dropped: u64,
    cost: String,
    sentences: Vec<String>,
    doubts: Vec<Doubt>,
    recorded: String,
    tool: String,
    start_time: &'a str,
    scatter: Figure,
    distribution: Figure,
    parameters: Vec<Figure>,
}
