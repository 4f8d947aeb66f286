//! Where an MPI library may be, the likeliest first: with the launcher, then by the loader's own
//! search, then where installations have it.
//!
//! With the launcher comes first because of the worst case: `mpirun` of one version from a module and a
//! library of another in the loader's cache.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::ancestors::launchers_above;
use crate::launch::{Environment, Launcher};

const OPEN_MPI_NAMES: [&str; 6] = [
    "libmpi.so.40",
    "libmpi_abi.so.1",
    "libmpi_abi.so.0",
    "libmpi.so.80",
    "libmpi.so.20",
    "libmpi.so",
];
const MPICH_NAMES: [&str; 5] =
    ["libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi.so.12", "libmpich.so.12", "libmpi.so"];

/// Paths and names to try in turn.
pub(super) fn candidates(launcher: Launcher, environment: &Environment<'_>) -> Vec<String> {
    let names: &[&str] = match launcher {
        Launcher::OpenMpi | Launcher::Pmix => &OPEN_MPI_NAMES,
        Launcher::Pmi => &MPICH_NAMES,
    };
    let mut found = files(&of_launcher(environment), names);
    found.extend(names.iter().map(|name| (*name).to_owned()));
    if launcher == Launcher::Pmix {
        found.extend(MPICH_NAMES.iter().map(|name| (*name).to_owned()));
    }
    found.extend(files(&installed(environment), names));
    let mut seen = HashSet::new();
    found.retain(|name| seen.insert(name.clone()));
    found
}

/// Files of these names in folders.
fn files(folders: &[PathBuf], names: &[&str]) -> Vec<String> {
    let paths = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    paths.filter(|path| path.exists()).map(|path| path.display().to_string()).collect()
}

/// Folders of libraries beside the launcher.
fn of_launcher(environment: &Environment<'_>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        environment("OMPI_LIBDIR_LOC").map(PathBuf::from).into_iter().collect();
    folders.extend(environment("OPAL_PREFIX").map(|prefix| Path::new(&prefix).join("lib")));
    folders.extend(launchers_above().flat_map(|program| beside(&program)));
    folders
}

/// `../lib` and `../lib64` of a program, but not those of the whole system: the loader knows these
/// better.
fn beside(program: &Path) -> Vec<PathBuf> {
    let Some(prefix) = program.parent().and_then(Path::parent) else { return Vec::new() };
    if prefix == Path::new("/usr") || prefix == Path::new("/") {
        return Vec::new();
    }
    ["lib", "lib64"].map(|folder| prefix.join(folder)).into()
}

/// Folders that installations have.
fn installed(environment: &Environment<'_>) -> Vec<PathBuf> {
    let homes = ["MPI_HOME", "MPI_ROOT", "I_MPI_ROOT"].into_iter().filter_map(environment);
    let mut folders: Vec<PathBuf> = homes.map(|home| Path::new(&home).join("lib")).collect();
    folders.extend(["/usr/lib64/openmpi/lib", "/usr/lib64/mpich/lib"].map(PathBuf::from));
    let search = environment("PATH").unwrap_or_default();
    let mut programs = search.split(':').map(|folder| Path::new(folder).join("mpirun"));
    let program = programs.find_map(|program| program.canonicalize().ok());
    folders.extend(program.iter().flat_map(|program| beside(program)));
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_with_the_launcher_comes_before_what_the_loader_finds() {
        let folder = std::env::temp_dir().join(format!("mpi-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("lib")).unwrap();
        std::fs::write(folder.join("lib/libmpi.so.40"), "").unwrap();
        let prefix = folder.display().to_string();
        let environment = |name: &str| (name == "OPAL_PREFIX").then(|| prefix.clone());
        let found = candidates(Launcher::OpenMpi, &environment);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found[0], format!("{prefix}/lib/libmpi.so.40"));
        assert_eq!(found[1], "libmpi.so.40");
    }

    #[test]
    fn each_family_has_names_of_its_own() {
        let found = |launcher| candidates(launcher, &|_| None);
        assert!(found(Launcher::Pmi).contains(&"libmpich.so.12".to_owned()));
        assert!(!found(Launcher::OpenMpi).contains(&"libmpich.so.12".to_owned()));
        assert!(found(Launcher::Pmix).contains(&"libmpi.so.12".to_owned()));
    }

    #[test]
    fn the_systems_own_folders_are_left_to_the_loader() {
        assert!(beside(Path::new("/usr/bin/mpirun")).is_empty());
        let venv = beside(Path::new("/opt/mpi/bin/mpirun"));
        assert_eq!(venv, [Path::new("/opt/mpi/lib"), Path::new("/opt/mpi/lib64")]);
    }
}
