//! The kernel's own clock, by which it stamps what it tells; and waiting.

/// `CLOCK_MONOTONIC`, nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one structure where there is room for it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Waits so long, or until a signal comes.
pub(crate) fn wait_ms(milliseconds: i32) {
    // SAFETY: no descriptors are handed over, so nothing is read or written.
    unsafe { libc::poll(std::ptr::null_mut(), 0, milliseconds) };
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: the call takes a number and touches no memory.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.cast_unsigned()
}
