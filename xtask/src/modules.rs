//! Files that cargo never compiles because no module names them, and names that say nothing.

use crate::source::{Source, words};

/// `.rs` files that neither are roots nor are named by a `mod` line of their parent. A parent that
/// is itself unnamed is reported on its own.
pub fn orphans(sources: &[Source]) -> Vec<String> {
    let named = |parent: &str, stem: &str| {
        sources
            .iter()
            .find(|source| source.path == parent)
            .is_some_and(|source| names_module(&source.code, stem))
    };
    let mut complaints = Vec::new();
    for source in sources {
        let (stem, parents) = module_and_parents(&source.path);
        if !is_root(&source.path) && !parents.iter().any(|parent| named(parent, &stem)) {
            complaints.push(format!("{}: no module names it", source.path));
        }
    }
    complaints
}

/// Files whose name does not say what is in them: a helper lives with its user or has a noun.
pub fn nameless(source: &Source) -> Option<String> {
    const NAMELESS: [&str; 5] = ["util", "common", "shared", "helpers", "misc"];
    let (stem, _) = module_and_parents(&source.path);
    let bad = NAMELESS.iter().any(|word| stem == *word || stem == format!("{word}s"));
    bad.then(|| format!("{}: `{stem}` says nothing about what is in it", source.path))
}

/// Crate roots as cargo finds them: `src/lib.rs`, `src/main.rs`, and each file, or directory with
/// a `main.rs`, of `src/bin`, `tests`, `benches` and `examples`.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let in_source = parts.contains(&"src");
    match parts.as_slice() {
        [.., "src", "lib.rs" | "main.rs"]
        | [.., "src", "bin", _]
        | [.., "tests" | "benches" | "examples" | "bin", _, "main.rs"] => true,
        [.., "tests" | "benches" | "examples", _] | [.., "build.rs"] => !in_source,
        _ => false,
    }
}

/// The module's name and the files that may name it.
fn module_and_parents(path: &str) -> (String, Vec<String>) {
    let (dir, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let (dir, stem) = match (stem, dir.rsplit_once('/')) {
        ("mod", Some((above, name))) => (above, name),
        _ => (dir, stem),
    };
    let parents = ["lib.rs", "main.rs", "mod.rs"].map(|name| format!("{dir}/{name}"));
    (stem.to_owned(), [format!("{dir}.rs")].into_iter().chain(parents).collect())
}

fn names_module(code: &str, name: &str) -> bool {
    words(code, "mod").any(|at| {
        code[at + "mod".len()..]
            .trim_start()
            .strip_prefix(name)
            .is_some_and(|rest| rest.trim_start().starts_with(';'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::new(*path, *text)).collect();
        let paths: Vec<_> = orphans(&sources)
            .into_iter()
            .map(|complaint| complaint.split(':').next().unwrap().to_owned())
            .collect();
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_file_that_no_module_names_is_found() {
        check(&[("c/src/lib.rs", "pub mod a;"), ("c/src/a.rs", "")], &[]);
        check(&[("c/src/lib.rs", "// mod a;"), ("c/src/a.rs", "")], &["c/src/a.rs"]);
        check(&[("c/src/lib.rs", "mod a { }"), ("c/src/a.rs", "")], &["c/src/a.rs"]);
        check(&[("c/src/lib.rs", "mod ab;"), ("c/src/a.rs", "")], &["c/src/a.rs"]);
    }

    #[test]
    fn nested_modules_are_followed() {
        let both = [("c/src/lib.rs", "mod a;"), ("c/src/a.rs", "mod b;"), ("c/src/a/b.rs", "")];
        check(&both, &[]);
        check(
            &[("c/src/lib.rs", "mod a;"), ("c/src/a/mod.rs", "mod b;"), ("c/src/a/b.rs", "")],
            &[],
        );
        check(&[("c/src/lib.rs", "mod a;"), ("c/src/a/b.rs", "")], &["c/src/a/b.rs"]);
        check(
            &[("c/src/lib.rs", "mod a;"), ("c/src/a.rs", ""), ("c/src/a/tests.rs", "")],
            &["c/src/a/tests.rs"],
        );
    }

    #[test]
    fn integration_tests_are_roots_but_their_modules_are_not() {
        check(&[("c/tests/it.rs", "")], &[]);
        check(&[("c/tests/it/main.rs", "mod run;"), ("c/tests/it/run.rs", "")], &[]);
        check(&[("c/tests/it/main.rs", ""), ("c/tests/it/run.rs", "")], &["c/tests/it/run.rs"]);
    }

    #[test]
    fn a_name_must_say_something() {
        assert!(nameless(&Source::new("c/src/util.rs", "")).is_some());
        assert!(nameless(&Source::new("c/src/utils/mod.rs", "")).is_some());
        assert!(nameless(&Source::new("c/src/units.rs", "")).is_none());
    }
}
