//! Where to look next: what this record leaves open or can answer, each with the command to type.

use std::path::Path;

use ioscape_model::units::{GIB, KIB, MIB, show_rate};
use ioscape_model::{Border, EndReason, Estimate, Header, Record, Severity, TargetKind, Workload};

use super::paint::Style;
use super::{Page, Samples, clean};
use crate::figures;
use crate::landscape;

/// Only worth another measurement from this relative half-width on.
const UNSURE: f64 = 0.1;
/// Ends of a border's interval further apart than this leave its place open.
const BORDER_OPEN: f64 = 1.5;

/// Why, and what to type: words that a line may be broken between.
struct Step {
    why: String,
    words: Vec<String>,
}

impl Step {
    fn new(why: impl Into<String>, words: &[&str]) -> Self {
        Self { why: why.into(), words: words.iter().map(|word| (*word).to_owned()).collect() }
    }
}

/// The section. `file` is the record, as it can be typed.
pub(super) fn next(page: &mut Page, record: &Record, samples: &Samples<'_>, file: &str) {
    let file = shell_word(file);
    let steps = steps(record, samples, &file);
    if steps.is_empty() {
        return;
    }
    page.heading("Where to look next");
    for step in steps {
        page.wrapped("  - ", &step.why, Style::Plain);
        for line in broken(&step.words, page.width - 6) {
            page.raw(format!("      {}", clean(&line)));
        }
    }
}

fn steps(record: &Record, samples: &Samples<'_>, file: &str) -> Vec<Step> {
    if !record.header.method.is_map() {
        return Vec::new();
    }
    if record.header.is_quick {
        let why =
            "A map shows how speed changes between these workloads, and where the page cache ends:";
        let target = &record.header.target;
        // In place of a file that was there already, the directory that it lies in.
        let parent = Path::new(&target.path).parent().filter(|_| target.kind == TargetKind::File);
        let target = parent.map_or(target.path.clone(), |parent| parent.display().to_string());
        let target = shell_word(&target);
        return vec![Step::new(why, &["ioscape run", &target])];
    }
    let mut all = Vec::new();
    let reason = record.end.as_ref().map(|end| end.reason);
    if matches!(reason, None | Some(EndReason::Interrupted | EndReason::Failed)) {
        all.push(Step::new("Go on where it stopped:", &["ioscape run", "--resume", file]));
    } else if let Some(border) = open_border(record) {
        let at = border.unique_bytes;
        let why = format!(
            "The {} may lie anywhere from {} to {}. More time narrows it:",
            landscape::border_name(border),
            figures::size(at.low),
            figures::size(at.high)
        );
        let budget = format!("--budget {:.0}s", 2.0 * record.budget_s());
        all.push(Step::new(why, &["ioscape run", "--resume", file, &budget]));
    }
    if let Some(estimate) = least_sure(record, samples) {
        all.push(measured_longer(&record.header, estimate));
    }
    if !record.models.is_empty() {
        let why = "Predict a workload that was not measured; replace oltp by yours:";
        all.push(Step::new(why, &["ioscape predict", file, "-w oltp"]));
        let why = "Measure how far off such predictions are here, on random workloads:";
        all.push(Step::new(why, &["ioscape validate", file]));
    }
    if !samples.estimates.is_empty() {
        let why = "Every graph and every figure, on a page:";
        all.push(Step::new(why, &["ioscape report", file]));
    }
    all
}

/// The border whose place is least known, where time alone was short.
fn open_border(record: &Record) -> Option<&Border> {
    let out_of_time = record.end.as_ref().is_some_and(|end| end.reason == EndReason::Budget);
    let spread = |border: &Border| border.unique_bytes.high / border.unique_bytes.low;
    let open = record.borders.iter().filter(|b| spread(b) > BORDER_OPEN && spread(b).is_finite());
    let widest = open.max_by(|a, b| spread(a).total_cmp(&spread(b)));
    widest.filter(|_| out_of_time && record.budget_s() > 0.0)
}

