//! A line on the terminal while processes are recorded that were there before: what they did in the
//! last second.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use ioscape_model::units::{show_rate, show_seconds, show_size, three_digits};
use ioscape_recorder::Progress;

/// How often the line changes, seconds.
const EVERY_S: f64 = 1.0;

/// The line; nothing where stderr is no terminal. Dropped, it goes away.
pub(super) struct Live {
    bar: Option<ProgressBar>,
    before: Progress,
}

impl Live {
    pub(super) fn new(quiet: bool) -> Self {
        let moves = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let bar = (!quiet && moves && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        Self { bar, before: Progress::default() }
    }

    /// Shows what came since it last did, once a second.
    pub(super) fn show(&mut self, now: &Progress) {
        let Some(bar) = &self.bar else { return };
        if now.elapsed_s - self.before.elapsed_s < EVERY_S {
            return;
        }
        bar.set_message(line(&self.before, now));
        bar.tick();
        self.before = *now;
    }
}

/// Rates between two moments, those of most use first: a narrow terminal cuts the line.
fn line(before: &Progress, now: &Progress) -> String {
    let seconds = (now.elapsed_s - before.elapsed_s).max(1e-9);
    let rate = |after: u64, before: u64| after.saturating_sub(before) as f64 / seconds;
    let moved = |(bytes, bytes_before): (u64, u64), (calls, calls_before): (u64, u64)| {
        let bytes_per_s = rate(bytes, bytes_before);
        let calls_per_s = rate(calls, calls_before);
        if calls_per_s > 0.0 {
            format!("{} in {}", show_rate(bytes_per_s), show_size(bytes_per_s / calls_per_s))
        } else {
            "nothing".to_owned()
        }
    };
    let lost = if now.lost > 0 { format!(" · {} lost", now.lost) } else { String::new() };
    format!(
        "{} · read {} · written {} · {} syncs/s{lost} · {} calls/s · {} processes",
        show_seconds(now.elapsed_s),
        moved((now.read_bytes, before.read_bytes), (now.reads, before.reads)),
        moved((now.written_bytes, before.written_bytes), (now.writes, before.writes)),
        three_digits(rate(now.syncs, before.syncs)),
        three_digits(rate(now.calls, before.calls)),
        now.processes,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_rates_and_sizes_since_the_one_before() {
        let before = Progress { elapsed_s: 1.0, calls: 100, ..Progress::default() };
        let now = Progress {
            elapsed_s: 3.0,
            calls: 1100,
            reads: 20,
            read_bytes: 20 * 8192,
            syncs: 4,
            processes: 2,
            ..before
        };
        let line = line(&before, &now);
        for part in ["2 processes", "500 calls/s", "in 8 KiB", "written nothing", "2.00 syncs/s"] {
            assert!(line.contains(part), "{line}: no {part}");
        }
        assert!(!line.contains("lost"), "{line}");
    }
}
