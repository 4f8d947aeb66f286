//! Traces: what programs did to files, one event per call, whoever recorded it.
//!
//! Everything here is a pure function of the events, and streams: a trace may be larger than memory.
//!
//! | module | owns |
//! |---|---|
//! | [`event`] | the nouns: events, files, streams, [`Sink`]; a whole trace in memory is [`Collected`] |
//! | [`store`] | the trace's file |
//! | [`caches`] | what caches make of a trace: miss-ratio curves, the page cache |
//! | [`character`] | what a trace says: five parameters and more, as an application model |
//! | [`demand`] | what an application asks of a system: counts that any system can price |
//! | [`export`] | traces for other tools |
//! | [`import`](mod@import) | traces of other tools |
//! | [`regenerate`] | events out of an application model |
//!
//! ```
//! use ioscape_trace::caches::mrc::{Access, ExactCurve};
//! let mut curve = ExactCurve::new();
//! for _ in 0..10 {
//!     curve.touch(Access::Read, 1, 0, 100);
//! }
//! // A cache of 100 pages misses each of them once.
//! assert!((curve.finish().miss_ratio(100) - 0.1).abs() < 1e-12);
//! ```

pub mod caches;
pub mod character;
mod classes;
mod collected;
pub mod demand;
pub mod event;
pub mod export;
pub mod import;
pub mod regenerate;
pub mod site;
pub mod store;

pub use classes::class_of;
pub use collected::Collected;
pub use event::{
    Counted, Event, FileEntry, FileKind, Flags, Layer, Op, Sink, StreamEntry, TraceInfo,
};
pub use store::{Names, Store, StoreError, StoreWriter, Tables};
