//! `cargo xtask dist`: everything that is handed out, out of the sources as they are. Static
//! binaries for musl, archives, packages for Debian and for RPM, a container image, checksums.
//!
//! Beside each static archive lies one with a binary for glibc, which can load MPI: a static one cannot.
//!
//! Built twice from the same commit the files are to be equal, byte for byte: paths are cut off,
//! times are the commit's, entries stand in the order of their names. `--twice` checks it.

mod build;
mod deb;
mod image;
mod rpm;
mod tree;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

/// What is asked for.
struct Request {
    out: PathBuf,
    architectures: Vec<Architecture>,
    /// The dynamic binaries, which can load MPI, are left out.
    static_only: bool,
    /// Whether all of it is made a second time, elsewhere, and held against the first.
    twice: bool,
}

/// A processor that binaries are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Architecture {
    /// As RPM and archives call it.
    name: &'static str,
    /// As Debian does.
    debian: &'static str,
    /// As containers do.
    container: &'static str,
    /// The toolchain's target for static binaries.
    target: &'static str,
    /// Its target for binaries that load the system's libraries.
    dynamic_target: &'static str,
}

const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        name: "x86_64",
        debian: "amd64",
        container: "amd64",
        target: "x86_64-unknown-linux-musl",
        dynamic_target: "x86_64-unknown-linux-gnu",
    },
    Architecture {
        name: "aarch64",
        debian: "arm64",
        container: "arm64",
        target: "aarch64-unknown-linux-musl",
        dynamic_target: "aarch64-unknown-linux-gnu",
    },
];

/// What every package says of itself.
struct Release {
    version: String,
    /// Of the commit, seconds since 1970.
    time_s: u64,
}

const SUMMARY: &str = "maps storage: caches, request sizes, concurrency, and predicts the rest";
const HOMEPAGE: &str = "https://github.com/ioscape/ioscape";
const LICENSE: &str = "MIT OR Apache-2.0";
const MAINTAINER: &str = "The ioscape authors <ioscape@users.noreply.github.com>";

/// Makes it.
///
/// # Errors
/// When something cannot be built, written, or differs from its second making.
pub fn run(root: &Path, arguments: &[&str]) -> io::Result<()> {
    let request = request(root, arguments)?;
    let release = Release { version: version(root)?, time_s: time_s(root)? };
    let made = make(root, &request.out, &request, &release)?;
    if request.twice {
        compare(root, &request, &release, &made)?;
    }
    for (name, sum, bytes) in &made {
        say(&format!("{sum}  {name}  {bytes} bytes"))?;
    }
    Ok(())
}

fn request(root: &Path, arguments: &[&str]) -> io::Result<Request> {
    let mut request = Request {
        out: root.join("target/dist"),
        architectures: ARCHITECTURES.to_vec(),
        static_only: false,
        twice: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--twice" => request.twice = true,
            "--static-only" => request.static_only = true,
            "--out" => request.out = PathBuf::from(value(word, words.next())?),
            "--arch" => {
                let name = value(word, words.next())?;
                request.architectures.retain(|architecture| architecture.name == name);
            }
            _ => return Err(wrong()),
        }
    }
    if request.architectures.is_empty() { Err(wrong()) } else { Ok(request) }
}

fn value<'a>(flag: &str, value: Option<&&'a str>) -> io::Result<&'a str> {
    value.copied().ok_or_else(|| io::Error::other(format!("{flag} needs a value")))
}

fn wrong() -> io::Error {
    io::Error::other(
        "cargo xtask dist [--out DIR] [--arch x86_64|aarch64] [--static-only] [--twice]",
    )
}

/// Name, checksum and length of each file.
type Made = Vec<(String, String, usize)>;

