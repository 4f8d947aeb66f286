//! Records of runs that write them nowhere.

use ioscape_model::{Header, Line, Record};

/// The record of a run that puts its lines, but for the header, into the journal that it is given.
pub fn recorded(
    header: &Header,
    run: impl FnOnce(&mut dyn FnMut(&Line) -> std::io::Result<()>),
) -> Record {
    let mut text = Vec::new();
    let mut put = |line: &Line| {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
        Ok(())
    };
    put(&Line::Header(header.clone())).unwrap();
    run(&mut put);
    Record::read(text.as_slice()).unwrap()
}
