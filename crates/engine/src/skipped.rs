//! For tests that cannot check anything here: says so where it is seen.

use std::io::Write as _;

/// Straight to stderr, which the test harness does not capture: a test that checked nothing must
/// not look like one that passed.
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    writeln!(std::io::stderr(), "\nSKIPPED {}: {why}", thread.name().unwrap_or_default()).ok();
}
