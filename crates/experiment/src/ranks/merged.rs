//! The sum of all ranks, from what each did: pure arithmetic.

use ioscape_engine::{ClassCount, Prepared, Window};
use ioscape_model::{Failed, Spent, Warning};

/// A window of all ranks. Each counted by its own clock how long it was; rates are added up, so the
/// length is the one that gives all bytes the sum of the rates.
///
/// `is_first` tells of each rank whether it is the first of its host: what machines count is counted
/// once.
pub(super) fn window(each: &[Window], is_first: &[bool]) -> Window {
    let firsts =
        || each.iter().zip(is_first).filter(|(_, first)| **first).map(|(window, _)| window);
    let mut classes = [ClassCount::default(); 4];
    for window in each {
        for (sum, class) in classes.iter_mut().zip(&window.classes) {
            sum.ops += class.ops;
            sum.bytes += class.bytes;
            sum.time_s += class.time_s;
        }
    }
    let weighted = |value: fn(&Window) -> Option<f64>| {
        let known = each.iter().filter_map(|window| Some((value(window)?, window.bytes() as f64)));
        let (sum, bytes) = known.fold((0.0, 0.0), |(sum, all), (v, b)| (sum + v * b, all + b));
        (bytes > 0.0).then(|| sum / bytes)
    };
    Window {
        length_s: length_s(each),
        classes,
        device_read_bytes: each.iter().map(|window| window.device_read_bytes).sum(),
        dirtied_bytes: each.iter().map(|window| window.dirtied_bytes).sum(),
        hit_fraction: weighted(|window| window.hit_fraction),
        resident_bytes: each.iter().map(|window| window.resident_bytes).sum(),
        dirty_bytes: firsts().map(|window| window.dirty_bytes).sum(),
        writeback_bytes: firsts().map(|window| window.writeback_bytes).sum(),
        cpu_s: each.iter().map(|window| window.cpu_s).sum(),
        stolen_fraction: firsts()
            .map(|window| window.stolen_fraction)
            .sum::<Option<f64>>()
            .map(|sum| sum / firsts().count() as f64),
    }
}

/// Lengths in the mean, each weighted by its rank's rate.
fn length_s(each: &[Window]) -> f64 {
    let rate = |window: &Window| window.bytes() as f64 / window.length_s;
    let rates = each.iter().filter(|window| window.length_s > 0.0).map(rate).sum::<f64>();
    let bytes = each.iter().filter(|window| window.length_s > 0.0).map(|w| w.bytes() as f64);
    if rates > 0.0 { bytes.sum::<f64>() / rates } else { each[0].length_s }
}

/// Time that preparing took on all ranks: they worked at once, so the longest counts.
pub(super) fn prepared(each: Vec<Prepared>) -> Prepared {
    let longest = |part: fn(&Spent) -> f64| {
        each.iter().map(|prepared| part(&prepared.spent_s)).fold(0.0, f64::max)
    };
    let spent_s = Spent {
        layout: longest(|spent| spent.layout),
        quiesce: longest(|spent| spent.quiesce),
        warm_up: longest(|spent| spent.warm_up),
        ..Spent::default()
    };
    let warnings = each.into_iter().map(|prepared| prepared.warnings).collect();
    Prepared { spent_s, warnings: self::warnings(warnings) }
}

/// The doubts of all ranks. What rank 0 says as well is said once; what only others say names them.
pub(super) fn warnings(each: Vec<Vec<Warning>>) -> Vec<Warning> {
    let mut all: Vec<Warning> = Vec::new();
    let mut said_by_first = Vec::new();
    for (rank, warnings) in each.into_iter().enumerate() {
        for mut warning in warnings {
            if rank == 0 {
                said_by_first.push(warning.code);
            } else if said_by_first.contains(&warning.code) {
                continue;
            } else {
                warning.text = format!("rank {rank}: {}", warning.text);
            }
            all.push(warning);
        }
    }
    all
}

/// Requests that failed on all ranks.
pub(super) fn failed(each: Vec<Vec<Failed>>) -> Vec<Failed> {
    let mut all: Vec<Failed> = Vec::new();
    for failed in each.into_iter().flatten() {
        let alike =
            |known: &&mut Failed| known.class == failed.class && known.failure == failed.failure;
        match all.iter_mut().find(alike) {
            Some(known) => known.count += failed.count,
            None => all.push(failed),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use ioscape_model::Code;

    fn did(bytes: u64, length_s: f64) -> Window {
        let mut classes = [ClassCount::default(); 4];
        classes[1] = ClassCount { ops: bytes / 1000, bytes, time_s: 0.5 };
        Window { length_s, classes, dirty_bytes: Some(7), cpu_s: Some(0.1), ..Window::default() }
    }

    #[test]
    fn rates_of_ranks_add_up_however_long_each_looked() {
        let all = window(&[did(1_000_000, 0.1), did(3_300_000, 0.11)], &[true, false]);
        assert!((all.bytes() as f64 / all.length_s - 4e7).abs() < 1.0);
        assert_eq!((all.ops(), all.dirty_bytes, all.cpu_s), (4300, Some(7), Some(0.2)));
        let idle = window(&[did(0, 0.1), did(0, 0.1)], &[true, true]);
        assert!((idle.length_s - 0.1).abs() < 1e-12 && idle.dirty_bytes == Some(14));
    }

    #[test]
    fn what_several_ranks_doubt_is_said_once() {
        let doubt = |code, text: &str| Warning::new(code, text, "look");
        let all = warnings(vec![
            vec![doubt(Code::StolenTime, "stolen 3 %")],
            vec![doubt(Code::StolenTime, "stolen 4 %"), doubt(Code::Swapping, "9 pages")],
            vec![doubt(Code::Swapping, "8 pages")],
        ]);
        let texts: Vec<&str> = all.iter().map(|warning| &*warning.text).collect();
        assert_eq!(texts, ["stolen 3 %", "rank 1: 9 pages", "rank 2: 8 pages"]);
    }
}
