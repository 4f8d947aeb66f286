//! The built binary, as people and scripts meet it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod anonymous;
mod answers;
mod applications;
mod caches;
mod compare;
mod corpus;
mod danger;
mod doctor;
mod export;
mod history;
mod import;
mod interrupted;
mod layers;
mod live;
mod lost;
mod manual;
mod maps;
mod measure;
mod notebook;
mod predict;
mod predictor;
mod ranks;
mod refused;
mod replay;
mod run;
mod running;
mod schemas;
mod seconds;
mod suite;
mod terminal;
mod unwritable;
mod validate;
mod vector;
mod web;
mod workdir;
