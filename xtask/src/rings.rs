//! Modules that need each other: of two in a ring neither can be read, tested or moved alone.
//!
//! Modules of one level are held against each other, each with all that lies below it. A module and
//! its own children are one thing: a child may use what its parent declares.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, words};

/// A module by its path from the crate's root, which is empty.
type Module = Vec<String>;

/// Who uses whom, among the modules of one level.
type Arrows = BTreeMap<Module, BTreeSet<Module>>;

/// One complaint for each ring: `crates/x: a, b and c use each other`.
pub fn rings(sources: &[Source]) -> Vec<String> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        if let Some((name, file)) = source.path.split_once("/src/") {
            crates.entry(name).or_default().insert(module(file), source.production());
        }
    }
    crates.iter().flat_map(|(name, modules)| rings_of(name, modules)).collect()
}

fn module(file: &str) -> Module {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let parts = path.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod"));
    parts.map(str::to_owned).collect()
}

fn rings_of(name: &str, modules: &BTreeMap<Module, String>) -> Vec<String> {
    let mut uses: BTreeMap<&Module, Vec<Module>> = BTreeMap::new();
    let mut passed_on: BTreeMap<Module, Module> = BTreeMap::new();
    for (module, code) in modules {
        for Path { segments, name, is_public } in paths(code) {
            let Some(target) = absolute(module, &segments, modules) else { continue };
            match name {
                Some(name) if is_public => {
                    let shown = module.iter().cloned().chain([name]).collect();
                    passed_on.insert(shown, target);
                }
                _ => uses.entry(module).or_default().push(target),
            }
        }
    }
    let mut levels: BTreeMap<&[String], Arrows> = BTreeMap::new();
    for (module, targets) in uses {
        for target in targets {
            let target = owner(&target, modules, &passed_on);
            let level = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if module.len() > level && target.len() > level {
                let arrows = levels.entry(&module[..level]).or_default();
                let users = arrows.entry(module[..=level].to_vec()).or_default();
                users.insert(target[..=level].to_vec());
            }
        }
    }
    levels.values().flat_map(circles).map(|circle| format!("{name}: {circle}")).collect()
}

/// A path that a file names.
struct Path {
    segments: Module,
    /// What a `use` calls it.
    name: Option<String>,
    /// Whether others see it under that name.
    is_public: bool,
}

/// All paths in the code: those of `use`, taken apart, and those written out.
fn paths(code: &str) -> Vec<Path> {
    let mut all = Vec::new();
    let mut rest = code.to_owned();
    for at in words(code, "use") {
        let end = code[at..].find(';').map_or(code.len(), |length| at + length);
        let before = code[..at].trim_end();
        let is_public = before.ends_with("pub") || (before.ends_with(')') && is_scoped(before));
        for (segments, name) in leaves(&code[at + 3..end]) {
            all.push(Path { segments, name: Some(name), is_public });
        }
        rest.replace_range(at..end, &" ".repeat(end - at));
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for written in rest.split(|c: char| !is_part(c)).filter(|path| path.contains("::")) {
        let segments = written.split("::").filter(|part| !part.is_empty()).map(str::to_owned);
        all.push(Path { segments: segments.collect(), name: None, is_public: false });
    }
    all
}

/// Whether the code ends in `pub(crate)` or the like.
fn is_scoped(code: &str) -> bool {
    code.rfind('(').is_some_and(|at| code[..at].trim_end().ends_with("pub"))
}

/// The paths of a `use`, each with the name that it gives.
fn leaves(tree: &str) -> Vec<(Module, String)> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let (path, name) = tree.split_once(" as ").map_or((tree, None), |(p, n)| (p, Some(n)));
        let mut segments: Module = path.split("::").map(|part| part.trim().to_owned()).collect();
        segments.retain(|part| !part.is_empty());
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let Some(last) = segments.last().cloned() else { return vec![] };
        return vec![(segments, name.map_or(last, |name| name.trim().to_owned()))];
    };
    let close = tree.rfind('}').unwrap_or(tree.len());
    let (mut depth, mut from, mut all) = (0, open + 1, Vec::new());
    for (at, c) in tree.char_indices().filter(|(at, _)| (open + 1..=close).contains(at)) {
        match c {
            '{' => depth += 1,
            '}' if at < close => depth -= 1,
            ',' if depth > 0 => {}
            ',' | '}' => {
                all.extend(leaves(&format!("{}{}", &tree[..open], tree[from..at].trim())));
                from = at + 1;
            }
            _ => {}
        }
    }
    all
}

