//! Text files that somebody wrote or that came from elsewhere: read up to a length, and no further.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// More than anybody types into a description.
pub(crate) const TYPED_BYTES_MAX: u64 = 1 << 20;

/// A file's text.
///
/// # Errors
/// What is wrong with it, without its name.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<String, String> {
    let file = File::open(path).map_err(|error| format!("cannot open it: {error}"))?;
    let mut text = String::new();
    let read = file.take(bytes_max + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot read it: {error}"))?;
    if text.len() as u64 > bytes_max {
        return Err(format!("it is larger than {} MiB: is it the right file?", bytes_max >> 20));
    }
    Ok(text)
}
