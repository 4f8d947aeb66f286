//! From timings to an element: the mean of the rounds' means with its interval, and the linear terms
//! by least squares over the shapes, none below 0.

use ioscape_engine::elements::{Sample, Shape};
use ioscape_model::{Code, Element, ElementName, Figure, Severity, Terms, Warning};
use ioscape_stats::{Observation, non_negative, t_two_sided};

use super::ROUNDS_MIN;

/// The first round finds caches and journals cold; it is left out once there are more than this.
const ROUNDS_WITHOUT_FIRST: usize = 3;
const CONFIDENCE: f64 = 0.95;
/// The usual shape counts as much as so many others: it is what most operations are.
const USUAL_WEIGHT: f64 = 4.0;
/// Where the scatter could not be seen, the interval reaches from half of the value to twice that.
const UNKNOWN_FACTOR: f64 = 2.0;

/// One shape over all rounds.
struct Timing {
    shape: Shape,
    /// Mean of the operations of a round, by round, seconds.
    means_s: Vec<f64>,
    calls: u64,
}

impl Timing {
    fn mean_s(&self) -> f64 {
        self.means_s.iter().sum::<f64>() / self.means_s.len() as f64
    }
}

/// An element, from the samples of each round; `None` without any.
pub(super) fn element(name: ElementName, rounds: &[Vec<Sample>]) -> Option<Element> {
    let counted = if rounds.len() > ROUNDS_WITHOUT_FIRST { &rounds[1..] } else { rounds };
    let timings = timings(counted);
    let usual = timings.first()?;
    let mut warnings = Vec::new();
    if usual.means_s.len() < ROUNDS_MIN {
        warnings.push(once());
    }
    Some(Element {
        name,
        time_s: interval(&usual.means_s),
        terms: terms(name, &timings),
        operations: timings.iter().map(|timing| timing.calls).sum(),
        warnings,
    })
}

fn once() -> Warning {
    let text = "there was time for one round only: the interval is a guess";
    Warning::new(Code::TooFewRepeats, text, "give a longer --budget")
        .with_severity(Severity::Warning)
}

/// Samples by shape, in the order in which shapes were first met.
fn timings(rounds: &[Vec<Sample>]) -> Vec<Timing> {
    let mut timings: Vec<Timing> = Vec::new();
    for round in rounds {
        let mut sums: Vec<(Shape, u64, f64)> = Vec::new();
        for sample in round {
            match sums.iter_mut().find(|(shape, ..)| *shape == sample.shape) {
                Some((_, calls, time_s)) => {
                    *calls += sample.calls;
                    *time_s += sample.time_s;
                }
                None => sums.push((sample.shape, sample.calls, sample.time_s)),
            }
        }
        for (shape, calls, time_s) in sums {
            let place = timings.iter().position(|timing| timing.shape == shape);
            let place = place.unwrap_or_else(|| {
                timings.push(Timing { shape, means_s: vec![], calls: 0 });
                timings.len() - 1
            });
            timings[place].means_s.push(time_s / calls as f64);
            timings[place].calls += calls;
        }
    }
    timings
}

