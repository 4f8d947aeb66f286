//! Traces: what programs did to files, one event per call, whoever recorded it.
//!
//! Everything here is a pure function of the events, and streams: a trace may be larger than memory.

pub mod event;

pub use event::{Event, FileEntry, FileKind, Flags, Layer, Op, Sink, StreamEntry, TraceInfo};
