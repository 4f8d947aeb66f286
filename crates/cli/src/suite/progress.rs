//! What people see while a suite runs, where stderr is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use ioscape_model::Target;
use ioscape_suite::Event;

use crate::output::one_line;

/// The moving line.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Says nothing where `quiet`.
    pub(super) fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(1);
            let style = ProgressStyle::with_template("{bar:24} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &Event<'_>, targets: &[Target]) {
        let Some(bar) = &self.bar else { return };
        let path = |target: u32| targets.get(target as usize).map(|t| one_line(&t.path));
        let path = |target: u32| path(target).unwrap_or_default();
        match event {
            Event::Preparing { benchmark, target } => {
                bar.set_message(format!("{benchmark}: laying out on {}", path(*target)));
            }
            Event::Trying { benchmark, target, repeat, made, of } => {
                bar.set_length(*of as u64);
                bar.set_position(*made as u64);
                let number = repeat + 1;
                bar.set_message(format!("{benchmark} on {}, repetition {number}", path(*target)));
            }
            Event::Made(_) => bar.inc(1),
        }
    }

    /// Takes the moving line away.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
