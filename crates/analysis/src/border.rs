//! Where borders lie on a curve over `unique_bytes`, and what to measure next to find out.
//!
//! For uniform random access over nested caches the time per byte is a sum of hinges (see
//! `ioscape_stats::hinge`). The search is coarse first (factors of four, and around the hints),
//! then halves every stretch in which the time rises, then measures where one more visit tells
//! most about an onset, until that is known well enough. Where counters tell which share of the
//! requests hit, they give the capacity of the page cache, and timing only the rest. Everything
//! is a function of the samples: a search that was interrupted goes on where it was.
//!
//! Chen and Patterson (1994, section 8) take the steepest part of the curve instead.

use ioscape_model::{Border, BorderUniqueBytes, Curve, FoundBy, Layer};
use ioscape_stats::hinge::{Fit, KnownKnot, Observation, fit};

mod residency;
use residency::Residency;

/// The onset is where the time per request is this much over the plateau.
const ONSET_RISE: f64 = 0.1;
/// A smaller step is a change of slope: copies that leave the processor's cache, weak throttling.
const STEP_MIN: f64 = 1.5;
/// A smaller step is none where only timing speaks: a slow rise over many octaves can look like a step of 1.65.
const TIMED_STEP_MIN: f64 = 1.75;
/// Steps a little below are looked at, for they may turn out larger.
const STEP_WORTH_A_LOOK: f64 = 1.4;
/// Leaving the processor's caches makes a request up to this many times dearer: seen on servers
/// with large caches and busy neighbours.
const COPY_STEP_MAX: f64 = 8.0;
/// Beyond this many times the cost of a copy in memory, it was not memory that answered a read …
const COPY_TIMES_MAX: f64 = 8.0;
/// … or took a write: throttled writes to a fast device are not far from memory's speed.
const WRITE_COPY_TIMES_MAX: f64 = 3.0;
/// Where no bandwidth was measured, memory answers in less than this, seconds per byte.
const MEMORY_S_PER_BYTE: f64 = 1e-9;
/// Where counters find more than this share of the pages in memory, memory answered: a few pages are lost to whatever
/// else runs.
pub const MEMORY_HIT: f64 = 0.97;
/// With a larger standard error of its logarithm a capacity is not placed, only bracketed.
const PLACED_LN_SE: f64 = 0.35;
/// Factor between coarse values.
const COARSE_RATIO: f64 = 4.0;
/// Values around a hint. A hint is a place to look, never a result.
const AROUND_HINT: [f64; 3] = [0.8, 1.25, 2.0];
/// A wider gap in which the time rises is halved: another border could hide in it.
const RISING_GAP_MAX: f64 = 2.05;
/// A knot's neighbours are brought this close.
const BRACKET_MAX: f64 = 1.25;
/// Standard error of ln onset at which the search is content, at 3 % noise.
const ONSET_SE: f64 = 0.015;
/// Visits per border, beyond the coarse ones, before the search gives up.
const VISITS_PER_BORDER_MAX: usize = 20;
/// Two values are one and the same within this distance of their logarithms.
const SAME_LN: f64 = 0.02;
/// Read and write borders within this factor are one.
const MERGE_RATIO: f64 = 1.25;

/// One visit to the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Data touched.
    pub unique_bytes: f64,
    /// Inverse of the throughput.
    pub time_s_per_byte: f64,
    /// Share of the requested pages found resident, of the written pages found dirty already;
    /// None where it cannot be known.
    pub hit_fraction: Option<f64>,
    /// How much of the file lay in the page cache; None where it cannot be known.
    pub resident_bytes: Option<f64>,
}

/// Where to search, and what is known beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Smallest value.
    pub min_bytes: f64,
    /// Largest value that may be measured now.
    pub max_bytes: f64,
    /// Values near which a border is likely.
    pub hints_bytes: Vec<f64>,
    /// Expected coefficient of variation of one visit, such as 0.03.
    pub noise: f64,
    /// The files live in memory (tmpfs): only a large step is a border.
    pub in_memory: bool,
    /// Inverse of the bandwidth of a copy in memory; None where it was not measured.
    pub memory_s_per_byte: Option<f64>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Visit this many `unique_bytes`, perhaps again.
    Measure(f64),
    /// Nothing more is worth its time.
    Done,
}

/// What the samples show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Smallest first.
    pub borders: Vec<Border>,
    /// Changes of slope that are no borders, in the same form.
    pub slopes: Vec<Border>,
}

