//! `ioscape predict`: what workloads that were not measured would get, from a record alone.

use ioscape_analysis::predict::{Caches, Predictor};
use ioscape_model::units::parse_size;
use ioscape_model::{ModelName, Prediction, Predictions};
use ioscape_report::{PredictionBasis, WhatIf};

use crate::application;
use crate::args::PredictArgs;
use crate::exit::{Exit, usage};
use crate::journal;
use crate::out_file::{self, Existing};
use crate::output::answer;
use crate::page_file::WIDTH;
use crate::workload_arg::{self, Asked};

/// Predicts and prints.
pub(crate) fn predict(args: &PredictArgs) -> anyhow::Result<Exit> {
    if let Some(app) = &args.app {
        return application::predict(args, app);
    }
    let asked = if args.workload.is_empty() && args.keys.pairs().is_empty() {
        workload_arg::ladder()
    } else {
        workload_arg::parse_all(&args.workload, &args.keys)?
    };
    if args.p99_max.is_some() && asked.iter().any(|asked| asked.work.rate > 0.0) {
        return Err(usage("--p99-max finds the rate: leave rate out, or leave --p99-max out"));
    }
    let changes = args.set.iter().map(|text| Change::parse(text));
    let changes = changes.collect::<Result<Vec<_>, String>>().map_err(usage)?;
    if let Some(twice) = changes.iter().enumerate().find(|(i, c)| holds(&changes[..*i], c.cache)) {
        return Err(usage(format!(
            "--set: `{}` is given twice; leave one out",
            twice.1.cache.key()
        )));
    }
    if let Some(out) = &args.out {
        out_file::check_new(out, "--out")?;
    }
    let record = journal::open(&args.record)?;
    let named = |error: String| usage(format!("{}: {error}", args.record.display()));
    let mut predictor = Predictor::of_record(&record).map_err(|error| named(error.to_string()))?;
    let asked = workload_arg::of_map(asked, &args.record, &predictor)?;
    let changed = what_if(&changes, &predictor.caches()).map_err(named)?;
    if !changed.is_empty() {
        let caches = caches(&changed);
        predictor = predictor.with_caches(&caches).map_err(|error| named(error.to_string()))?;
    }
    let document = Predictions {
        model: ModelName::Blend,
        predictions: answers(&predictor, &asked, args.p99_max),
        warnings: ioscape_report::bearing_doubts(&record),
    };
    let json = crate::output::json(&document)?;
    if let Some(out) = &args.out {
        out_file::write(out, format!("{json}\n").as_bytes(), Existing::Kept, "--out")?;
    }
    if args.json {
        answer(&json)?;
    } else {
        let told = |c: &Changed| WhatIf {
            cache: c.cache.key(),
            from_bytes: c.from_bytes,
            to_bytes: c.to_bytes,
        };
        let changed: Vec<WhatIf> = changed.iter().map(told).collect();
        let ground = PredictionBasis {
            record: &record,
            changed: &changed,
            sentences: &predictor.sentences(),
        };
        answer(&ioscape_report::predictions_text(&document, &ground, WIDTH))?;
    }
    Ok(Exit::Fine)
}

fn answers(predictor: &Predictor, asked: &[Asked], p99_max_s: Option<f64>) -> Vec<Prediction> {
    let answer = |Asked { name, work, .. }: &Asked| match p99_max_s {
        Some(p99_max_s) => predictor.predict_within(name, work, p99_max_s),
        None => predictor.predict(name, work),
    };
    asked.iter().map(answer).collect()
}

/// A cache that `--set` can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    Read,
    Write,
}

impl Cache {
    const ALL: [Self; 2] = [Self::Read, Self::Write];

    fn key(self) -> &'static str {
        match self {
            Self::Read => "read_cache",
            Self::Write => "write_cache",
        }
    }

    /// Its size as the models have it, bytes.
    fn bytes_in(self, caches: &Caches) -> Option<f64> {
        match self {
            Self::Read => caches.read_bytes,
            Self::Write => caches.write_bytes,
        }
    }
}

