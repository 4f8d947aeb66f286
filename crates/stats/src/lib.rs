//! ioscape stats.
