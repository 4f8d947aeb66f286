//! Importers of traces. With `IOSCAPE_FORMAT=N` in the environment all inputs are read in that one of
//! the formats in `trace_import` (entries.rs), whatever their first byte says.
#![no_main]

use std::sync::LazyLock;

static FORMAT: LazyLock<Option<u8>> =
    LazyLock::new(|| std::env::var("IOSCAPE_FORMAT").ok()?.parse().ok());

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match (*FORMAT, bytes.split_first()) {
    (Some(format), Some((_, rest))) => {
        ioscape_fuzz::trace_import(&[&[format], rest].concat());
    }
    _ => ioscape_fuzz::trace_import(bytes),
});
