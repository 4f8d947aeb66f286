//! The renderers on records made by hand.

mod fixture;
mod page;
mod summary;
