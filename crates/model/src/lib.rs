//! The nouns of ioscape: plain and serialisable. This crate holds, parses and checks them, and has the few
//! rules that several crates share.
//!
//! | word | meaning |
//! |---|---|
//! | workload | the five parameters of Chen and Patterson (1994, section 5), and ours |
//! | point | one visit to one workload: what was measured there |
//! | estimate | one workload, pooled over its visits |
//! | focal point, focal vector | the values at which the other parameters are held for a graph |
//! | region | a stretch of `unique_bytes` with one behaviour |
//! | border | what lies between two regions; *onset* where it starts to hurt, *capacity* the cache behind it |
//! | family | the graphs of one region |
//! | record | the file: the journal of a run |
//! | map | what a record shows |
//! | layer | the part of a map measured through the page cache, or the part measured with direct I/O |
//! | span | the data that the device layer lies over |
//! | data sheet | nine workloads whose figures are asked for first |
//! | conclusion | what a report leads with: what the storage is, how far to trust it, what to do |
//! | absorbed, durable | throughput before and after the data is on stable storage |
//! | response time, latency | per request in a closed loop; from the intended start in an open one |
//!
//! Sizes are bytes and times seconds unless a name says otherwise.
//!
//! ```
//! use ioscape_model::{Access, Workload};
//! let work = Workload::parse("unique_bytes=1GiB,read_frac=0.7,depth=8,access=direct")?;
//! assert_eq!((work.unique_bytes, work.access), (1 << 30, Access::Direct));
//! assert!(Workload::parse("read_frac=7").is_err());
//! # Ok::<(), ioscape_model::workload::WorkloadError>(())
//! ```

pub mod answer;
pub mod app;
mod bounds;
pub mod checkup;
mod conclusion;
pub mod datasheet;
pub mod element;
mod end;
mod figure;
pub mod graph;
pub mod history;
pub mod host;
mod layer;
pub mod line;
pub mod named;
mod open_loop;
pub mod point;
mod ranks;
pub mod record;
mod region;
pub mod replay;
pub mod rules;
pub mod seal;
pub mod suite;
pub mod sustained;
pub mod units;
pub mod warning;
mod word;
pub mod workload;

pub use answer::{
    ApplicationRanking, ApplicationTime, CacheAnswer, CacheComparison, CachePoint, Comparison,
    Comparisons, Dependence, ElementComparison, Errors, LargestTerm, MemoryUse, NotCompared,
    Overall, OverallRatio, PredictedTime, Prediction, Predictions, PriceComparison,
    PricePerformance, RankedSystem, RecordWarnings, RegionComparison, RegionLevel, Repeatability,
    SystemComparison, TraceShare, Validation, ValidationPoint, Verdict, Worth,
};
pub use app::App;
pub use conclusion::{Advice, AdviceKind, Conclusion, Grade, Trust};
pub use datasheet::{SheetFigures, SheetLine, SheetTimes};
pub use element::{Element, ElementName, Terms};
pub use end::{Dropped, End, EndReason, Forecast, LeftOut, Part, Want};
pub use figure::Figure;
pub use history::{
    BlockContrast, Change, CheckedLine, History, HistoryCheck, HistoryLine, KeptRun, Reading,
    Standing, Turn,
};
pub use host::{Host, READ_AHEAD_BYTES, Target, TargetKind};
pub use layer::{DeviceLayer, Layer};
pub use line::{
    Border, BorderUniqueBytes, Curve, Estimate, Finding, FindingCode, FoundBy, Header, Line, Map,
    Method, ModelLine, ModelName, Origin, Tool,
};
pub use open_loop::{DONE_MIN, OpenLoop, open_loops};
pub use point::{
    ClassTotals, Classes, Failed, Failure, Interval, Point, RequestClass, ResponseTime, Role, Spent,
};
pub use ranks::{Hosts, RankFigures, RankPlace, Ranks, Resource, Waits};
pub use record::{Record, RecordError};
pub use region::{Region, RegionKind, RegionName, RegionUniqueBytes, UnknownRegion};
pub use replay::{CountedIo, ErrorsCompared, Replay, ReplayedOperation, Spacing, Start, WebReplay};
pub use rules::{Hints, Limits, Range, Ranges, Rules, RulesError};
pub use suite::{
    Better, Contrast, IoShare, Purpose, Score, Suite, SuiteLines, SuiteSettings, Trial, TrialFigure,
};
pub use sustained::{Sustained, WrittenPiece};
pub use warning::{Code, Severity, Warning, Words};
pub use word::word;
pub use workload::{Access, Arrivals, Layout, SeqScope, SizeDist, State, Workload, WorkloadError};
