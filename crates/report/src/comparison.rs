//! Two systems or more, side by side: what is shown of a comparison, and in which words. `page`
//! arranges it as HTML with the papers' figures, `text::comparison` for the terminal.
//!
//! Nothing is computed here: ratios, intervals and verdicts come with the document, predicted
//! lines from whoever has the models.

use ioscape_model::units::{show_rate, show_seconds, three_digits};
use ioscape_model::{
    Access, Comparison, Comparisons, Curve, ElementComparison, Figure, Interval, Overall,
    OverallRatio, Record, RegionComparison, SystemComparison, Verdict, Want, Workload, Worth,
};

use crate::chart::{Table, stretch};
use crate::facts;
use crate::figures::{self, UNKNOWN};

mod page;

pub use page::comparison_html;

/// What stands on the page of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonPage<'a> {
    /// The baseline first.
    pub systems: Vec<ComparedSystem<'a>>,
    /// What was found.
    pub document: &'a Comparisons,
    /// What the predicted lines are for, but for its `unique_bytes`.
    pub overlay: Workload,
}

/// A system on that page.
#[derive(Clone, Debug)]
pub struct ComparedSystem<'a> {
    /// Its record.
    pub record: &'a Record,
    /// The name of the record's file.
    pub file: String,
    /// `unique_bytes`, and the throughput that its models predict there.
    pub predicted: Vec<(f64, f64)>,
}

/// The letter that a system goes by: A is the baseline.
pub(crate) fn letter(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place) if place < 26 => char::from(b'A' + place).to_string(),
        _ => format!("#{}", place + 1),
    }
}

/// `A  before.jsonl  /mnt/data: ext4 on nvme0n1`.
pub(crate) fn legend(page: &ComparisonPage<'_>) -> Vec<(String, String)> {
    let words = |system: &ComparedSystem<'_>| {
        let header = &system.record.header;
        format!("{}: {}, {}", system.file, header.target.path, facts::storage(header))
    };
    page.systems.iter().enumerate().map(|(i, system)| (letter(i), words(system))).collect()
}

/// The comparisons of system number `place`, counted with the baseline.
pub(crate) fn of_system<'a>(page: &ComparisonPage<'a>, place: usize) -> &'a [Comparison] {
    let others = page.document.systems.len().max(1);
    let each = page.document.comparisons.len() / others;
    &page.document.comparisons[(place - 1) * each..place * each]
}

