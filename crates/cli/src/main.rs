//! ioscape.
fn main() {}
