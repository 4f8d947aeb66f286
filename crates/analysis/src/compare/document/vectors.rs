//! System vectors, compared element by element.

use ioscape_model::{
    Comparisons, ElementComparison, Overall, Record, RecordWarnings, SystemComparison, Verdict,
};

use super::{Against, Demands, Evidence, document, unknown};
use crate::compare::{elements, overall};

/// Compares system vectors with the first of them. The records' files and doubts come in the same
/// order.
pub fn between_vectors(
    vectors: &[Record],
    records: Vec<RecordWarnings>,
    demands: &Demands<'_>,
) -> Comparisons {
    let against = vectors.iter().zip(&records).skip(1).map(|(vector, file)| {
        let elements = elements(&vectors[0].elements, &vector.elements);
        let verdict = verdict(&elements);
        let system = SystemComparison { verdict, elements, ..unknown(file) };
        Against { system, comparisons: vec![] }
    });
    let against: Vec<Against> = against.collect();
    let verdict = verdict(against.iter().flat_map(|one| &one.system.elements));
    document(Evidence { against, dropped: vec![], verdict }, records, demands)
}

fn verdict<'a>(elements: impl IntoIterator<Item = &'a ElementComparison>) -> Overall {
    let verdicts: Vec<Verdict> = elements.into_iter().map(|element| element.verdict).collect();
    overall(&verdicts, &[])
}
