//! Suites in words: the table of the critique, the table of 1990, and sentences that hold figures against those that were
//! printed in the papers.

use ioscape_model::SuiteLines;
use ioscape_model::units::{show_bytes, show_percent, show_rate};

use crate::Name;
use crate::critique::{self, Judged};
use crate::iostone::first::OF_1987;
use crate::os::names::step;
use crate::ousterhout::{self, Check, MachineMeans};

/// Fig. 1 of Ousterhout 1990 from his tables, and which rows do not follow from the others: a line each.
pub fn published(means: &[MachineMeans], checks: &[Check]) -> Vec<String> {
    let mut lines = vec!["machine   MIPS  relative speed  with bcopy".to_owned()];
    for row in means {
        lines.push(format!(
            "{:<8} {:>5}  {:>14.2}  {:>10.2}",
            row.machine, row.mips, row.without_copy, row.with_copy
        ));
    }
    let agreeing = |copies: bool| {
        let rows = checks.iter().filter(|check| (check.row.table == 5) == copies);
        (rows.clone().filter(|check| check.agrees).count(), rows.count())
    };
    let ((rows, of_rows), (copies, of_copies)) = (agreeing(false), agreeing(true));
    lines.push(String::new());
    lines.push(format!(
        "{rows} of {of_rows} relative speeds, and {copies} of {of_copies} more for copying \
         (bcopy), follow from the other printed figures within rounding; these do not:"
    ));
    for check in checks.iter().filter(|check| !check.agrees) {
        let row = &check.row;
        lines.push(format!(
            "  table {}: {} {} {} {}: {} is printed, {:.3} follows",
            row.table,
            row.machine,
            row.system,
            row.place,
            row.measure,
            row.relative_printed.unwrap_or_default(),
            check.relative
        ));
    }
    lines
}

/// The table of the critique: a line each.
pub fn critique(lines: &SuiteLines) -> Vec<String> {
    let judged = critique::judge(lines);
    let mut table = vec![
        "What they measure (Chen and Patterson 1994, Fig. 1, for this machine)".to_owned(),
        format!(
            "  {:<14}{:<25}{:<12}{:<14}{:<13}{}",
            "", "time in I/O (95 %)", "I/O limited", "touched", "I/O rate", "scales"
        ),
    ];
    table.extend(judged.iter().map(|one| row(lines, one)));
    table.push(
        "  Time in I/O: reads, writes and waiting for storage, as the program sees it. In 1994,"
            .to_owned(),
    );
    table.push(
        "  on a DECstation 5000/200: Andrew, Sdet and IOStone 25 % or less; IOStone touched 1 MB,"
            .to_owned(),
    );
    table.push("  Andrew 4.5 MB.".to_owned());
    table
}

fn row(lines: &SuiteLines, one: &Judged) -> String {
    let several = lines.suite.as_ref().is_some_and(|suite| suite.targets.len() > 1);
    let place = if several { format!(" {}", one.target) } else { String::new() };
    let fraction = &one.data_fraction;
    let share = if one.at_most {
        format!("at most {}", show_percent(fraction.mean))
    } else if one.trials < 2 {
        show_percent(fraction.mean)
    } else {
        let high = show_percent(fraction.high.min(1.0));
        format!("{} ({} to {high})", show_percent(fraction.mean), show_percent(fraction.low))
    };
    let limited = if one.is_io_limited() { "yes" } else { "not shown" };
    let touched = one.unique_bytes.map_or_else(|| "–".to_owned(), |b| show_bytes(b as f64));
    let rate = one.data_bytes_per_s.map_or_else(|| "–".to_owned(), show_rate);
    let name = format!("{}{place}", one.benchmark.as_str());
    format!(
        "  {name:<14}{share:<25}{limited:<12}{touched:<14}{rate:<13}{}",
        one.benchmark.scaling()
    )
}

/// Sentences that hold a suite's figures against those printed in the papers.
pub fn beside_the_papers(lines: &SuiteLines) -> Vec<String> {
    let Some(suite) = lines.suite.as_ref() else { return Vec::new() };
    let has = |name: Name| suite.benchmarks.iter().any(|other| other == name.as_str());
    let mut said = Vec::new();
    for (number, target) in suite.targets.iter().enumerate().filter(|_| has(Name::Os)) {
        said.push(step_text(lines, number as u32, &target.path));
        said.extend(keeps_up(lines, number as u32, &target.path));
    }
    if has(Name::Iostone1987) {
        let machines = OF_1987.map(|(machine, score)| format!("{machine} {score}"));
        let machines = machines.join(", ");
        said.push(format!("IOStones/s in 1987 (Park and Lipton, Table 1): {machines}"));
    }
    said
}

/// The step that the sweep of create-delete found.
fn step_text(lines: &SuiteLines, target: u32, path: &str) -> String {
    let found = match step(&lines.scores, target) {
        Some((size, factor)) => {
            format!("takes {factor:.1} times as long beyond {size} KB as up to it")
        }
        None => "has no step up to 16 KB".to_owned(),
    };
    format!("create-delete on {path} {found}")
}

/// The processors of the tables are rated by another program: speeds beside them are good to this
/// factor.
const RATED_WITHIN: f64 = 2.0;

/// Says how fast system calls are for the speed of the processor, with a MicroVAX II as 1 (Ousterhout
/// 1990, section 12).
fn keeps_up(lines: &SuiteLines, target: u32, path: &str) -> Option<String> {
    let relative = |name: &str| {
        let mut of_os = lines
            .scores
            .iter()
            .filter(|score| score.benchmark == Name::Os.as_str() && score.target == target);
        of_os.find(|score| score.name == name).map(|score| score.mean)
    };
    let mean = relative("relative, geometric mean")?;
    let mut parts: Vec<(&str, f64)> = ousterhout::calls()
        .filter_map(|(name, _)| Some((name, relative(&format!("relative {name}"))?)))
        .collect();
    parts.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ((least, low), (most, high)) = (parts.first()?, parts.last()?);
    let found = match mean {
        RATED_WITHIN.. => "has kept up with the processor",
        mean if mean <= 1.0 / RATED_WITHIN => "has not kept up with the processor",
        _ => {
            "may or may not have kept up with the processor (the figures are good to a factor of two)"
        }
    };
    Some(format!(
        "the operating system on {path} {found}. Beside the MicroVAX II measured in 1990 its calls \
         are {mean:.2} times as fast as the processor would make them (from {low:.2}, {least}, to \
         {high:.2}, {most})"
    ))
}
