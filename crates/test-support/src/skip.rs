//! Tests that cannot check anything on this machine: a test that checked nothing must not look like
//! one that passed.

use std::fmt::Display;
use std::fs::File;
use std::io::Write as _;

/// Names a file to which a line is added for every skip; `.ci/run` sets it and counts them.
const FILE: &str = "IOSCAPE_SKIPPED";

/// Says on stderr, past the test harness, that the test of this thread, or a part of it, was skipped.
pub fn skipped(why: impl Display) {
    let thread = std::thread::current();
    let line = format!("{}: {why}", thread.name().unwrap_or_default()).replace('\n', " ");
    writeln!(std::io::stderr(), "\nSKIPPED {line}").ok();
    if let Some(path) = std::env::var_os(FILE) {
        let file = File::options().append(true).create(true).open(&path);
        let mut file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // At once: other tests add lines meanwhile.
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}
