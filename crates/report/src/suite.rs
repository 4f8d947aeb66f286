//! What classic benchmarks gave, in words and cells: mean and standard deviation as the papers
//! print them, the interval beside them, and where targets differ.

pub(crate) mod page;

use ioscape_model::units::{show_bytes, show_percent, show_rate, show_seconds, three_digits};
use ioscape_model::{Better, Contrast, IoShare, Record, Score, Suite, SuiteLines, Warning};

/// One benchmark.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Where its time went; what to doubt.
    pub(crate) notes: Vec<String>,
}

/// All benchmarks of a record, in the order in which they were run.
pub(crate) fn sections(lines: &SuiteLines) -> Vec<Section> {
    let Some(suite) = &lines.suite else { return Vec::new() };
    let measured =
        |name: &&String| lines.scores.iter().any(|score| score.benchmark.as_str() == name.as_str());
    suite.benchmarks.iter().filter(measured).map(|name| section(lines, suite, name)).collect()
}

/// How many trials there are, and where.
pub(crate) fn extent(lines: &SuiteLines) -> String {
    let Some(suite) = &lines.suite else { return String::new() };
    let scored = lines.trials.iter().filter(|trial| trial.scored).count();
    let repeats = match suite.repeats {
        1 => "1 repetition".to_owned(),
        repeats => format!("{repeats} repetitions"),
    };
    let turns = match suite.targets.len() {
        1 => String::new(),
        targets => format!(" on each of {targets} targets in turn"),
    };
    format!("{repeats} of each benchmark{turns}: {scored} trials scored")
}

fn section(lines: &SuiteLines, suite: &Suite, name: &str) -> Section {
    let single = suite.targets.len() < 2;
    let scores: Vec<&Score> =
        lines.scores.iter().filter(|score| score.benchmark == name && score.target == 0).collect();
    let (head, rows) = if single {
        let head = ["", "mean (sd)", "95 % interval", "least to most"].map(str::to_owned);
        (head.to_vec(), scores.iter().map(|score| row(score)).collect())
    } else {
        let mut head = vec![String::new()];
        head.extend(suite.targets.iter().map(|target| target.path.clone()));
        head.push("ratio (95 %)".to_owned());
        (head, scores.iter().map(|score| compared(lines, suite, score)).collect())
    };
    let mut notes = Vec::new();
    for (target, about) in suite.targets.iter().enumerate() {
        let place = if single { String::new() } else { format!("{}: ", about.path) };
        let target = target as u32;
        notes.extend(io(lines, name, target).map(|text| format!("{place}{text}")));
        notes.extend(doubts(lines, name, target).map(|text| format!("{place}{text}")));
    }
    Section { name: name.to_owned(), head, rows, notes }
}

fn row(score: &Score) -> Vec<String> {
    let unit = score.unit.as_str();
    let interval = score.interval.map_or_else(
        || "unknown".to_owned(),
        |interval| format!("{} to {}", show(interval.low, unit), show(interval.high, unit)),
    );
    vec![
        name(score),
        cell(score),
        interval,
        format!("{} to {}", show(score.min, unit), show(score.max, unit)),
    ]
}

/// The figure with its unit, where the numbers do not carry it themselves.
fn name(score: &Score) -> String {
    match score.unit.as_str() {
        "" | "s" | "bytes/s" | "fraction" | "bytes" => score.name.clone(),
        unit if score.name.contains(unit) => score.name.clone(),
        unit => format!("{} ({unit})", score.name),
    }
}

/// As the papers print it: mean (standard deviation).
fn cell(score: &Score) -> String {
    let mean = show(score.mean, &score.unit);
    match score.standard_deviation {
        Some(sd) => format!("{mean} ({})", show(sd, &score.unit)),
        None => format!("{mean} (once)"),
    }
}

fn compared(lines: &SuiteLines, suite: &Suite, base: &Score) -> Vec<String> {
    let mut cells = vec![name(base), cell(base)];
    let mut ratios = Vec::new();
    for target in 1..suite.targets.len() as u32 {
        let is = |benchmark: &str, name: &str, other: u32| {
            (benchmark, name, other) == (base.benchmark.as_str(), base.name.as_str(), target)
        };
        let score = lines.scores.iter().find(|s| is(&s.benchmark, &s.name, s.target));
        cells.push(score.map_or_else(|| "–".to_owned(), cell));
        let contrast = lines.contrasts.iter().find(|c| is(&c.benchmark, &c.name, c.target));
        ratios.push(contrast.map_or_else(|| "–".to_owned(), |c| ratio(c, base.better)));
    }
    cells.push(ratios.join("; "));
    cells
}

