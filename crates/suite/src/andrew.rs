//! The Andrew benchmark (Howard and others 1988), as Ousterhout modified it in 1990: make
//! directories, copy a tree of sources into them, stat every file, read every byte, compile with
//! one compiler for one target.
//!
//! The tree is made here: the same everywhere, about 70 files and 200 KB, times a factor. The
//! compiler is a stand-in, a fixed amount of work for each byte, unless a real one is named. With
//! `processes`, files are copied by a command each, as the original did.

mod compiler;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ioscape_engine::error::{Error, Result};
use ioscape_engine::primitives::Usage;
use ioscape_model::TrialFigure;

use crate::benchmark::{Benchmark, Turn, seconds};
use crate::handle::Handle;
use crate::meter::{Call, Meter};
use crate::site::Site;
use tree::Tree;

/// Bytes that a program reads or writes at a time.
const BLOCK_BYTES: usize = 64 << 10;
/// Room that a file takes at least, bytes.
const FILE_ROOM_BYTES: u64 = 4096;

/// The benchmark.
#[derive(Debug, Default)]
pub struct Andrew {
    tree: Tree,
}

impl Benchmark for Andrew {
    fn room_bytes(&self, site: &Site) -> u64 {
        let tree = Tree::scaled(site.settings.scale);
        // Sources, their copy, objects and a program of about the same size each.
        4 * (tree.bytes() + tree.files.len() as u64 * FILE_ROOM_BYTES)
    }

    fn prepare(&mut self, site: &mut Site) -> Result<()> {
        self.tree = Tree::scaled(site.settings.scale);
        if let Some(compiler) = &site.settings.compiler {
            compiler::check(compiler)?;
        }
        if site.settings.processes {
            compiler::check("cp")?;
        }
        self.tree.write(&site.at("source"))
    }

    fn trial(&mut self, site: &mut Site, _: Turn) -> Result<Vec<TrialFigure>> {
        let (source, copy) = (site.at("source"), site.at("copy"));
        let phases = [
            self.make_directories(site, &copy)?,
            self.copy_files(site, &source, &copy)?,
            self.scan(site, &copy)?,
            self.read_all(site, &copy)?,
            self.compile(site, &copy)?,
        ];
        fs::remove_dir_all(&copy).map_err(|error| Error::path("remove", &copy, error))?;
        let names = ["make directories", "copy files", "scan", "read all", "compile"];
        let mut figures: Vec<TrialFigure> =
            names.iter().zip(phases).map(|(name, s)| seconds(name, s)).collect();
        let total: f64 = phases.iter().sum();
        figures.push(seconds("all but compile", total - phases[4]));
        figures.push(seconds("total", total));
        Ok(figures)
    }
}

impl Andrew {
    fn make_directories(&self, site: &mut Site, copy: &Path) -> Result<f64> {
        let meter = &mut site.meter;
        meter.begin();
        meter.name("create", copy, || fs::create_dir(copy))?;
        for directory in &self.tree.directories {
            let path = copy.join(directory);
            meter.name("create", &path, || fs::create_dir(&path))?;
        }
        Ok(meter.end())
    }

    fn copy_files(&self, site: &mut Site, source: &Path, copy: &Path) -> Result<f64> {
        let with_commands = site.settings.processes;
        let meter = &mut site.meter;
        let before = Usage::of_children();
        let mut buffer = vec![0; BLOCK_BYTES];
        meter.begin();
        for (number, file) in self.tree.files.iter().enumerate() {
            let (from, to) = (source.join(&file.path), copy.join(&file.path));
            if with_commands {
                command(meter, Command::new("cp").arg(&from).arg(&to))?;
                continue;
            }
            let number = number as u32 * 2;
            let mut from = Handle::read_only(meter, &from, number)?;
            let mut to = Handle::create(meter, &to, number + 1)?;
            loop {
                let count = from.read(meter, &mut buffer)?;
                if count == 0 {
                    break;
                }
                to.write(meter, &buffer[..count])?;
            }
            from.close(meter)?;
            to.close(meter)?;
        }
        let elapsed_s = meter.end();
        if with_commands {
            meter.commands(elapsed_s, 1, &Usage::of_children().since(&before));
        }
        Ok(elapsed_s)
    }

    fn scan(&self, site: &mut Site, copy: &Path) -> Result<f64> {
        let meter = &mut site.meter;
        meter.begin();
        let mut waiting = vec![copy.to_owned()];
        let mut found = 0;
        while let Some(directory) = waiting.pop() {
            let entries: Vec<PathBuf> = meter.name("list", &directory, || {
                fs::read_dir(&directory)?.map(|entry| Ok(entry?.path())).collect()
            })?;
            for path in entries {
                let status = meter.name("look at", &path, || fs::symlink_metadata(&path))?;
                if status.is_dir() {
                    waiting.push(path);
                } else {
                    found += 1;
                }
            }
        }
        let elapsed_s = meter.end();
        assert_eq!(found, self.tree.files.len(), "all files were copied");
        Ok(elapsed_s)
    }

