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
    let linker = format!("CARGO_TARGET_{}_LINKER", of.target.to_uppercase().replace('-', "_"));
    let mut cargo = cargo(root);
    cargo.args(["build", "--target", of.target]).env(linker, "rust-lld");
    let remedy = format!("if the target is missing, `rustup target add {}`", of.target);
    release(root, cargo, (of.target, time_s), &remedy)
}

/// Builds a release, of whatever target the command names; gives where the binary is.
fn release(
    root: &Path,
    mut cargo: Command,
    (target, time_s): (&str, u64),
    remedy: &str,
) -> io::Result<PathBuf> {
    let status = cargo
        .args(["--locked", "--release", "--package", "ioscape"])
        .env("RUSTFLAGS", flags(root))
        .env("SOURCE_DATE_EPOCH", time_s.to_string())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("no binary for {target}: {remedy}")));
    }
    Ok(root.join("target").join(target).join("release/ioscape"))
}

/// The oldest glibc that the dynamic binaries run on, as have all systems since RHEL 7.
pub(super) const GLIBC: &str = "2.17";

/// Builds the binary that loads the system's libraries, MPI among them; gives where it is. Linked
/// on a newer system it would ask for that system's glibc, so zig links it against the old one.
pub(super) fn dynamic_binary(root: &Path, of: &Architecture, time_s: u64) -> io::Result<PathBuf> {
    let target = of.dynamic_target;
    let mut cargo = cargo(root);
    cargo.args(["zigbuild", "--target", &format!("{target}.{GLIBC}")]);
    let remedy = format!(
        "`pip install cargo-zigbuild` and `rustup target add {target}`, or leave it out by \
         `--static-only`"
    );
    release(root, cargo, (target, time_s), &remedy)
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
