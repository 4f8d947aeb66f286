//! The corpus: misleading set-ups, each flagged with its cause, and clean ones without a false alarm.
//! `docs/corpus.md` is the list of them, made here.
//!
//! What can be built for real is: filesystems on loop devices, files that change under a running
//! measurement, neighbours, control groups. Then come devices with a known law (the simulated one),
//! windows as a rig would show them, and last facts as the kernel would tell them. Where
//! something cannot be built (no root, no mkfs) the test says so and goes on.

mod clean;
mod judged;
pub(crate) mod measured;
mod mounted;
mod scripted;
mod simulated;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_analysis::doctor::judge;
use ioscape_engine::host::checkup;
use ioscape_engine::target::open_directory;
use ioscape_engine::{Clock, Rig};
use ioscape_experiment::Subject;
use ioscape_model::{Code, Point, Role, Rules, Severity, Warning, Workload};

use ioscape_test_support::skipped;

/// What was said about a set-up, or why it cannot be built here.
type Look = Result<Vec<Warning>, String>;

/// A set-up and all that is misleading about it.
struct Trap {
    /// How it is built.
    built: &'static str,
    look: fn() -> Look,
    flags: &'static [Flag],
}

/// One thing that misleads.
struct Flag {
    /// What it is.
    what: &'static str,
    code: Code,
    /// At least.
    severity: Severity,
    /// Part of what the warning says to do.
    advice: &'static str,
}

/// A set-up with nothing misleading about it.
struct Clean {
    what: &'static str,
    built: &'static str,
    look: fn() -> Look,
}

impl Flag {
    fn is_raised_by(&self, warnings: &[Warning]) -> bool {
        let mut of_code = warnings.iter().filter(|warning| warning.code == self.code);
        of_code.any(|w| w.severity >= self.severity && w.remedy.contains(self.advice))
    }
}

/// Builds each trap and looks for its warnings.
#[expect(clippy::print_stderr, reason = "with --nocapture it is a list of what was flagged")]
fn spring(traps: &[Trap]) {
    for trap in traps {
        let warnings = match (trap.look)() {
            Ok(warnings) => warnings,
            Err(why) => {
                skipped(format_args!("{}: {why}", trap.flags[0].what));
                continue;
            }
        };
        for flag in trap.flags {
            let what = flag.what;
            assert!(flag.is_raised_by(&warnings), "{what} ({:?}): {warnings:#?}", flag.code);
            eprintln!("flagged: {what} by {}", name(flag.code));
        }
    }
}

/// Builds each clean set-up and looks for false alarms.
fn acquit(cleans: &[Clean]) {
    let is_alarm = |warning: &Warning| warning.severity > Severity::Note;
    for clean in cleans {
        match (clean.look)() {
            Ok(warnings) => {
                let alarms: Vec<&Warning> = warnings.iter().filter(|w| is_alarm(w)).collect();
                assert!(alarms.is_empty(), "{}: {alarms:#?}", clean.what);
            }
            Err(why) => skipped(format_args!("{}: {why}", clean.what)),
        }
    }
}

/// As records write it.
fn name(code: Code) -> String {
    serde_json::to_value(code).unwrap().as_str().unwrap().to_owned()
}

/// What the doctor says about a directory.
fn examined(place: &std::path::Path) -> Look {
    let directory = open_directory(place).map_err(|error| error.to_string())?;
    let facts = checkup::of_directory(directory, &Clock::start(), Arc::new(AtomicBool::new(false)));
    Ok(judge(&facts.map_err(|error| error.to_string())?).doubts)
}

/// One visit.
fn visit(rig: &mut dyn Rig, workload: &str, rules: &Rules, seed: u64) -> Result<Point, String> {
    let work = Workload::parse(workload).unwrap();
    let subject = Subject { work: &work, role: Role::Measure, round: 0, seed };
    ioscape_experiment::measure(&subject, rules, rig, &mut |_| {}).map_err(|e| e.to_string())
}

#[test]
fn the_table_in_the_docs_is_what_these_tests_check() {
    let traps: Vec<&Trap> =
        [mounted::TRAPS, measured::TRAPS, simulated::TRAPS, scripted::TRAPS, judged::TRAPS]
            .into_iter()
            .flatten()
            .collect();
    let cleans: Vec<&Clean> =
        [clean::REAL, clean::SIMULATED, clean::JUDGED].into_iter().flatten().collect();
    let text = table(&traps, &cleans);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/corpus.md");
    if std::env::var_os("IOSCAPE_BLESS").is_some() {
        std::fs::write(page, &text).unwrap();
    }
    let found = std::fs::read_to_string(page).unwrap_or_default();
    assert!(
        found == text,
        "docs/corpus.md is stale: IOSCAPE_BLESS=1 cargo test -p ioscape --test it corpus"
    );
}

fn table(traps: &[&Trap], cleans: &[&Clean]) -> String {
    let mut text = HEAD.to_owned();
    let flags = traps.iter().flat_map(|trap| trap.flags.iter().map(|flag| (trap.built, flag)));
    for (index, (built, flag)) in flags.enumerate() {
        let severity = serde_json::to_value(flag.severity).unwrap();
        writeln!(
            text,
            "| {} | {} | {built} | `{}` ({}) | {} |",
            index + 1,
            flag.what,
            name(flag.code),
            severity.as_str().unwrap(),
            flag.advice
        )
        .unwrap();
    }
    text.push_str(CLEAN_HEAD);
    for (index, clean) in cleans.iter().enumerate() {
        writeln!(text, "| {} | {} | {} |", index + 1, clean.what, clean.built).unwrap();
    }
    text
}

const HEAD: &str = "\
# The corpus: set-ups that mislead, and set-ups that do not

Made by the tests in `crates/cli/tests/it/corpus.rs`, which build every one of these and look at what ioscape says:
`cargo test -p ioscape --test it corpus`. What each hazard is, and what ioscape does about those that no warning can
catch, stands in [hazards.md](hazards.md); the codes in [record-format.md](record-format.md).

How a set-up is built: a **filesystem**, a **file**, a **process** or a **control group** is real (parts of it need root or
a mkfs program, and are skipped with a line on stderr without); a **simulated device** has a known law and misbehaves on
request; **windows** are handed to the measuring loop as a rig would show them; **facts** are what the kernel would tell,
handed to the judge.

## Misleading: each is flagged with its cause

| # | set-up | built as | flagged by (at least) | what to do, among others |
|---:|---|---|---|---|
";

const CLEAN_HEAD: &str = "
## Clean: no warning above a note

On a real machine time that a hypervisor or other programs took while the test ran is no false alarm, and is left out:
`stolen_time`, `clock_jump`, `neighbours`, `swapping`, and the unsteadiness that comes with them (`not_steady`,
`not_precise`, `bistable`).

| # | set-up | built as |
|---:|---|---|
";
