//! Filesystems and block devices made for a test, which takes root.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ioscape_engine::Clock;

/// Length of the images that filesystems are made in, bytes: enough for all kinds. They are sparse.
const IMAGE_BYTES: u64 = 512 << 20;

/// Runs a program to its end; what it printed, or what it complained of.
///
/// # Errors
/// When it cannot be run or fails: in its own words.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A filesystem on a directory, until dropped.
pub struct Mount {
    point: PathBuf,
}

impl Mount {
    /// Mounts on a directory, which is made where it is missing.
    ///
    /// # Errors
    /// What `mount` says.
    pub fn make(point: &Path, arguments: &[&str]) -> Result<Self, String> {
        std::fs::create_dir_all(point).unwrap();
        run("mount", &[arguments, &[text(point)]].concat())?;
        Ok(Self { point: point.to_owned() })
    }

    /// One in memory.
    ///
    /// # Errors
    /// What `mount` says.
    pub fn tmpfs(point: &Path, options: &str) -> Result<Self, String> {
        Self::make(point, &["-t", "tmpfs", "-o", options, "ioscape-test"])
    }

    /// One on a loop device over an image beside the directory, which the page cache holds once
    /// more.
    ///
    /// # Errors
    /// What `mkfs` or `mount` says.
    pub fn of_image(point: &Path, filesystem: &str, options: &str) -> Result<Self, String> {
        let image = Self::image(point);
        File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        run(&format!("mkfs.{filesystem}"), &["-q", text(&image)])?;
        Self::make(point, &["-o", &format!("loop,{options}"), text(&image)])
    }

    /// Where the image of a filesystem lies.
    pub fn image(point: &Path) -> PathBuf {
        point.with_extension("image")
    }

    /// The directory.
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// Mounts it anew with other options.
    pub fn change(&self, options: &str) {
        run("mount", &["-o", &format!("remount,{options}"), text(&self.point)]).unwrap();
    }

    fn is_mounted(&self) -> bool {
        let device = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.dev()).ok();
        self.point.parent().is_some_and(|above| device(&self.point) != device(above))
    }
}

impl Drop for Mount {
    /// The kernel takes rings of io_uring apart after the process has closed them, and the files
    /// they know stay open until then. Whoever still holds a file after a minute leaks it.
    fn drop(&mut self) {
        let clock = Clock::start();
        for _ in 0..1200 {
            if !self.is_mounted() || run("umount", &[text(&self.point)]).is_ok() {
                return;
            }
            clock.sleep_until(clock.now_ns() + 50_000_000);
        }
        run("umount", &["--lazy", text(&self.point)]).ok();
        assert!(std::thread::panicking(), "somebody still uses {}", self.point.display());
    }
}

/// A loop device, detached when dropped.
pub struct LoopDevice {
    path: String,
}

impl LoopDevice {
    /// Over an image; `flags` are `losetup`'s.
    ///
    /// # Errors
    /// What `losetup` says.
    pub fn over(image: &Path, flags: &[&str]) -> Result<Self, String> {
        let path = run("losetup", &[&["--find", "--show"], flags, &[text(image)]].concat())?;
        Ok(Self { path })
    }

    /// The device's path.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.path]).map_err(|why| eprintln!("{why}")).ok();
    }
}
