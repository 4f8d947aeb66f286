//! The programs that started this process: a launcher among them is known by its name, whatever became
//! of the environment that it left.

use std::path::PathBuf;

/// Programs between a launcher and its ranks, by how their names begin.
const LAUNCHERS: [&str; 7] =
    ["hydra_pmi_proxy", "orted", "orterun", "prted", "prterun", "mpiexec", "mpirun"];
/// So far up are parents looked at.
const PARENTS_MAX: usize = 6;

/// The MPI launcher that started this process: its path, or its name where the kernel keeps the path from
/// this user. It is found, too, where `sudo` has emptied the environment in between, so that each rank
/// would take itself for the only one.
pub fn launcher_above() -> Option<PathBuf> {
    launchers_above().next()
}

/// Launchers among the parents, the nearest first.
pub(crate) fn launchers_above() -> impl Iterator<Item = PathBuf> {
    let parents = std::iter::successors(parent("self"), |process| parent(&process.to_string()));
    // The path of another user's program is not told, its name is.
    let program = |parent: u32| {
        let name = || std::fs::read_to_string(format!("/proc/{parent}/comm")).ok();
        let path = std::fs::read_link(format!("/proc/{parent}/exe")).ok();
        path.or_else(|| Some(PathBuf::from(name()?.trim())))
    };
    let programs = parents.take(PARENTS_MAX).filter_map(program);
    programs.filter(|program| {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        LAUNCHERS.iter().any(|launcher| name.starts_with(launcher))
    })
}

fn parent(process: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|parent| *parent > 0)
}
