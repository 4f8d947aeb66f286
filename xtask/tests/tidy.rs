//! The architecture as a test. A complaint here is not a matter of taste: ARCHITECTURE.md says
//! why each of these things must stay absent.

use std::path::Path;

use xtask::phrases::{Absence, Tests, leftovers, placeholders, too_long, unintroduced};
use xtask::{Source, Workspace, modules, rings, wasm, workspace};

/// `(crate, crates it may depend on)`, lowest floor first. To add an arrow, argue for it in
/// ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("ioscape-model", &[]),
    ("ioscape-stats", &[]),
    ("ioscape-engine", &["ioscape-model"]),
    ("ioscape-analysis", &["ioscape-model", "ioscape-stats"]),
    ("ioscape-page-predictor", &["ioscape-model", "ioscape-analysis"]),
    ("ioscape-import", &["ioscape-model", "ioscape-stats", "ioscape-analysis"]),
    ("ioscape-trace", &["ioscape-model", "ioscape-stats"]),
    ("ioscape-recorder", &["ioscape-trace"]),
    ("ioscape-cluster", &["ioscape-model"]),
    ("ioscape-web", &["ioscape-model", "ioscape-engine", "ioscape-trace"]),
    ("ioscape-report", &["ioscape-model"]),
    ("ioscape-suite", &["ioscape-model", "ioscape-stats", "ioscape-engine"]),
    (
        "ioscape-experiment",
        &[
            "ioscape-model",
            "ioscape-stats",
            "ioscape-engine",
            "ioscape-analysis",
            "ioscape-trace",
            "ioscape-cluster",
        ],
    ),
    ("ioscape", &["*"]),
    (SUPPORT, &["ioscape-model", "ioscape-engine"]),
    ("xtask", &[]),
];
/// The crates that may hold unsafe code.
const UNSAFE: &[&str] = &["ioscape-engine", "ioscape-recorder", "ioscape-cluster"];
/// What tests share: any crate may depend on it for its tests, and for nothing else.
const SUPPORT: &str = "ioscape-test-support";
const FILE_LINES_MAX: usize = 600;
const FN_LINES_MAX: usize = 70;

/// The crates that are pure functions of their input.
const PURE: &[&str] = &[
    "crates/model/",
    "crates/stats/",
    "crates/analysis/",
    "crates/page-predictor/",
    "crates/import/",
    "crates/report/",
    "crates/trace/",
];