fn holds(changes: &[Change], cache: Cache) -> bool {
    changes.iter().any(|change| change.cache == cache)
}

/// What `--set` asks of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Change {
    cache: Cache,
    to: Size,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Bytes(f64),
    /// As a multiple of what the record shows.
    Times(f64),
}

impl Change {
    fn parse(text: &str) -> Result<Self, String> {
        let keys = Cache::ALL.map(Cache::key).join(" and ");
        let (key, value) = text.split_once('=').ok_or_else(|| {
            format!("--set: `{text}` is not key=value; write for example read_cache=512MiB")
        })?;
        let (key, value) = (key.trim(), value.trim());
        let cache = Cache::ALL
            .into_iter()
            .find(|cache| cache.key() == key)
            .ok_or_else(|| format!("--set: unknown key `{key}`; what can be changed is {keys}"))?;
        let to = match value.strip_suffix(['x', '×']) {
            Some(factor) => Size::Times(factor.trim().parse().unwrap_or(f64::NAN)),
            None => {
                Size::Bytes(parse_size(value).map_err(|why| format!("--set {key}: {why}"))? as f64)
            }
        };
        let (Size::Bytes(amount) | Size::Times(amount)) = to;
        if amount.is_finite() && amount > 0.0 {
            return Ok(Self { cache, to });
        }
        Err(format!(
            "--set {key}={value}: write a size above zero such as 512MiB, or a factor such as 2x"
        ))
    }
}

/// A cache of another size than the record shows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Changed {
    cache: Cache,
    from_bytes: Option<f64>,
    to_bytes: f64,
}

/// Sizes that a cache may be supposed to have.
const BYTES_MIN: f64 = 4096.0;
const BYTES_MAX: f64 = (1_u64 << 60) as f64;

fn what_if(changes: &[Change], found: &Caches) -> Result<Vec<Changed>, String> {
    let mut changed = Vec::new();
    for Change { cache, to } in changes.iter().copied() {
        let from_bytes = cache.bytes_in(found);
        let to_bytes = match (to, from_bytes) {
            (Size::Bytes(bytes), _) => bytes,
            (Size::Times(factor), Some(bytes)) => factor * bytes,
            (Size::Times(factor), None) => {
                return Err(format!(
                    "--set {}={factor}x: the record shows no such cache; write a size instead",
                    cache.key()
                ));
            }
        };
        if !(BYTES_MIN..=BYTES_MAX).contains(&to_bytes) {
            return Err(format!(
                "--set {}: no cache is that large or small; write a size from 4KiB to 1EiB",
                cache.key()
            ));
        }
        changed.push(Changed { cache, from_bytes, to_bytes });
    }
    Ok(changed)
}

fn caches(changed: &[Changed]) -> Caches {
    let to = |cache| changed.iter().find(|c| c.cache == cache).map(|c| c.to_bytes);
    Caches { read_bytes: to(Cache::Read), write_bytes: to(Cache::Write) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_size_or_a_factor() {
        for (text, cache, to) in [
            ("read_cache=512MiB", Cache::Read, Size::Bytes(536_870_912.0)),
            (" write_cache = 64M", Cache::Write, Size::Bytes(67_108_864.0)),
            ("read_cache=2x", Cache::Read, Size::Times(2.0)),
            ("write_cache=0.5 x", Cache::Write, Size::Times(0.5)),
        ] {
            assert_eq!(Change::parse(text), Ok(Change { cache, to }), "{text}");
        }
    }

    #[test]
    fn a_change_that_cannot_be_is_refused() {
        for (text, part) in [
            ("read_cache", "not key=value"),
            ("cache=1M", "unknown key `cache`"),
            ("read_cache=0", "above zero"),
            ("read_cache=0x", "above zero"),
            ("read_cache=-2x", "above zero"),
            ("read_cache=nanx", "above zero"),
            ("read_cache=infx", "above zero"),
            ("read_cache=x", "above zero"),
            ("read_cache=much", "not a size"),
        ] {
            let message = Change::parse(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
