//! Short ways to read a fixture.

use ioscape_trace::import::{Error, Format, Input, Summary, import};
use ioscape_trace::{Collected, Event, Op};

/// `(start µs, operation, path, offset, length)` of each event.
pub(crate) fn rows(collected: &Collected) -> Vec<(u64, Op, &str, u64, u64)> {
    let row = |event: &Event| {
        let place = (event.offset, event.length);
        (event.start_ns / 1000, event.op, collected.path(event.file), place.0, place.1)
    };
    collected.events.iter().map(row).collect()
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn read(format: &Format, files: &[&[u8]]) -> Result<(Collected, Summary), Error> {
    let mut collected = Collected::default();
    let inputs = files
        .iter()
        .enumerate()
        .map(|(number, bytes)| Input { name: format!("file {number}"), bytes: Box::new(*bytes) });
    let summary = import(format, inputs.collect(), &mut collected)?;
    assert_eq!(summary.events, collected.events.len() as u64);
    assert_eq!(collected.info.as_ref(), Some(&summary.info));
    assert_eq!(collected.events.iter().map(|event| event.start_ns).min(), Some(0));
    Ok((collected, summary))
}

/// A fixture without a line that cannot be read.
pub(crate) fn clean(format: &Format, name: &str) -> Collected {
    let (collected, summary) = read(format, &[&fixture(name)]).expect("it is of the format");
    assert_eq!(summary.malformed, 0, "{name}: {:?}", summary.first_malformed);
    collected
}
