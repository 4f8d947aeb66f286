//! Names after `ioscape suite` that are no benchmark: the list, the tables of 1990, the critique.

use ioscape_model::SuiteLines;
use ioscape_suite::critique::{self, Judged};
use ioscape_suite::ousterhout::{Check, MachineMeans, Published};
use ioscape_suite::{Name, words};

use crate::exit::Exit;
use crate::output::answer;

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
    answer(&words::published(&means, &checks).join("\n"))?;
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

/// The table of the critique as JSON.
pub(super) fn critique_json(suite: &SuiteLines) -> Vec<serde_json::Value> {
    let judged = critique::judge(suite);
    let row = |one: &Judged| {
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
    judged.iter().map(row).collect()
}
