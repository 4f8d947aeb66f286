//! What people see on stderr while it runs, where that is a terminal: how far it is and how long it
//! will still take, what is being measured and why, what comes out so far. Two lines that move, and
//! a line that stays for each map.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use ioscape_experiment::Landscape;
use ioscape_experiment::explore;
use ioscape_experiment::measure::Event;
use ioscape_experiment::sustain::Sustaining;
use ioscape_model::units::{show_bytes, show_percent, show_rate, show_seconds, show_size};
use ioscape_model::{Curve, Role, Workload};

use crate::output::say;

/// Steps of the bar.
const STEPS: u64 = 1000;

/// What ends it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// A budget, seconds.
    Seconds(f64),
    /// So many visits, which are expected to take so many seconds together; 0 where nobody knows.
    Visits { count: usize, forecast_s: f64 },
}

/// Progress of something that goes round within a budget: one line that moves.
pub(crate) struct Steps {
    bar: Option<ProgressBar>,
    budget_s: f64,
}

impl Steps {
    /// Says nothing where `quiet`, and in a pipe.
    pub(crate) fn new(budget_s: f64, quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = shown.then(|| {
            let bar = ProgressBar::new(STEPS);
            let style = ProgressStyle::with_template("{bar:20} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, budget_s }
    }

    /// Where it is.
    pub(crate) fn show(&mut self, elapsed_s: f64, round: usize, what: &str) {
        let Some(bar) = &self.bar else { return };
        bar.set_position(((elapsed_s / self.budget_s).min(1.0) * STEPS as f64) as u64);
        let left = show_seconds((self.budget_s - elapsed_s).max(0.0));
        bar.set_message(format!("round {}, at most {left} left: {what}", round + 1));
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a run, a validation, a measurement. Dropped, it takes its moving lines away; do so
/// before anything else is said.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    until: Until,
    /// Visits made so far.
    points: usize,
    /// Seconds used when the visit under way began.
    elapsed_s: f64,
    /// The bar's own time at that moment: on a simulated device that clock is another one.
    bar_s: f64,
    /// Why the visit under way is made.
    why: &'static str,
    /// What it measures.
    what: String,
}

impl Progress {
    /// Says nothing where `quiet`, in a pipe, and on terminals that cannot move the cursor.
    pub(crate) fn new(until: Until, quiet: bool) -> Self {
        let moves = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let shown = !quiet && moves && std::io::stderr().is_terminal();
        let bar = shown.then(|| {
            let style = ProgressStyle::with_template("{bar:20} {prefix}\n  {wide_msg}");
            let bar = ProgressBar::new(STEPS);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let what = String::new();
        Self { bar, until, points: 0, elapsed_s: 0.0, bar_s: 0.0, why: "", what }
    }

    /// Shows an event of a run.
    pub(crate) fn show(&mut self, event: &explore::Event<'_>) {
        match event {
            explore::Event::Visit { visit, points, elapsed_s } => {
                self.visit(visit.role, &visit.workload, *points, *elapsed_s);
            }
            explore::Event::Measuring(event) => self.measuring(event),
            explore::Event::Sustaining(sustaining) => self.sustaining(sustaining),
            explore::Event::Vector(step) => {
                self.why = "system vector";
                let (round, name) = (step.round + 1, step.name);
                self.what = format!("system vector, round {round}: {name}");
                let text = self.what.clone();
                self.draw(&text);
            }
            explore::Event::Point(_) => {}
            explore::Event::Map { revision, landscape } => {
                if let Some(bar) = &self.bar {
                    bar.println(map_words(*revision, landscape));
                }
            }
        }
    }

    /// A line that stays, whether or not anything moves.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => say(text),
        }
    }

    /// A visit begins, after so many others.
    pub(crate) fn visit(&mut self, role: Role, work: &Workload, points: usize, elapsed_s: f64) {
        self.points = points;
        self.elapsed_s = elapsed_s;
        self.bar_s = self.bar.as_ref().map_or(0.0, |bar| bar.elapsed().as_secs_f64());
        self.why = why(role);
        self.what = what(work);
        self.draw(&self.what);
    }

    /// Writing for long goes on, before the first visit.
    fn sustaining(&self, at: &Sustaining) {
        self.draw(&format!(
            "writing for long: {} of {}, {} written, {} now",
            show_seconds(at.elapsed_s),
            show_seconds(at.length_s),
            show_bytes(at.written_bytes as f64),
            show_rate(at.throughput_bytes_per_s)
        ));
    }

    /// Something happens within it.
    pub(crate) fn measuring(&self, event: &Event) {
        let stage = match event {
            Event::Preparing => "laying out and warming".to_owned(),
            Event::Settling { .. } => "settling".to_owned(),
            Event::Window { throughput_bytes_per_s: rate, half_width: None, .. } => {
                show_rate(*rate)
            }
            Event::Window { throughput_bytes_per_s: rate, half_width: Some(half), .. } => {
                format!("{} ±{}", show_rate(*rate), show_percent(*half))
            }
            Event::Finishing => "waiting for the storage".to_owned(),
            _ => return,
        };
        // On a narrow terminal the end of the line is cut off: the news come first.
        self.draw(&format!("{stage}: {}", self.what));
    }

    fn draw(&self, message: &str) {
        let Some(bar) = &self.bar else { return };
        let since_s = bar.elapsed().as_secs_f64() - self.bar_s;
        let (share, left_s) = course(self.until, self.points, self.elapsed_s, since_s);
        bar.set_position((share * STEPS as f64) as u64);
        bar.set_prefix(head(share, left_s, self.points, self.why));
        bar.set_message(message.to_owned());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The share that is done, and the seconds that are left, where that is known: after so many visits
/// that took `elapsed_s`, `since_s` into the next one. Visits are expected to take what those so far
/// took; a forecast weighs like one of them.
fn course(until: Until, points: usize, elapsed_s: f64, since_s: f64) -> (f64, Option<f64>) {
    match until {
        Until::Seconds(budget_s) => {
            let elapsed_s = elapsed_s + since_s;
            ((elapsed_s / budget_s).clamp(0.0, 1.0), Some((budget_s - elapsed_s).max(0.0)))
        }
        Until::Visits { count, forecast_s } => {
            let count = count.max(1);
            let foreseen = usize::from(forecast_s > 0.0);
            let known_s = elapsed_s + forecast_s / count as f64;
            let left = count.saturating_sub(points) as f64;
            let visit_s = match points + foreseen {
                0 => None,
                visits => Some(known_s / visits as f64),
            };
            let visit_s = visit_s.filter(|visit_s| *visit_s > 0.0);
            // Nobody knows when the visit under way ends: it moves on, but is never done before.
            let begun = visit_s.map_or(0.0, |visit_s| 1.0 - (-since_s / visit_s).exp());
            let share = (points as f64 + begun) / count as f64;
            (share.clamp(0.0, 1.0), visit_s.map(|visit_s| (left - begun).max(0.0) * visit_s))
        }
    }
}

/// `38 %, 6 min left, 72 points: graphs of the regions`.
fn head(share: f64, left_s: Option<f64>, points: usize, why: &str) -> String {
    let left = match left_s {
        None => "beginning".to_owned(),
        Some(s) if s >= 5400.0 => format!("{:.1} h left", s / 3600.0),
        Some(s) if s >= 90.0 => format!("{:.0} min left", s / 60.0),
        Some(s) if s >= 1.0 => format!("{s:.0} s left"),
        Some(_) => "nearly done".to_owned(),
    };
    let points = if points == 1 { "1 point".to_owned() } else { format!("{points} points") };
    format!("{:.0} %, {left}, {points}: {why}", share * 100.0)
}

fn why(role: Role) -> &'static str {
    match role {
        Role::Sweep => "curve over unique_bytes",
        Role::ReadBorder => "the read border",
        Role::WriteBorder => "the write border",
        Role::Family => "graphs of the regions",
        Role::Calibration => "space-filling points",
        Role::Refinement => "refining predictions",
        Role::Extra => "depth and fdatasync",
        Role::OpenLoop => "latency at rates",
        Role::Named => "named workloads",
        Role::Validation => "random workloads",
        Role::Canary => "canary",
        _ => "measuring",
    }
}

fn what(work: &Workload) -> String {
    let processes =
        if work.process_num == 1 { "process".to_owned() } else { "processes".to_owned() };
    format!(
        "{} in requests of {}, {} reads, {} sequential, {} {processes}",
        show_size(work.unique_bytes as f64),
        show_size(work.size_mean as f64),
        show_percent(work.read_frac),
        show_percent(work.seq_frac),
        work.process_num
    )
}

/// `map 2: 3 regions, write border at 31.2 MiB, read border at 251 MiB`.
fn map_words(revision: u32, landscape: &Landscape) -> String {
    let regions = match landscape.regions.len() {
        1 => "1 region".to_owned(),
        n => format!("{n} regions"),
    };
    let borders = landscape.borders.iter().map(|border| {
        let name = match border.curve {
            Curve::Read => "read border",
            Curve::Write => "write border",
            Curve::Mixed => "border",
        };
        format!("{name} at {}", show_bytes(border.unique_bytes.capacity))
    });
    let mut parts: Vec<String> = borders.collect();
    if parts.is_empty() {
        parts.push("no border so far".to_owned());
    }
    format!("map {revision}: {regions}, {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_what_is_left_of_it() {
        assert_eq!(course(Until::Seconds(600.0), 40, 149.0, 1.0), (0.25, Some(450.0)));
        assert_eq!(course(Until::Seconds(600.0), 40, 700.0, 0.0), (1.0, Some(0.0)));
    }

    #[test]
    fn visits_take_what_those_before_took() {
        let until = Until::Visits { count: 200, forecast_s: 400.0 };
        assert_eq!(course(until, 0, 0.0, 0.0), (0.0, Some(400.0)));
        // 100 visits took 10 s each, where 2 s had been expected.
        let (share, left_s) = course(until, 100, 1000.0, 0.0);
        assert!((share - 0.5).abs() < 1e-9 && (left_s.unwrap() - 992.0).abs() < 1.0, "{left_s:?}");
        assert_eq!(course(until, 200, 2000.0, 0.0), (1.0, Some(0.0)));
        let unforeseen = Until::Visits { count: 3, forecast_s: 0.0 };
        assert_eq!(course(unforeseen, 0, 0.0, 1.0), (0.0, None));
        assert_eq!(course(unforeseen, 2, 8.0, 0.0).1, Some(4.0));
    }

    #[test]
    fn a_visit_under_way_counts_and_is_never_done_before_its_end() {
        let until = Until::Visits { count: 3, forecast_s: 15.0 };
        let share = |since_s| course(until, 0, 0.0, since_s).0;
        assert!(share(0.0) < share(1.0) && share(1.0) < share(30.0), "{}", share(1.0));
        assert!(share(1.0) > 0.05 && share(30.0) < 1.0 / 3.0, "{}", share(30.0));
        let (_, left_s) = course(until, 2, 10.0, 100.0);
        assert!(left_s.unwrap() < 1.0, "{left_s:?}");
    }

    #[test]
    fn a_first_line_fits_eighty_columns_beside_its_bar() {
        let all = [
            Role::Sweep,
            Role::ReadBorder,
            Role::WriteBorder,
            Role::Family,
            Role::Calibration,
            Role::Refinement,
            Role::OpenLoop,
            Role::Named,
            Role::Validation,
            Role::Canary,
            Role::Measure,
        ];
        for role in all {
            let head = head(1.0, Some(3599.0), 9999, why(role));
            assert!(20 + 1 + head.chars().count() <= 80, "{head}");
        }
        assert_eq!(
            head(0.384, Some(371.0), 72, why(Role::Family)),
            "38 %, 6 min left, 72 points: graphs of the regions"
        );
        assert_eq!(head(1.0, Some(0.2), 1, "measuring"), "100 %, nearly done, 1 point: measuring");
    }

    #[test]
    fn a_workload_is_told_in_a_line() {
        let work = Workload { process_num: 2, read_frac: 1.0, ..Workload::default() };
        assert_eq!(
            what(&work),
            "64 MiB in requests of 16 KiB, 100 % reads, 50 % sequential, 2 processes"
        );
    }
}
