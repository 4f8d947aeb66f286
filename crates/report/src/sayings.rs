//! The findings, sorted: what holds for the storage as a whole, and what holds in one region. A
//! finding about a region carries its lower end as a figure.

use ioscape_model::{Finding, Record, Region};

const REGION_FIGURE: &str = "region_from_bytes";

/// What holds for the storage as a whole.
pub(crate) fn overall(record: &Record) -> Vec<&Finding> {
    let in_some = |finding: &Finding| record.regions.iter().any(|region| is_about(finding, region));
    record.findings.iter().filter(|finding| !in_some(finding)).collect()
}

/// What holds in a region, as sentences that stand under its name.
pub(crate) fn in_region(record: &Record, region: &Region) -> Vec<String> {
    in_region_by_code(record, region).into_iter().map(|(_, sentence)| sentence).collect()
}

/// The same, each with the finding's code.
pub(crate) fn in_region_by_code<'a>(record: &'a Record, region: &Region) -> Vec<(&'a str, String)> {
    let about = record.findings.iter().filter(|finding| is_about(finding, region));
    let sentence = |finding: &'a Finding| without_place(&finding.text, &region.name);
    about.map(|finding| (finding.code.as_str(), sentence(finding))).collect()
}

fn is_about(finding: &Finding, region: &Region) -> bool {
    finding.figures.get(REGION_FIGURE).is_some_and(|from| {
        (from - region.unique_bytes.from).abs() <= 1e-6 * region.unique_bytes.from.abs()
    })
}

/// `cache region`, `whole range`: what findings call it too.
pub(crate) fn place(region: &str) -> String {
    if region.contains("range") { region.to_owned() } else { format!("{region} region") }
}

/// `In the cache region (8 MiB to 61 MiB), reads run …` without what its heading says already.
fn without_place(text: &str, region: &str) -> String {
    let rest = text
        .strip_prefix(&format!("In the {} (", place(region)))
        .and_then(|rest| rest.split_once("), "))
        .map_or(text, |(_, rest)| rest);
    let mut letters = rest.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_under_a_heading_does_not_repeat_it() {
        for (text, left) in [
            ("In the cache region (8 MiB to 61 MiB), reads run faster.", "Reads run faster."),
            (
                "In the storage region (1 GiB to 2 GiB), x.",
                "In the storage region (1 GiB to 2 GiB), x.",
            ),
            ("Anything else.", "Anything else."),
            ("", ""),
        ] {
            assert_eq!(without_place(text, "cache"), left);
        }
        let whole = "In the whole range (8 MiB to 1 GiB), x.";
        assert_eq!(without_place(whole, "whole range"), "X.");
        assert_eq!(
            (place("cache"), place("whole range")),
            ("cache region".into(), "whole range".into())
        );
    }
}
