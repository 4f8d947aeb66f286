//! ioscape analysis.
