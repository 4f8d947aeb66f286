//! The built binary, as people and scripts meet it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod compare;
mod export;
mod import;
mod interrupted;
mod manual;
mod measure;
mod notebook;
mod predict;
mod refused;
mod run;
mod terminal;
mod validate;
mod workdir;
