//! `ioscape trace …`: what programs do to files.

mod caches;
mod export;
mod import;
mod model;
mod opened;
mod record;
mod show;
pub(crate) mod source;
mod together;

use clap::{Args, Subcommand};
use ioscape_engine::Clock;

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
enum TraceCommand {
    /// Record what a program, with all that it starts, does to files
    Record(record::RecordArgs),
    /// Say what a trace or model holds: first the five parameters (data touched, request size,
    /// shares of reads and of sequential requests, processes), then phases, durability, names,
    /// order of requests
    Show(show::ShowArgs),
    /// Make an application model: what a program does, without a name, path or content
    Model(model::ModelArgs),
    /// Convert a trace of another tool, or a published trace, into a trace of ioscape
    Import(import::ImportArgs),
    /// Write a trace or model in a form that other tools read: csv, oracle, iolog, fio
    Export(export::ExportArgs),
    /// Say how much memory a program needs: misses of caches of all sizes, and a simulation of the
    /// kernel's page cache
    Caches(caches::CachesArgs),
}

/// Does what was typed after `trace`.
pub(crate) fn trace(args: &TraceArgs, clock: Clock) -> anyhow::Result<Exit> {
    match &args.command {
        TraceCommand::Record(args) => record::record(args, clock),
        TraceCommand::Show(args) => show::show(args),
        TraceCommand::Model(args) => model::model(args),
        TraceCommand::Import(args) => import::import(args),
        TraceCommand::Export(args) => export::export(args),
        TraceCommand::Caches(args) => caches::caches(args),
    }
}
