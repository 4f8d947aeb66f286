//! Files that somebody asked for: a page, a table, a document. Each is written under another name
//! beside its place and takes that place when it is whole, so nothing torn is left and what was
//! there before stays until then. Records, which grow line by line, are in `journal`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::exit::usage;

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It may be anybody's, and stays; the new one is refused.
    Kept,
    /// It was looked at and may go.
    Replaced,
}

/// Writes a file, or a stream such as a pipe. `flag` is what names another place.
///
/// # Errors
/// One line with the path; nothing of the file is left then.
pub(crate) fn write(
    path: &Path,
    bytes: &[u8],
    existing: Existing,
    flag: &str,
) -> anyhow::Result<()> {
    write_all(&[(path.to_owned(), bytes.to_vec())], existing, flag)
}

/// Writes several files, all of them or none.
///
/// # Errors
/// One line with the path of the one that could not be written.
pub(crate) fn write_all(
    files: &[(PathBuf, Vec<u8>)],
    existing: Existing,
    flag: &str,
) -> anyhow::Result<()> {
    let mut parts = Vec::new();
    for (path, bytes) in files {
        parts.push((path, write_part(path, bytes).map_err(|error| failed(path, error, flag))?));
    }
    for (number, (path, part)) in parts.iter().enumerate() {
        let Some(part) = part else { continue };
        if let Err(error) = part.take_place(existing) {
            // What was there before has gone already where it was to be replaced.
            let placed = parts[..number].iter().filter(|_| existing == Existing::Kept);
            for part in placed.filter_map(|(_, part)| part.as_ref()) {
                fs::remove_file(&part.place).ok();
            }
            return Err(failed(path, error, flag));
        }
    }
    Ok(())
}

/// Whether a file could be written, before much time is spent on what is to go there.
///
/// # Errors
/// One line with the path.
pub(crate) fn check(path: &Path, flag: &str) -> anyhow::Result<()> {
    let tried = match place(path) {
        Ok(Destination::File(place)) => Part::beside(place).map(drop),
        Ok(Destination::Stream) => Ok(()),
        Err(error) => Err(error),
    };
    tried.map_err(|error| failed(path, error, flag))
}

/// Whether a file could be made that is not there yet.
///
/// # Errors
/// One line with the path.
pub(crate) fn check_new(path: &Path, flag: &str) -> anyhow::Result<()> {
    refuse_existing(path, flag)?;
    check(path, flag)
}

/// A file that is there already is nobody's to overwrite.
///
/// # Errors
/// One line with the path.
pub(crate) fn refuse_existing(path: &Path, flag: &str) -> anyhow::Result<()> {
    if is_taken(path) {
        return Err(usage(format!("{} exists: choose another {flag}", path.display())));
    }
    Ok(())
}

/// Whether there is something of this name. A link that leads nowhere has the name as well.
pub(crate) fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Why a file cannot be written: the fault of its path, which is wrong usage, or of the storage.
pub(crate) fn failed(path: &Path, error: io::Error, flag: &str) -> anyhow::Error {
    let shown = path.display();
    let which = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => " in a directory that exists",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => " where this user may write",
        ErrorKind::AlreadyExists | ErrorKind::IsADirectory | ErrorKind::InvalidFilename => "",
        _ => return anyhow::Error::from(error).context(format!("cannot write {shown}")),
    };
    usage(format!("cannot write {shown}: {error}; choose another {flag}{which}"))
}

/// Where a path leads.
enum Destination {
    /// To a file that is to be, or is there and is no link.
    File(PathBuf),
    /// To a pipe, a terminal or the like, which is written as it is.
    Stream,
}

fn place(path: &Path) -> io::Result<Destination> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(Destination::Stream),
        // A link stays one: it is its end that is replaced.
        Ok(_) => fs::canonicalize(path).map(Destination::File),
        Err(_) => Ok(Destination::File(path.to_owned())),
    }
}

/// None for a stream, which has taken the bytes already.
fn write_part(path: &Path, bytes: &[u8]) -> io::Result<Option<Part>> {
    match place(path)? {
        Destination::File(place) => {
            let (part, mut file) = Part::beside(place)?;
            file.write_all(bytes)?;
            // Some filesystems find out only now that there is no room.
            file.sync_all().or_else(unless_unsupported)?;
            Ok(Some(part))
        }
        Destination::Stream => {
            let mut stream = OpenOptions::new().write(true).open(path)?;
            match stream.write_all(bytes) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                written => written?,
            }
            Ok(None)
        }
    }
}

fn unless_unsupported(error: io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    }
}

/// A file in the making. Dropped, it goes away, unless it has taken its place.
struct Part {
    path: PathBuf,
    place: PathBuf,
}

impl Part {
    /// An empty one beside its place, with the permissions of what is there.
    fn beside(place: PathBuf) -> io::Result<(Self, File)> {
        let first = std::process::id();
        for number in first.. {
            let path = place.with_file_name(format!(".ioscape-part-{number}"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let part = Self { path, place };
                    if let Ok(earlier) = fs::metadata(&part.place) {
                        file.set_permissions(earlier.permissions())?;
                    }
                    return Ok((part, file));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn take_place(&self, earlier: Existing) -> io::Result<()> {
        if earlier == Existing::Kept {
            // Unlike a rename, a second name for the part never takes the place of anything.
            match fs::hard_link(&self.path, &self.place) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {}
                linked => return linked,
            }
        }
        fs::rename(&self.path, &self.place)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_takes_its_place_whole_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(&at("a"), b"one", Existing::Kept, "--out").unwrap();
        let refused = write(&at("a"), b"two", Existing::Kept, "--out").unwrap_err();
        assert!(refused.to_string().contains("choose another --out"), "{refused}");
        assert_eq!(fs::read(at("a")).unwrap(), b"one");
        write(&at("a"), b"three", Existing::Replaced, "--out").unwrap();
        assert_eq!(fs::read(at("a")).unwrap(), b"three");
        check(&at("b"), "--out").unwrap();
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn of_several_files_all_are_written_or_none() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("b"), "mine").unwrap();
        let files = ["a", "b", "c"].map(|name| (at(name), b"new".to_vec()));
        write_all(&files, Existing::Kept, "--out").unwrap_err();
        assert_eq!(names(directory.path()), ["b"]);
        assert_eq!(fs::read(at("b")).unwrap(), b"mine");
    }

    #[test]
    fn a_link_and_permissions_stay_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("page"), "old").unwrap();
        fs::set_permissions(at("page"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("page", at("link")).unwrap();
        write(&at("link"), b"new", Existing::Replaced, "--out").unwrap();
        assert!(at("link").is_symlink());
        assert_eq!(fs::read(at("page")).unwrap(), b"new");
        assert_eq!(fs::metadata(at("page")).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_cannot_be_written_is_said_with_what_to_try() {
        let directory = tempfile::tempdir().unwrap();
        let said = |path: &Path| check(path, "--out").unwrap_err().to_string();
        assert!(said(&directory.path().join("no/a")).ends_with("in a directory that exists"));
        assert!(said(directory.path()).contains("is a directory; choose another --out"));
        symlink("nowhere", directory.path().join("link")).unwrap();
        let dangling = directory.path().join("link");
        assert!(refuse_existing(&dangling, "--out").is_err());
    }
}
