//! Whole runs on simulated devices, and the measuring loop on streams, whose truth is known.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod alternation;
mod comparison;
mod graphs;
mod measure;
mod put_together;
mod refinement;
mod sustain;
