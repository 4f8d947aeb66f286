//! `ioscape trace …`: what programs do to files.

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// What can be typed.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

/// One file of this directory each.
#[derive(Debug, Subcommand)]
enum TraceCommand {}

/// Does what was typed after `trace`.
pub(crate) fn trace(args: &TraceArgs) -> anyhow::Result<Exit> {
    match args.command {}
}