fn ratio(contrast: &Contrast, better: Better) -> String {
    let of = &contrast.ratio;
    let verdict = match (contrast.shown, better) {
        (false, _) => "no difference shown",
        (true, Better::Neither) => "differs",
        (true, Better::Higher) if of.mean > 1.0 => "better",
        (true, Better::Lower) if of.mean < 1.0 => "better",
        (true, _) => "worse",
    };
    let apart =
        contrast.separation_sd.map_or_else(String::new, |sd| format!(", {:.1} sd", sd.abs()));
    format!("{:.3} ({:.3} to {:.3}{apart}): {verdict}", of.mean, of.low, of.high)
}

/// Where the time of the metered trials went.
fn io(lines: &SuiteLines, name: &str, target: u32) -> Option<String> {
    let shares: Vec<&IoShare> = lines
        .trials
        .iter()
        .filter(|trial| trial.benchmark == name && trial.target == target)
        .filter_map(|trial| trial.io.as_ref())
        .collect();
    let (first, count) = (shares.first()?, shares.len() as f64);
    let mean = |of: &dyn Fn(&IoShare) -> f64| shares.iter().map(|s| of(s)).sum::<f64>() / count;
    let share = show_percent(mean(&|s| s.data_fraction()));
    if first.at_most_s.is_some() {
        return Some(format!(
            "at most {share} of the time in I/O: the rest is user code of the commands that were started"
        ));
    }
    let part = |of: &dyn Fn(&IoShare) -> f64| show_percent(mean(&|s| of(s) / s.busy_s.max(1e-12)));
    let touched = first.unique_bytes.map_or_else(String::new, |bytes| {
        format!("; {} touched, {} moved", show_bytes(bytes as f64), moved(first))
    });
    Some(format!(
        "{share} of the time in I/O: {} reading, {} writing, {} waiting for storage; {} in open, \
         stat, unlink and the like{touched}",
        part(&|s| s.read_s),
        part(&|s| s.write_s),
        part(&|s| s.sync_s),
        part(&|s| s.name_s)
    ))
}

fn moved(share: &IoShare) -> String {
    show_bytes((share.read_bytes + share.written_bytes) as f64)
}

/// What trials were doubtful about, each kind once.
fn doubts<'a>(
    lines: &'a SuiteLines,
    name: &'a str,
    target: u32,
) -> impl Iterator<Item = String> + 'a {
    let mut seen: Vec<(&Warning, usize)> = Vec::new();
    for trial in lines.trials.iter().filter(|t| t.benchmark == name && t.target == target) {
        for warning in &trial.warnings {
            match seen.iter_mut().find(|(other, _)| other.code == warning.code) {
                Some((_, count)) => *count += 1,
                None => seen.push((warning, 1)),
            }
        }
    }
    seen.into_iter().map(|(warning, count)| {
        let often = if count > 1 { format!(" ({count} trials)") } else { String::new() };
        format!("doubt: {}{often}; {}", warning.text, warning.remedy)
    })
}

/// A figure, times and rates with their unit.
pub fn show(value: f64, unit: &str) -> String {
    match unit {
        "s" if value >= 0.0 => show_seconds(value),
        "s" => format!("-{}", show_seconds(-value)),
        "bytes/s" => show_rate(value.max(0.0)),
        "fraction" => show_percent(value),
        "bytes" => show_bytes(value),
        _ if value.abs() >= 1e6 => format!("{} million", three_digits(value / 1e6)),
        _ => three_digits(value),
    }
}

/// What stands over all benchmarks of a record.
pub(crate) fn doubts_of_run(record: &Record) -> Vec<String> {
    record.warnings.iter().map(|w| format!("{}; {}", w.text, w.remedy)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_carry_their_unit() {
        for (value, unit, expected) in [
            (0.0123, "s", "12.3 ms"),
            (4.516e6, "bytes/s", "4.52 MB/s"),
            (23.5e6, "IOStones/s", "23.5 million"),
            (812.0, "1/s", "812"),
            (0.25, "fraction", "25 %"),
            (1.0, "", "1.00"),
        ] {
            assert_eq!(show(value, unit), expected);
        }
    }
}
