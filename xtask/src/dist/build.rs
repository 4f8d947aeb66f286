//! Runs the toolchain: static binaries without a path of this machine in them, and the manual
//! pages and completions that the program makes of itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use super::Architecture;

/// Shells that completions are made for.
pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Builds the static binary; gives where it is. The toolchain's own linker is used, so that no
/// compiler for another processor is needed.
pub(super) fn binary(root: &Path, of: &Architecture, time_s: u64) -> io::Result<PathBuf> {
    let target = of.target;
    let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    let status = cargo(root)
        .args(["build", "--locked", "--release", "--package", "ioscape", "--target", target])
        .env("RUSTFLAGS", flags(root))
        .env(linker, "rust-lld")
        .env("SOURCE_DATE_EPOCH", time_s.to_string())
        .status()?;
    if !status.success() {
        let remedy = format!("if the target is missing, `rustup target add {target}`");
        return Err(io::Error::other(format!("no binary for {target}: {remedy}")));
    }
    Ok(root.join("target").join(target).join("release/ioscape"))
}

/// Places of this machine by names that are alike everywhere.
fn flags(root: &Path) -> String {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    format!("{} {}", remap(root, "/ioscape"), remap(&cargo_home(), "/cargo"))
}

fn cargo_home() -> PathBuf {
    let home = || env::home_dir().unwrap_or_default().join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).env("CARGO_INCREMENTAL", "0");
    // Everything lies where it is looked for.
    cargo.env("CARGO_TARGET_DIR", root.join("target"));
    cargo
}

/// Manual pages, and a file of completions for each of [`SHELLS`], made by the program in a
/// directory. They are the same for all processors, so the binary of this one makes them.
pub(super) fn pages(root: &Path, out: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(out)?;
    let native = super::ARCHITECTURES
        .iter()
        .find(|architecture| architecture.name == env::consts::ARCH)
        .ok_or_else(|| io::Error::other("packages are made on x86_64 or aarch64"))?;
    let program = binary(root, native, super::time_s(root).unwrap_or(0))?;
    let program = program.display().to_string();
    output(root, &program, &["man", "--out", &out.display().to_string()])?;
    for shell in SHELLS {
        fs::write(out.join(shell), output(root, &program, &["completions", shell])?)?;
    }
    Ok(out.to_owned())
}

/// Copies what belongs to the repository, uncommitted changes included.
pub(super) fn copy_sources(root: &Path, to: &Path) -> io::Result<()> {
    let names = output(root, "git", &["ls-files", "-co", "--exclude-standard"])?;
    for name in names.lines().filter(|name| root.join(name).is_file()) {
        let place = to.join(name);
        fs::create_dir_all(place.parent().unwrap_or(to))?;
        fs::copy(root.join(name), place)?;
    }
    Ok(())
}

/// What a program prints.
pub(super) fn output(root: &Path, program: &str, arguments: &[&str]) -> io::Result<String> {
    let answer = Command::new(program).args(arguments).current_dir(root).output()?;
    if !answer.status.success() {
        let why = String::from_utf8_lossy(&answer.stderr).into_owned();
        return Err(io::Error::other(format!("{program} {}: {why}", arguments.join(" "))));
    }
    String::from_utf8(answer.stdout).map_err(io::Error::other)
}
