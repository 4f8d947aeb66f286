//! Records what programs do to files: every call, who made it, when and where in which file.
//!
//! Three means, best first: eBPF ([`Means::Ebpf`], about a microsecond for each call, needs root),
//! ptrace ([`Means::Ptrace`], some tens, needs nothing) and the kernel's counters
//! ([`Means::Counters`], sums alone). A tracer hands over facts; the converter, which is one for
//! all, keeps tables of descriptors and makes events of them.
//!
//! Nothing stays loaded in the kernel, and a program recorded by eBPF goes on if the recorder dies.

mod begin;
mod bpf;
mod call;
mod convert;
mod counters;
mod ebpf;
mod error;
mod observed;
mod proc;
mod ptrace;
mod recording;
mod spawn;
mod time;

pub use begin::{record, refusal};
pub use error::Error;
pub use recording::{Flow, Means, Options, Progress, Recorded, Subject};
pub use spawn::User;
