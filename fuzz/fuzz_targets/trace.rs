#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ioscape_fuzz::trace(bytes));