/// What to measure next on a curve. The answer depends on the samples alone, in any order.
/// A visit that fails must lower `max_bytes` or leave a sample, or it will be asked for again.
pub fn next(search: &Search, curve: Curve, samples: &[Sample]) -> Step {
    let coarse = coarse(search);
    let visited = |bytes: f64| samples.iter().any(|s| same(s.unique_bytes, bytes));
    if let Some(bytes) = coarse.iter().find(|bytes| !visited(**bytes)) {
        return Step::Measure(*bytes);
    }
    let Some(view) = View::new(search, curve, samples) else { return Step::Done };
    let knots = view.worth_a_look();
    if samples.len() >= coarse.len() + VISITS_PER_BORDER_MAX * knots.len().max(1) {
        return Step::Done;
    }
    let residency_gap = view.residency.as_ref().and_then(|residency| residency.next(search));
    residency_gap
        .or_else(|| view.rising_gap())
        .or_else(|| view.bracket_gap(&knots))
        .or_else(|| view.most_telling(&knots))
        .map_or(Step::Done, Step::Measure)
}

/// The borders and changes of slope that the samples show now, on one curve.
pub fn find(search: &Search, curve: Curve, samples: &[Sample]) -> Found {
    let mut found = Found::default();
    let Some(view) = View::new(search, curve, samples) else { return found };
    for knot_idx in 0..view.fit.curve.knots.len() {
        let border = view.border(knot_idx, curve);
        if view.is_border(knot_idx) {
            found.borders.push(border);
        } else {
            found.slopes.push(Border { found_by: FoundBy::Slope, ..border });
        }
    }
    found
}

/// The borders that the samples show now, on one curve.
pub fn borders(search: &Search, curve: Curve, samples: &[Sample]) -> Vec<Border> {
    find(search, curve, samples).borders
}

/// Borders of the read and the write curve as one list, smallest first. Two that agree become one
/// mixed border: with the onset that hurts first and the capacity that is known better.
pub fn merge(read: &[Border], write: &[Border]) -> Vec<Border> {
    let mut merged = read.to_vec();
    for border in write {
        let distance = |other: &Border| {
            (other.unique_bytes.capacity / border.unique_bytes.capacity).ln().abs()
        };
        let nearest = merged
            .iter_mut()
            .filter(|other| other.curve == Curve::Read && distance(other) <= MERGE_RATIO.ln())
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        match nearest {
            Some(other) => *other = both(other, border),
            None => merged.push(border.clone()),
        }
    }
    merged.sort_by(|a, b| a.unique_bytes.capacity.total_cmp(&b.unique_bytes.capacity));
    merged
}

fn both(read: &Border, write: &Border) -> Border {
    let width = |border: &Border| border.unique_bytes.high / border.unique_bytes.low;
    let better = if width(write) < width(read) { write } else { read };
    let onset = read.unique_bytes.onset.min(write.unique_bytes.onset);
    Border {
        unique_bytes: BorderUniqueBytes { onset, ..better.unique_bytes },
        curve: Curve::Mixed,
        step: (read.step * write.step).sqrt(),
        ..better.clone()
    }
}

/// The samples of one curve, fitted.
struct View<'a> {
    search: &'a Search,
    /// Sorted by `unique_bytes`.
    samples: Vec<Sample>,
    on_writes: bool,
    residency: Option<Residency>,
    fit: Fit,
}

impl<'a> View<'a> {
    fn new(search: &'a Search, curve: Curve, samples: &[Sample]) -> Option<Self> {
        let mut samples = samples.to_vec();
        samples.sort_by(|a, b| {
            a.unique_bytes
                .total_cmp(&b.unique_bytes)
                .then(a.time_s_per_byte.total_cmp(&b.time_s_per_byte))
        });
        // A write needs no page to be resident: its counters say nothing about its border.
        let on_writes = curve == Curve::Write;
        let residency = if on_writes { None } else { Residency::from_samples(&samples) };
        let known: Vec<KnownKnot> = residency
            .iter()
            .map(|known| KnownKnot { at: known.capacity_bytes, ln_se: known.ln_se })
            .collect();
        let observations: Vec<Observation> = samples
            .iter()
            .map(|sample| Observation { x: sample.unique_bytes, y: sample.time_s_per_byte })
            .collect();
        let fit = fit(&observations, &known, search.noise)?;
        Some(Self { search, samples, on_writes, residency, fit })
    }

    fn capacity(&self, knot_idx: usize) -> f64 {
        self.fit.curve.knots[knot_idx].at
    }

