//! The findings, sorted: what holds for the storage as a whole, and what holds in one region. A
//! finding of an old record does not carry its region as data: its whole sentence, which names the
//! region, stands among those about the storage.

use ioscape_model::{Finding, FindingCode, Record};

/// What holds for the storage as a whole.
pub(crate) fn overall(record: &Record) -> Vec<&Finding> {
    let of_region =
        |finding: &Finding| place(finding).is_some_and(|(index, _)| index < record.regions.len());
    record.findings.iter().filter(|finding| !of_region(finding)).collect()
}

/// What holds in the region at this place in the record's list, as sentences that stand under its
/// name, each with the finding's code.
pub(crate) fn in_region(record: &Record, index: usize) -> Vec<(FindingCode, String)> {
    let said = |finding: &Finding| {
        let (of, clause) = place(finding)?;
        (of == index).then(|| (finding.code, sentence(clause)))
    };
    record.findings.iter().filter_map(said).collect()
}

/// The place of the finding's region in the record's list, and what is said of it.
fn place(finding: &Finding) -> Option<(usize, &str)> {
    let index = (finding.region? as usize).checked_sub(1)?;
    Some((index, finding.clause.as_deref()?))
}

/// `Reads run faster.` out of `reads run faster`.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_becomes_a_sentence() {
        assert_eq!(sentence("reads run faster"), "Reads run faster.");
        assert_eq!(sentence("x"), "X.");
    }
}
