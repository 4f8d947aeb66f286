//! A package for Debian and what descends from it (deb(5), deb-control(5)): an `ar` archive of a
//! version, what the package says of itself, and the files.

use std::io;

use super::tree::{Installed, Tree, gzipped, tar};
use super::{Architecture, HOMEPAGE, MAINTAINER, Release, SUMMARY};

/// `ioscape_0.1.0-1_amd64.deb`.
pub(super) fn name(release: &Release, of: &Architecture) -> String {
    format!("ioscape_{}-1_{}.deb", release.version, of.debian)
}

/// The package.
pub(super) fn package(tree: &Tree, release: &Release, of: &Architecture) -> io::Result<Vec<u8>> {
    let inside = |path: &str, text: String| Installed::plain(path.to_owned(), text.into_bytes());
    let about = [inside("control", control(tree, release, of)), inside("md5sums", md5sums(tree))];
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzipped(&tar(&about, "./", release.time_s)?)?),
        ("data.tar.gz", gzipped(&tar(&tree.files, "./", release.time_s)?)?),
    ];
    let mut package = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let (time_s, length) = (release.time_s, bytes.len());
        let header =
            format!("{name:<16}{time_s:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, "100644");
        package.extend(header.into_bytes());
        package.extend(&bytes);
        if length % 2 == 1 {
            package.push(b'\n');
        }
    }
    Ok(package)
}

/// A static binary needs nothing.
fn control(tree: &Tree, release: &Release, of: &Architecture) -> String {
    let bytes: usize = tree.files.iter().map(|file| file.bytes.len()).sum();
    format!(
        "Package: ioscape\nVersion: {}-1\nArchitecture: {}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {}\nSection: utils\nPriority: optional\nHomepage: {HOMEPAGE}\n\
         Description: {SUMMARY}\n One command maps the storage under a directory within a time\n \
         budget; the map answers for workloads that nobody measured.\n",
        release.version,
        of.debian,
        bytes.div_ceil(1024)
    )
}

/// What `dpkg --verify` holds the installed files against.
fn md5sums(tree: &Tree) -> String {
    use md5::{Digest, Md5};
    let line =
        |file: &Installed| format!("{}  {}\n", super::hex(&Md5::digest(&file.bytes)), file.path);
    tree.files.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_an_archive_of_three_members_at_even_places() {
        let files = vec![Installed::program(vec![7])];
        let release = Release { version: "1.2.3".to_owned(), time_s: 1_700_000_000 };
        let of = &super::super::ARCHITECTURES[0];
        let package = package(&Tree { files }, &release, of).unwrap();
        let mut at = 8;
        let mut names = Vec::new();
        while at < package.len() {
            let header = std::str::from_utf8(&package[at..at + 60]).unwrap();
            assert!(header.ends_with("`\n"));
            names.push(header[..16].trim_end().to_owned());
            let length: usize = header[48..58].trim_end().parse().unwrap();
            at += 60 + length.next_multiple_of(2);
        }
        assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"]);
        assert_eq!(name(&release, of), "ioscape_1.2.3-1_amd64.deb");
    }
}
