//! The doubts, as visible as the findings: those about the run, and those about single figures
//! gathered by what they are about.

use std::collections::BTreeMap;

use ioscape_model::{Code, Method, Record, Severity, Warning, word};

use crate::sample::Samples;

/// A doubt as it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    pub(crate) severity: Severity,
    /// `not steady`.
    pub(crate) title: String,
    /// What was seen.
    pub(crate) text: String,
    /// What to do about it; may be empty.
    pub(crate) remedy: String,
}

impl Doubt {
    /// `note`, `warning`, `serious`.
    pub(crate) fn severity_name(&self) -> String {
        word(self.severity)
    }

    pub(crate) fn about(warning: &Warning) -> Self {
        Self {
            severity: warning.severity,
            title: warning.code.title(),
            text: warning.text.clone(),
            remedy: warning.remedy.clone(),
        }
    }
}

/// All doubts, the gravest first.
pub(crate) fn doubts(record: &Record, samples: &Samples<'_>) -> Vec<Doubt> {
    gathered(record, samples).iter().map(Doubt::about).collect()
}

/// Doubts about a record that bear on what is predicted from it or compared with it, the gravest
/// first. Notes do not, but for that of a short run, whose intervals rest on an assumption; and that
/// depth brings nothing where memory answers is what a model is to learn.
pub fn bearing_doubts(record: &Record) -> Vec<Warning> {
    let bears = |warning: &Warning| match warning.code {
        Code::Incomplete => true,
        Code::DepthIgnored => false,
        _ => warning.severity >= Severity::Warning,
    };
    gathered(record, &Samples::from_record(record)).into_iter().filter(bears).collect()
}

/// Doubts about the run, and those about single figures gathered by what they are about.
fn gathered(record: &Record, samples: &Samples<'_>) -> Vec<Warning> {
    let mut all = record.warnings.clone();
    // By (severity, code), because remedies go with codes; the first text stands for the others, with its
    // figures and those of how many there are.
    let mut groups: BTreeMap<(Severity, String), Vec<&Warning>> = BTreeMap::new();
    for warning in samples.estimates.iter().flat_map(|estimate| &estimate.warnings) {
        groups.entry((warning.severity, warning.code.title())).or_default().push(warning);
    }
    let kind = if samples.pooled { "workloads" } else { "visits" };
    let total = samples.estimates.len();
    for ((severity, code), group) in &groups {
        let is_said_graver = groups.keys().any(|(other, of)| of == code && other > severity);
        let text = match group.as_slice() {
            [only] if is_said_graver => {
                format!("less severe, in 1 more of {total} {kind}: {}", only.text)
            }
            many if is_said_graver => {
                format!(
                    "less severe, in another {} of {total} {kind}, for example: {}",
                    many.len(),
                    many[0].text
                )
            }
            [only] => only.text.clone(),
            many => format!("{} of {total} {kind}, for example: {}", many.len(), many[0].text),
        };
        let mut figures = group[0].figures.clone();
        figures.insert(kind.to_owned(), group.len() as f64);
        figures.insert(format!("of_{kind}"), total as f64);
        all.push(Warning { text, figures, ..group[0].clone() });
    }
    all.sort_by_key(|doubt| std::cmp::Reverse(doubt.severity));
    all
}

/// What the record lacks: a reader has to know it before anything else.
pub(crate) fn gaps(record: &Record, samples: &Samples<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let is_vector = record.header.method == Method::Vector;
    if is_vector && !record.elements.is_empty() {
        // No visit belongs to it.
    } else if record.points.is_empty() && record.estimates.is_empty() {
        all.push("Nothing has been measured yet: the record holds no point.".to_owned());
    } else if !samples.pooled {
        all.push(
            "No map was closed: the figures are single visits, with intervals from within each."
                .to_owned(),
        );
    }
    if record.map.as_ref().is_some_and(|map| map.provisional) {
        all.push("The map is provisional: more was to be measured.".to_owned());
    }
    if record.end.is_none() {
        all.push(
            "The record has no last line: the run was killed, or it was still going.".to_owned(),
        );
    }
    all
}
