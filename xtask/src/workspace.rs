//! The packages of the workspace, their arrows and their lints, and the commands that need a page.

use std::fs;
use std::io;
use std::path::Path;

use crate::source::{Source, item_end, words};

/// A package's manifest.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its directory, from the repository root.
    pub dir: String,
    /// Its `Cargo.toml`.
    pub manifest: toml::Table,
}

/// The repository: manifests and Rust files.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The root's `Cargo.toml`.
    pub manifest: toml::Table,
    /// The packages, by directory.
    pub packages: Vec<Package>,
    /// All Rust files, by path.
    pub sources: Vec<Source>,
    /// The pages (`*.md`) in the root and under `docs`: path and text.
    pub pages: Vec<(String, String)>,
}

impl Workspace {
    /// Reads the repository at `root`.
    ///
    /// # Errors
    /// When a file cannot be read or a manifest is not TOML.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut dirs: Vec<String> = fs::read_dir(root.join("crates"))?
            .map(|entry| Ok(format!("crates/{}", entry?.file_name().to_string_lossy())))
            .collect::<io::Result<_>>()?;
        dirs.push("xtask".to_owned());
        dirs.sort();
        let mut packages = Vec::new();
        let mut sources = Vec::new();
        for dir in dirs {
            let manifest = read_toml(&root.join(&dir).join("Cargo.toml"))?;
            collect_sources(root, &dir, &mut sources)?;
            packages.push(Package { dir, manifest });
        }
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let mut pages = Vec::new();
        for dir in ["", "docs/", "docs/examples/"] {
            collect_pages(root, dir, &mut pages)?;
        }
        let manifest = read_toml(&root.join("Cargo.toml"))?;
        Ok(Self { manifest, packages, sources, pages })
    }
}

impl Package {
    /// The package's name.
    pub fn name(&self) -> &str {
        let name = self.manifest.get("package").and_then(|package| package.get("name"));
        name.and_then(toml::Value::as_str).unwrap_or_default()
    }

    /// Names of the packages it depends on, for whatever purpose and on whatever platform.
    pub fn dependencies(&self) -> Vec<String> {
        self.listed(&["dependencies", "dev-dependencies", "build-dependencies"])
    }

    /// Names of the packages that it cannot be built without; tests may need more.
    pub fn shipped_dependencies(&self) -> Vec<String> {
        self.listed(&["dependencies", "build-dependencies"])
    }

    fn listed(&self, tables: &[&str]) -> Vec<String> {
        let mut names = Vec::new();
        collect_dependencies(&self.manifest, tables, &mut names);
        names.sort();
        names.dedup();
        names
    }
}

/// Packages of ours that depend on packages of ours without leave, and packages not in the table.
/// `"*"` in the table stands for all. Tests, and only they, may use the package `support`.
pub fn forbidden_arrows(
    packages: &[Package],
    arrows: &[(&str, &[&str])],
    support: &str,
) -> Vec<String> {
    let ours: Vec<&str> = packages.iter().map(Package::name).collect();
    let mut complaints = Vec::new();
    for package in packages {
        let name = package.name();
        let Some((_, allowed)) = arrows.iter().find(|(from, _)| *from == name) else {
            complaints.push(format!("{}: `{name}` is not in the table of arrows", package.dir));
            continue;
        };
        for to in package.dependencies() {
            let free = if to == support {
                !package.shipped_dependencies().contains(&to)
            } else {
                allowed.contains(&"*") || allowed.contains(&to.as_str())
            };
            if ours.contains(&to.as_str()) && !free {
                complaints.push(format!(
                    "{}/Cargo.toml: the arrow {name} -> {to} is not in the table: move the type \
                     down to ioscape-model, hand in a closure, or argue in ARCHITECTURE.md",
                    package.dir
                ));
            }
        }
    }
    complaints
}

/// Packages that do not take the workspace's lints. `unsafe_package` has a table of its own, which
/// must say the same but for `unsafe_code`.
pub fn missing_lints(workspace: &Workspace, unsafe_packages: &[&str]) -> Vec<String> {
    let shared = workspace.manifest.get("workspace").and_then(|table| table.get("lints"));
    let mut complaints = Vec::new();
    for package in &workspace.packages {
        let lints = package.manifest.get("lints");
        if unsafe_packages.contains(&package.name()) {
            let mut expected = shared.cloned();
            let rust = expected.as_mut().and_then(|table| table.get_mut("rust"));
            if let Some(rust) = rust.and_then(toml::Value::as_table_mut) {
                rust.insert("unsafe_code".to_owned(), "allow".into());
            }
            if lints != expected.as_ref() {
                complaints.push(format!(
                    "{}/Cargo.toml: [lints] must be the workspace's with unsafe_code = \"allow\"",
                    package.dir
                ));
            }
        } else if lints.and_then(|table| table.get("workspace")) != Some(&true.into()) {
            complaints.push(format!("{}/Cargo.toml: [lints] workspace = true", package.dir));
        }
    }
    complaints
}

/// The commands of the binary, as they are typed: the variants of its `enum Command`.
pub fn commands(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates/cli/src/")) {
        for at in words(&source.code, "enum Command") {
            let end = item_end(&source.code, at).unwrap_or(source.code.len());
            found.extend(variants(&source.code[at..end]));
        }
    }
    found
}

