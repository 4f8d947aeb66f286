//! The system vector in words: groups of rows, the same on the page and in the terminal.

use ioscape_model::units::{MIB, show_percent, show_seconds};
use ioscape_model::{Element, ElementName, Record};

/// Operations that belong together.
pub(crate) struct VectorGroup {
    pub(crate) title: &'static str,
    pub(crate) rows: Vec<VectorRow>,
}

/// An element as it is shown; a term that is 0 is empty.
pub(crate) struct VectorRow {
    pub(crate) name: &'static str,
    /// `5.01 ms ±1.1 %`.
    pub(crate) time: String,
    pub(crate) per_call: String,
    pub(crate) per_mib: String,
    pub(crate) per_page: String,
    pub(crate) per_extent: String,
    pub(crate) operations: u64,
    pub(crate) is_doubted: bool,
}

/// Titles, in the order in which they are shown.
const TITLES: [&str; 5] = [
    "Data",
    "Syncs: until data are on storage",
    "Names: opening, creating, looking up and removing files",
    "Mappings and copies",
    "Processes and calls",
];

fn title(name: ElementName) -> &'static str {
    use ElementName as N;
    TITLES[match name {
        N::ReadHit
        | N::ReadRandomMiss
        | N::ReadSequentialMiss
        | N::WriteCached
        | N::WritePartialCached
        | N::WritePartialMiss
        | N::Append
        | N::AppendUnaligned
        | N::DirectRead
        | N::DirectWrite
        | N::RingReadHit
        | N::WriteBack
        | N::WriteBackRandom => 0,
        N::WriteDsync
        | N::SyncClean
        | N::SyncOverwritten
        | N::SyncGrown
        | N::SyncNew
        | N::SyncDirectory => 1,
        N::Map
        | N::FaultCached
        | N::FaultMissed
        | N::FaultWrite
        | N::FaultAnonymous
        | N::CopyRange
        | N::Sendfile => 3,
        N::Lock
        | N::Fstat
        | N::Seek
        | N::Descriptor
        | N::Exec
        | N::Fork
        | N::Thread
        | N::Pipe
        | N::Processor => 4,
        _ => 2,
    }]
}

/// The groups of a record's vector; none where it has none.
pub(crate) fn groups(record: &Record) -> Vec<VectorGroup> {
    let group = |wanted: &'static str| {
        let of_it = record.elements.iter().filter(|element| title(element.name) == wanted);
        VectorGroup { title: wanted, rows: of_it.map(row).collect() }
    };
    TITLES.into_iter().map(group).filter(|group| !group.rows.is_empty()).collect()
}

fn row(element: &Element) -> VectorRow {
    let Element { name, time_s, terms, operations, warnings } = element;
    let half = (time_s.high - time_s.low) / 2.0 / time_s.value.max(f64::MIN_POSITIVE);
    let term = |seconds: f64| if seconds > 0.0 { show_seconds(seconds) } else { String::new() };
    VectorRow {
        name: name.word(),
        time: format!("{} ±{}", show_seconds(time_s.value), show_percent(half)),
        per_call: term(terms.per_call_s),
        per_mib: term(terms.per_byte_s * MIB as f64),
        per_page: term(terms.per_page_s),
        per_extent: term(terms.per_extent_s),
        operations: *operations,
        is_doubted: !warnings.is_empty(),
    }
}

/// What the figures are, and what is doubtful about them, each doubt once.
pub(crate) fn notes(record: &Record) -> Vec<String> {
    if record.elements.is_empty() {
        return Vec::new();
    }
    let mut notes = vec![
        "Time of one operation as it usually is, with its 95 % interval from the rounds, and what \
         each call, MiB, page and piece add to it."
            .to_owned(),
    ];
    let mut seen: Vec<(&str, Vec<&str>)> = Vec::new();
    for element in &record.elements {
        for warning in &element.warnings {
            let name = element.name.word();
            match seen.iter_mut().find(|(text, _)| *text == warning.text) {
                Some((_, names)) => names.push(name),
                None => seen.push((&warning.text, vec![name])),
            }
        }
    }
    notes.extend(seen.into_iter().map(|(text, names)| format!("* {}: {text}.", names.join(", "))));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use ioscape_model::{Code, Figure, Terms, Warning};

    #[test]
    fn a_row_says_its_terms_and_leaves_out_what_is_none() {
        let element = Element {
            name: ElementName::SyncOverwritten,
            time_s: Figure { value: 5.01e-3, low: 4.96e-3, high: 5.07e-3 },
            terms: Terms { per_call_s: 2.5e-3, per_extent_s: 2.5e-3, ..Terms::default() },
            operations: 400,
            warnings: vec![Warning::new(Code::TooFewRepeats, "few", "more")],
        };
        let row = row(&element);
        assert!(row.time.starts_with("5.01 ms ±1"), "{}", row.time);
        assert_eq!(
            [row.per_call, row.per_mib, row.per_page, row.per_extent],
            ["2.50 ms", "", "", "2.50 ms"]
        );
        assert!(row.is_doubted);
        assert_eq!(title(element.name), TITLES[1]);
    }
}
