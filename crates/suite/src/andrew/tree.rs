//! The tree of sources: a C program in many small files, made by rule, the same everywhere.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ioscape_engine::error::{Error, Result};

/// Files of the usual tree; a quarter of them headers.
const FILES: f64 = 70.0;
/// Most files in a directory.
const DIRECTORY_FILES: usize = 14;
/// Functions of the smallest and of the largest file; the mean file has about 2900 bytes.
const FUNCTIONS: [usize; 2] = [4, 31];

/// A tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    /// Below its root, parents first.
    pub(super) directories: Vec<PathBuf>,
    /// In the order in which they are made.
    pub(super) files: Vec<SourceFile>,
}

/// A file of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceFile {
    /// Below the root.
    pub(super) path: PathBuf,
    /// What is in it.
    pub(super) text: String,
}

impl SourceFile {
    /// Whether it is compiled.
    pub(super) fn is_source(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "c")
    }

    /// What it is compiled to.
    pub(super) fn object(&self) -> PathBuf {
        self.path.with_extension("o")
    }
}

impl Tree {
    /// `scale` times the usual one.
    pub(super) fn scaled(scale: f64) -> Self {
        let count = ((FILES * scale) as usize).max(4);
        let mut directories: Vec<PathBuf> = Vec::new();
        let mut files = Vec::new();
        for number in 0..count {
            let directory = PathBuf::from(format!("part{:03}", number / DIRECTORY_FILES));
            if directories.last() != Some(&directory) {
                directories.push(directory.clone());
            }
            // The second one of each four is a header of its own directory.
            let (name, text) = match number {
                0 => ("main.c".to_owned(), main_text(count)),
                _ if number % 4 == 1 => (format!("h{number}.h"), header_text(number)),
                _ => (format!("f{number}.c"), source_text(number)),
            };
            files.push(SourceFile { path: directory.join(name), text });
        }
        Self { directories, files }
    }

    /// All text, bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.text.len() as u64).sum()
    }

    /// Files to compile.
    pub(super) fn sources(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_source())
    }

    /// Writes it below `root`.
    pub(super) fn write(&self, root: &Path) -> Result<()> {
        let made = |path: &Path, outcome: std::io::Result<()>| {
            outcome.map_err(|error| Error::path("create", path, error))
        };
        for directory in &self.directories {
            let path = root.join(directory);
            made(&path, fs::create_dir_all(&path))?;
        }
        for file in &self.files {
            let path = root.join(&file.path);
            made(&path, fs::write(&path, &file.text))?;
        }
        Ok(())
    }
}

/// From small to large and back, in steps that never come out even with the directories.
fn functions_of(number: usize) -> usize {
    let [least, most] = FUNCTIONS;
    least + (number * 11) % (most - least)
}

fn header_text(number: usize) -> String {
    let mut text = format!("/* Declarations {number}. */\n#ifndef H{number}\n#define H{number}\n");
    for k in 0..functions_of(number) {
        let _ =
            writeln!(text, "struct s{number}_{k} {{ unsigned key; struct s{number}_{k} *next; }};");
        let _ = writeln!(text, "#define SHIFT{number}_{k}(value) ((value) >> {})", k % 7 + 1);
    }
    text.push_str("#endif\n");
    text
}

/// The header that a file includes lies in its own directory, where there is one.
fn header_of(number: usize) -> Option<usize> {
    let header = (1..number).rev().find(|other| other % 4 == 1)?;
    (header / DIRECTORY_FILES == number / DIRECTORY_FILES).then_some(header)
}

fn source_text(number: usize) -> String {
    let mut text = format!("/* Part {number}. */\n");
    if let Some(header) = header_of(number) {
        let _ = writeln!(text, "#include \"h{header}.h\"");
    }
    for k in 0..functions_of(number) {
        let _ = writeln!(
            text,
            "static unsigned step{number}_{k}(unsigned value)\n{{\n    unsigned i, sum = value;\n    \
             for (i = 0; i < {}; i++)\n        sum = sum * {} + (value ^ i);\n    return sum;\n}}\n",
            k + 3,
            2 * number + 2 * k + 1
        );
    }
    let _ = writeln!(text, "unsigned part{number}(unsigned value)\n{{");
    for k in 0..functions_of(number) {
        let _ = writeln!(text, "    value ^= step{number}_{k}(value);");
    }
    text.push_str("    return value;\n}\n");
    text
}

fn main_text(count: usize) -> String {
    let parts: Vec<usize> = (1..count).filter(|number| number % 4 != 1).collect();
    let mut text = "/* Calls all parts. */\n".to_owned();
    for part in &parts {
        let _ = writeln!(text, "unsigned part{part}(unsigned);");
    }
    text.push_str("int main(void)\n{\n    unsigned value = 1;\n");
    for part in &parts {
        let _ = writeln!(text, "    value ^= part{part}(value);");
    }
    text.push_str("    return value == 0;\n}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_tree_is_about_70_files_and_200_kilobytes_and_grows_by_the_factor() {
        let tree = Tree::scaled(1.0);
        assert_eq!(tree.files.len(), 70);
        assert!((190_000..230_000).contains(&tree.bytes()), "{}", tree.bytes());
        assert_eq!(tree, Tree::scaled(1.0));
        let larger = Tree::scaled(10.0);
        assert_eq!(larger.files.len(), 700);
        let factor = larger.bytes() as f64 / tree.bytes() as f64;
        assert!((9.0..12.0).contains(&factor), "{factor}");
        assert!(tree.sources().count() > 50);
    }
}
