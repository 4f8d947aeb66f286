//! `ioscape man` and `ioscape completions`: manual pages and shell completions, made from the one
//! declaration of the flags in `args`, by the program that has them. So they cannot be stale, and
//! whoever packages it, or installs it with cargo, needs no other file.

use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{CompletionsArgs, ManArgs};
use crate::command::Cli;
use crate::exit::{Exit, usage};
use crate::out_file::{self, Existing};
use crate::output::{self, say};

/// Prints a manual page, or writes all of them.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    if let Some(directory) = &args.out {
        return write_all(directory);
    }
    let all = commands();
    let Some(command) = all.iter().find(|command| is_named(command, args.command.as_deref()))
    else {
        let named: Vec<&str> = all.iter().skip(1).map(short_name).collect();
        let asked = args.command.as_deref().unwrap_or_default();
        return Err(usage(format!("no command is called {asked}: there are {}", named.join(", "))));
    };
    output::raw(&page(command)?)?;
    Ok(Exit::Fine)
}

/// Prints completions.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ioscape", &mut text);
    output::raw(&text)?;
    Ok(Exit::Fine)
}

/// The tool, then its commands, each with the name of its page: `ioscape-run`.
fn commands() -> Vec<Command> {
    let mut tool = Cli::command().disable_help_subcommand(true);
    tool.build();
    let of_tool: Vec<Command> = tool.get_subcommands().flat_map(with_its_own).collect();
    [tool].into_iter().chain(of_tool).collect()
}

/// A command, then its own commands: `ioscape-history-add`.
fn with_its_own(command: &Command) -> Vec<Command> {
    [command].into_iter().chain(command.get_subcommands()).cloned().collect()
}

/// `history-add` of `ioscape-history-add`.
fn short_name(command: &Command) -> &str {
    let name = command.get_display_name().unwrap_or(command.get_name());
    name.strip_prefix("ioscape-").unwrap_or(name)
}

fn is_named(command: &Command, asked: Option<&str>) -> bool {
    short_name(command) == asked.unwrap_or("ioscape")
}

fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone())
        .source(concat!("ioscape ", env!("CARGO_PKG_VERSION")))
        .manual("ioscape");
    man.render(&mut page).context("cannot make the manual page")?;
    Ok(page)
}

fn write_all(directory: &Path) -> anyhow::Result<Exit> {
    if !directory.is_dir() {
        return Err(usage(format!(
            "{}: there is no such directory; make it first",
            directory.display()
        )));
    }
    let named = |command: &Command| {
        let name = command.get_display_name().unwrap_or(command.get_name());
        Ok((directory.join(format!("{name}.1")), page(command)?))
    };
    let pages = commands().iter().map(named).collect::<anyhow::Result<Vec<_>>>()?;
    out_file::write_all(&pages, Existing::Replaced, "--out")?;
    for (file, _) in &pages {
        say(&format!("page  {}", file.display()));
    }
    Ok(Exit::Fine)
}