    fn read_all(&self, site: &mut Site, copy: &Path) -> Result<f64> {
        let meter = &mut site.meter;
        let mut buffer = vec![0; BLOCK_BYTES];
        meter.begin();
        for (number, file) in self.tree.files.iter().enumerate() {
            let path = copy.join(&file.path);
            let mut handle = Handle::read_only(meter, &path, number as u32 * 2 + 1)?;
            while handle.read(meter, &mut buffer)? > 0 {}
            handle.close(meter)?;
        }
        Ok(meter.end())
    }

    fn compile(&self, site: &mut Site, copy: &Path) -> Result<f64> {
        let compiler = site.settings.compiler.clone();
        let meter = &mut site.meter;
        let before = Usage::of_children();
        meter.begin();
        match &compiler {
            Some(program) => self.compile_with(meter, program, copy)?,
            None => compiler::stand_in(meter, &self.tree, copy)?,
        }
        let elapsed_s = meter.end();
        if compiler.is_some() {
            meter.commands(elapsed_s, 1, &Usage::of_children().since(&before));
        }
        Ok(elapsed_s)
    }

    fn compile_with(&self, meter: &mut Meter, program: &str, copy: &Path) -> Result<()> {
        let mut objects = Vec::new();
        for file in self.tree.sources() {
            let (source, object) = (copy.join(&file.path), copy.join(file.object()));
            let mut compile = Command::new(program);
            command(meter, compile.arg("-c").arg(&source).arg("-o").arg(&object))?;
            objects.push(object);
        }
        let mut link = Command::new(program);
        command(meter, link.args(&objects).arg("-o").arg(copy.join("program")))
    }
}

/// Runs a command to its end; what it prints is thrown away.
fn command(meter: &mut Meter, command: &mut Command) -> Result<()> {
    meter.check()?;
    let program = command.get_program().to_owned();
    let failed = |error| Error::path("run", &program, error);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = meter.at(Call::Name, 0, (0, 0), || command.status()).map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    meter.check()?; // Ctrl-C reaches the command as well
    Err(failed(std::io::Error::other(format!("it ended with {status}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::site_with;
    use ioscape_model::SuiteSettings;

    fn tried(settings: &SuiteSettings) -> (Vec<TrialFigure>, ioscape_model::IoShare) {
        let (_directory, mut site) = site_with(settings);
        let mut andrew = Andrew::default();
        andrew.prepare(&mut site).unwrap();
        site.renew(true);
        let figures = andrew.trial(&mut site, Turn { repeat: 0, seed: 1 }).unwrap();
        assert!(!site.at("copy").exists());
        (figures, site.meter.share().unwrap())
    }

    #[test]
    fn five_phases_read_each_byte_three_times_and_write_it_once_and_its_object() {
        let (figures, share) = tried(&SuiteSettings::default());
        assert_eq!(figures.len(), 7);
        let total: f64 = figures[..5].iter().map(|figure| figure.value).sum();
        assert!((total - figures[6].value).abs() < 1e-9);
        let tree = Tree::scaled(1.0);
        // Copied and read all; compiled: sources, and for each of them the headers; then linked.
        assert!(share.read_bytes > 3 * tree.bytes(), "{share:?}");
        assert!(share.written_bytes > tree.bytes());
        assert!(share.unique_bytes.unwrap() > 2 * tree.bytes());
        assert!(share.data_fraction() > 0.0 && share.data_fraction() < 1.0);
    }

    #[test]
    fn it_copies_with_commands_and_compiles_with_a_compiler_where_there_are_any() {
        if compiler::check("cp").is_err() || compiler::check("cc").is_err() {
            ioscape_test_support::skipped("no cp or no cc on this machine");
            return;
        }
        let settings = SuiteSettings {
            scale: 0.2,
            processes: true,
            compiler: Some("cc".to_owned()),
            ..SuiteSettings::default()
        };
        let (_, share) = tried(&settings);
        assert!(share.at_most_s.is_some_and(|at_most_s| at_most_s > 0.0));
        assert_eq!(share.unique_bytes, None);
    }

    #[test]
    fn a_compiler_that_is_not_there_is_refused() {
        let error = compiler::check("no-such-compiler").unwrap_err().to_string();
        assert!(error.contains("no-such-compiler"), "{error}");
    }
}