    fn is_counted(&self, knot_idx: usize) -> bool {
        self.fit.curve.knots[knot_idx].known_ln_se.is_some()
    }

    fn is_border(&self, knot_idx: usize) -> bool {
        let step = self.fit.curve.step(knot_idx);
        if self.is_counted(knot_idx) {
            return step >= STEP_MIN;
        }
        step >= TIMED_STEP_MIN && !self.is_copy_step(knot_idx) && !self.is_doubtful(knot_idx)
    }

    /// Whether a step beyond the page cache could be the page cache's own, bent by noise. Slower
    /// caches behind it are rare enough to ask for proof.
    fn is_doubtful(&self, knot_idx: usize) -> bool {
        let capacity = self.capacity(knot_idx);
        let is_beyond = self.residency.as_ref().is_some_and(|r| capacity > r.capacity_bytes);
        let step_low = self.fit.curve.step(knot_idx) * (-2.0 * self.fit.ln_step_se(knot_idx)).exp();
        is_beyond && (step_low < STEP_MIN || self.fit.ln_knot_se(knot_idx) > 0.5 * PLACED_LN_SE)
    }

    /// Whether what was seen of a step is no more than leaving the processor's caches explains.
    fn is_copy_step(&self, knot_idx: usize) -> bool {
        if self.on_writes && self.memory_answers(knot_idx) {
            return true; // every page was dirty already: nothing waited for storage
        }
        let curve = &self.fit.curve;
        let end_bytes = match curve.knots.get(knot_idx + 1) {
            Some(next) => next.at,
            None => self.samples[self.samples.len() - 1].unique_bytes,
        };
        let after_s_per_byte = curve.value(end_bytes);
        let times_max = if self.on_writes { WRITE_COPY_TIMES_MAX } else { COPY_TIMES_MAX };
        let at_memory_speed = match self.search.memory_s_per_byte {
            Some(s) => after_s_per_byte < times_max * s,
            None => after_s_per_byte < MEMORY_S_PER_BYTE && self.memory_answers(knot_idx),
        };
        !self.is_counted(knot_idx)
            && after_s_per_byte < COPY_STEP_MAX * curve.level(knot_idx)
            && (self.search.in_memory || at_memory_speed)
    }

    /// Whether counters say that storage had no part in what was seen between a knot and the next.
    fn memory_answers(&self, knot_idx: usize) -> bool {
        let from = self.capacity(knot_idx);
        let to = self.fit.curve.knots.get(knot_idx + 1).map_or(f64::INFINITY, |next| next.at);
        let beyond = self.samples.iter().filter(|s| s.unique_bytes > from && s.unique_bytes < to);
        let hits: Option<Vec<f64>> = beyond.map(|s| s.hit_fraction).collect();
        hits.is_some_and(|hits| hits.iter().sum::<f64>() > MEMORY_HIT * hits.len() as f64)
    }

    /// Knots whose place matters: borders, and what may turn out to be one.
    fn worth_a_look(&self) -> Vec<usize> {
        (0..self.fit.curve.knots.len())
            .filter(|i| self.fit.curve.step(*i) >= STEP_WORTH_A_LOOK && !self.is_copy_step(*i))
            .collect()
    }

    /// The middle of the first wide gap in which the time rises.
    fn rising_gap(&self) -> Option<f64> {
        let rises = |a: f64, b: f64| {
            self.fit.curve.value(b) > self.fit.curve.value(a) * (1.0 + 5.0 * self.search.noise)
        };
        self.samples
            .windows(2)
            .map(|pair| (pair[0].unique_bytes, pair[1].unique_bytes))
            .find(|(a, b)| b / a > RISING_GAP_MAX && rises(*a, *b))
            .map(|(a, b)| (a * b).sqrt())
    }

    /// The samples next to a border: the largest below the capacity and the smallest that is
    /// clearly beyond the onset. Samples between count for neither side: a capacity fitted mostly to distant
    /// samples tends to come out just below the last flat one.
    fn bracket(&self, knot_idx: usize) -> (f64, f64) {
        let capacity = self.capacity(knot_idx);
        let raised = 1.01 * self.fit.curve.onset(knot_idx, ONSET_RISE).unwrap_or(capacity);
        let bytes = || self.samples.iter().map(|sample| sample.unique_bytes);
        let below = bytes().rev().find(|bytes| *bytes <= capacity);
        let above = bytes().find(|bytes| *bytes >= raised);
        (below.unwrap_or(self.search.min_bytes), above.unwrap_or(self.search.max_bytes))
    }

