//! The entries of the fuzz targets. Two readers live in the binary crate and are compiled from their
//! own files, with the little that they need around them.
#![expect(dead_code, reason = "the readers are used in part")]

mod args {
    /// No flags.
    pub(crate) struct WorkloadArgs;

    impl WorkloadArgs {
        pub(crate) fn none() -> Self {
            Self
        }

        pub(crate) fn pairs(&self) -> Vec<(&'static str, &str)> {
            vec![]
        }
    }
}

#[path = "../crates/cli/src/exit.rs"]
mod exit;
#[path = "../crates/cli/src/text_file.rs"]
mod text_file;
#[path = "../crates/cli/src/workload_arg.rs"]
mod workload_arg;

#[path = "../crates/cli/src/import"]
mod import {
    pub(crate) mod fio;
}

mod entries;

macro_rules! entries {
    ($($name:ident),*) => { $(
        /// See `entries`.
        pub fn $name(bytes: &[u8]) {
            entries::$name(bytes);
        }
    )* };
}

entries!(record, workload, workload_file, sim_spec, fio);
