//! The page of classic benchmarks: tables only, one file, nothing is loaded.

use askama::Template;
use ioscape_model::Record;

use super::{Section, doubts_of_run, extent, sections};
use crate::facts::{self, Fact};
use crate::mark::page_mark;
use crate::page::STYLE;

/// Renders the page.
pub fn suite_html(record: &Record) -> String {
    let page = Page {
        mark: page_mark([record]),
        style: STYLE,
        path: &record.header.target.path,
        storage: facts::storage(&record.header),
        facts: facts::first_facts(&record.header),
        extent: extent(&record.suite),
        sections: sections(&record.suite),
        doubts: doubts_of_run(record),
        environment: facts::environment(&record.header),
        tool: format!("{} {}", record.header.tool.name, record.header.tool.version),
        start_time: &record.header.start_time,
    };
    page.render().expect("the template writes into a string")
}

#[derive(Template)]
#[template(path = "suite.html")]
struct Page<'a> {
    mark: String,
    style: &'static str,
    path: &'a str,
    storage: String,
    facts: Vec<Fact>,
    extent: String,
    sections: Vec<Section>,
    doubts: Vec<String>,
    environment: Vec<Fact>,
    tool: String,
    start_time: &'a str,
}
