//! The binary: flags, commands, the terminal, exit codes. The only crate that prints.

mod args;
mod bench;
mod clean;
mod compare;
mod doctor;
mod exit;
mod export;
#[cfg(test)]
mod hostile;
mod import;
mod interrupt;
mod journal;
mod manual;
mod measure;
mod predict;
mod progress;
mod report;
mod resume;
mod run;
mod suite;
mod text_file;
mod validate;
mod workload_arg;

use std::process::ExitCode;

use clap::Parser;
use ioscape_engine::Clock;

use args::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    let clock = Clock::start();
    let outcome = match Cli::parse().command {
        Command::Run(args) => run::run(&args, clock),
        Command::Measure(args) => measure::measure(&args, clock),
        Command::Predict(args) => predict::predict(&args),
        Command::Validate(args) => validate::validate(&args, clock),
        Command::Compare(args) => compare::compare(&args, clock),
        Command::Report(args) => report::report(&args),
        Command::Export(args) => export::export(&args),
        Command::Import(args) => import::import(&args),
        Command::Suite(args) => suite::suite(&args, clock),
        Command::Doctor(args) => doctor::doctor(&args, clock),
        Command::Clean(args) => clean::clean(&args),
        Command::Man(args) => manual::man(&args),
        Command::Completions(args) => Ok(manual::completions(&args)),
    };
    let exit = outcome.unwrap_or_else(|error| {
        say(&format!("ioscape: {}", exit::line_of(&error)));
        exit::code_of(&error)
    });
    exit.into()
}

/// A line for people: never on stdout, which belongs to answers.
#[expect(clippy::print_stderr, reason = "messages go to stderr, and this is where they leave")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// An answer: text or a JSON document.
fn answer(text: &str) {
    use std::io::Write;
    let mut stdout = std::io::stdout().lock();
    // A reader that has gone away (`| head`) is no error of ours.
    let _ = writeln!(stdout, "{}", text.trim_end());
}

/// Whether an answer may have colours.
fn is_colourful() -> bool {
    use std::io::IsTerminal;
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let plain = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !refused && !plain
}

/// Exit for a run that ended by itself or by a signal.
fn signal_or(interrupt: &interrupt::Interrupt, otherwise: Exit) -> Exit {
    interrupt.signal().map_or(otherwise, Exit::Signal)
}
