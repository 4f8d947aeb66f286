//! What people see on stderr while it runs, where that is a terminal: what is being measured, how
//! many points there are, how much time is left.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use ioscape_experiment::explore::Event;
use ioscape_experiment::measure;
use ioscape_model::units::{show_bytes, show_rate, show_seconds};
use ioscape_model::{Role, Workload};

/// Progress of a run.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    budget_s: f64,
    head: String,
}

impl Progress {
    /// For a run of `budget_s`; says nothing where `quiet`.
    pub(crate) fn new(budget_s: f64, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && terminal).then(|| {
            let bar = ProgressBar::new(1000);
            let style = ProgressStyle::with_template("{bar:24} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, budget_s, head: String::new() }
    }

    /// Shows an event.
    pub(crate) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Visit { visit, points, elapsed_s } => {
                let left = show_seconds((self.budget_s - elapsed_s).max(0.0));
                self.head = format!("{points} points, {left} left: {}", what(visit.role));
                let text = format!("{}, {}", self.head, brief(&visit.workload));
                self.say(&text, *elapsed_s);
            }
            Event::Measuring(event) => self.measuring(event),
            Event::Point(_) => {}
            Event::Map { revision, landscape } => {
                let borders: Vec<String> = landscape
                    .borders
                    .iter()
                    .map(|border| show_bytes(border.unique_bytes.capacity))
                    .collect();
                let found = if borders.is_empty() {
                    "no border so far".to_owned()
                } else {
                    format!("borders at {}", borders.join(", "))
                };
                self.line(&format!("map {revision}: {} regions, {found}", landscape.regions.len()));
            }
        }
    }

    fn measuring(&self, event: &measure::Event) {
        let Some(bar) = &self.bar else { return };
        if let measure::Event::Window { throughput_bytes_per_s, .. } = event {
            bar.set_message(format!("{}, {}", self.head, show_rate(*throughput_bytes_per_s)));
        }
    }

    fn say(&mut self, text: &str, elapsed_s: f64) {
        if let Some(bar) = &self.bar {
            bar.set_position((elapsed_s / self.budget_s * 1000.0) as u64);
            bar.set_message(text.to_owned());
        }
    }

    /// A line that stays.
    fn line(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.println(text);
        }
    }

    /// Takes the moving line away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn what(role: Role) -> &'static str {
    match role {
        Role::Sweep => "unique_bytes curve",
        Role::ReadBorder => "read border",
        Role::WriteBorder => "write border",
        Role::Family => "graphs",
        Role::Calibration => "filling in",
        Role::Refinement => "refining",
        Role::Validation => "validating",
        Role::Canary => "canary",
        _ => "measuring",
    }
}

fn brief(work: &Workload) -> String {
    format!(
        "{} by {}, {:.0} % reads, {:.0} % sequential, {} proc",
        show_bytes(work.unique_bytes as f64),
        show_bytes(work.size_mean as f64),
        work.read_frac * 100.0,
        work.seq_frac * 100.0,
        work.process_num
    )
}
