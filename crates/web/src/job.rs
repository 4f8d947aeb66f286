//! A load that is to be made.

use std::fmt;
use std::sync::atomic::AtomicBool;

use ioscape_engine::Stopwatch;
use ioscape_model::Spacing;
use ioscape_trace::site::Session;

use crate::server::Server;

/// A load: who asks for what, when, and where.
pub struct Job<'a> {
    /// Server that is asked.
    pub server: &'a Server,
    /// By the number of a file in a request: path and query, which follow the server's prefix. Each
    /// begins with `/`.
    pub paths: &'a [String],
    /// By the number of a file: bytes of the body that are expected; `None` where nobody knows.
    pub sizes: Option<&'a [u64]>,
    /// Sessions, by the time at which they begin.
    pub sessions: Box<dyn Iterator<Item = Session> + Send + 'a>,
    /// With a number, so many users of whom each takes the next session as soon as its own is over.
    /// Without, each session begins at its own time, however many are open.
    pub users: Option<u32>,
    /// When a request is due. `Closed`: its gap after the response before it ended. `Open`: its gap
    /// after the request before it was due. `None`: as soon as the response before it ended.
    pub spacing: Spacing,
    /// Gaps and begins of sessions are divided by this, which is above 0.
    pub speed: f64,
    /// No request begins later than this after the start, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Event loops, each a thread; at least one is made.
    pub threads: usize,
    /// Sessions that may be open at a time, each with a connection.
    pub connections_max: usize,
    /// Ends the load where it becomes true: no request begins any more, those in flight have a
    /// second to end.
    pub interrupt: &'a AtomicBool,
    /// Clock of the load.
    pub watch: Stopwatch,
    /// The user agent of user `n` is `{agent} user/{n}`, so that a server's log tells users apart:
    /// `n` is the number among `users`, otherwise that of the session.
    pub agent: String,
    /// Sent as `If-Modified-Since` for [`Answer::Unchanged`](ioscape_trace::site::Answer) as long as
    /// no `Last-Modified` of the file has been seen.
    pub date_unchanged: Option<String>,
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("server", self.server)
            .field("paths", &self.paths.len())
            .field("users", &self.users)
            .field("spacing", &self.spacing)
            .finish_non_exhaustive()
    }
}
