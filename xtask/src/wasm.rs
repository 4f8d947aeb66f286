//! The module of WebAssembly that pages carry: how it is made, and whether it was made from the
//! sources as they are. It is kept in the repository, so that building ioscape takes no more than
//! the usual toolchain.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use crate::{Source, Workspace};

const PACKAGE: &str = "ioscape-page-predictor";
const TARGET: &str = "wasm32-unknown-unknown";
/// The profile of the workspace's manifest that it is compiled with.
const PROFILE: &str = "page";
const MODULE: &str = "crates/report/assets/predictor.wasm";
/// The fingerprint of the sources that the module was made from, and of the module.
const FINGERPRINT: &str = "crates/report/assets/predictor.fingerprint";

/// The files whose code is in the module; a directory is meant with everything under it.
const SOURCES: [&str; 18] = [
    "crates/page-predictor/src/",
    "crates/analysis/src/model.rs",
    "crates/analysis/src/model/",
    "crates/analysis/src/predict.rs",
    "crates/analysis/src/predict/",
    "crates/model/src/answer.rs",
    "crates/model/src/graph.rs",
    "crates/model/src/line.rs",
    "crates/model/src/region.rs",
    "crates/model/src/rules.rs",
    "crates/model/src/units.rs",
    "crates/model/src/warning.rs",
    "crates/model/src/word.rs",
    "crates/model/src/workload.rs",
    "crates/stats/src/gaussian_process.rs",
    "crates/stats/src/interval.rs",
    "crates/stats/src/least_squares.rs",
    "crates/stats/src/monotone.rs",
];

/// Compiles the module and stores it with its fingerprint.
///
/// # Errors
/// When it cannot be compiled or stored.
pub fn build(root: &Path) -> io::Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["rustc", "--locked", "--package", PACKAGE, "--profile", PROFILE])
        .args(["--crate-type", "cdylib", "--target", TARGET, "--target-dir", "target"])
        .env("RUSTFLAGS", format!("--remap-path-prefix={}=cargo", cargo_home().display()))
        .current_dir(root)
        .status()?;
    if !status.success() {
        let remedy = format!("if the target is missing, `rustup target add {TARGET}`");
        return Err(io::Error::other(format!("{PACKAGE} could not be compiled: {remedy}")));
    }
    let file = format!("{}.wasm", PACKAGE.replace('-', "_"));
    let module = fs::read(root.join("target").join(TARGET).join(PROFILE).join(file))?;
    fs::write(root.join(MODULE), &module)?;
    let fingerprint = fingerprint(&Workspace::read(root)?.sources, &module);
    fs::write(root.join(FINGERPRINT), format!("{fingerprint}\n"))
}

/// Whether the stored module was made from these sources.
///
/// # Errors
/// When there is none.
pub fn is_fresh(root: &Path, sources: &[Source]) -> io::Result<bool> {
    let stored = fs::read_to_string(root.join(FINGERPRINT))?;
    Ok(stored.trim() == fingerprint(sources, &fs::read(root.join(MODULE))?))
}

/// Paths of the list of sources that there are none of.
pub fn missing(sources: &[Source]) -> Vec<&'static str> {
    let is_missing = |path: &&str| !sources.iter().any(|source| source.path.starts_with(path));
    SOURCES.into_iter().filter(is_missing).collect()
}

/// Tells whether anything of it changed: the code of [`SOURCES`], without comments and tests, and
/// the module itself, so that neither is handed in without the other.
fn fingerprint(sources: &[Source], module: &[u8]) -> String {
    let is_in_it = |source: &&Source| SOURCES.iter().any(|path| source.path.starts_with(path));
    let mut hash = Fnv::default();
    for source in sources.iter().filter(is_in_it) {
        let production = source.production();
        let lines = source.text.lines().zip(production.lines());
        for (line, _) in lines.filter(|(_, code)| !code.trim().is_empty()) {
            hash.add(line.as_bytes());
        }
    }
    hash.add(module);
    format!("{:016x}", hash.0)
}

/// Fowler, Noll and Vo's hash, FNV-1a of 64 bits: nobody is to be kept from forging it.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Where cargo keeps the sources of dependencies: panics name their files, the module must not say
/// on which machine it was made.
fn cargo_home() -> PathBuf {
    let usual = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(usual, PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_usual_one() {
        let mut hash = Fnv::default();
        hash.add(b"foobar");
        assert_eq!(hash.0, 0x8594_4171_f739_67e8);
    }

    #[test]
    fn code_and_module_count_but_comments_tests_and_other_files_do_not() {
        let at = |path: &str, text: &str| fingerprint(&[Source::new(path, text)], b"module");
        let (inside, outside) = ("crates/analysis/src/predict.rs", "crates/analysis/src/border.rs");
        let plain = at(inside, "fn a() {}\n");
        assert_eq!(at(inside, "// Why.\nfn a() {}\n\n#[cfg(test)]\nmod tests {}\n"), plain);
        assert_ne!(at(inside, "fn b() {}\n"), plain);
        assert_ne!(at(inside, "fn a() {}\nconst B: &str = \"b\";\n"), plain);
        assert_eq!(at(outside, "fn a() {}\n"), at(outside, "fn b() {}\n"));
        let other = fingerprint(&[Source::new(inside, "fn a() {}\n")], b"other");
        assert_ne!(other, plain);
    }
}