fn make(root: &Path, out: &Path, request: &Request, release: &Release) -> io::Result<Made> {
    if out.is_dir() {
        fs::remove_dir_all(out)?;
    }
    fs::create_dir_all(out)?;
    let pages = build::pages(root, &out.join("pages"))?;
    let mut made = Vec::new();
    let mut keep = |name: String, bytes: &[u8]| -> io::Result<()> {
        fs::write(out.join(&name), bytes)?;
        made.push((name, checksum(bytes), bytes.len()));
        Ok(())
    };
    for architecture in &request.architectures {
        say(&format!("binary for {}", architecture.target))?;
        let binary = fs::read(build::binary(root, architecture, release.time_s)?)?;
        let tree = tree::installed(root, binary, &pages, release)?;
        let stem = format!("ioscape-{}-{}", release.version, architecture.name);
        let files = [
            (format!("{stem}.tar.gz"), tree::archive(&tree, &stem, release.time_s)?),
            (deb::name(release, architecture), deb::package(&tree, release, architecture)?),
            (rpm::name(release, architecture), rpm::package(&tree, release, architecture)?),
            (format!("{stem}-image.tar"), image::image(&tree, release, architecture)?),
        ];
        for (name, bytes) in files {
            keep(name, &bytes)?;
        }
        if !request.static_only {
            say(&format!("binary for {}", architecture.dynamic_target))?;
            let binary = fs::read(build::dynamic_binary(root, architecture, release.time_s)?)?;
            let tree = tree::installed(root, binary, &pages, release)?;
            let stem = format!("{stem}-glibc{}", build::GLIBC);
            keep(format!("{stem}.tar.gz"), &tree::archive(&tree, &stem, release.time_s)?)?;
        }
    }
    fs::remove_dir_all(out.join("pages"))?;
    keep("install.sh".to_owned(), &fs::read(root.join("install.sh"))?)?;
    let lines: Vec<String> = made.iter().map(|(name, sum, _)| format!("{sum}  {name}\n")).collect();
    fs::write(out.join("SHA256SUMS"), lines.concat())?;
    Ok(made)
}

/// Makes all of it again from a copy of the sources at another place.
fn compare(root: &Path, request: &Request, release: &Release, made: &Made) -> io::Result<()> {
    let elsewhere = env::temp_dir().join(format!("ioscape-dist-{}", std::process::id()));
    let outcome = build::copy_sources(root, &elsewhere).and_then(|()| {
        let out = elsewhere.join("target/dist");
        make(&elsewhere, &out, request, release)
    });
    fs::remove_dir_all(&elsewhere).ok();
    let differs: Vec<String> = made
        .iter()
        .zip(&outcome?)
        .filter(|(one, other)| one != other)
        .map(|((name, ..), _)| name.clone())
        .collect();
    if !differs.is_empty() {
        let names = differs.join(", ");
        return Err(io::Error::other(format!("made twice, and different: {names}")));
    }
    say("made twice, and equal")
}

fn checksum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn version(root: &Path) -> io::Result<String> {
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let manifest: toml::Table = text.parse().map_err(io::Error::other)?;
    let package = manifest.get("workspace").and_then(|table| table.get("package"));
    let version = package.and_then(|table| table.get("version")).and_then(toml::Value::as_str);
    version.map(str::to_owned).ok_or_else(|| io::Error::other("Cargo.toml has no version"))
}

/// `SOURCE_DATE_EPOCH` where it is set, the time of the last commit otherwise.
fn time_s(root: &Path) -> io::Result<u64> {
    let text = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => build::output(root, "git", &["log", "-1", "--format=%ct"])?,
    };
    text.trim().parse().map_err(|_| io::Error::other(format!("`{}` is no time", text.trim())))
}

fn say(line: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_understood_or_refused() {
        let root = Path::new("/r");
        let all = request(root, &[]).unwrap();
        assert_eq!((all.architectures.len(), all.twice), (2, false));
        let one = request(root, &["--arch", "aarch64", "--twice", "--out", "d"]).unwrap();
        assert_eq!(one.architectures[0].debian, "arm64");
        assert!(one.twice && !one.static_only && one.out == Path::new("d"));
        assert!(request(root, &["--static-only"]).unwrap().static_only);
        for bad in [&["--arch", "vax"][..], &["--out"], &["now"]] {
            assert!(request(root, bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum(b""), empty);
    }
}