/// Student's interval of the mean of rounds, which are far enough apart to be independent; single
/// operations are not.
fn interval(means_s: &[f64]) -> Figure {
    let count = means_s.len() as f64;
    let value = means_s.iter().sum::<f64>() / count;
    if means_s.len() < ROUNDS_MIN {
        return Figure { value, low: value / UNKNOWN_FACTOR, high: value * UNKNOWN_FACTOR };
    }
    let squares: f64 = means_s.iter().map(|mean| (mean - value).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let half = t_two_sided(CONFIDENCE, count - 1.0) * error;
    Figure { value, low: (value - half).max(0.0), high: value + half }
}

/// Names whose time is all in their bytes.
const ALL_IN_BYTES: [ElementName; 2] = [ElementName::ReadSequentialMiss, ElementName::WriteBack];

fn terms(name: ElementName, timings: &[Timing]) -> Terms {
    let columns: [fn(&Shape) -> f64; 4] =
        [|_| 1.0, |shape| shape.bytes, |shape| shape.pages, |shape| shape.extents];
    let varies = |column: fn(&Shape) -> f64| {
        let first = column(&timings[0].shape);
        timings.iter().any(|timing| column(&timing.shape).to_bits() != first.to_bits())
    };
    let is_used = |index: usize| match index {
        _ if ALL_IN_BYTES.contains(&name) => index == 1,
        0 => true,
        _ => varies(columns[index]),
    };
    let used: Vec<usize> = (0..columns.len()).filter(|index| is_used(*index)).collect();
    let observation = |(number, timing): (usize, &Timing)| {
        let value = timing.mean_s();
        let weight = if number == 0 { USUAL_WEIGHT } else { 1.0 };
        Observation {
            row: used.iter().map(|index| columns[*index](&timing.shape)).collect(),
            value,
            // What counts is the difference in proportion to the time.
            weight: weight / value.max(f64::MIN_POSITIVE).powi(2),
        }
    };
    let observations: Vec<Observation> = timings.iter().enumerate().map(observation).collect();
    let found = non_negative(&observations, used.len());
    let of = |index: usize| {
        used.iter().position(|used| *used == index).map_or(0.0, |place| found[place])
    };
    let terms =
        Terms { per_call_s: of(0), per_byte_s: of(1), per_page_s: of(2), per_extent_s: of(3) };
    if !used.contains(&0) {
        return terms;
    }
    // What most operations are is met exactly: a line through all shapes misses it where larger ones
    // come in bursts that a limit lets through.
    let usual = &timings[0];
    let Shape { bytes, pages, extents } = usual.shape;
    let missed_s = usual.mean_s() - terms.time_s(bytes, pages, extents);
    Terms { per_call_s: (terms.per_call_s + missed_s).max(0.0), ..terms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ioscape_model::ElementName::{ReadHit, ReadSequentialMiss, SyncOverwritten, Unlink};
    use rand::{Rng as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Between 0 and 1.
    fn chance(from: &mut Xoshiro256PlusPlus) -> f64 {
        (from.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn rounds(
        name: ElementName,
        (truth, shapes): (Terms, &[Shape]),
        (count, scatter, seed): (usize, f64, u64),
    ) -> Vec<Vec<Sample>> {
        let mut from = Xoshiro256PlusPlus::seed_from_u64(seed);
        let round = |_| {
            let sample = |shape: &Shape| {
                let mean_s = truth.time_s(shape.bytes, shape.pages, shape.extents);
                let noise = 1.0 + scatter * (2.0 * chance(&mut from) - 1.0);
                let calls = 17;
                Sample { name, shape: *shape, calls, time_s: 17.0 * mean_s * noise }
            };
            shapes.iter().map(sample).collect()
        };
        (0..count).map(round).collect()
    }

    fn sync_shapes() -> Vec<Shape> {
        [(1, 1), (4, 1), (16, 1), (64, 1), (4, 4), (16, 16)]
            .map(|(pages, pieces)| Shape::pages(pages, pieces))
            .to_vec()
    }

    #[test]
    fn pages_and_pieces_are_told_apart_at_every_seed() {
        let truth = Terms {
            per_call_s: 2.5e-3,
            per_page_s: 2e-5,
            per_extent_s: 2.4e-3,
            ..Terms::default()
        };
        for seed in 0..50 {
            let taken = rounds(SyncOverwritten, (truth, &sync_shapes()), (8, 0.05, seed));
            let found = element(SyncOverwritten, &taken).unwrap();
            let terms = found.terms;
            for (found, truth) in [(terms.per_call_s, 2.5e-3), (terms.per_extent_s, 2.4e-3)] {
                assert!((found / truth - 1.0).abs() < 0.15, "seed {seed}: {found} for {truth}");
            }
            assert!(terms.per_page_s > 0.0 && terms.per_page_s < 1e-4, "seed {seed}: {terms:?}");
            assert!(terms.per_byte_s == 0.0);
        }
    }

    #[test]
    fn intervals_hold_the_mean_as_often_as_they_claim() {
        let truth = Terms { per_call_s: 1e-6, ..Terms::default() };
        let holds = |seed: &u64| {
            let taken = rounds(ReadHit, (truth, &[Shape::NONE]), (8, 0.2, *seed));
            let time_s = element(ReadHit, &taken).unwrap().time_s;
            time_s.low <= 1e-6 && 1e-6 <= time_s.high
        };
        let held = (0..1000).filter(holds).count();
        assert!((925..=975).contains(&held), "{held} of 1000");
    }

    #[test]
    fn no_term_is_negative_and_the_usual_shape_is_met() {
        // Larger ones are cheaper here: nothing that can be said with a line that rises.
        let sample =
            |bytes, time_s| Sample { name: ReadHit, shape: Shape::bytes(bytes), calls: 1, time_s };
        let taken = vec![vec![sample(4096, 4e-6), sample(16, 5e-6), sample(65536, 3.9e-6)]; 4];
        let found = element(ReadHit, &taken).unwrap();
        assert!((found.time_s.value - 4e-6).abs() < 1e-12, "the first shape is the usual one");
        assert!(found.terms.per_byte_s == 0.0);
        assert!((found.terms.per_call_s / 4e-6 - 1.0).abs() < 1e-9);
        assert_eq!(found.operations, 9, "the first round is not counted");
    }

    #[test]
    fn streams_take_time_for_their_bytes_alone() {
        let truth = Terms { per_byte_s: 1e-9, ..Terms::default() };
        let shapes = [Shape::bytes(131_072)];
        let taken = rounds(ReadSequentialMiss, (truth, &shapes), (5, 0.0, 1));
        let found = element(ReadSequentialMiss, &taken).unwrap();
        assert!((found.terms.per_byte_s - 1e-9).abs() < 1e-15 && found.terms.per_call_s == 0.0);
    }

    #[test]
    fn one_round_is_said_to_be_one_and_none_is_nothing() {
        let truth = Terms { per_call_s: 1e-5, ..Terms::default() };
        let taken = rounds(Unlink, (truth, &[Shape::NONE]), (1, 0.0, 1));
        let found = element(Unlink, &taken).unwrap();
        assert_eq!(found.warnings[0].code, Code::TooFewRepeats);
        assert!(found.time_s.high / found.time_s.low > 3.9);
        assert!(element(Unlink, &[]).is_none());
    }
}
