//! The findings, sorted: what holds for the storage as a whole, and what holds in one region. A
//! finding about a region carries its lower end as a figure.

use ioscape_model::{Finding, FindingCode, Record, Region};

const REGION_FIGURE: &str = "region_from_bytes";

/// What holds for the storage as a whole.
pub(crate) fn overall(record: &Record) -> Vec<&Finding> {
    let in_some = |finding: &Finding| record.regions.iter().any(|region| is_about(finding, region));
    record.findings.iter().filter(|finding| !in_some(finding)).collect()
}

/// What holds in a region, as sentences that stand under its name, each with the finding's code.
pub(crate) fn in_region(record: &Record, region: &Region) -> Vec<(FindingCode, String)> {
    let about = record.findings.iter().filter(|finding| is_about(finding, region));
    about.map(|finding| (finding.code, region.without_place(&finding.text))).collect()
}

/// Both numbers were written from one: they differ by the rounding of a reader at most.
fn is_about(finding: &Finding, region: &Region) -> bool {
    // Both layers may begin at the same size.
    let begins_there = |from: &f64| {
        (from - region.unique_bytes.from).abs() <= 1e-6 * region.unique_bytes.from.abs()
    };
    finding.layer == region.layer && finding.figures.get(REGION_FIGURE).is_some_and(begins_there)
}
