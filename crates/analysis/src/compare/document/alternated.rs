//! Two records that were measured in alternation, compared visit by visit.

use ioscape_model::{
    Comparison, Comparisons, Dropped, Method, NotCompared, Overall, Record, RecordWarnings,
    SystemComparison, Want, named,
};

use super::{Against, Demands, Evidence, NamedWorkload, document, unknown};
use crate::compare::live::{LiveRatio, compare};

/// Whether two records were measured in alternation with each other: their runs' names differ in
/// the last digit alone.
pub fn are_alternated(one: &Record, other: &Record) -> bool {
    let name = |record: &Record| {
        let id = &record.header.run_id;
        (record.header.method == Method::Compare)
            .then(|| id[..id.len().saturating_sub(1)].to_owned())
    };
    name(one).is_some() && name(one) == name(other)
}

/// The workloads that a record was to hold visits to, under the name each goes by; those that have
/// one first.
pub fn planned(record: &Record) -> Vec<NamedWorkload> {
    let mut all: Vec<NamedWorkload> = Vec::new();
    let visited = record.points.iter().map(|point| &point.workload);
    for workload in visited.chain(dropped(record).iter().map(|dropped| &dropped.workload)) {
        if all.iter().all(|asked| asked.workload != *workload) {
            let name = named::name_of(workload).map_or_else(|| workload.literal(), str::to_owned);
            all.push(NamedWorkload { name, workload: workload.clone() });
        }
    }
    let place = |asked: &NamedWorkload| named::names().position(|name| name == asked.name);
    all.sort_by_key(|asked| place(asked).unwrap_or(usize::MAX));
    all
}

fn dropped(record: &Record) -> &[Dropped] {
    record.end.as_ref().map_or(&[], |end| &end.dropped)
}

/// What was asked for and has no pairs enough.
fn not_compared(record: &Record, asked: &[NamedWorkload], found: &[LiveRatio]) -> Vec<NotCompared> {
    let missing =
        asked.iter().enumerate().filter(|(index, _)| found.iter().all(|live| live.index != *index));
    let not_compared = |(_, asked): (usize, &NamedWorkload)| {
        let dropped = dropped(record).iter().find(|dropped| dropped.workload == asked.workload);
        NotCompared {
            name: asked.name.clone(),
            workload: asked.workload.clone(),
            want_of: dropped.map_or(Want::Time, |dropped| dropped.want_of),
        }
    };
    missing.map(not_compared).collect()
}

/// Compares two records made in alternation, each with its file and its doubts, the baseline first.
pub fn between_alternated(
    pair: [(&Record, RecordWarnings); 2],
    asked: &[NamedWorkload],
    demands: &Demands<'_>,
) -> Comparisons {
    let [(baseline, baseline_file), (other, file)] = pair;
    let works: Vec<_> = asked.iter().map(|asked| asked.workload.clone()).collect();
    let mut found = compare(&baseline.points, &other.points, &works);
    let dropped = not_compared(baseline, asked, &found.workloads);
    if let Some(resolution) = demands.resolution {
        found = found.requiring(resolution);
        if found.verdict == Overall::NoDifferenceShown && !dropped.is_empty() {
            found.verdict = Overall::Inconclusive;
        }
    }
    let comparison = |live: &LiveRatio| Comparison {
        record: file.record.clone(),
        name: asked[live.index].name.clone(),
        workload: asked[live.index].workload.clone(),
        baseline_bytes_per_s: live.baseline_bytes_per_s,
        throughput_bytes_per_s: live.throughput_bytes_per_s,
        ratio: live.tested.ratio,
        resolution: live.tested.resolution,
        verdict: live.tested.verdict,
        pairs: Some(live.pairs as u64),
    };
    let verdict = found.verdict;
    let against = Against {
        system: SystemComparison {
            verdict,
            geometric_mean: found.geometric_mean,
            ..unknown(&file)
        },
        comparisons: found.workloads.iter().map(comparison).collect(),
    };
    let evidence = Evidence { against: vec![against], dropped, verdict };
    document(evidence, vec![baseline_file, file], demands)
}