/// What all of it says about a system, in one sentence.
pub(crate) fn sentence(
    system: &SystemComparison,
    workloads: &[Comparison],
    letter: &str,
) -> String {
    if workloads.is_empty() && !system.elements.is_empty() {
        return vector_sentence(system, letter);
    }
    let named = |verdict: Verdict| {
        let names = workloads.iter().filter(|c| c.verdict == verdict).map(|c| c.name.as_str());
        names.collect::<Vec<_>>()
    };
    let judged: Vec<&Comparison> =
        workloads.iter().filter(|c| c.verdict != Verdict::OutOfRange).collect();
    let on = |names: &[&str]| few_or(names, &format!(" of {}", judged.len()));
    let (faster, slower) = (named(Verdict::Faster), named(Verdict::Slower));
    // Where no single workload shows it, one of the sums does.
    let place = |names: &[&str], verdict: Verdict| {
        let is_over_all = system.geometric_mean.is_some_and(|sum| sum.verdict == verdict);
        match (names.is_empty(), is_over_all) {
            (false, true) if judged.len() > 1 => format!("over all and on {}", on(names)),
            (false, _) => format!("on {}", on(names)),
            (true, true) => "over all".to_owned(),
            (true, false) => "in the median of what both measured".to_owned(),
        }
    };
    let open = [named(Verdict::NoDifferenceShown), named(Verdict::Inconclusive)].concat();
    let is_partly_shown = faster.len() + slower.len() > 0 && !open.is_empty();
    let unclear = is_partly_shown.then(|| format!(" Unclear: {}.", on(&open)));
    let beyond = named(Verdict::OutOfRange);
    let not_compared = (!beyond.is_empty()).then(|| {
        let names = few_or(&beyond, "");
        format!(" Not compared, out of the range measured on {letter} or on A: {names}.")
    });
    let others = unclear.unwrap_or_default() + &not_compared.unwrap_or_default();
    // All tests are corrected for their number, those of the sums too.
    let is_over_all = system.geometric_mean.is_some_and(|sum| !is_not_shown(sum.verdict));
    let certain = match faster.len() + slower.len() + usize::from(is_over_all) {
        0 | 1 => "95 % certain",
        _ => "95 % certain that all of this holds",
    };
    let found = match system.verdict {
        Overall::Faster => {
            format!("{letter} is faster {} ({certain}).{others}", place(&faster, Verdict::Faster))
        }
        Overall::Slower => {
            format!("{letter} is slower {} ({certain}).{others}", place(&slower, Verdict::Slower))
        }
        Overall::Mixed => format!(
            "{letter} is faster {} and slower {} ({certain}).{others}",
            place(&faster, Verdict::Faster),
            place(&slower, Verdict::Slower),
        ),
        Overall::NoDifferenceShown => format!(
            "No difference shown between {letter} and A: the differences measured may be chance. \
             {}{others}",
            smallest(system, workloads)
        ),
        Overall::Inconclusive => format!(
            "Inconclusive: no difference shown between {letter} and A, and not everywhere \
             could one as small as asked for have been. {}{others}",
            smallest(system, workloads)
        ),
        Overall::OutOfRange => {
            return format!(
                "Nothing can be said about {letter}: none of the workloads lies in what both \
                 records measured."
            );
        }
    };
    format!("{found}{}", ratios(system, &judged, letter))
}

/// A sentence lists up to so many names.
const FEW: usize = 8;

/// The names where they are few; `8 of 12 workloads` where there are more.
fn few_or(names: &[&str], of_all: &str) -> String {
    match names.len() {
        few if few <= FEW => names.join(", "),
        many => format!("{many}{of_all} workloads"),
    }
}

fn may_be_chance(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoDifferenceShown | Verdict::Inconclusive => ", which may be chance",
        _ => "",
    }
}

/// ` Throughput of B over A, predicted for 12 workloads, cache hits included: × 4.9 (95 %: 4.2–5.7) in the geometric mean; …`
fn ratios(system: &SystemComparison, judged: &[&Comparison], letter: &str) -> String {
    let (mut parts, mut predicted) = (Vec::new(), String::new());
    let single = |of: &Comparison| {
        let unclear = if is_not_shown(of.verdict) { ", unclear" } else { "" };
        format!("× {} ({}{unclear})", two_digits_at_least(of.ratio.value), of.name)
    };
    let by_ratio = |a: &&&Comparison, b: &&&Comparison| a.ratio.value.total_cmp(&b.ratio.value);
    if let Some(sum) = system.geometric_mean {
        let ratio = ratio_in_a_sentence(&sum.ratio);
        parts.push(format!("{ratio} in the geometric mean{}", may_be_chance(sum.verdict)));
        predicted = format!("for {} workloads", sum.workloads);
        if let (Some(least), Some(most)) =
            (judged.iter().min_by(by_ratio), judged.iter().max_by(by_ratio))
        {
            parts.push(format!("single estimates from {} to {}", single(least), single(most)));
        }
    } else if let [one] = judged {
        parts.push(ratio_in_a_sentence(&one.ratio));
        predicted = format!("on {}", one.name);
    }
    let over_a = match parts.join("; ") {
        none if none.is_empty() => String::new(),
        parts if judged.iter().any(|one| one.pairs.is_some()) => {
            format!(" Throughput of {letter} over A, measured {predicted}: {parts}.")
        }
        parts => {
            let is_buffered = |of: &&Comparison| of.workload.access == Access::Buffered;
            let hits = if judged.iter().any(is_buffered) { ", cache hits included" } else { "" };
            format!(" Throughput of {letter} over A, predicted {predicted}{hits}: {parts}.")
        }
    };
    let measured = system.measured.map_or_else(String::new, |sum| {
        let ratio = ratio_in_a_sentence(&sum.ratio);
        format!(
            " Over the {} workloads that both records measured, the median is {ratio}{}.",
            sum.workloads,
            may_be_chance(sum.verdict)
        )
    });
    over_a + &measured
}

