//! Renders a record: `cargo run -p ioscape-report --example render RECORD > report.html`.
//! The terminal summary goes to stderr.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Write, stderr, stdout};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: render RECORD > report.html")?;
    let record = ioscape_model::Record::read(BufReader::new(File::open(&path)?))?;
    let page = ioscape_report::ReportPage::from_record(&record);
    stdout().write_all(ioscape_report::html(&page).as_bytes())?;
    let summary = ioscape_report::Summary { record: &record, conclusion: None, file: &path };
    stderr().write_all(ioscape_report::text(&summary, 80, false).as_bytes())?;
    Ok(())
}
