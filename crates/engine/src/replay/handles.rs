//! Open descriptions by their number in the trace. Streams share them.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// Streams that use different handles seldom wait for each other.
const SHARDS: usize = 64;

/// An open description. It is closed when the last one who uses it lets go.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) descriptor: OwnedFd,
}

/// All that are open.
#[derive(Debug)]
pub(super) struct Handles {
    shards: Vec<Mutex<HashMap<u64, Arc<Handle>>>>,
}

impl Handles {
    pub(super) fn new() -> Self {
        Self { shards: std::iter::repeat_with(Mutex::default).take(SHARDS).collect() }
    }

    fn shard(&self, number: u64) -> &Mutex<HashMap<u64, Arc<Handle>>> {
        &self.shards[number as usize % SHARDS]
    }

    pub(super) fn get(&self, number: u64) -> Option<Arc<Handle>> {
        self.shard(number).lock().ok()?.get(&number).map(Arc::clone)
    }

    /// Takes the place of one with the same number.
    pub(super) fn put(&self, number: u64, handle: Arc<Handle>) {
        if let Ok(mut shard) = self.shard(number).lock() {
            shard.insert(number, handle);
        }
    }

    /// Keeps one, unless somebody else was quicker: then that one, and false.
    pub(super) fn put_first(&self, number: u64, handle: Arc<Handle>) -> (Arc<Handle>, bool) {
        let Ok(mut shard) = self.shard(number).lock() else { return (handle, true) };
        if let Some(first) = shard.get(&number) {
            return (Arc::clone(first), false);
        }
        shard.insert(number, Arc::clone(&handle));
        (handle, true)
    }

    pub(super) fn take(&self, number: u64) -> Option<Arc<Handle>> {
        self.shard(number).lock().ok()?.remove(&number)
    }
}
