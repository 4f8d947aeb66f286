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

pub mod caches;
pub mod character;
mod classes;
mod collected;
pub mod demand;
pub mod event;
pub mod export;
pub mod import;
pub mod regenerate;
pub mod store;

pub use classes::class_of;
pub use collected::Collected;
pub use event::{
    Counted, Event, FileEntry, FileKind, Flags, Layer, Op, Sink, StreamEntry, TraceInfo,
};
pub use store::{Names, Store, StoreError, StoreWriter, Tables};