const ABSENCES: &[Absence] = &[
    Absence {
        what: "only the binary prints and exits; return a value or call a closure",
        words: &["print!", "println!", "eprint!", "eprintln!", "dbg!", "process::exit"],
        from: &["crates/"],
        except: &["crates/cli/"],
        tests_too: Tests::Exempt,
    },
    Absence {
        what: "unsafe code lives in crates/engine, crates/recorder and crates/cluster; the exports of the page's module keep their names",
        words: &["unsafe"],
        from: &["crates/", "xtask/"],
        except: &[
            "crates/engine/",
            "crates/recorder/",
            "crates/cluster/",
            "crates/page-predictor/src/exports.rs",
        ],
        tests_too: Tests::Held,
    },
    Absence {
        what: "take the time from the Clock you were handed",
        words: &["Instant::now", "thread::sleep", "park_timeout"],
        from: &["crates/"],
        except: &["crates/engine/src/clock.rs"],
        tests_too: Tests::Exempt,
    },
    Absence {
        what: "wall time is stamped by the binary",
        words: &["SystemTime::now", "Timestamp::now", "Zoned::now"],
        from: &["crates/"],
        except: &["crates/cli/"],
        tests_too: Tests::Exempt,
    },
    Absence {
        what: "the environment is read by the binary",
        words: &[
            "env::var",
            "env::var_os",
            "env::vars",
            "env::vars_os",
            "env::args",
            "env::args_os",
            "env::current_dir",
            "env::current_exe",
            "env::temp_dir",
            "env::home_dir",
        ],
        from: &["crates/"],
        except: &["crates/cli/"],
        tests_too: Tests::Exempt,
    },
    Absence {
        what: "no global state",
        words: &["static mut", "thread_local!", "LazyLock", "OnceLock"],
        from: &["crates/"],
        except: &["crates/cli/"],
        tests_too: Tests::Exempt,
    },
    Absence {
        what: "a pure crate opens nothing; read from `impl BufRead`, give back a value",
        words: &["std::fs", "fs::", "File::", "std::net", "std::process", "Command::new"],
        from: PURE,
        except: &[],
        tests_too: Tests::Exempt,
    },
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

fn repository() -> Workspace {
    let workspace = Workspace::read(root()).expect("the repository can be read");
    assert!(workspace.packages.len() >= 8, "only {} packages found", workspace.packages.len());
    assert!(workspace.sources.len() >= 20, "only {} files found", workspace.sources.len());
    workspace
}

#[track_caller]
fn none(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<String> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[track_caller]
fn none_in_sources(check: impl Fn(&Source) -> Vec<String>) {
    none(repository().sources.iter().flat_map(check));
}

#[test]
fn crates_depend_on_what_the_table_allows() {
    none(workspace::forbidden_arrows(&repository().packages, ARROWS, SUPPORT));
}

#[test]
fn modules_of_one_level_do_not_need_each_other() {
    none(rings::rings(&repository().sources));
}

#[test]
fn every_crate_has_the_same_lints() {
    none(workspace::missing_lints(&repository(), UNSAFE));
}

#[test]
fn what_must_stay_absent_is_absent() {
    none_in_sources(|source| ABSENCES.iter().flat_map(|rule| rule.check(source)).collect());
}

#[test]
fn every_absence_is_noticed_where_it_is_forbidden() {
    for rule in ABSENCES {
        for word in rule.words {
            let place = format!("{}x/src/lib.rs", rule.from[0]);
            let source = Source::new(place, format!("fn bad() {{ {word} }}\n"));
            assert_eq!(rule.check(&source).len(), 1, "`{word}` passes unnoticed");
        }
    }
}

#[test]
fn wall_time_is_read_in_one_file() {
    let repository = repository();
    let reads = |source: &&Source| {
        let code = source.production();
        ["SystemTime::now", "Timestamp::now", "Zoned::now"].iter().any(|word| code.contains(word))
    };
    let files: Vec<&str> =
        repository.sources.iter().filter(reads).map(|source| source.path.as_str()).collect();
    assert!(files.len() <= 1, "{files:?}");
}

#[test]
fn files_and_functions_are_short() {
    none_in_sources(|source| too_long(source, FILE_LINES_MAX, FN_LINES_MAX));
}

#[test]
fn nothing_was_left_for_later() {
    let word = concat!("FIX", "ME");
    none_in_sources(|source| leftovers(source, word));
}

#[test]
fn every_output_in_the_pages_was_filled_in() {
    let pages = repository().pages;
    assert!(pages.len() >= 8, "only {} pages found", pages.len());
    none(pages.iter().flat_map(|(path, text)| placeholders(path, text)));
}

#[test]
fn the_module_in_the_page_was_made_from_these_sources() {
    let sources = repository().sources;
    none(wasm::missing(&sources).into_iter().map(|path| format!("{path}: see xtask/src/wasm.rs")));
    let is_fresh = wasm::is_fresh(root(), &sources).expect("the module is in the repository");
    assert!(
        is_fresh,
        "crates/report/assets/predictor.wasm is of other sources: `cargo xtask wasm` makes it anew \
         (`rustup target add wasm32-unknown-unknown` gives it a target)"
    );
}

#[test]
fn every_file_says_what_it_owns() {
    none_in_sources(|source| unintroduced(source).into_iter().collect());
}

#[test]
fn every_file_is_part_of_a_crate() {
    none(modules::orphans(&repository().sources));
}

#[test]
fn every_file_has_a_telling_name() {
    none_in_sources(|source| modules::nameless(source).into_iter().collect());
}

#[test]
fn every_command_has_a_worked_example() {
    let commands = workspace::commands(&repository().sources);
    let missing = commands.iter().filter_map(|command| {
        let page = format!("docs/examples/{command}.md");
        (!root().join(&page).is_file()).then(|| format!("`ioscape {command}` has no {page}"))
    });
    none(missing);
}
