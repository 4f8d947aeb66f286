//! A value for every page of every file: chunks of pages that exist from their first use on.

use std::collections::BTreeMap;

/// Pages of a chunk.
const CHUNK: u64 = 512;

/// Chunk numbers may run this far ahead of the directory that a file has so far: sparse files and
/// broken offsets go to the map instead.
const AHEAD: u64 = 64;

/// Files with higher numbers have their chunks in the map.
const FILES_NEAR: u32 = 1 << 22;

/// Values by file and page; what was never set is the default.
#[derive(Debug, Default)]
pub(crate) struct PageTable<T> {
    /// Of each file, where its chunks are: index + 1, 0 for none.
    near: Vec<Vec<u32>>,
    /// Chunks of high numbers.
    far: BTreeMap<(u32, u64), u32>,
    chunks: Vec<Box<[T; CHUNK as usize]>>,
}

impl<T: Copy + Default> PageTable<T> {
    /// No values.
    pub(crate) fn new() -> Self {
        Self { near: Vec::new(), far: BTreeMap::new(), chunks: Vec::new() }
    }

    /// The value of a page.
    #[inline]
    pub(crate) fn get(&self, file: u32, page: u64) -> T {
        let Some(chunk) = self.find(file, page / CHUNK) else { return T::default() };
        self.chunks[chunk][(page % CHUNK) as usize]
    }

    /// The values of pages from `first` on, at most `count` and none beyond the chunk.
    #[inline]
    pub(crate) fn run(&mut self, file: u32, first: u64, count: u64) -> &mut [T] {
        let chunk = self.find(file, first / CHUNK);
        let chunk = chunk.unwrap_or_else(|| self.make(file, first / CHUNK));
        let start = first % CHUNK;
        let end = CHUNK.min(start.saturating_add(count));
        &mut self.chunks[chunk][start as usize..end as usize]
    }

    /// Sets the value of a page.
    pub(crate) fn set(&mut self, file: u32, page: u64, value: T) {
        self.run(file, page, 1)[0] = value;
    }

    /// All values there are, in no order that means anything.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flat_map(|chunk| chunk.iter_mut())
    }

    /// Ranges of pages of a file, from `first` on, that may have values.
    pub(crate) fn ranges(&self, file: u32, first: u64) -> Vec<std::ops::Range<u64>> {
        let range = |chunk: u64| (chunk * CHUNK).max(first)..(chunk + 1) * CHUNK;
        let near = self.near.get(file as usize).into_iter().flatten().enumerate();
        let near = near.filter(|(_, at)| **at != 0).map(|(chunk, _)| chunk as u64);
        let far = self.far.range((file, 0)..=(file, u64::MAX)).map(|((_, chunk), _)| *chunk);
        near.chain(far).filter(|chunk| (chunk + 1) * CHUNK > first).map(range).collect()
    }

    #[inline]
    fn find(&self, file: u32, chunk: u64) -> Option<usize> {
        if let Some(at) = self.near.get(file as usize).and_then(|f| f.get(chunk as usize))
            && *at != 0
        {
            return Some(*at as usize - 1);
        }
        if self.far.is_empty() {
            return None;
        }
        self.far.get(&(file, chunk)).map(|at| *at as usize - 1)
    }

    #[cold]
    fn make(&mut self, file: u32, chunk: u64) -> usize {
        self.chunks.push(Box::new([T::default(); CHUNK as usize]));
        let at = self.chunks.len() as u32;
        if file >= FILES_NEAR {
            self.far.insert((file, chunk), at);
            return at as usize - 1;
        }
        if self.near.len() <= file as usize {
            self.near.resize(file as usize + 1, Vec::new());
        }
        let directory = &mut self.near[file as usize];
        if chunk > 2 * directory.len() as u64 + AHEAD {
            self.far.insert((file, chunk), at);
        } else {
            if directory.len() <= chunk as usize {
                directory.resize(chunk as usize + 1, 0);
            }
            directory[chunk as usize] = at;
        }
        at as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_from_near_and_far() {
        let mut table = PageTable::<u32>::new();
        let places = [
            (1, 0),
            (1, 511),
            (1, 512),
            (1, 1 << 40),
            (1, u64::MAX / 4),
            (u32::MAX, 5),
            (7, 90_000),
        ];
        for (value, (file, page)) in (1..).zip(places) {
            table.set(file, page, value);
        }
        for (value, (file, page)) in (1..).zip(places) {
            assert_eq!(table.get(file, page), value);
        }
        assert_eq!(table.get(1, 1), 0);
        assert_eq!(table.get(2, 0), 0);
        assert_eq!(table.ranges(1, 100).len(), 4);
        assert_eq!(table.ranges(1, 512)[0], 512..1024);
        assert_eq!(table.values_mut().filter(|value| **value != 0).count(), places.len());
    }

    #[test]
    fn a_chunk_that_was_far_stays_found_when_the_directory_grows() {
        let mut table = PageTable::<u32>::new();
        table.set(1, 300 * CHUNK, 9);
        for chunk in 0..400 {
            if chunk != 300 {
                table.set(1, chunk * CHUNK, 1);
            }
        }
        assert_eq!(table.get(1, 300 * CHUNK), 9);
    }
}
