//! Prices: what a system gives for its money, and whether it is worth what it costs more.

use std::path::PathBuf;

use ioscape_model::{
    Comparison, Comparisons, Figure, PriceComparison, PricePerformance, SystemComparison, Verdict,
    Worth,
};

const MEGABYTE: f64 = 1e6;

/// Reads `A=100,B=150`: the keys are the records' letters or places, their files or the files'
/// stems. All records have a price, or none.
pub(super) fn read(texts: &[String], records: &[PathBuf]) -> Result<Option<Vec<f64>>, String> {
    if texts.is_empty() {
        return Ok(None);
    }
    let mut prices: Vec<Option<f64>> = vec![None; records.len()];
    for text in texts {
        let (key, value) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("--price: `{text}` is not key=value; write A=100,B=150"))?;
        let place = place(key.trim(), records)?;
        let price: f64 = value.trim().parse().unwrap_or(f64::NAN);
        if !(price > 0.0 && price.is_finite()) {
            return Err(format!("--price {text}: a price is a number above zero"));
        }
        if prices[place].replace(price).is_some() {
            return Err(format!("--price: {} has two prices; leave one out", letter(place)));
        }
    }
    let missing = prices.iter().position(Option::is_none);
    match missing {
        Some(place) => Err(format!(
            "--price: {} ({}) has none; give one for every record",
            letter(place),
            records[place].display()
        )),
        None => Ok(Some(prices.into_iter().flatten().collect())),
    }
}

fn letter(place: usize) -> char {
    char::from(b'A' + u8::try_from(place).unwrap_or(25).min(25))
}

/// Which record a key means. A file's own name goes before a letter.
fn place(key: &str, records: &[PathBuf]) -> Result<usize, String> {
    let is_named = |path: &PathBuf| {
        let parts = [Some(path.as_os_str()), path.file_name(), path.file_stem()];
        parts.into_iter().flatten().any(|part| part == key)
    };
    let named: Vec<usize> =
        records.iter().enumerate().filter(|(_, path)| is_named(path)).map(|(i, _)| i).collect();
    let numbered = key.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let lettered =
        (0..records.len().min(26)).find(|i| key.eq_ignore_ascii_case(&letter(*i).to_string()));
    match named[..] {
        [only] => Ok(only),
        [] => numbered.filter(|i| *i < records.len()).or(lettered).ok_or_else(|| {
            format!(
                "--price: `{key}` names no record; the records are A to {}, in their order",
                letter(records.len() - 1)
            )
        }),
        _ => Err(format!("--price: `{key}` names several records; write their letters, A first")),
    }
}

/// Whether throughput grows by more than the price, in the mean and for each workload in range.
pub(super) fn worth(
    price_ratio: f64,
    system: &SystemComparison,
    comparisons: &[Comparison],
) -> PriceComparison {
    let of = |ratio: &Figure| match ratio {
        ratio if ratio.low > price_ratio => Worth::WorthIt,
        ratio if ratio.high < price_ratio => Worth::NotWorthIt,
        _ => Worth::CannotBeSaid,
    };
    let all = system.geometric_mean.or(system.measured);
    let in_range = comparisons.iter().filter(|c| c.verdict != Verdict::OutOfRange);
    PriceComparison {
        price_ratio,
        worth: all.map_or(Worth::CannotBeSaid, |sum| of(&sum.ratio)),
        workloads: in_range.map(|c| (c.name.clone(), of(&c.ratio))).collect(),
    }
}

/// Throughput for the price, of the workloads that are in range everywhere.
pub(super) fn performance(
    files: &[&str],
    prices: &[f64],
    document: &Comparisons,
) -> Vec<PricePerformance> {
    let each = document.comparisons.len() / document.systems.len().max(1);
    let of_other = |place: usize| &document.comparisons[(place - 1) * each..place * each];
    let is_everywhere = |index: &usize| {
        (1..files.len()).all(|place| of_other(place)[*index].verdict != Verdict::OutOfRange)
    };
    let kept: Vec<usize> = (0..each).filter(is_everywhere).collect();
    let performance = |(place, (file, price)): (usize, (&&str, &f64))| {
        let rate = |index: usize| match place {
            0 => of_other(1)[index].baseline_bytes_per_s,
            other => of_other(other)[index].throughput_bytes_per_s,
        };
        let per_unit = |index: usize| rate(index) / MEGABYTE / price;
        let ln_sum: f64 = kept.iter().map(|&index| per_unit(index).ln()).sum();
        let name = |index: usize| of_other(1)[index].name.clone();
        PricePerformance {
            record: (*file).to_owned(),
            price: *price,
            mb_per_s_per_unit: (!kept.is_empty()).then(|| (ln_sum / kept.len() as f64).exp()),
            workloads: kept.iter().map(|&index| (name(index), per_unit(index))).collect(),
        }
    };
    files.iter().zip(prices).enumerate().map(performance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str], records: &[&str]) -> Result<Option<Vec<f64>>, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let records: Vec<PathBuf> = records.iter().map(PathBuf::from).collect();
        read(&texts, &records)
    }

    #[test]
    fn a_record_is_named_by_letter_place_file_or_stem() {
        let records = ["runs/old.jsonl", "runs/new.jsonl"];
        for keys in [["A", "B"], ["a", "b"], ["1", "2"], ["old.jsonl", "new"], ["old", "2"]] {
            let texts = [format!("{}=100", keys[0]), format!(" {} = 250.5", keys[1])];
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            assert_eq!(parse(&texts, &records), Ok(Some(vec![100.0, 250.5])), "{keys:?}");
        }
        assert_eq!(parse(&["b=1", "a=2"], &["b", "a"]), Ok(Some(vec![1.0, 2.0])), "a name first");
        assert_eq!(parse(&[], &records), Ok(None));
    }

    #[test]
    fn a_price_that_cannot_be_is_refused() {
        let records = ["old.jsonl", "new.jsonl"];
        for (texts, part) in [
            (&["A=0", "B=1"][..], "above zero"),
            (&["A=-3", "B=1"], "above zero"),
            (&["A=inf", "B=1"], "above zero"),
            (&["A=x", "B=1"], "above zero"),
            (&["C=1", "B=1"], "names no record"),
            (&["0=1", "B=1"], "names no record"),
            (&["A=1"], "B (new.jsonl) has none"),
            (&["A=1", "1=2", "B=1"], "two prices"),
            (&["A"], "not key=value"),
        ] {
            let message = parse(texts, &records).unwrap_err();
            assert!(message.contains(part) && !message.contains('\n'), "{texts:?}: {message}");
        }
        let twice = parse(&["r=1", "B=1"], &["r.jsonl", "r.jsonl"]).unwrap_err();
        assert!(twice.contains("names several"), "{twice}");
    }
}
