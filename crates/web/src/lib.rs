//! Load for web servers: sessions of visitors made at a server over HTTP/1.1, and a server whose
//! response times are given, from which a proxy under test obtains its pages (Seltzer et al. 1999,
//! section 4.2).
//!
//! [`drive()`] makes [`Session`](ioscape_trace::site::Session)s at one [`Server`]. A request is timed
//! from the instant at which it was due, so that a server that stalls cannot hide the requests that
//! waited meanwhile. [`serve`] answers with as many bytes as it was told, after a time drawn from
//! [`ResponseTimes`].
//!
//! Not here: TLS, HTTP/2, redirects, the contents of pages, and what a session is made of.
//!
//! ```
//! use ioscape_web::{ResponseTimes, Server};
//! let server = Server::parse("http://127.0.0.1:8080/mirror/")?;
//! assert_eq!(server.prefix(), "/mirror");
//! let times = ResponseTimes::parse("p50=5ms,p99=80ms")?;
//! assert_eq!(times.quantiles().len(), 2);
//! # Ok::<(), String>(())
//! ```

mod drive;
mod error;
mod job;
mod origin;
mod outcome;
mod response_times;
mod runtime;
mod server;
mod timer;
mod traffic;

pub use drive::drive;
pub use error::Error;
pub use ioscape_engine::replay::Times;
pub use job::Job;
pub use origin::{Origin, Served, serve};
pub use outcome::{Facts, lines, workload};
pub use response_times::ResponseTimes;
pub use server::Server;
pub use traffic::Traffic;
