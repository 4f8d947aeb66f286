//! The kernel's counts for one thread, to hold against what was asked for.

/// `/proc/thread-self/io` of the thread that looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadIo {
    /// Bytes asked for by read calls, answered from wherever.
    pub read_bytes: u64,
    /// Bytes given to write calls.
    pub written_bytes: u64,
    /// Bytes fetched from storage.
    pub storage_read_bytes: u64,
    /// Bytes of pages that were made dirty.
    pub storage_written_bytes: u64,
    /// Read by looking itself, bytes.
    looked_bytes: u64,
}

impl ThreadIo {
    /// Looks; `None` where the kernel does not count.
    #[must_use]
    pub fn look() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
        let value = |key: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().parse().ok()
        };
        Some(Self {
            read_bytes: value("rchar:")?,
            written_bytes: value("wchar:")?,
            storage_read_bytes: value("read_bytes:")?,
            storage_written_bytes: value("write_bytes:")?,
            looked_bytes: text.len() as u64,
        })
    }

    /// Counts since `earlier`, without the bytes that looking there has read.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let read = self.read_bytes.saturating_sub(earlier.read_bytes);
        Self {
            read_bytes: read.saturating_sub(earlier.looked_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            storage_read_bytes: self.storage_read_bytes.saturating_sub(earlier.storage_read_bytes),
            storage_written_bytes: self
                .storage_written_bytes
                .saturating_sub(earlier.storage_written_bytes),
            looked_bytes: 0,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            storage_read_bytes: self.storage_read_bytes + other.storage_read_bytes,
            storage_written_bytes: self.storage_written_bytes + other.storage_written_bytes,
            looked_bytes: 0,
        }
    }
}