    /// The middle of the widest gap in the brackets of borders that are not counted.
    fn bracket_gap(&self, knots: &[usize]) -> Option<f64> {
        let brackets: Vec<(f64, f64)> = knots
            .iter()
            .filter(|i| !self.is_counted(**i))
            .map(|i| self.bracket(*i))
            .filter(|(below, above)| above / below > BRACKET_MAX)
            .collect();
        let is_bracketed =
            |(a, b): &(f64, f64)| brackets.iter().any(|(below, above)| a >= below && b <= above);
        self.samples
            .windows(2)
            .map(|pair| (pair[0].unique_bytes, pair[1].unique_bytes))
            .filter(|gap| is_bracketed(gap) && gap.1 / gap.0 > BRACKET_MAX.sqrt())
            .max_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))
            .map(|(a, b)| (a * b).sqrt())
    }

    /// Where one more visit tells most about the onset that is known least.
    fn most_telling(&self, knots: &[usize]) -> Option<f64> {
        // Noisy curves are asked for less: the effort would grow with the square.
        let content = ONSET_SE * (self.fit.noise / 0.03).sqrt().max(1.0);
        let se = |i: usize| self.fit.ln_onset_se(i, ONSET_RISE);
        let worst = knots
            .iter()
            .copied()
            .filter(|i| se(*i) > content)
            .max_by(|a, b| se(*a).total_cmp(&se(*b)))?;
        // Candidates keep away from the knot by its standard error: a sample helps only if it is clear on
        // which side it lies.
        let capacity = self.capacity(worst);
        let off = (1.5 * self.fit.ln_knot_se(worst)).clamp(0.04, 0.25).exp();
        let mut candidates: Vec<f64> = [0.5, 0.7, 1.0 / off, off, off * off, 1.5, 2.0, 3.0, 5.0]
            .map(|f| f * capacity)
            .to_vec();
        candidates.push(self.search.min_bytes);
        candidates.push(self.search.max_bytes);
        candidates.retain(|b| (self.search.min_bytes..=self.search.max_bytes).contains(b));
        self.fit.most_telling(worst, ONSET_RISE, &candidates)
    }

    fn border(&self, knot_idx: usize, curve: Curve) -> Border {
        let mut capacity = self.capacity(knot_idx);
        let counted = self.residency.as_ref().filter(|_| self.is_counted(knot_idx));
        let ln_se = counted.map_or(self.fit.ln_knot_se(knot_idx), |residency| residency.ln_se);
        let spread = (2.0 * ln_se).clamp(0.01, 2.0).exp();
        let (mut low, mut high) = (capacity / spread, capacity * spread);
        let mut onset = self.fit.curve.onset(knot_idx, ONSET_RISE).unwrap_or(capacity);
        // An unsettled search knows no more than the samples on either side.
        let (below, above) = self.bracket(knot_idx);
        if counted.is_none() && ln_se > PLACED_LN_SE {
            (low, high) = (below, above);
            capacity = (below * above).sqrt();
            onset = capacity;
        } else if counted.is_none() && above / below > BRACKET_MAX {
            (low, high) = (below.min(low), above.max(high));
        }
        let found_by = if self.is_counted(knot_idx) { FoundBy::Counters } else { FoundBy::Timing };
        Border {
            unique_bytes: BorderUniqueBytes { onset, capacity, low, high },
            curve,
            found_by,
            step: self.fit.curve.step(knot_idx),
            layer: Layer::default(),
            revision: 0,
        }
    }
}

/// The first values to visit, smallest first: files grow as the search climbs.
fn coarse(search: &Search) -> Vec<f64> {
    let (min, max) = (search.min_bytes, search.max_bytes);
    let mut values: Vec<f64> = search
        .hints_bytes
        .iter()
        .flat_map(|hint| AROUND_HINT.map(|factor| factor * hint))
        .filter(|bytes| (min * 1.1..max / 1.1).contains(bytes))
        .collect();
    values.extend([min, max]);
    let steps = ((max / min).ln() / COARSE_RATIO.ln()).floor().max(0.0) as i32;
    for step in 1..=steps {
        let bytes = min * COARSE_RATIO.powi(step);
        if values.iter().all(|other| (other / bytes).ln().abs() > MERGE_RATIO.ln()) {
            values.push(bytes);
        }
    }
    values.sort_by(f64::total_cmp);
    values.dedup_by(|a, b| same(*a, *b));
    values
}

fn same(a_bytes: f64, b_bytes: f64) -> bool {
    (a_bytes / b_bytes).ln().abs() <= SAME_LN
}
