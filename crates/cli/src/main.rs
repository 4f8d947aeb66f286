//! The binary: flags, commands, the terminal, exit codes. The only crate that prints.

mod application;
mod args;
mod bench;
mod clean;
mod command;
mod company;
mod compare;
mod doctor;
mod exit;
mod export;
mod history;
#[cfg(test)]
mod hostile;
mod import;
mod interrupt;
mod journal;
mod library;
mod limits;
mod manual;
mod measure;
mod origin;
mod out_file;
mod output;
mod page_file;
mod predict;
mod progress;
mod ranks;
mod replay;
mod report;
mod resume;
mod run;
mod serve;
mod suite;
mod text_file;
mod trace;
mod validate;
mod vector;
mod workload_arg;

use std::process::ExitCode;

use clap::Parser;
use ioscape_engine::Clock;

use command::{Cli, Command};
use company::Company;
use exit::Exit;
use output::say;

fn main() -> ExitCode {
    let clock = Clock::start();
    let outcome = interrupt::outlast_file_limits().and_then(|()| match Cli::try_parse() {
        Ok(typed) => match ranks::role(&typed)? {
            ranks::Role::First(company) => run_command(typed.command, clock, &company),
            ranks::Role::Other(group) => ranks::serve(&*group, clock),
        },
        Err(error) => answered_by_flags(&error),
    });
    let exit = outcome.unwrap_or_else(|error| {
        if ranks::is_silent() {
            ranks::let_first_be_heard(clock);
        } else {
            say(&format!("ioscape: {}", exit::line_of(&error)));
        }
        exit::code_of(&error)
    });
    exit.into()
}

fn run_command(command: Command, clock: Clock, company: &Company) -> anyhow::Result<Exit> {
    match command {
        Command::Run(args) => run::run(&args, clock, company),
        Command::Measure(args) => measure::measure(&args, clock, company),
        Command::Predict(args) => predict::predict(&args),
        Command::Validate(args) => validate::validate(&args, clock, company),
        Command::Compare(args) => compare::compare(&args, clock),
        Command::Report(args) => report::report(&args),
        Command::Export(args) => export::export(&args),
        Command::History(args) => history::history(&args),
        Command::Import(args) => import::import(&args),
        Command::Suite(args) => suite::suite(&args, clock),
        Command::Trace(args) => trace::trace(&args, clock),
        Command::Replay(args) => replay::replay(&args, clock),
        Command::Serve(args) => serve::serve(&args),
        Command::Vector(args) => vector::vector(&args, clock),
        Command::Doctor(args) => doctor::doctor(&args, clock),
        Command::Clean(args) => clean::clean(&args),
        Command::Man(args) => manual::man(&args),
        Command::Completions(args) => manual::completions(&args),
    }
}

/// What the flags alone answer: help, the version, or that they cannot be.
fn answered_by_flags(error: &clap::Error) -> anyhow::Result<Exit> {
    if error.use_stderr() {
        output::complain(&error.render());
        return Ok(Exit::Usage);
    }
    output::answer(&output::styled(&error.render(), &std::io::stdout()))?;
    Ok(Exit::Fine)
}
