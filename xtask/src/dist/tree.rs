//! The files that are installed, and archives of them that do not depend on when or where they
//! were made.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use flate2::{Compression, GzBuilder};

use super::Release;
use super::build::SHELLS;

/// Files by their paths below the root, in the order of these.
pub(super) struct Tree {
    pub(super) files: Vec<Installed>,
}

/// A file.
pub(super) struct Installed {
    /// Without a slash in front.
    pub(super) path: String,
    /// Permissions.
    pub(super) mode: u32,
    /// Number of the user and of the group that it belongs to.
    pub(super) owner: u64,
    pub(super) bytes: Vec<u8>,
}

impl Installed {
    /// A file that anybody may read, root's.
    pub(super) fn plain(path: String, bytes: Vec<u8>) -> Self {
        Self { path, mode: 0o644, owner: 0, bytes }
    }

    /// The program.
    pub(super) fn program(bytes: Vec<u8>) -> Self {
        Self { mode: 0o755, ..Self::plain(PROGRAM.to_owned(), bytes) }
    }
}

/// Where the program lies.
pub(super) const PROGRAM: &str = "usr/bin/ioscape";

/// Everything that a package installs.
pub(super) fn installed(
    root: &Path,
    binary: Vec<u8>,
    pages: &Path,
    release: &Release,
) -> io::Result<Tree> {
    let mut files = vec![Installed::program(binary)];
    let mut add = |path: String, bytes: Vec<u8>| files.push(Installed::plain(path, bytes));
    for entry in fs::read_dir(pages)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".1") {
            add(format!("usr/share/man/man1/{name}.gz"), gzipped(&fs::read(&path)?)?);
        }
    }
    let places = [
        "usr/share/bash-completion/completions/ioscape",
        "usr/share/zsh/vendor-completions/_ioscape",
        "usr/share/fish/vendor_completions.d/ioscape.fish",
    ];
    for (shell, place) in SHELLS.into_iter().zip(places) {
        add(place.to_owned(), fs::read(pages.join(shell))?);
    }
    // RPM's zsh looks elsewhere.
    add("usr/share/zsh/site-functions/_ioscape".to_owned(), fs::read(pages.join("zsh"))?);
    let doc = |name: &str| format!("usr/share/doc/ioscape/{name}");
    add(doc("copyright"), copyright(root)?.into_bytes());
    add(doc("changelog.gz"), gzipped(&fs::read(root.join("CHANGELOG.md"))?)?);
    add(doc("README.md"), fs::read(root.join("README.md"))?);
    add(doc("VERSION"), format!("{}\n", release.version).into_bytes());
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Tree { files })
}

fn copyright(root: &Path) -> io::Result<String> {
    let text = |name: &str| fs::read_to_string(root.join(name));
    Ok(format!("{}\n\nor, at your choice:\n\n{}", text("LICENSE-MIT")?, text("LICENSE-APACHE")?))
}

/// Compressed, without name and time.
pub(super) fn gzipped(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// A compressed archive of the files below `prefix`.
pub(super) fn archive(tree: &Tree, prefix: &str, time_s: u64) -> io::Result<Vec<u8>> {
    gzipped(&tar(&tree.files, &format!("{prefix}/"), time_s)?)
}

/// An archive of files with all directories above them, each before what is in it and owned by
/// whoever owns the first file there.
pub(super) fn tar(files: &[Installed], prefix: &str, time_s: u64) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut made: Vec<String> = Vec::new();
    for file in files {
        let path = format!("{prefix}{}", file.path);
        for (at, _) in path.match_indices('/') {
            let directory = path[..=at].to_owned();
            if directory != "./" && !made.contains(&directory) {
                let mut header = header(tar::EntryType::Directory, 0o755, 0, time_s);
                own(&mut header, file.owner);
                archive.append_data(&mut header, &directory, io::empty())?;
                made.push(directory);
            }
        }
        let length = file.bytes.len() as u64;
        let mut header = header(tar::EntryType::Regular, file.mode, length, time_s);
        own(&mut header, file.owner);
        archive.append_data(&mut header, &path, file.bytes.as_slice())?;
    }
    archive.into_inner()
}

fn header(kind: tar::EntryType, mode: u32, length: u64, time_s: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(length);
    header.set_mtime(time_s);
    header
}

fn own(header: &mut tar::Header, owner: u64) {
    header.set_uid(owner);
    header.set_gid(owner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_each_directory_once_before_what_is_in_it() {
        let file = |path: &str| Installed::plain(path.to_owned(), vec![1]);
        let bytes = tar(&[file("usr/bin/a"), file("usr/share/b")], "p/", 7).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let paths: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(
            paths,
            ["p/", "p/usr/", "p/usr/bin/", "p/usr/bin/a", "p/usr/share/", "p/usr/share/b"]
        );
    }

    #[test]
    fn the_same_bytes_are_compressed_alike() {
        assert_eq!(gzipped(b"one").unwrap(), gzipped(b"one").unwrap());
    }
}
