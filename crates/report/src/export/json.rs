//! The whole record as one JSON document, grouped by kind. Every object in it is a line of the
//! record, `kind` included, so that the schema of a line describes it.

use ioscape_model::{Line, Record};
use serde::Serialize;

/// The schema of the objects in the document.
const SCHEMA: &str = "docs/record.schema.json";

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    header: Line,
    points: Vec<Line>,
    estimates: Vec<Line>,
    borders: Vec<Line>,
    regions: Vec<Line>,
    models: Vec<Line>,
    findings: Vec<Line>,
    warnings: Vec<Line>,
    map: Option<Line>,
    resumed: Vec<Line>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elements: Vec<Line>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sustained: Vec<Line>,
    suite: Option<Line>,
    trials: Vec<Line>,
    scores: Vec<Line>,
    contrasts: Vec<Line>,
    end: Option<Line>,
}

/// The record as one document.
pub fn json(record: &Record) -> String {
    let document = Document {
        schema: SCHEMA,
        header: Line::Header(record.header.clone()),
        points: lines(&record.points, Line::Point),
        estimates: lines(&record.estimates, Line::Estimate),
        borders: lines(&record.borders, Line::Border),
        regions: lines(&record.regions, Line::Region),
        models: lines(&record.models, Line::Model),
        findings: lines(&record.findings, Line::Finding),
        warnings: lines(&record.warnings, Line::Warning),
        map: record.map.clone().map(Line::Map),
        resumed: lines(&record.resumed, Line::Resumed),
        elements: lines(&record.elements, Line::Element),
        sustained: lines(&record.sustained, Line::Sustained),
        suite: record.suite.suite.clone().map(Line::Suite),
        trials: lines(&record.suite.trials, Line::Trial),
        scores: lines(&record.suite.scores, Line::Score),
        contrasts: lines(&record.suite.contrasts, Line::Contrast),
        end: record.end.clone().map(Line::End),
    };
    let text = serde_json::to_string_pretty(&document).expect("a record is plain data");
    text + "\n"
}

fn lines<T: Clone>(items: &[T], line: fn(T) -> Line) -> Vec<Line> {
    items.iter().cloned().map(line).collect()
}
