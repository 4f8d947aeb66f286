//! Reasons why no load could be made, or nothing be served.

use std::io;
use std::net::SocketAddr;

/// A failure of the whole: a request that fails is counted instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody answers.
    #[error("no server answers at {url} ({source}); start it, or check host and port")]
    Unreachable {
        /// Address as it was given.
        url: String,
        /// Reason.
        source: io::Error,
    },
    /// A path cannot stand in a request.
    #[error("`{path}` cannot be asked for; write paths from `/` on, spaces and the like as %20")]
    Path {
        /// As it was given.
        path: String,
    },
    /// A header cannot stand in a request.
    #[error("`{value}` cannot be sent as {header}; use printable ASCII")]
    Header {
        /// Name of the header.
        header: &'static str,
        /// As it was given.
        value: String,
    },
    /// More sessions would be open than may be.
    #[error(
        "more than {connections_max} sessions would be open at a time, each with a connection; \
         allow more, let them begin more slowly, or take a fixed number of users"
    )]
    TooManySessions {
        /// Sessions that may be open.
        connections_max: usize,
    },
    /// A thread cannot wait for sockets.
    #[error("cannot start an event loop ({source}); allow more open files with `ulimit -n`")]
    EventLoop {
        /// Reason.
        source: io::Error,
    },
    /// An address cannot be listened at.
    #[error("cannot listen at {address} ({source}); choose another port, 0 for any that is free")]
    Listen {
        /// As it was given.
        address: SocketAddr,
        /// Reason.
        source: io::Error,
    },
}
