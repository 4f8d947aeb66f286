//! The measuring loop against streams whose truth is known.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test binary is all test")]

mod coverage;
mod durable;
mod points;
