//! What a page is known by again: the runs that it shows.

use ioscape_model::Record;

/// The element in the head of a page that names the runs of these records. A page that holds it is
/// about the same records, and may be written anew.
pub fn page_mark<'a>(records: impl IntoIterator<Item = &'a Record>) -> String {
    let runs: Vec<&str> = records.into_iter().map(|record| record.header.run_id.as_str()).collect();
    // A record may come from anywhere: its name must not end the attribute.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '.' | '_');
    let runs: String = runs.join(" ").chars().map(|c| if plain(c) { c } else { '_' }).collect();
    format!("<meta name=\"ioscape-runs\" content=\"{runs}\">")
}