/// `× 4.9 (95 %: 4.2–5.7)`.
fn ratio_in_a_sentence(ratio: &Figure) -> String {
    figures::ratio(&(*ratio).into()).replacen('(', "(95 %: ", 1)
}

/// Counts the operations that are faster, slower, alike and doubtful.
fn vector_sentence(system: &SystemComparison, letter: &str) -> String {
    let count = |verdict: Verdict| system.elements.iter().filter(|e| e.verdict == verdict).count();
    format!(
        "Of {} kinds of operation {letter} is faster on {}, slower on {}; no difference is shown \
         on {}, and {} cannot be judged.",
        system.elements.len(),
        count(Verdict::Faster),
        count(Verdict::Slower),
        count(Verdict::NoDifferenceShown),
        count(Verdict::Inconclusive)
    )
}

/// Elements of the system vectors that differ.
pub(crate) fn elements(system: &SystemComparison, letter: &str) -> Table {
    let row = |element: &ElementComparison| {
        vec![
            element.name.word().to_owned(),
            show_seconds(element.baseline_s),
            show_seconds(element.time_s),
            figures::ratio(&element.ratio.into()),
            match element.verdict {
                Verdict::Faster => "faster",
                _ => "slower",
            }
            .to_owned(),
        ]
    };
    let differs =
        |element: &&ElementComparison| matches!(element.verdict, Verdict::Faster | Verdict::Slower);
    let mut head = head("operation", letter);
    head.push("difference".to_owned());
    Table { head, rows: system.elements.iter().filter(differs).map(row).collect() }
}

/// Says what the columns of [`elements`] hold, and names the operations that it leaves out.
pub(crate) fn elements_note(system: &SystemComparison) -> String {
    let names = |verdict: Verdict| {
        let of_it = system.elements.iter().filter(|element| element.verdict == verdict);
        of_it.map(|element| element.name.word()).collect::<Vec<_>>().join(", ")
    };
    let alike = match names(Verdict::NoDifferenceShown) {
        names if names.is_empty() => String::new(),
        names => format!(" No difference shown: {names}."),
    };
    let doubtful = match names(Verdict::Inconclusive) {
        names if names.is_empty() => String::new(),
        names => format!(" Too doubtful in one of the records: {names}."),
    };
    format!(
        "Time of one operation, and the speed over that of A with the interval that the corrected \
         test (Holm) uses.{alike}{doubtful}"
    )
}

/// From where on a difference would have been shown, where none was.
fn smallest(system: &SystemComparison, workloads: &[Comparison]) -> String {
    let single: Vec<f64> =
        workloads.iter().filter(|c| is_not_shown(c.verdict)).map(|c| c.resolution).collect();
    let least = single.iter().copied().reduce(f64::min);
    let most = single.iter().copied().reduce(f64::max);
    let of_one = least.zip(most).map(|(least, most)| match (resolution(least), resolution(most)) {
        (least, most) if least == most => format!("{least} on one workload"),
        (least, most) => format!("{least} to {most} on single workloads"),
    });
    let of_sum = |sum: &Option<OverallRatio>, what: &str| {
        let sum = sum.as_ref().filter(|sum| is_not_shown(sum.verdict))?;
        Some(format!("{} {what}", resolution(sum.resolution)))
    };
    let over_all = of_sum(&system.geometric_mean, "over all");
    let median = of_sum(&system.measured, "in the median");
    let all: Vec<String> = [over_all, of_one, median].into_iter().flatten().collect();
    format!("The smallest difference that would have been shown is {}.", all.join(", "))
}

fn is_not_shown(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::NoDifferenceShown | Verdict::Inconclusive)
}

