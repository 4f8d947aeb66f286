//! Prices as they are typed: `--price A=100,B=150`.

use std::path::PathBuf;

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
