//! The built binary, as people and scripts meet it.

mod interrupted;
mod measure;
mod refused;
mod run;
mod workdir;
