//! The entries of the fuzz targets. A reader lives in the binary crate and is compiled from its
//! own file, with the little that it needs around it.
#![expect(dead_code, reason = "the reader is used in part")]

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

mod entries;

macro_rules! entries {
    ($($name:ident),*) => { $(
        /// See `entries`.
        pub fn $name(bytes: &[u8]) {
            entries::$name(bytes);
        }
    )* };
}

entries!(record, workload, workload_file, sim_spec, fio, trace_import);
