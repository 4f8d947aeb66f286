//! Whether writes stay as fast as they are at first: drives with a small fast part and volumes on credit
//! do not (`ioscape_stats::step` finds the fall).

use ioscape_model::units::{show_bytes, show_rate, show_seconds};
use ioscape_model::{Finding, FindingCode, Sustained, WrittenPiece};
use ioscape_stats::{Fall, Mean, Piece, fall};

use super::finding;

const CONFIDENCE: f64 = 0.95;
/// Fewer pieces show neither level.
const PIECES_MIN: usize = 16;

/// Two levels or one, as a stretch of writing showed them; nothing where it was too short.
pub fn first_and_sustained(sustained: &Sustained, revision: u32) -> Option<Finding> {
    let pieces = &sustained.pieces;
    if pieces.len() < PIECES_MIN {
        return None;
    }
    let series: Vec<Piece> = pieces.iter().map(piece).collect();
    let mut found = match fall(&series) {
        Some(step) => fell(sustained, &step),
        None => stayed(sustained, &series),
    };
    found.revision = revision;
    Some(found)
}

fn piece(written: &WrittenPiece) -> Piece {
    Piece { amount: written.bytes as f64, length: written.length_s }
}

/// Seconds and bytes up to a piece, from the laying out on.
fn until(sustained: &Sustained, count: usize) -> (f64, f64) {
    let before = sustained.before;
    sustained.pieces[..count]
        .iter()
        .fold((before.length_s, before.bytes as f64), |(length_s, bytes), piece| {
            (length_s + piece.length_s, bytes + piece.bytes as f64)
        })
}

fn interval(mean: &Mean) -> [f64; 2] {
    let half = mean.half_width(CONFIDENCE);
    [(mean.value - half).max(0.0), mean.value + half]
}

fn fell(sustained: &Sustained, step: &Fall) -> Finding {
    let (onset_s, onset_bytes) = until(sustained, step.at);
    // A piece has its own length: the fall came within it.
    let (low_s, low_bytes) = until(sustained, step.between.0 - 1);
    let (high_s, high_bytes) = until(sustained, step.between.1 + 1);
    let (first, second) = (interval(&step.first), interval(&step.second));
    let text = format!(
        "Writes fall off: first {} ({} to {}), sustained {} ({} to {}), after {} and {} written \
         without a rest ({} to {}).",
        show_rate(step.first.value),
        show_rate(first[0]),
        show_rate(first[1]),
        show_rate(step.second.value),
        show_rate(second[0]),
        show_rate(second[1]),
        show_seconds(onset_s),
        show_bytes(onset_bytes),
        show_bytes(low_bytes),
        show_bytes(high_bytes),
    );
    let (whole_s, whole_bytes) = until(sustained, sustained.pieces.len());
    let figures = [
        ("first_bytes_per_s", step.first.value),
        ("first_low_bytes_per_s", first[0]),
        ("first_high_bytes_per_s", first[1]),
        ("sustained_bytes_per_s", step.second.value),
        ("sustained_low_bytes_per_s", second[0]),
        ("sustained_high_bytes_per_s", second[1]),
        ("onset_s", onset_s),
        ("onset_low_s", low_s),
        ("onset_high_s", high_s),
        ("onset_bytes", onset_bytes),
        ("onset_low_bytes", low_bytes),
        ("onset_high_bytes", high_bytes),
        ("looked_for_s", whole_s),
        ("looked_for_bytes", whole_bytes),
    ];
    finding(FindingCode::FirstAndSustained, text, &figures)
}

fn stayed(sustained: &Sustained, series: &[Piece]) -> Finding {
    let mean = ioscape_stats::batch::mean(series);
    let [low, high] = interval(&mean);
    let (whole_s, whole_bytes) = until(sustained, series.len());
    let text = format!(
        "Writes stay at {} ({} to {}) for as long as they were looked at: {} and {}, without a rest.",
        show_rate(mean.value),
        show_rate(low),
        show_rate(high),
        show_seconds(whole_s),
        show_bytes(whole_bytes),
    );
    let figures = [
        ("first_bytes_per_s", mean.value),
        ("first_low_bytes_per_s", low),
        ("first_high_bytes_per_s", high),
        ("looked_for_s", whole_s),
        ("looked_for_bytes", whole_bytes),
    ];
    finding(FindingCode::FirstAndSustained, text, &figures)
}

#[cfg(test)]
mod tests {
    use ioscape_model::Workload;

    use super::*;

    fn writing(rates: impl IntoIterator<Item = f64>) -> Sustained {
        let written = |rate: f64| WrittenPiece { length_s: 0.5, bytes: (rate * 0.5) as u64 };
        Sustained {
            workload: Workload::default(),
            engine: "sim".to_owned(),
            started_s: 0.0,
            before: WrittenPiece { length_s: 1.0, bytes: 1_000_000_000 },
            asked_s: 60.0,
            asked_bytes: None,
            pieces: rates.into_iter().map(written).collect(),
            is_cut_short: false,
            warnings: vec![],
        }
    }

    /// Small, fixed noise.
    fn noisy(rate: f64, index: u32) -> f64 {
        rate * (1.0 + 0.04 * (f64::from(index * 37 % 101) / 101.0 - 0.5))
    }

    #[test]
    fn a_fall_is_told_with_both_levels_and_what_came_before_it() {
        let course = (0..80).map(|index| noisy(if index < 20 { 1e9 } else { 3e8 }, index));
        let found = first_and_sustained(&writing(course), 7).unwrap();
        let figure = |name: &str| found.figures[name];
        assert_eq!(found.revision, 7);
        assert!((figure("first_bytes_per_s") / 1e9 - 1.0).abs() < 0.02);
        assert!((figure("sustained_bytes_per_s") / 3e8 - 1.0).abs() < 0.02);
        // A second and a gigabyte of laying out, ten seconds and ten gigabytes of writing.
        assert!((figure("onset_s") - 11.0).abs() < 0.6, "{}", figure("onset_s"));
        assert!((figure("onset_bytes") / 11e9 - 1.0).abs() < 0.06);
        assert!(figure("onset_low_bytes") < figure("onset_bytes"));
        assert!(found.text.starts_with("Writes fall off: first "), "{}", found.text);
    }

    #[test]
    fn a_steady_one_says_for_how_long_it_was_looked_at_and_a_short_one_nothing() {
        let found = first_and_sustained(&writing((0..40).map(|i| noisy(1e9, i))), 1).unwrap();
        assert!(!found.figures.contains_key("onset_s"));
        assert!((found.figures["looked_for_s"] - 21.0).abs() < 1e-9);
        assert!(found.text.starts_with("Writes stay at "), "{}", found.text);
        assert_eq!(first_and_sustained(&writing((0..10).map(|i| noisy(1e9, i))), 1), None);
    }
}
