//! From borders to regions: stretches of `unique_bytes` with one behaviour, and the value at
//! which each is best looked at.
//!
//! Regions run from capacity to capacity. The focal value is the geometric mean, moved out of the
//! transition bands, for a curve measured between two behaviours shows neither. (Chen and
//! Patterson 1994, section 8, take the arithmetic middle.)

use ioscape_model::{Border, Curve, RegionKind, RegionName, RegionUniqueBytes};

/// A narrower region is none.
const RATIO_MIN: f64 = 1.25;
/// The transition band of a border begins at this times the onset.
const BAND_FROM_ONSET: f64 = 0.8;
/// The transition band of a border ends at this times the capacity: from there on measurements show what lies behind.
pub const CLEAR_OF_BORDER: f64 = 1.25;

/// A stretch between two borders.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// What it seems to be.
    pub name: RegionName,
    /// Where it lies.
    pub unique_bytes: RegionUniqueBytes,
}

/// The regions of a range: without gaps, smallest first. Borders outside the range, too near its
/// ends, or too near a border with a larger step do not divide it.
pub fn regions_from(borders: &[Border], min_bytes: f64, max_bytes: f64) -> Vec<Stretch> {
    let dividing = dividing(borders, min_bytes, max_bytes);
    let mut edges = vec![min_bytes];
    edges.extend(dividing.iter().map(|border| border.unique_bytes.capacity));
    edges.push(max_bytes);
    let names = names(&dividing);
    edges
        .windows(2)
        .zip(names)
        .map(|(edge, name)| {
            let (from, to) = (edge[0], edge[1]);
            let unique_bytes = RegionUniqueBytes { from, to, focal: focal(borders, from, to) };
            Stretch { name, unique_bytes }
        })
        .collect()
}

/// The transition band of a border, bytes: its behaviour belongs to neither side.
pub fn transition_band_bytes(border: &Border) -> (f64, f64) {
    let at = border.unique_bytes;
    (BAND_FROM_ONSET * at.onset.min(at.capacity), CLEAR_OF_BORDER * at.capacity)
}

/// The borders that divide the range, smallest first: larger steps choose their place first.
fn dividing<'a>(borders: &'a [Border], min_bytes: f64, max_bytes: f64) -> Vec<&'a Border> {
    let capacity = |border: &Border| border.unique_bytes.capacity;
    let mut by_step: Vec<&Border> = borders.iter().collect();
    by_step.sort_by(|a, b| b.step.total_cmp(&a.step));
    let mut kept: Vec<&'a Border> = Vec::new();
    for border in by_step {
        let apart = |other: f64| (capacity(border) / other).ln().abs() >= RATIO_MIN.ln();
        let inside = (min_bytes..=max_bytes).contains(&capacity(border));
        let ends = apart(min_bytes) && apart(max_bytes);
        if inside && ends && kept.iter().all(|other| apart(capacity(other))) {
            kept.push(border);
        }
    }
    kept.sort_by(|a, b| capacity(a).total_cmp(&capacity(b)));
    kept
}

/// The place outside all bands that is nearest to the geometric mean, or the mean itself where
/// the bands leave nothing.
fn focal(borders: &[Border], from: f64, to: f64) -> f64 {
    let middle = (from * to).sqrt();
    let bands: Vec<(f64, f64)> = borders.iter().map(transition_band_bytes).collect();
    let is_free = |bytes: f64| {
        (from..=to).contains(&bytes)
            && !bands.iter().any(|(low, high)| *low < bytes && bytes < *high)
    };
    let edges = bands.iter().flat_map(|(low, high)| [*low, *high]);
    let distance = |bytes: f64| (bytes / middle).ln().abs();
    std::iter::once(middle)
        .chain(edges)
        .filter(|bytes| is_free(*bytes))
        .min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
        .unwrap_or(middle)
}

/// `cache` first, `storage` last; `write-back` beyond the write border but within the read cache,
/// `write cache` the other way round. What would be called the same is numbered.
fn names(dividing: &[&Border]) -> Vec<RegionName> {
    if dividing.is_empty() {
        return vec![RegionKind::WholeRange.into()];
    }
    let reads_hit = |i: usize| dividing[i..].iter().any(|border| border.curve != Curve::Write);
    let writes_hit = |i: usize| dividing[i..].iter().any(|border| border.curve != Curve::Read);
    // A curve without any border of its own says nothing about what the others divide.
    let (reads_known, writes_known) = (reads_hit(0), writes_hit(0));
    let kind = |i: usize| match (reads_hit(i), writes_hit(i)) {
        (true, false) if writes_known => RegionKind::WriteBack,
        (false, true) if reads_known => RegionKind::WriteCache,
        (false, false) => RegionKind::Storage,
        _ => RegionKind::Cache,
    };
    let kinds: Vec<RegionKind> = (0..=dividing.len()).map(kind).collect();
    RegionKind::names(&kinds)
}
