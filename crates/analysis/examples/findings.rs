//! Draws the findings of a record anew: `cargo run -p ioscape-analysis --example findings RECORD`.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Write, stdout};

use ioscape_analysis::finding::{Evidence, findings};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: findings RECORD")?;
    let record = ioscape_model::Record::read(BufReader::new(File::open(path)?))?;
    for finding in findings(&Evidence::from_record(&record), 0) {
        writeln!(stdout(), "{}: {}", ioscape_model::word(finding.code), finding.text)?;
    }
    Ok(())
}