/// `4.8 %`; as a ratio where percents no longer say much.
fn resolution(fraction: f64) -> String {
    const PERCENT_BELOW: f64 = 1.0;
    if fraction < PERCENT_BELOW {
        return figures::percent(fraction);
    }
    format!("× {}", two_digits(1.0 + fraction))
}

/// `3.8`, `12`, `620`.
fn two_digits(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Workloads on which a difference as small as was asked for could not have been shown.
pub(crate) fn unresolved(
    page: &ComparisonPage<'_>,
    comparisons: &[Comparison],
    letter: &str,
) -> Option<String> {
    let required = page.document.required_resolution?;
    let coarse = comparisons.iter().filter(|c| c.verdict == Verdict::Inconclusive);
    let all: Vec<String> =
        coarse.map(|c| format!("{} ({})", c.name, resolution(c.resolution))).collect();
    (!all.is_empty()).then(|| {
        format!(
            "{letter}: the intervals are too wide to have shown a difference of {} on {}.",
            resolution(required),
            all.join(", ")
        )
    })
}

/// Workloads that were asked for and dropped; none where none were.
pub(crate) fn dropped(page: &ComparisonPage<'_>) -> Option<String> {
    let names = |want_of: Want| {
        let all = page.document.dropped.iter().filter(|dropped| dropped.want_of == want_of);
        all.map(|dropped| dropped.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let parts = [(Want::Time, "time"), (Want::Room, "room")].map(|(want_of, word)| {
        let names = names(want_of);
        (!names.is_empty()).then(|| format!("for want of {word}: {names}"))
    });
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Not compared {}.", parts.join("; ")))
}

/// Caches side by side.
pub(crate) fn caches(system: &SystemComparison, letter: &str) -> Table {
    let row = |cache: &ioscape_model::CacheComparison| {
        let size = |of: &Option<Interval>| of.as_ref().map_or_else(unknown, figures::bytes);
        let curve = match cache.curve {
            Curve::Read => "read cache",
            Curve::Write => "write cache",
            Curve::Mixed => "cache",
        };
        let ratio = cache.ratio.map_or_else(unknown, |ratio| figures::ratio(&ratio.into()));
        let sizes = [size(&cache.baseline_capacity_bytes), size(&cache.capacity_bytes)];
        let [from, to] = sizes;
        vec![curve.to_owned(), from, to, ratio]
    };
    Table { head: head("", letter), rows: system.caches.iter().map(row).collect() }
}

/// Regions side by side.
pub(crate) fn regions(system: &SystemComparison, letter: &str) -> Table {
    let row = |region: &RegionComparison| {
        let level = |of: &Option<ioscape_model::RegionLevel>| {
            of.as_ref().map_or_else(unknown, |level| {
                let at = level.unique_bytes;
                format!(
                    "{} over {}",
                    figures::rate(&level.throughput_bytes_per_s.into()),
                    stretch(at.from, at.to)
                )
            })
        };
        let ratio = region.ratio.map_or_else(unknown, |ratio| figures::ratio(&ratio.into()));
        vec![region.name.to_string(), level(&region.baseline), level(&region.other), ratio]
    };
    Table { head: head("region", letter), rows: system.regions.iter().map(row).collect() }
}

/// Workloads, and what they say together.
pub(crate) fn workloads(
    system: &SystemComparison,
    comparisons: &[Comparison],
    letter: &str,
) -> Table {
    let row = |comparison: &Comparison| {
        let [baseline, other, ratio] = match comparison.verdict {
            // Figures that no measurement stands behind would be divided all the same.
            Verdict::OutOfRange => [unknown(), unknown(), unknown()],
            _ => [
                show_rate(comparison.baseline_bytes_per_s),
                show_rate(comparison.throughput_bytes_per_s),
                figures::ratio(&comparison.ratio.into()),
            ],
        };
        vec![comparison.name.clone(), baseline, other, ratio, difference(comparison.verdict)]
    };
    let mut rows: Vec<Vec<String>> = comparisons.iter().map(row).collect();
    let mut sum = |name: &str, of: &Option<OverallRatio>| {
        if let Some(of) = of {
            let name = format!("{name} of {}", of.workloads);
            let ratio = figures::ratio(&of.ratio.into());
            rows.push(vec![name, String::new(), String::new(), ratio, difference(of.verdict)]);
        }
    };
    sum("mean", &system.geometric_mean);
    sum("median", &system.measured);
    let mut head = head("workload", letter);
    head.push("difference".to_owned());
    Table { head, rows }
}

/// Whether it was measured in alternation and not predicted.
pub(crate) fn is_live(page: &ComparisonPage<'_>) -> bool {
    page.document.comparisons.iter().any(|comparison| comparison.pairs.is_some())
}

/// Says in a heading whether the figures of [`workloads`] were measured or predicted.
pub(crate) fn workloads_basis(page: &ComparisonPage<'_>) -> &'static str {
    if is_live(page) {
        "measured in alternation; in brackets: 95 % intervals"
    } else {
        "predicted; in brackets: 95 % intervals"
    }
}

/// Explains the columns, words and last rows of the table of [`workloads`] of a system.
pub(crate) fn workloads_note(page: &ComparisonPage<'_>, place: usize) -> String {
    let comparisons = of_system(page, place);
    let system = &page.document.systems[place - 1];
    let sums = [&system.geometric_mean, &system.measured];
    let of_sums = sums.into_iter().flatten().map(|sum| sum.verdict);
    let verdicts: Vec<Verdict> = comparisons.iter().map(|c| c.verdict).chain(of_sums).collect();
    let mut note = match pairs(comparisons) {
        Some(pairs) => format!(
            "Measured in alternation: throughput in {pairs} pairs of visits, one to A and one to B \
             right after the other, and the ratio with its interval."
        ),
        None => "Predicted throughput, cache hits included, and the ratio with its interval, which allows for what \
                 changes from run to run. The ratio also uses what both records measured, so it can \
                 differ from the quotient of the two columns."
            .to_owned(),
    };
    if verdicts.iter().filter(|verdict| **verdict != Verdict::OutOfRange).count() > 1 {
        note.push_str(
            " Several ratios are tested at once, so the intervals are widened (Holm): the chance of \
             any false difference among them is 5 % at most.",
        );
    }
    if verdicts.contains(&Verdict::NoDifferenceShown) {
        note.push_str(" Unclear: the two may be alike or differ.");
    }
    if verdicts.contains(&Verdict::Inconclusive) {
        note.push_str(
            " Too coarse: the two may be alike or differ, even by as much as was asked for.",
        );
    }
    if verdicts.iter().any(|verdict| is_not_shown(*verdict)) {
        note.push(' ');
        note.push_str(&smallest(system, comparisons));
    }
    if system.geometric_mean.is_some() {
        note.push_str(" The row *mean* is the geometric mean of all ratios.");
    }
    if system.measured.is_some() {
        note.push_str(" The row *median* is over the workloads that both records measured.");
    }
    note
}

/// `14 to 16` pairs of visits; none where nothing was measured in alternation.
fn pairs(comparisons: &[Comparison]) -> Option<String> {
    let pairs = || comparisons.iter().filter_map(|comparison| comparison.pairs);
    let (fewest, most) = (pairs().min()?, pairs().max()?);
    Some(if fewest == most { most.to_string() } else { format!("{fewest} to {most}") })
}

/// What the figures of [`regions`] are.
pub(crate) const REGIONS_NOTE: &str = "Throughput in the middle of each region (its focal point); each 95 % interval stands \
    for itself, and is not widened for their number.";
/// What the figures of [`caches`] are.
pub(crate) const CACHES_NOTE: &str = "Size of the cache that ends at each border; each 95 % interval stands for itself, and is not \
     widened for their number.";

/// Throughput for the price; empty without prices.
pub(crate) fn prices(page: &ComparisonPage<'_>) -> Table {
    let prices = &page.document.prices;
    let mut head = vec!["MB/s per unit of price".to_owned()];
    head.extend(
        prices.iter().enumerate().map(|(i, price)| format!("{} at {}", letter(i), price.price)),
    );
    let names: Vec<&str> = page.systems.get(1).map_or_else(Vec::new, |_| {
        of_system(page, 1).iter().map(|comparison| comparison.name.as_str()).collect()
    });
    let show = |value: Option<f64>| value.map_or_else(unknown, two_digits_at_least);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for name in names {
        let of = |p: &ioscape_model::PricePerformance| show(p.workloads.get(name).copied());
        let cells = prices.iter().map(of);
        rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }
    let means = prices.iter().map(|price| show(price.mb_per_s_per_unit));
    rows.push(["geometric mean".to_owned()].into_iter().chain(means).collect());
    Table { head, rows }
}

/// Kopp's question: is it worth its price?
pub(crate) fn worth(system: &SystemComparison, letter: &str) -> Option<String> {
    let price = system.price.as_ref()?;
    let ratio = system.geometric_mean.or(system.measured)?.ratio;
    let performance = figures::ratio(&ratio.into());
    let words = match price.worth {
        Worth::WorthIt => "it is worth its price",
        Worth::NotWorthIt => "it is not worth its price",
        Worth::CannotBeSaid => "whether it is worth its price cannot be said",
    };
    let names = |worth: Worth| {
        let of = price.workloads.iter().filter(|(_, w)| **w == worth);
        of.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut parts = vec![format!(
        "{letter} has {performance} the throughput of A at × {} the price: {words}.",
        three_digits(price.price_ratio)
    )];
    let exceptions = [(Worth::WorthIt, "Worth it on"), (Worth::NotWorthIt, "Not worth it on")];
    for (worth, words) in exceptions {
        let on = names(worth);
        if price.worth != worth && !on.is_empty() {
            parts.push(format!("{words} {on}."));
        }
    }
    Some(parts.join(" "))
}

/// Warns where a system differs from the baseline in two things or more: then the ratios do not tell
/// which of them makes the difference.
pub(crate) fn confounded(page: &ComparisonPage<'_>, place: usize) -> Option<String> {
    /// Kernels take a little of the same memory, not all as much.
    const MEMORY: f64 = 0.05;
    let (a, b) = (&page.systems[0].record.header, &page.systems[place].record.header);
    let (memory, other) = (a.host.memory_bytes as f64, b.host.memory_bytes as f64);
    let differs = [
        ("filesystem", a.target.filesystem != b.target.filesystem),
        ("memory limit", a.host.memory_limit() != b.host.memory_limit()),
        ("memory", (memory - other).abs() > MEMORY * memory),
        ("processor", a.host.cpu_model != b.host.cpu_model),
        ("kernel", a.host.kernel != b.host.kernel),
    ];
    let names: Vec<&str> = differs.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    (names.len() > 1).then(|| {
        format!(
            "{} and A differ in {}: the ratios do not tell which of these matters.",
            letter(place),
            listed(&names)
        )
    })
}

/// `A, B and C`.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// What is slower than was tolerated; none where nothing is.
pub(crate) fn intolerable(system: &SystemComparison, letter: &str) -> Option<String> {
    let list = system.beyond_tolerance.join(", ");
    (!list.is_empty()).then(|| format!("{letter} is slower than the tolerance allows in: {list}."))
}

/// Three digits, or two where the first of them comes late: `0.0083`.
fn two_digits_at_least(value: f64) -> String {
    let zeros = -value.log10().floor();
    if zeros < 1.0 || !zeros.is_finite() {
        return three_digits(value);
    }
    format!("{value:.0$}", zeros as usize + 1)
}

fn head(first: &str, letter: &str) -> Vec<String> {
    vec![first.to_owned(), "A".to_owned(), letter.to_owned(), format!("{letter} / A")]
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

fn difference(verdict: Verdict) -> String {
    let word = match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifferenceShown => "unclear",
        Verdict::Inconclusive => "too coarse",
        Verdict::OutOfRange => "not compared",
    };
    word.to_owned()
}

#[cfg(test)]
mod tests;