/// The doubted workload with the widest interval.
fn least_sure<'a>(record: &Record, samples: &'a Samples<'_>) -> Option<&'a Estimate> {
    let width = |e: &Estimate| e.throughput_bytes_per_s.relative_half_width();
    let doubted = samples.estimates.iter().filter(|estimate| {
        let grave = estimate.warnings.iter().any(|w| w.severity >= Severity::Warning);
        grave && width(estimate) > UNSURE && width(estimate).is_finite()
    });
    let widest = doubted.max_by(|a, b| width(a).total_cmp(&width(b)));
    widest.filter(|_| !record.regions.is_empty())
}

/// Measures this workload again under these limits, as often as `measure` thinks right.
fn measured_longer(header: &Header, estimate: &Estimate) -> Step {
    let rate = estimate.throughput_bytes_per_s;
    let why = format!(
        "The least certain figure is {} ±{}. The same workload, longer:",
        show_rate(rate.mean),
        figures::percent(rate.relative_half_width())
    );
    let mut words = vec!["ioscape measure".to_owned(), shell_word(&header.target.path)];
    words.extend(flags(&estimate.workload));
    let limits = [
        ("--memory-limit", header.host.memory_limit_set_bytes),
        ("--dirty-limit", header.host.dirty_limit_set_bytes),
    ];
    words.extend(limits.iter().filter_map(|(flag, b)| Some(format!("{flag} {}", exact((*b)?)))));
    Step { why, words }
}

/// A workload's keys as flags, shorter than its literal and easier to change.
fn flags(work: &Workload) -> Vec<String> {
    let literal = work.literal();
    let flag = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let value = match (key, value.parse()) {
            ("unique_bytes" | "size_mean" | "align", Ok(bytes)) => exact(bytes),
            _ => value.to_owned(),
        };
        Some(format!("--{} {value}", key.replace('_', "-")))
    };
    literal.split(',').filter_map(flag).collect()
}

/// A size in the largest unit that leaves nothing over.
fn exact(bytes: u64) -> String {
    let units = [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
    let whole = units.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    whole.map_or_else(|| bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
}

/// One word for the shell, whatever is in it.
pub(super) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,+@%-".contains(c);
    let guarded = if text.starts_with('-') { format!("./{text}") } else { text.to_owned() };
    if !guarded.is_empty() && guarded.chars().all(plain) {
        guarded
    } else {
        format!("'{}'", guarded.replace('\'', "'\\''"))
    }
}

/// A command on as many lines as it takes, each but the last ending in a backslash.
fn broken(words: &[String], width: usize) -> Vec<String> {
    const CONTINUED: usize = 2;
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() + CONTINUED <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) => {
                line.push_str(" \\");
                lines.push(format!("    {word}"));
            }
            None => lines.push(word.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reaches_the_command_as_it_is() {
        for (name, word) in [
            ("r.jsonl", "r.jsonl"),
            ("/mnt/my data", "'/mnt/my data'"),
            ("it's", "'it'\\''s'"),
            ("$(x)", "'$(x)'"),
            ("-x", "./-x"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(name), word);
        }
    }

    #[test]
    fn sizes_are_exact() {
        for (bytes, text) in
            [(0, "0"), (1 << 30, "1GiB"), (96 << 20, "96MiB"), (12 << 10, "12KiB"), (1025, "1025")]
        {
            assert_eq!(exact(bytes), text);
        }
    }

    #[test]
    fn a_workload_becomes_flags() {
        let work = Workload { read_frac: 0.25, process_num: 4, ..Workload::default() };
        assert_eq!(
            flags(&work).join(" "),
            "--unique-bytes 64MiB --size-mean 16KiB --read-frac 0.25 --seq-frac 0.5 \
             --process-num 4"
        );
    }

    #[test]
    fn a_long_command_goes_on_after_a_backslash() {
        let words: Vec<String> = ["aaaa", "bbbb", "cccc"].map(str::to_owned).to_vec();
        assert_eq!(broken(&words, 20), ["aaaa bbbb cccc"]);
        assert_eq!(broken(&words, 12), ["aaaa bbbb \\", "    cccc"]);
    }
}
