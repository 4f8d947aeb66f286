//! A browser, for tests of pages.

use std::process::Command;

use crate::skipped;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The name of the first browser that answers; skips aloud where there is none.
pub fn browser() -> Option<&'static str> {
    let answers = |name: &&str| {
        let asked = Command::new(name).arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    };
    let found = NAMES.into_iter().find(answers);
    if found.is_none() {
        skipped("no chromium on this machine");
    }
    found
}
