//! Storage of a machine: requests wait in the order of their arrival and are served by several
//! channels, each with a head of its own.

use std::collections::VecDeque;

use crate::sim::spec::MachineStorage;

/// Saved-up tokens: this much time's worth of them.
const BURST_NS: f64 = 1e7;

/// A request to storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Request {
    /// Where it begins, bytes.
    pub(super) position: u64,
    pub(super) bytes: u64,
    pub(super) purpose: Purpose,
}

/// Why a request is made. Pages are counted from the beginning of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Pages come into the cache.
    ReadIn { first: u32, count: u32 },
    /// Dirty pages are cleaned; the number counts all of these.
    WriteBack { first: u32, count: u32, number: u64 },
    /// Around the cache, for this slot.
    Direct { slot: usize, read: bool },
    /// What was written is made durable, for this slot.
    Barrier { slot: usize },
}

impl Purpose {
    fn is_read(self) -> bool {
        matches!(self, Self::ReadIn { .. } | Self::Direct { read: true, .. })
    }
}

/// The queue and the channels.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    spec: MachineStorage,
    room_bytes: f64,
    sync_ns: f64,
    waiting: VecDeque<Request>,
    channels: Vec<Channel>,
    /// Numbers of those that have nothing to do.
    idle: Vec<usize>,
    /// When the tokens of all earlier requests had been there, for requests and for bytes,
    /// nanoseconds.
    paid_ns: [f64; 2],
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    /// Where its previous request ended, bytes.
    head: u64,
    serves: Option<Request>,
}

impl Storage {
    pub(super) fn new(spec: MachineStorage, room_bytes: u64, sync_s: f64) -> Self {
        let channels = spec.channels as usize;
        Self {
            spec,
            room_bytes: room_bytes as f64,
            sync_ns: sync_s * 1e9,
            waiting: VecDeque::new(),
            channels: vec![Channel::default(); channels],
            idle: (0..channels).rev().collect(),
            paid_ns: [0.0; 2],
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// Requests wait in their order. Bytes count from here on.
    pub(super) fn submit(&mut self, request: Request) {
        if request.purpose.is_read() {
            self.read_bytes += request.bytes;
        } else {
            self.written_bytes += request.bytes;
        }
        self.waiting.push_back(request);
    }

    /// Whether a request waits and a channel is idle.
    pub(super) fn can_begin(&self) -> bool {
        !self.waiting.is_empty() && !self.idle.is_empty()
    }

    /// Begins the next request: the channel, and after how many nanoseconds it is done. Service is
    /// slower by a factor.
    pub(super) fn begin(&mut self, now_ns: u64, slower: f64) -> (usize, f64) {
        let channel = self.idle.pop().expect("a channel is idle");
        let request = self.waiting.pop_front().expect("a request waits");
        let head = self.channels[channel].head;
        let service_ns = match request.purpose {
            Purpose::Barrier { .. } => self.sync_ns,
            _ => self.service_ns(head, &request),
        };
        let waits_ns = self.pay(now_ns as f64, &request);
        let end = match request.purpose {
            Purpose::Barrier { .. } => head,
            _ => request.position + request.bytes,
        };
        self.channels[channel] = Channel { head: end, serves: Some(request) };
        (channel, waits_ns + service_ns * slower)
    }

    /// A channel is done.
    pub(super) fn end(&mut self, channel: usize) -> Request {
        self.idle.push(channel);
        self.channels[channel].serves.take().expect("a channel ends what it began")
    }

    fn service_ns(&self, head: u64, request: &Request) -> f64 {
        let is_read = request.purpose.is_read();
        let cost = if is_read { self.spec.read } else { self.spec.write };
        let distance = head.abs_diff(request.position) as f64 / self.room_bytes;
        let across_us = self.spec.seek_across_us * distance.min(1.0).sqrt();
        let seek_us = if distance > 0.0 { self.spec.seek_us + across_us } else { 0.0 };
        seek_us * 1e3 + cost.time_s(request.bytes as f64) * 1e9
    }

    /// Takes a request's tokens; how long it has to wait for them, nanoseconds.
    fn pay(&mut self, now_ns: f64, request: &Request) -> f64 {
        let amounts = [1.0, request.bytes as f64];
        let limits = [self.spec.ops_per_s_max, self.spec.bytes_per_s_max];
        let mut waits_ns = 0.0_f64;
        for ((paid_ns, limit), amount) in self.paid_ns.iter_mut().zip(limits).zip(amounts) {
            *paid_ns =
                paid_ns.max(now_ns - BURST_NS) + limit.map_or(0.0, |limit| 1e9 * amount / limit);
            waits_ns = waits_ns.max(*paid_ns - now_ns);
        }
        waits_ns
    }
}
