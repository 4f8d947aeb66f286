//! Applications asked of records: `predict RECORD --app` and `compare RECORD… --app`.

mod ranking;

use std::path::Path;

use ioscape_analysis::application::{self, NoAnswer, System, WhatIf};
use ioscape_analysis::predict::Predictor;
use ioscape_model::units::parse_size;
use ioscape_model::{App, Record};
use ioscape_report::{ApplicationPrediction, TimePart, application_time_text};

use crate::args::PredictArgs;
use crate::exit::{Exit, usage};
use crate::journal;
use crate::out_file::{self, Existing};
use crate::output::answer;
use crate::trace::source;

pub(crate) use ranking::compare;

/// Predicts how long an application takes, and prints.
pub(crate) fn predict(args: &PredictArgs, path: &Path) -> anyhow::Result<Exit> {
    if !args.keys.pairs().is_empty() {
        return Err(usage(
            "--app takes the workload from the model: leave out flags that name one",
        ));
    }
    let change = what_if(&args.set).map_err(usage)?;
    if let Some(out) = &args.out {
        out_file::check_new(out, "--out")?;
    }
    let app = source::model(path)?;
    let record = journal::open(&args.record)?;
    let system = system(&record, &args.record, &change)?;
    let said = match application::predict(&system, &app) {
        Err(NoAnswer::NoDemand) => five(&record, &app)
            .ok_or_else(|| usage(format!("{}: {}", path.display(), NoAnswer::NoDemand)))?,
        said => said.map_err(|error| usage(format!("{}: {error}", path.display())))?,
    };
    let document = said.document(&path.display().to_string());
    let json = crate::output::json(&document)?;
    if let Some(out) = &args.out {
        out_file::write(out, format!("{json}\n").as_bytes(), Existing::Kept, "--out")?;
    }
    if args.json {
        answer(&json)?;
    } else {
        answer(&shown(&said, &baselines(&record, &system, &app)))?;
    }
    Ok(Exit::Fine)
}

fn shown(said: &application::Answer, baselines: &[(&'static str, f64)]) -> String {
    let parts = said.terms.iter().map(|term| TimePart {
        category: &term.category,
        count: term.count,
        seconds: term.seconds,
    });
    application_time_text(&ApplicationPrediction {
        seconds: said.seconds,
        transactions_per_s: said.transactions_per_s,
        parts: parts.collect(),
        baselines,
        warnings: &said.warnings,
    })
}

/// The system of a record, changed as it was asked for.
fn system(record: &Record, path: &Path, change: &WhatIf) -> anyhow::Result<System> {
    let named = |error: NoAnswer| match error {
        NoAnswer::Change(what) => usage(what),
        other => usage(format!("{}: {other}", path.display())),
    };
    System::from_record(record).and_then(|system| system.changed(change)).map_err(named)
}

/// Reads `memory=1GiB,device=2x`.
fn what_if(texts: &[String]) -> Result<WhatIf, String> {
    let mut change = WhatIf::default();
    for text in texts {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            format!("--set: `{text}` is not key=value; write for example memory=1GiB")
        })?;
        let (key, value) = (key.trim(), value.trim());
        let factor = value
            .strip_suffix(['x', '×'])
            .or_else(|| value.strip_prefix(['x', '×']))
            .map(|factor| factor.trim().parse::<f64>());
        let wrong =
            || format!("--set {key}={value}: write a size such as 512MiB, or a factor such as 2x");
        match (key, factor) {
            (_, Some(Err(_))) => return Err(wrong()),
            ("memory" | "read_cache", Some(Ok(factor))) => change.memory_factor = Some(factor),
            ("memory" | "read_cache", None) => {
                let bytes = parse_size(value).map_err(|why| format!("--set {key}: {why}"))?;
                change.memory_bytes = Some(bytes as f64);
            }
            ("device", Some(Ok(factor))) => change.device_factor = Some(factor),
            ("device", None) => {
                return Err(format!("--set {key}={value}: write a factor such as 2x"));
            }
            _ => {
                return Err(format!(
                    "--set: unknown key `{key}`; with --app it can be memory, read_cache and device"
                ));
            }
        }
    }
    Ok(change)
}

/// Answers that need no vector: each with its seconds.
fn baselines(record: &Record, system: &System, app: &App) -> Vec<(&'static str, f64)> {
    let mut all = Vec::new();
    let Some(demand) = &app.demand else { return all };
    all.push(("as long as where it was recorded", demand.elapsed_s));
    if let Some(ratio) = application::sync_ratio(system, demand) {
        all.push(("by the ratio of fsync times", demand.elapsed_s * ratio));
    }
    if let Some(five) = five(record, app) {
        all.push(("by five parameters and the map's law", five.seconds.value));
    }
    all
}

/// By the five parameters of each phase: bytes over throughput, and the time between requests.
fn five(record: &Record, app: &App) -> Option<application::Answer> {
    let predictor = Predictor::of_record(record).ok()?;
    let works = app.stretches().into_iter().map(|stretch| {
        let work = ioscape_trace::character::workload(stretch);
        let work = ioscape_model::Workload { access: predictor.access(), rate: 0.0, ..work };
        (work, stretch)
    });
    Some(application::by_five(&predictor, works.collect::<Vec<_>>().iter().map(|(w, s)| (w, *s))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_sizes_and_factors() {
        let read =
            |texts: &[&str]| what_if(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        let change = read(&["memory=1GiB", "device=2x"]).unwrap();
        assert_eq!(change.memory_bytes, Some(1_073_741_824.0));
        assert_eq!(change.device_factor, Some(2.0));
        assert_eq!(read(&["device=×2"]).unwrap().device_factor, Some(2.0));
        assert_eq!(read(&["read_cache=0.5x"]).unwrap().memory_factor, Some(0.5));
        for (text, part) in [
            ("memory", "not key=value"),
            ("device=2", "a factor such as 2x"),
            ("memory=axx", "a size such as"),
            ("write_cache=1M", "unknown key"),
        ] {
            let message = read(&[text]).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
