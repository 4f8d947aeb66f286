//! Sets of pages: which parts of which files were touched. Exact, and small where pages lie together
//! or all over a file.

use std::collections::HashMap;

/// The unit in which touched data is counted, bytes.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Pages of a chunk.
const CHUNK_PAGES: u64 = 4096;
/// A chunk of more pages than this is a bitmap of 512 bytes.
const FEW_PAGES: usize = 128;

/// Pages of many files.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageSet {
    chunks: HashMap<(u32, u64), Chunk>,
    count: u64,
}

#[derive(Clone, Debug)]
enum Chunk {
    /// Sorted.
    Few(Vec<u16>),
    Many(Box<[u64; 64]>),
}

impl PageSet {
    /// Adds the pages that a stretch of a file lies in.
    pub(crate) fn insert_bytes(&mut self, file: u32, offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let first = offset / PAGE_BYTES;
        let last = offset.saturating_add(bytes - 1) / PAGE_BYTES;
        for chunk in first / CHUNK_PAGES..=last / CHUNK_PAGES {
            let base = chunk * CHUNK_PAGES;
            let from = first.max(base) - base;
            let to = last.min(base + CHUNK_PAGES - 1) - base;
            let pages = self.chunks.entry((file, chunk)).or_insert(Chunk::Few(Vec::new()));
            self.count += pages.insert(from as u16, to as u16);
        }
    }

    /// Tells whether the set holds this page of this file.
    pub(crate) fn contains(&self, file: u32, page: u64) -> bool {
        let place = (page % CHUNK_PAGES) as u16;
        self.chunks.get(&(file, page / CHUNK_PAGES)).is_some_and(|chunk| match chunk {
            Chunk::Few(pages) => pages.binary_search(&place).is_ok(),
            Chunk::Many(words) => words[usize::from(place / 64)] >> (place % 64) & 1 == 1,
        })
    }

    /// How many of its pages are in the other as well.
    pub(crate) fn shared(&self, other: &Self) -> u64 {
        let common = |(place, chunk): (&(u32, u64), &Chunk)| {
            let theirs = other.chunks.get(place)?.bits();
            let both = chunk
                .bits()
                .iter()
                .zip(theirs.iter())
                .map(|(a, b)| (a & b).count_ones())
                .sum::<u32>();
            Some(u64::from(both))
        };
        self.chunks.iter().filter_map(common).sum()
    }

    /// How much data they hold.
    pub(crate) fn bytes(&self) -> u64 {
        self.count * PAGE_BYTES
    }
}

impl Chunk {
    fn bits(&self) -> Box<[u64; 64]> {
        match self {
            Self::Many(words) => words.clone(),
            Self::Few(pages) => {
                let mut words = Box::new([0; 64]);
                for page in pages {
                    words[usize::from(*page / 64)] |= 1 << (page % 64);
                }
                words
            }
        }
    }

    /// Adds `from..=to`; how many are new.
    fn insert(&mut self, from: u16, to: u16) -> u64 {
        let wanted = usize::from(to - from) + 1;
        match self {
            Self::Few(pages) if wanted == 1 && pages.len() < FEW_PAGES => {
                match pages.binary_search(&from) {
                    Ok(_) => 0,
                    Err(place) => {
                        pages.insert(place, from);
                        1
                    }
                }
            }
            Self::Few(_) => {
                let mut words = self.bits();
                let added = set(&mut words, from, to);
                *self = Self::Many(words);
                added
            }
            Self::Many(words) => set(words, from, to),
        }
    }
}

/// Sets the bits `from..=to`; how many were not.
fn set(words: &mut [u64; 64], from: u16, to: u16) -> u64 {
    let mut added = 0;
    for word in from / 64..=to / 64 {
        let base = word * 64;
        let low = from.max(base) - base;
        let high = to.min(base + 63) - base;
        let mask = (u64::MAX >> (63 - high)) & (u64::MAX << low);
        let bits = &mut words[usize::from(word)];
        added += u64::from((mask & !*bits).count_ones());
        *bits |= mask;
    }
    added
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_counts_as_a_set_of_pages_does(
            touched in prop::collection::vec((0_u32..3, 0_u64..40_000_000, 1_u64..3_000_000), 1..60)
        ) {
            let (mut set, mut truth) = (PageSet::default(), HashSet::new());
            for (file, offset, bytes) in touched {
                set.insert_bytes(file, offset, bytes);
                let pages = offset / PAGE_BYTES..=(offset + bytes - 1) / PAGE_BYTES;
                truth.extend(pages.map(|page| (file, page)));
                prop_assert_eq!(set.count, truth.len() as u64);
                for page in (0..12_000).step_by(7) {
                    prop_assert_eq!(set.contains(1, page), truth.contains(&(1, page)));
                }
            }
        }
    }

    #[test]
    fn single_pages_are_counted_once() {
        let mut set = PageSet::default();
        for page in (0..1000).chain(0..1000) {
            set.insert_bytes(1, page * 3 * PAGE_BYTES, 1);
        }
        set.insert_bytes(1, 0, 0);
        assert_eq!(set.count, 1000);
        set.insert_bytes(1, u64::MAX - 10, 100);
        assert_eq!(set.count, 1001);
    }
}
