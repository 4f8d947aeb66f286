//! Misses by whose they are: touches by class of file and by phase, counted apart in the one cache that
//! all of them share.

use std::collections::{BTreeMap, HashMap};

use ioscape_model::app::{CachePart, PartMisses};

use super::mrc::{Access, bucket_of, simplified, start_of};
use crate::event::FileEntry;

/// The class of files whose extension says nothing.
const OTHER: &str = "other";
/// Points of a part's curve are left out where the curve stays within this share of its touches.
const ERROR: f64 = 0.01;
/// Parts that are told, those with most touches first.
const PARTS_MAX: usize = 24;

/// Distances of some touches, in buckets of a thirty-second of a doubling.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    buckets: Vec<u64>,
    cold: u64,
}

impl Counts {
    /// Counts touches at a distance; `None` for first ones.
    #[inline]
    pub(super) fn add(&mut self, distance: Option<u64>, touches: u64) {
        let Some(distance) = distance else {
            self.cold += touches;
            return;
        };
        let bucket = bucket_of(distance);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += touches;
    }

    /// Misses by size of the cache.
    pub(super) fn part(&self, part: String) -> CachePart {
        let touches = self.cold + self.buckets.iter().sum::<u64>();
        // A cache hits at distances below its size: at the end of a bucket all of it is hit.
        let ends = self.buckets.iter().enumerate().scan(touches, |left, (bucket, count)| {
            *left -= count;
            Some((start_of(bucket + 1) as u64, [*left as f64]))
        });
        let points = std::iter::once((0, [touches as f64])).chain(ends);
        let corners = simplified(points, ERROR * touches as f64);
        let misses = corners
            .into_iter()
            .map(|(pages, [misses])| PartMisses { pages, misses: misses.max(0.0).round() as u64 });
        CachePart { part, touches, first_touches: self.cold, misses: misses.collect() }
    }
}

/// Counts by class and by phase, reads and writes apart.
#[derive(Debug, Default)]
pub(super) struct Parts {
    class_of: HashMap<u32, u16>,
    classes: Vec<String>,
    by_class: Vec<[Counts; 2]>,
    cuts_ns: Vec<u64>,
    by_phase: Vec<[Counts; 2]>,
}

impl Parts {
    /// For these files, and phases that begin at these moments after the first one.
    pub(super) fn new(files: &[FileEntry], cuts_ns: &[u64]) -> Self {
        let mut parts = Self { cuts_ns: cuts_ns.to_vec(), ..Self::default() };
        let mut numbers: BTreeMap<&str, u16> = BTreeMap::new();
        for file in files {
            let class = if file.class.is_empty() { OTHER } else { &file.class };
            let fresh = numbers.len() as u16;
            let number = *numbers.entry(class).or_insert(fresh);
            if number == fresh {
                parts.classes.push(class.to_owned());
            }
            parts.class_of.insert(file.id, number);
        }
        parts.by_class.resize(parts.classes.len(), [Counts::default(), Counts::default()]);
        if !cuts_ns.is_empty() {
            parts.by_phase.resize(cuts_ns.len() + 1, [Counts::default(), Counts::default()]);
        }
        parts
    }

    /// Counts touches of a file at one distance.
    #[inline]
    pub(super) fn add(
        &mut self,
        (file, start_ns): (u32, u64),
        access: Access,
        distance: Option<u64>,
        touches: u64,
    ) {
        let side = usize::from(access == Access::Write);
        if let Some(class) = self.class_of.get(&file) {
            self.by_class[usize::from(*class)][side].add(distance, touches);
        }
        if !self.by_phase.is_empty() {
            let phase = self.cuts_ns.partition_point(|cut| *cut <= start_ns);
            self.by_phase[phase][side].add(distance, touches);
        }
    }

    /// Those that have touches: classes by their touches, then phases in order.
    pub(super) fn finish(&self) -> Vec<CachePart> {
        let sides = |counts: &[Counts; 2], name: &str| {
            let part = |side: usize, word: &str| counts[side].part(format!("{word} {name}"));
            [part(0, "read"), part(1, "write")]
        };
        let classes = self.by_class.iter().zip(&self.classes);
        let mut classes: Vec<CachePart> =
            classes.flat_map(|(counts, name)| sides(counts, name)).collect();
        classes.sort_by(|a, b| b.touches.cmp(&a.touches).then(a.part.cmp(&b.part)));
        classes.retain(|part| part.touches > 0);
        classes.truncate(PARTS_MAX);
        let phases = (1..).zip(&self.by_phase);
        let phases = phases.flat_map(|(number, counts)| sides(counts, &format!("phase {number}")));
        classes.extend(phases.filter(|part| part.touches > 0));
        classes
    }
}
