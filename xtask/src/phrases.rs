//! Words that some part of the repository must not contain, and files that grow too long.

use crate::source::{Source, functions, line_of, words};

/// Words that stand for one forbidden thing.
#[derive(Clone, Copy, Debug)]
pub struct Absence {
    /// What must stay absent, for the message.
    pub what: &'static str,
    /// The words that betray it.
    pub words: &'static [&'static str],
    /// Paths where it must stay absent; a path is meant with everything under it.
    pub from: &'static [&'static str],
    /// Paths where it may be nevertheless.
    pub except: &'static [&'static str],
    /// Whether tests are held to it too.
    pub tests_too: Tests,
}

/// Whether a rule looks at tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    /// Tests may do it.
    Exempt,
    /// Tests may not do it either.
    Held,
}

impl Absence {
    /// One complaint for each place in `source`.
    pub fn check(&self, source: &Source) -> Vec<String> {
        let under = |paths: &[&str]| paths.iter().any(|path| source.path.starts_with(path));
        if !under(self.from) || under(self.except) {
            return Vec::new();
        }
        let code = match self.tests_too {
            Tests::Exempt => source.production(),
            Tests::Held => source.code.clone(),
        };
        let mut complaints = Vec::new();
        for word in self.words {
            for at in words(&code, word) {
                let line = line_of(&code, at);
                complaints.push(format!("{}:{line}: `{word}`: {}", source.path, self.what));
            }
        }
        complaints
    }
}

/// Files and functions that are too long. Test files may be as long as their tables.
pub fn too_long(source: &Source, file_lines_max: usize, fn_lines_max: usize) -> Vec<String> {
    if source.is_test() {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let n_lines = source.text.lines().count();
    if n_lines > file_lines_max {
        complaints.push(format!("{}: {n_lines} lines, at most {file_lines_max}", source.path));
    }
    for function in functions(&source.production()) {
        if function.n_lines > fn_lines_max {
            complaints.push(format!(
                "{}:{}: `{}` has {} lines, at most {fn_lines_max}",
                source.path, function.line, function.name, function.n_lines
            ));
        }
    }
    complaints
}

/// Notes to oneself that should not have been handed in. They stand in comments, so the text is
/// searched, not the code; `word` is given so that this file does not contain it.
pub fn leftovers(source: &Source, word: &str) -> Vec<String> {
    words(&source.text, word)
        .map(|at| format!("{}:{}: leftover {word}", source.path, line_of(&source.text, at)))
        .collect()
}

/// Places in a page where a program's output was to be filled in.
pub fn placeholders(path: &str, text: &str) -> Vec<String> {
    let open = |(at, line): (usize, &str)| {
        let line = line.trim_start();
        line.starts_with("<!--").then(|| format!("{path}:{}: fill in or remove {line}", at + 1))
    };
    text.lines().enumerate().filter_map(open).collect()
}

/// A file that does not open by saying what it owns. Test files may do without.
pub fn unintroduced(source: &Source) -> Option<String> {
    let opens = source.text.starts_with("//!");
    (!opens && !source.is_test()).then(|| format!("{}: does not open with `//!`", source.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTING: Absence = Absence {
        what: "prints",
        words: &["println!"],
        from: &["crates/"],
        except: &["crates/cli/"],
        tests_too: Tests::Exempt,
    };

    #[test]
    fn a_forbidden_word_is_named_with_file_and_line() {
        let bad = "fn a() {}\nfn b() { println!(); }\n";
        let found = PRINTING.check(&Source::new("crates/stats/src/lib.rs", bad));
        assert_eq!(found, ["crates/stats/src/lib.rs:2: `println!`: prints"]);
        assert!(PRINTING.check(&Source::new("crates/cli/src/main.rs", bad)).is_empty());
        assert!(PRINTING.check(&Source::new("crates/stats/tests/a.rs", bad)).is_empty());
        assert!(PRINTING.check(&Source::new("xtask/src/lib.rs", bad)).is_empty());
    }

    #[test]
    fn tests_are_held_to_some_rules() {
        let held = Absence { tests_too: Tests::Held, ..PRINTING };
        let in_tests = "#[cfg(test)]\nmod tests { fn a() { println!() } }\n";
        assert_eq!(held.check(&Source::new("crates/x/src/lib.rs", in_tests)).len(), 1);
        assert!(PRINTING.check(&Source::new("crates/x/src/lib.rs", in_tests)).is_empty());
    }

    #[test]
    fn long_files_and_long_functions_are_found() {
        let body = "    work();\n".repeat(4);
        let text = format!("fn long() {{\n{body}}}\n");
        let check = |path, file_max, fn_max| too_long(&Source::new(path, &*text), file_max, fn_max);
        assert_eq!(check("a.rs", 6, 5), ["a.rs:1: `long` has 6 lines, at most 5"]);
        assert_eq!(check("a.rs", 5, 6), ["a.rs: 6 lines, at most 5"]);
        assert!(check("a.rs", 6, 6).is_empty());
        assert!(check("tests/a.rs", 1, 1).is_empty());
    }

    #[test]
    fn leftovers_are_found_in_comments() {
        let source = Source::new("a.rs", "\n// LATER: think\nlet relater = 1;\n");
        assert_eq!(leftovers(&source, "LATER"), ["a.rs:2: leftover LATER"]);
    }

    #[test]
    fn a_placeholder_is_named_with_file_and_line() {
        let page = "# A page\n\n    <!-- output: of a run -->\n";
        assert_eq!(
            placeholders("docs/a.md", page),
            ["docs/a.md:3: fill in or remove <!-- output: of a run -->"]
        );
        assert!(placeholders("docs/a.md", "a `<!-- comment -->` in a sentence\n").is_empty());
    }

    #[test]
    fn a_file_opens_with_what_it_owns() {
        assert!(unintroduced(&Source::new("src/a.rs", "use x;\n")).is_some());
        assert!(unintroduced(&Source::new("src/a.rs", "//! Owns a.\n")).is_none());
    }
}
