//! Filesystems mounted for a test; that takes root.

use std::path::{Path, PathBuf};

use crate::danger::{run, skipped};

/// A filesystem on a directory, until dropped.
pub(crate) struct Mount {
    point: PathBuf,
}

impl Mount {
    /// What `mount` makes of these arguments, on a directory that it may have to make.
    pub(crate) fn make(point: &Path, arguments: &[&str]) -> Result<Self, String> {
        std::fs::create_dir_all(point).unwrap();
        run("mount", &[arguments, &[point.to_str().unwrap()]].concat())?;
        Ok(Self { point: point.to_owned() })
    }

    /// One in memory; none, said loudly, where that cannot be.
    pub(crate) fn tmpfs(point: &Path, options: &str) -> Option<Self> {
        let made = Self::make(point, &["-t", "tmpfs", "-o", options, "ioscape-test"]);
        made.map_err(skipped).ok()
    }

    /// One that `program` makes in an image of its own, beside the directory.
    pub(crate) fn of_image(point: &Path, program: &str, options: &str) -> Result<Self, String> {
        // The smallest that all of them take.
        const LENGTH: u64 = 320 << 20;
        let image = point.with_extension("image");
        std::fs::File::create(&image).unwrap().set_len(LENGTH).unwrap();
        let image = image.to_str().unwrap();
        run(program, &["-q", image])?;
        Self::make(point, &["-o", &format!("loop,{options}"), image])
    }

    pub(crate) fn point(&self) -> &Path {
        &self.point
    }

    /// The same with other options.
    pub(crate) fn change(&self, options: &str) {
        let options = format!("remount,{options}");
        run("mount", &["-o", &options, self.point.to_str().unwrap()]).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a test that failed may have left a file open there.
        run("umount", &["-l", self.point.to_str().unwrap()]).ok();
    }
}
