//! ioscape report.
