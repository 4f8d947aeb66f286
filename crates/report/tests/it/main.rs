//! The renderers on records made by hand.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod browser;
mod comparison;
mod export;
mod fixture;
mod page;
mod predictor;
mod summary;
mod validation;
