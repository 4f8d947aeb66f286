//! Counts and times of a load.

use std::collections::BTreeMap;

use ioscape_engine::replay::Times;

/// Answers that are told in words.
const EXAMPLES: usize = 3;

/// Result of a load.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// From the start to the end of the last response, nanoseconds.
    pub elapsed_ns: u64,
    /// Requests that ended: with a response, or failed.
    pub requests: u64,
    /// Sessions that began.
    pub sessions_begun: u64,
    /// Sessions whose last request ended.
    pub sessions_ended: u64,
    /// Most sessions that were open at a time.
    pub sessions_at_a_time: u64,
    /// Connections that were made, those that replaced a closed one included.
    pub connections: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Responses, by status.
    pub by_status: BTreeMap<u16, u64>,
    /// From the sending of a request to the last byte of its response.
    pub time: Times,
    /// From the sending of a request to the first byte of its response.
    pub first_byte: Times,
    /// From when a request was due to its sending. The making of a connection lies therein.
    pub late: Times,
    /// From when a request was due to the last byte of its response, or until it failed.
    pub latency: Times,
    /// Responses whose status is of another kind than expected, or whose body of another length.
    pub unexpected: u64,
    /// Files that were sent although the visitor was expected to have them.
    pub sent_again: u64,
    /// Sessions that ended before a request that was due, because the load had ended long before or was
    /// interrupted.
    pub not_sent: u64,
    /// Requests without a whole response: no connection, or one that broke, or no end in a minute.
    pub failed: u64,
    /// The first that were not as expected or failed, a line each.
    pub first_unexpected: Vec<String>,
}

impl Traffic {
    /// Remembers a line where there are few.
    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.first_unexpected.len() < EXAMPLES {
            self.first_unexpected.push(line());
        }
    }

    /// All that another loop did at the same time.
    pub(crate) fn add(&mut self, other: Self) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.requests += other.requests;
        self.sessions_begun += other.sessions_begun;
        self.sessions_ended += other.sessions_ended;
        self.connections += other.connections;
        self.bytes += other.bytes;
        for (status, count) in other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
        self.time.add(&other.time);
        self.first_byte.add(&other.first_byte);
        self.late.add(&other.late);
        self.latency.add(&other.latency);
        self.unexpected += other.unexpected;
        self.sent_again += other.sent_again;
        self.failed += other.failed;
        self.not_sent += other.not_sent;
        for line in other.first_unexpected {
            self.tell(|| line);
        }
    }
}
