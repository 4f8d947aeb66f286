//! Names of files. None is anybody's: a file is called by its number, in the directory that the trace
//! says. A file that was renamed has the name of the one it replaced, or a new one.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Deeper paths are cut: directories above these are left out.
const DEPTH_MAX: usize = 64;

/// Where a file is and how it is called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileLocation {
    directory: u32,
    number: u32,
    /// Tells a name that nobody had before from the file's first one, 0.
    life: u32,
}

/// The names of all files of a stage.
#[derive(Debug)]
pub(super) struct Names {
    directories: Vec<u32>,
    /// Files that are not called as at the start.
    renamed: RwLock<HashMap<u32, FileLocation>>,
    has_renamed: AtomicBool,
    lives: AtomicU32,
}

impl Names {
    /// By the directory of each file.
    pub(super) fn new(directories: Vec<u32>) -> Self {
        Self {
            directories,
            renamed: RwLock::default(),
            has_renamed: AtomicBool::new(false),
            lives: AtomicU32::new(0),
        }
    }

    fn place(&self, file: u32) -> FileLocation {
        if self.has_renamed.load(Ordering::Acquire)
            && let Some(place) = self.renamed.read().ok().and_then(|all| all.get(&file).copied())
        {
            return place;
        }
        let directory = self.directories.get(file as usize).copied().unwrap_or(0);
        FileLocation { directory, number: file, life: 0 }
    }

    /// Writes the path of a file, relative to the stage's directory.
    pub(super) fn path(&self, file: u32, path: &mut String) {
        path.clear();
        let mut chain = [FileLocation { directory: 0, number: 0, life: 0 }; DEPTH_MAX];
        let (mut depth, mut at) = (0, file);
        while at != 0 && depth < DEPTH_MAX {
            chain[depth] = self.place(at);
            at = chain[depth].directory;
            depth += 1;
        }
        for (above, place) in chain[..depth].iter().enumerate().rev() {
            let life = place.life;
            let written = match life {
                0 => write!(path, "f{}", place.number),
                _ => write!(path, "f{}.{life}", place.number),
            };
            debug_assert!(written.is_ok(), "text can always be written");
            if above > 0 {
                path.push('/');
            }
        }
    }

    /// The path that a file will have once it is renamed over `other`, or to a name that nobody has.
    pub(super) fn path_after(&self, file: u32, other: u32, path: &mut String) -> Renamed {
        let place = if other == file || other == 0 {
            let life = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
            FileLocation { life, ..self.place(file) }
        } else {
            self.place(other)
        };
        self.path(place.directory, path);
        if !path.is_empty() {
            path.push('/');
        }
        let written = match place.life {
            0 => write!(path, "f{}", place.number),
            life => write!(path, "f{}.{life}", place.number),
        };
        debug_assert!(written.is_ok(), "text can always be written");
        Renamed { file, place }
    }

    /// The file is called so from now on.
    pub(super) fn rename(&self, renamed: Renamed) {
        if let Ok(mut all) = self.renamed.write() {
            all.insert(renamed.file, renamed.place);
        }
        self.has_renamed.store(true, Ordering::Release);
    }
}

/// A new name, to be taken once the kernel has agreed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renamed {
    file: u32,
    place: FileLocation,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &Names, file: u32) -> String {
        let mut path = String::from("before");
        names.path(file, &mut path);
        path
    }

    #[test]
    fn a_file_is_called_by_its_number_below_its_directories() {
        let names = Names::new(vec![0, 0, 1, 2]);
        assert_eq!(path(&names, 3), "f1/f2/f3");
        assert_eq!(path(&names, 1), "f1");
        assert_eq!(path(&names, 0), "");
    }

    #[test]
    fn a_renamed_file_has_the_name_of_the_one_it_replaced_or_a_new_one() {
        let names = Names::new(vec![0, 0, 1, 0]);
        let mut to = String::new();
        let renamed = names.path_after(3, 2, &mut to);
        assert_eq!(to, "f1/f2");
        assert_eq!(path(&names, 3), "f3", "not before it is done");
        names.rename(renamed);
        assert_eq!(path(&names, 3), "f1/f2");
        let renamed = names.path_after(1, 1, &mut to);
        assert_eq!(to, "f1.1");
        names.rename(renamed);
        assert_eq!(path(&names, 3), "f1.1/f2", "what is in a directory goes with it");
    }

    #[test]
    fn directories_in_a_ring_make_a_path_that_ends() {
        let names = Names::new(vec![0, 2, 1]);
        assert!(path(&names, 1).len() < 1000);
    }
}
