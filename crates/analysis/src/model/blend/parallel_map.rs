//! Several fits at a time.

use std::panic::resume_unwind;

/// Maps `make` over the items on all processors, results in order. Not during a visit: it would disturb it.
pub(super) fn parallel_map<T: Sync, R: Send>(items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let make_all = &|part: &[T]| part.iter().map(&make).collect::<Vec<R>>();
    std::thread::scope(|scope| {
        let begun: Vec<_> = items
            .chunks(items.len().div_ceil(threads).max(1))
            .map(|part| {
                let thread = std::thread::Builder::new().name("fit".into());
                thread.spawn_scoped(scope, move || make_all(part)).map_err(|_| part)
            })
            .collect();
        let ended = begun.into_iter().flat_map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // Where no thread can be had, this one is enough.
            Err(part) => make_all(part),
        });
        ended.collect()
    })
}
