//! Result of replaying a trace, or load made from an application's model: a line of the record.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ResponseTime;

/// Treatment of the time between calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// A call began so long after the one before of its stream had ended, as it did when recorded.
    #[default]
    Closed,
    /// A call began so long after the start, as it did when recorded, however long those before took.
    Open,
    /// There was none: a call began when the one before, and those it depends on, had ended.
    None,
}

/// Data in the page cache at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// As when it was recorded; data of which nobody knows count as cached.
    #[default]
    AsRecorded,
    /// None.
    Cold,
    /// All.
    Warm,
}

/// One replay: a line of the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Replay {
    /// Number among the replays of this record, from 0.
    pub round: u32,
    /// `trace`; `model` where the load was made from an application's model, `site` where from a web
    /// site's.
    pub source: String,
    /// The time between calls.
    pub spacing: Spacing,
    /// Times between calls were divided by this.
    pub speed: f64,
    /// The page cache at the start.
    pub start: Start,
    /// From the first call to the end, seconds.
    pub elapsed_s: f64,
    /// How long it took when it was recorded, seconds.
    pub recorded_s: f64,
    /// Calls that were made.
    pub calls: u64,
    /// Events that were not made into calls: waiting, processes, pipes, files without storage.
    pub passed_over: u64,
    /// Streams that made calls.
    pub streams: u64,
    /// Files that were laid out, or made by calls.
    pub files: u64,
    /// Bytes written before the first call.
    pub laid_out_bytes: u64,
    /// Files that had to be opened though no call opened them: they were open when recording began.
    pub reopened: u64,
    /// Bytes that calls read.
    pub bytes_read: u64,
    /// Bytes that calls wrote.
    pub bytes_written: u64,
    /// By operation, as a trace names it.
    pub operations: BTreeMap<String, ReplayedOperation>,
    /// How much later calls began than they were to, seconds; null without spacing.
    pub late_s: Option<ResponseTime>,
    /// From when calls were to begin to their end, seconds; null but for open spacing and web servers.
    pub latency_s: Option<ResponseTime>,
    /// How the errors compare with those recorded.
    pub errors: ErrorsCompared,
    /// The kernel's counts for the threads that made the calls; null where it does not count.
    pub counted: Option<CountedIo>,
    /// Requests to a web server; null where the calls were made on files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<WebReplay>,
}

/// Requests to a web server by HTTP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebReplay {
    /// Sessions that began.
    pub sessions: u64,
    /// Sessions at a time, at most.
    pub sessions_max: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Answers by status.
    pub statuses: BTreeMap<String, u64>,
    /// Files that were sent though the visitor was to have them already.
    pub sent_again: u64,
    /// Requests without an answer.
    pub failed: u64,
    /// From when a request was sent to the first byte of its answer, seconds.
    pub first_byte_s: ResponseTime,
}

/// Calls of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedOperation {
    /// How many.
    pub count: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// How long they took, seconds.
    pub time_s: ResponseTime,
}

/// Errors of calls against those that were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ErrorsCompared {
    /// Failed both times, in one way.
    pub alike: u64,
    /// Failed both times, in different ways.
    pub different: u64,
    /// Succeeded when recorded, and failed here.
    pub only_here: u64,
    /// Failed when recorded, and succeeded here.
    pub only_recorded: u64,
    /// Reads and writes that moved fewer bytes than when recorded.
    pub shorter: u64,
    /// The first of those that differ, in words.
    pub examples: Vec<String>,
}

impl ErrorsCompared {
    /// Calls that ended otherwise than when recorded.
    pub fn unlike(&self) -> u64 {
        self.different + self.only_here + self.only_recorded + self.shorter
    }
}

/// `/proc/TASK/io` of all threads that made calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedIo {
    /// `rchar`: bytes that read calls gave.
    pub read_bytes: u64,
    /// `wchar`: bytes that write calls took.
    pub written_bytes: u64,
    /// `read_bytes`: bytes fetched from storage.
    pub storage_read_bytes: u64,
    /// `write_bytes`: bytes of pages made dirty.
    pub storage_written_bytes: u64,
}