fn variants(item: &str) -> Vec<String> {
    let body = item.split_once('{').map_or("", |(_, body)| body);
    let mut depth = 0i32;
    let mut names = Vec::new();
    let mut name = String::new();
    for c in body.chars() {
        if depth == 0 && (c.is_alphanumeric() || c == '_') {
            name.push(c);
            continue;
        }
        if !name.is_empty() {
            names.push(kebab(&std::mem::take(&mut name)));
        }
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn kebab(variant: &str) -> String {
    let mut word = String::new();
    for c in variant.chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.extend(c.to_lowercase());
    }
    word
}

fn collect_dependencies(table: &toml::Table, tables: &[&str], names: &mut Vec<String>) {
    for key in tables {
        let Some(dependencies) = table.get(*key).and_then(toml::Value::as_table) else { continue };
        for (key, value) in dependencies {
            let renamed = value.get("package").and_then(toml::Value::as_str);
            names.push(renamed.unwrap_or(key).to_owned());
        }
    }
    if let Some(targets) = table.get("target").and_then(toml::Value::as_table) {
        for target in targets.values().filter_map(toml::Value::as_table) {
            collect_dependencies(target, tables, names);
        }
    }
}

fn collect_sources(root: &Path, dir: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(dir))? {
        let entry = entry?;
        let path = format!("{dir}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect_sources(root, &path, sources)?;
        } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
            sources.push(Source::new(path, fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

/// The pages in this directory, not below it; its name ends in `/` or is empty.
fn collect_pages(root: &Path, dir: &str, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(dir))? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "md") {
            let path = format!("{dir}{}", entry.file_name().to_string_lossy());
            pages.push((path, fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

fn read_toml(path: &Path) -> io::Result<toml::Table> {
    let text = fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    text.parse().map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(dir: &str, manifest: &str) -> Package {
        Package { dir: dir.to_owned(), manifest: manifest.parse().unwrap() }
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
        let report = package("crates/report", "[package]\nname = \"report\"\n");
        let arrows: &[(&str, &[&str])] = &[("report", &[]), ("stats", &["model"]), ("all", &["*"])];
        let bad = [
            "[dependencies]\nreport = {}",
            "[dev-dependencies]\nreport.workspace = true",
            "[dependencies]\nother = { package = \"report\" }",
            "[target.'cfg(unix)'.dependencies]\nreport = \"1\"",
        ];
        for dependency in bad {
            let stats =
                package("crates/stats", &format!("[package]\nname = \"stats\"\n{dependency}\n"));
            let found = forbidden_arrows(&[report.clone(), stats], arrows, "");
            assert_eq!(found.len(), 1, "{dependency}: {found:?}");
            assert!(found[0].contains("stats -> report"), "{found:?}");
        }
        let all = "[package]\nname = \"all\"\n[dependencies]\nreport = {}\nserde = \"1\"\n";
        assert!(forbidden_arrows(&[report, package("crates/all", all)], arrows, "").is_empty());
    }

    #[test]
    fn what_tests_share_is_for_tests_alone() {
        let arrows: &[(&str, &[&str])] = &[("all", &["*"]), ("support", &[])];
        let check = |table: &str, n_complaints: usize| {
            let manifest = format!("[package]\nname = \"all\"\n[{table}]\nsupport = {{}}\n");
            let support = package("crates/support", "[package]\nname = \"support\"\n");
            let packages = [package("crates/all", &manifest), support];
            assert_eq!(
                forbidden_arrows(&packages, arrows, "support").len(),
                n_complaints,
                "{table}"
            );
        };
        check("dev-dependencies", 0);
        check("dependencies", 1);
        check("target.'cfg(unix)'.dependencies", 1);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        let stray = package("crates/stray", "[package]\nname = \"stray\"\n");
        assert_eq!(forbidden_arrows(&[stray], &[], "").len(), 1);
    }

    #[test]
    fn lints_are_shared_by_all_and_softened_by_one_in_one_place() {
        let manifest = "[workspace.lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\"\n";
        let check = |name: &str, lints: &str, n_complaints: usize| {
            let text = format!("[package]\nname = \"{name}\"\n{lints}");
            let workspace = Workspace {
                manifest: manifest.parse().unwrap(),
                packages: vec![package("crates/x", &text)],
                sources: vec![],
                pages: vec![],
            };
            assert_eq!(missing_lints(&workspace, &["engine"]).len(), n_complaints, "{text}");
        };
        check("stats", "[lints]\nworkspace = true\n", 0);
        check("stats", "", 1);
        check("stats", "[lints.rust]\nunsafe_code = \"allow\"\nmissing_docs = \"warn\"\n", 1);
        check("engine", "[lints.rust]\nunsafe_code = \"allow\"\nmissing_docs = \"warn\"\n", 0);
        check("engine", "[lints.rust]\nunsafe_code = \"allow\"\n", 1);
    }

    #[test]
    fn the_commands_are_the_variants() {
        let text = "/// Doc, with words.\n#[derive(Debug)]\nenum Command {\n    /// Maps.\n    \
                    #[command(about)]\n    Run(RunArgs),\n    Measure { precision: f64 },\n    \
                    DryRun,\n}\n";
        let source = Source::new("crates/cli/src/command.rs", text);
        assert_eq!(commands(&[source]), ["run", "measure", "dry-run"]);
        assert!(commands(&[Source::new("crates/model/src/x.rs", text)]).is_empty());
    }
}
