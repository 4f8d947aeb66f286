//! Two system vectors compared, element by element.

use ioscape_model::{Element, ElementComparison, Figure, Verdict};

use super::{Difference, side, test};

/// Standard deviation of the logarithm of an element from one vector of a system to the next,
/// beyond what the rounds of either show: files come to lie elsewhere, and the machine has changed.
/// Assumed, not measured.
const RUN_SD: f64 = 0.07;
/// An interval that reaches to zero and below says as much as one that reaches to this share.
const LOW_SHARE_MIN: f64 = 0.02;

/// Holds the elements that both systems have against each other: speed over the baseline's, so that
/// more than 1 is faster. Holm's procedure keeps the chance of any false difference among them below
/// [`super::ERROR_RATE`]. Where an element of either is doubtful no difference is shown.
pub fn elements(baseline: &[Element], other: &[Element]) -> Vec<ElementComparison> {
    let partner = |of: &Element| other.iter().find(|element| element.name == of.name);
    let pairs: Vec<(&Element, &Element)> =
        baseline.iter().filter_map(|element| Some((element, partner(element)?))).collect();
    let weight = 1.0 / pairs.len().max(1) as f64;
    let family: Vec<(Difference, f64)> =
        pairs.iter().map(|(from, to)| (difference(from, to), weight)).collect();
    let all = pairs.iter().zip(test(&family)).map(|((from, to), tested)| ElementComparison {
        name: from.name,
        baseline_s: from.time_s.value,
        time_s: to.time_s.value,
        ratio: tested.ratio,
        verdict: match tested.verdict {
            verdict if from.warnings.is_empty() && to.warnings.is_empty() => verdict,
            _ => Verdict::Inconclusive,
        },
    });
    all.collect()
}

fn difference(from: &Element, to: &Element) -> Difference {
    let variance = ln_variance(&from.time_s) + ln_variance(&to.time_s) + 2.0 * RUN_SD.powi(2);
    let least = f64::MIN_POSITIVE;
    let value = from.time_s.value.max(least).ln() - to.time_s.value.max(least).ln();
    Difference::exact(value, variance.sqrt())
}

/// Variance of the logarithm of a mean whose interval may reach below zero.
fn ln_variance(time_s: &Figure) -> f64 {
    let low = time_s.low.max(LOW_SHARE_MIN * time_s.value.max(f64::MIN_POSITIVE));
    side::ln_variance(low, time_s.high.max(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ioscape_model::{Code, ElementName, Terms, Warning};

    fn element(name: ElementName, time_s: f64, half: f64) -> Element {
        Element {
            name,
            time_s: Figure {
                value: time_s,
                low: time_s * (1.0 - half),
                high: time_s * (1.0 + half),
            },
            terms: Terms::default(),
            operations: 100,
            warnings: vec![],
        }
    }

    #[test]
    fn what_takes_half_the_time_is_twice_as_fast() {
        let baseline =
            [element(ElementName::SyncGrown, 2e-3, 0.02), element(ElementName::Fork, 1e-3, 0.1)];
        let other = [
            element(ElementName::Fork, 1.05e-3, 0.1),
            element(ElementName::SyncGrown, 1e-3, 0.02),
            element(ElementName::Rename, 1e-5, 0.02),
        ];
        let compared = elements(&baseline, &other);
        assert_eq!(compared.len(), 2, "an element of one of them is no pair");
        assert_eq!(compared[0].name, ElementName::SyncGrown);
        assert_eq!(compared[0].verdict, Verdict::Faster);
        assert!((compared[0].ratio.value - 2.0).abs() < 1e-9 && compared[0].ratio.low > 1.0);
        assert_eq!(compared[1].verdict, Verdict::NoDifferenceShown);
        let back = elements(&other, &baseline);
        assert!(back.iter().any(|one| one.verdict == Verdict::Slower));
    }

    #[test]
    fn a_doubtful_element_shows_no_difference() {
        let baseline = [element(ElementName::SyncGrown, 2e-3, 0.02)];
        let mut other = [element(ElementName::SyncGrown, 1e-3, 0.02)];
        other[0].warnings.push(Warning::new(Code::TooFewRepeats, "few", "more"));
        assert_eq!(elements(&baseline, &other)[0].verdict, Verdict::Inconclusive);
        other[0].warnings.clear();
        other[0].time_s.low = -1.0;
        assert_eq!(elements(&baseline, &other)[0].verdict, Verdict::NoDifferenceShown);
        assert!(elements(&baseline, &[]).is_empty());
    }
}
