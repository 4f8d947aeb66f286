//! The measuring loop against streams whose truth is known.

#![expect(clippy::print_stdout, reason = "what was measured is shown")]

mod coverage;
mod durable;
mod points;
