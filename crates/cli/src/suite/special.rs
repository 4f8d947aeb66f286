//! Names after `ioscape suite` that are no benchmark: the list, the tables of 1990, the critique.

use ioscape_model::units::{show_bytes, show_percent, show_rate};
use ioscape_model::{Record, SuiteLines};
use ioscape_suite::Name;
use ioscape_suite::critique::{self, Judged};
use ioscape_suite::iostone::first::OF_1987;
use ioscape_suite::os::names::step;
use ioscape_suite::ousterhout::{self, Check, MachineMeans, Published};

use crate::exit::Exit;
use crate::output::answer;
use crate::page_file;

/// Prints the benchmarks there are.
pub(super) fn list(json: bool) -> anyhow::Result<Exit> {
    if json {
        let all: Vec<serde_json::Value> = Name::ALL
            .iter()
            .map(|name| {
                serde_json::json!({
                    "name": name.as_str(),
                    "about": name.about(),
                    "repeats": name.repeats(),
                })
            })
            .collect();
        answer(&crate::output::json(&serde_json::json!({ "benchmarks": all }))?)?;
        return Ok(Exit::Fine);
    }
    let mut lines: Vec<String> =
        Name::ALL.iter().map(|name| format!("{:<13} {}", name.as_str(), name.about())).collect();
    lines.push(format!(
        "{CRITIQUE:<13} the share of I/O in andrew, tpcb, sdet, bonnie, iostone-1990"
    ));
    lines.push(format!(
        "{REPRESENTATIVE:<13} sort and tpcb against workloads with the same five parameters"
    ));
    lines.push(format!("{PUBLISHED:<13} Ousterhout's tables of 1990 worked out again; no target"));
    answer(&lines.join("\n"))?;
    Ok(Exit::Fine)
}

pub(super) const LIST: &str = "list";
pub(super) const CRITIQUE: &str = "critique";
pub(super) const REPRESENTATIVE: &str = "representative";
pub(super) const PUBLISHED: &str = "table-1990";

/// Prints Fig. 1 of Ousterhout 1990 from his tables, and which rows do not follow from the others.
pub(super) fn published(json: bool) -> anyhow::Result<Exit> {
    let published = Published::of_1990();
    let (means, checks) = (published.means(), published.checks());
    if json {
        answer(&crate::output::json(&published_json(&means, &checks))?)?;
        return Ok(Exit::Fine);
    }
    let mut lines = vec!["machine   MIPS  relative speed  with bcopy".to_owned()];
    for of in &means {
        lines.push(format!(
            "{:<8} {:>5}  {:>14.2}  {:>10.2}",
            of.machine, of.mips, of.without_copy, of.with_copy
        ));
    }
    let agreeing = |copies: bool| {
        let of = checks.iter().filter(|check| (check.row.table == 5) == copies);
        (of.clone().filter(|check| check.agrees).count(), of.count())
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
    answer(&lines.join("\n"))?;
    Ok(Exit::Fine)
}

fn published_json(means: &[MachineMeans], checks: &[Check]) -> serde_json::Value {
    let machines: Vec<serde_json::Value> = means
        .iter()
        .map(|of| {
            serde_json::json!({
                "machine": of.machine,
                "mips": of.mips,
                "relative": of.without_copy,
                "relative_with_bcopy": of.with_copy,
            })
        })
        .collect();
    let rows: Vec<serde_json::Value> = checks
        .iter()
        .map(|check| {
            let row = &check.row;
            serde_json::json!({
                "table": row.table, "machine": row.machine, "system": row.system,
                "place": row.place, "measure": row.measure, "value": row.value,
                "printed": row.relative_printed, "relative": check.relative,
                "agrees": check.agrees,
            })
        })
        .collect();
    serde_json::json!({ "machines": machines, "rows": rows })
}

/// The table of the critique, in characters.
pub(super) fn critique_text(record: &Record) -> String {
    let judged = critique::judge(&record.suite);
    let mut lines = vec![
        String::new(),
        "What they measure (Chen and Patterson 1994, Fig. 1, for this machine)".to_owned(),
        format!(
            "  {:<14}{:<25}{:<12}{:<14}{:<13}{}",
            "", "time in I/O (95 %)", "I/O limited", "touched", "I/O rate", "scales"
        ),
    ];
    lines.extend(judged.iter().map(|one| row(&record.suite, one)));
    lines.push(
        "  Time in I/O: reads, writes and waiting for storage, as the program sees it. In 1994,"
            .to_owned(),
    );
    lines.push(
        "  on a DECstation 5000/200: Andrew, Sdet and IOStone 25 % or less; IOStone touched 1 MB,"
            .to_owned(),
    );
    lines.push("  Andrew 4.5 MB.".to_owned());
    lines.join("\n")
}

fn row(lines: &SuiteLines, one: &Judged) -> String {
    let several = lines.suite.as_ref().is_some_and(|suite| suite.targets.len() > 1);
    let place = if several { format!(" {}", one.target) } else { String::new() };
    let of = &one.data_fraction;
    let share = if one.at_most {
        format!("at most {}", show_percent(of.mean))
    } else if one.trials < 2 {
        show_percent(of.mean)
    } else {
        let high = show_percent(of.high.min(1.0));
        format!("{} ({} to {high})", show_percent(of.mean), show_percent(of.low))
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
pub(super) fn beside_text(record: &Record) -> String {
    let lines = &record.suite;
    let Some(suite) = lines.suite.as_ref() else { return String::new() };
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
    let wrapped = |line: &String| ioscape_report::wrap(line, page_file::WIDTH - 2).join("\n  ");
    // Each begins on a line of its own.
    std::iter::once(String::new()).chain(said.iter().map(wrapped)).collect::<Vec<_>>().join("\n")
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

/// The table of the critique as JSON.
pub(super) fn critique_json(record: &Record) -> Vec<serde_json::Value> {
    let judged = critique::judge(&record.suite);
    let of = |one: &Judged| {
        serde_json::json!({
            "benchmark": one.benchmark.as_str(),
            "target": one.target,
            "trials": one.trials,
            "data_fraction": one.data_fraction,
            "at_most": one.at_most,
            "io_limited": one.is_io_limited(),
            "unique_bytes": one.unique_bytes,
            "data_bytes_per_s": one.data_bytes_per_s,
            "scales": one.benchmark.scaling(),
        })
    };
    judged.iter().map(of).collect()
}
