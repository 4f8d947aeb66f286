//! Checks on the repository itself; they live in `tests/`.