/// A path from the crate's root; none where it leads out of the crate.
fn absolute(
    module: &[String],
    segments: &[String],
    modules: &BTreeMap<Module, String>,
) -> Option<Module> {
    let first = segments.first()?.clone();
    let child = || module.iter().chain([&first]).cloned().collect::<Module>();
    match first.as_str() {
        "crate" => Some(segments[1..].to_vec()),
        "self" => Some(module.iter().chain(&segments[1..]).cloned().collect()),
        "super" => {
            let up = segments.iter().take_while(|part| *part == "super").count();
            let above = module.get(..module.len().checked_sub(up)?)?;
            Some(above.iter().chain(&segments[up..]).cloned().collect())
        }
        _ if modules.contains_key(&child()) => {
            Some(module.iter().chain(segments).cloned().collect())
        }
        _ => None,
    }
}

/// The module that a path ends in, behind what others pass on.
fn owner(
    path: &[String],
    modules: &BTreeMap<Module, String>,
    passed_on: &BTreeMap<Module, Module>,
) -> Module {
    const PASSED_ON_MAX: usize = 8;
    let mut path = path.to_vec();
    for _ in 0..PASSED_ON_MAX {
        let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]));
        let length = length.unwrap_or(0);
        match path.get(..=length).and_then(|shown| passed_on.get(shown)) {
            Some(target) => path = target.iter().chain(&path[length + 1..]).cloned().collect(),
            None => return path[..length].to_vec(),
        }
    }
    path
}

/// The modules that reach each other, each ring once.
fn circles(arrows: &Arrows) -> Vec<String> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        arrows.keys().map(|from| (from, reached(from, arrows))).collect();
    let ring = |from: &Module| -> Vec<String> {
        let back = |to: &&&Module| reach.get(**to).is_some_and(|there| there.contains(from));
        reach[from].iter().filter(back).map(|to| to.join("::")).collect()
    };
    let all: BTreeSet<Vec<String>> = arrows.keys().map(ring).filter(|r| !r.is_empty()).collect();
    all.into_iter().map(|ring| format!("{} use each other", ring.join(", "))).collect()
}

fn reached<'a>(from: &'a Module, arrows: &'a Arrows) -> BTreeSet<&'a Module> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        open.extend(arrows.get(next).into_iter().flatten().filter(|to| seen.insert(*to)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<_> =
            files.iter().map(|(path, text)| Source::new(format!("c/src/{path}"), *text)).collect();
        assert_eq!(rings(&sources), expected);
    }

    #[test]
    fn two_modules_that_use_each_other_are_a_ring() {
        let two = ["c: a, b use each other"];
        check(&[("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")], &two);
        check(
            &[("lib.rs", ""), ("a.rs", "use super::b;"), ("b.rs", "fn f() { crate::a::g() }")],
            &two,
        );
        let nested = "use crate::{b::{self, B}, c};";
        check(&[("lib.rs", ""), ("a.rs", nested), ("b.rs", "use crate::a::A;")], &two);
        check(&[("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", "")], &[]);
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "// use crate::a::A;")], &[]);
        let tested = "#[cfg(test)]\nmod tests { use crate::a::A; }";
        check(&[("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", tested)], &[]);
    }

    #[test]
    fn a_ring_may_be_long_and_go_through_what_others_pass_on() {
        let root = ("lib.rs", "mod a; mod b; mod c; pub use c::C;");
        let files = [root, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::C;")];
        check(
            &[&files[..], &[("c.rs", "use crate::a::A;")]].concat(),
            &["c: a, b, c use each other"],
        );
        check(&[&files[..], &[("c.rs", "")]].concat(), &[]);
    }

    #[test]
    fn a_child_may_use_its_parent_and_no_sibling_that_uses_it() {
        let parent = ("a.rs", "mod x; mod y; use x::X;");
        check(&[parent, ("a/x.rs", "use super::A; use super::y::Y;"), ("a/y.rs", "")], &[]);
        let ring = [parent, ("a/x.rs", "use super::y::Y;"), ("a/y.rs", "use super::x::X;")];
        check(&ring, &["c: a::x, a::y use each other"]);
        let cousins = [("a/x.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;"), ("a.rs", "")];
        check(&[&[("lib.rs", "")], &cousins[..]].concat(), &["c: a, b use each other"]);
    }
}
