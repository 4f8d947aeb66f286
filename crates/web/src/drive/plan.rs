//! A job as the loops need it: parsed once, shared by all, and the little that they tell each other.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::Uri;
use hyper::header::HeaderValue;
use ioscape_model::Spacing;

use crate::error::Error;
use crate::job::Job;

/// A job, ready to be made.
pub(super) struct Plan {
    pub(super) url: String,
    pub(super) address: SocketAddr,
    pub(super) host: HeaderValue,
    pub(super) date_unchanged: Option<HeaderValue>,
    pub(super) uris: Vec<Uri>,
    pub(super) sizes: Option<Vec<u64>>,
    pub(super) users: Option<u32>,
    pub(super) spacing: Spacing,
    pub(super) connections_max: usize,
    /// When the load begins, by the stopwatch.
    pub(super) start_ns: u64,
    /// No request begins after this.
    pub(super) end_ns: u64,
    duration_ns: Option<u64>,
    speed: f64,
    agent: String,
}

impl Plan {
    pub(super) fn new(job: &Job<'_>) -> Result<Self, Error> {
        assert!(job.speed > 0.0, "a speed of {} makes no progress", job.speed);
        if job.users.is_some_and(|users| users as usize > job.connections_max) {
            return Err(Error::TooManySessions { connections_max: job.connections_max });
        }
        let uris = job.paths.iter().map(|path| uri(job.server.prefix(), path));
        let uris = uris.collect::<Result<Vec<Uri>, Error>>()?;
        let agent = format!("{} user/0", job.agent);
        header("User-Agent", &agent)?;
        Ok(Self {
            url: job.server.to_string(),
            address: job.server.address(),
            host: header("Host", job.server.authority())?,
            date_unchanged: (job.date_unchanged.as_deref())
                .map(|date| header("If-Modified-Since", date))
                .transpose()?,
            uris,
            sizes: job.sizes.map(<[u64]>::to_vec),
            users: job.users,
            spacing: job.spacing,
            connections_max: job.connections_max,
            start_ns: 0,
            end_ns: u64::MAX,
            duration_ns: job.duration_ns,
            speed: job.speed,
            agent: job.agent.clone(),
        })
    }

    /// Says when the load begins.
    pub(super) fn begin_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        self.end_ns = start_ns.saturating_add(self.duration_ns.unwrap_or(u64::MAX));
    }

    /// Files whose path, and size where sizes are known, is known.
    pub(super) fn n_files(&self) -> usize {
        self.uris.len().min(self.sizes.as_ref().map_or(usize::MAX, Vec::len))
    }

    /// A time between requests, as it is kept.
    pub(super) fn scaled_ns(&self, ns: u64) -> u64 {
        // A speed of 1 keeps times to the nanosecond, however long they are.
        if (self.speed - 1.0).abs() < f64::EPSILON { ns } else { (ns as f64 / self.speed) as u64 }
    }

    /// User agent of a user.
    pub(super) fn agent(&self, number: u64) -> HeaderValue {
        header("User-Agent", &format!("{} user/{number}", self.agent))
            .expect("it was tried with another number")
    }
}

fn header(name: &'static str, value: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(value)
        .map_err(|_| Error::Header { header: name, value: value.to_owned() })
}

fn uri(prefix: &str, path: &str) -> Result<Uri, Error> {
    let wrong = || Error::Path { path: path.to_owned() };
    if !path.starts_with('/') || path.contains('#') {
        return Err(wrong());
    }
    // A full address is taken apart by other rules than a path: `//a/b` would name a host.
    Uri::builder().path_and_query(format!("{prefix}{path}")).build().map_err(|_| wrong())
}

/// State of the whole load, of which nothing is touched more often than once a session but for the
/// loops' own counts.
pub(super) struct Shared {
    pub(super) halt: Arc<AtomicBool>,
    /// True once the server has been connected to.
    pub(super) is_reached: AtomicBool,
    /// Sessions that are open.
    pub(super) open: AtomicUsize,
    pub(super) open_max: AtomicUsize,
    pub(super) has_panicked: AtomicBool,
    /// Requests that ended, by loop.
    done: Vec<AtomicU64>,
    error: Mutex<Option<Error>>,
}

impl Shared {
    pub(super) fn new(n_loops: usize) -> Self {
        Self {
            halt: Arc::default(),
            is_reached: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            open_max: AtomicUsize::new(0),
            has_panicked: AtomicBool::new(false),
            done: (0..n_loops).map(|_| AtomicU64::new(0)).collect(),
            error: Mutex::default(),
        }
    }

    pub(super) fn n_loops(&self) -> usize {
        self.done.len()
    }

    pub(super) fn set_requests(&self, loop_number: usize, requests: u64) {
        self.done[loop_number].store(requests, Ordering::Relaxed);
    }

    /// Requests that ended, in all loops.
    pub(super) fn requests(&self) -> u64 {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum()
    }

    /// Ends the load: the first reason counts.
    pub(super) fn fail(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.halt.store(true, Ordering::Relaxed);
    }

    /// Ends the load where the server has never been connected to.
    pub(super) fn fail_unreached(&self, plan: &Plan, reason: io::ErrorKind) {
        if !self.is_reached.load(Ordering::Relaxed) {
            self.fail(Error::Unreachable { url: plan.url.clone(), source: reason.into() });
        }
    }

    pub(super) fn error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
