//! `ioscape compare` on records of classic benchmarks: the same figures of two machines.

use std::path::PathBuf;

use ioscape_model::{Better, Contrast, Record};
use ioscape_report::suite_figure;
use ioscape_suite::{Name, ousterhout, pool};

use crate::exit::{Exit, usage};
use crate::output::answer;

/// Compares each further record with the first one, figure by figure, where all are of suites;
/// none where none is.
pub(crate) fn compare(
    (paths, records): (&[PathBuf], &[Record]),
    json: bool,
) -> anyhow::Result<Option<Exit>> {
    let is_suite = |record: &Record| record.suite.suite.is_some();
    if !records.iter().any(is_suite) {
        return Ok(None);
    }
    if let Some(at) = records.iter().position(|record| !is_suite(record)) {
        return Err(usage(format!(
            "{} holds no classic benchmarks, and others here do: compare like with like",
            paths[at].display()
        )));
    }
    let (baseline, others) = records.split_first().expect("two records are asked for at least");
    let mut documents = Vec::new();
    for (record, path) in others.iter().zip(&paths[1..]) {
        if settings(baseline) != settings(record) {
            return Err(usage(format!(
                "{} was run with other settings than the baseline: scale, size, slice and the \
                 like have to agree",
                path.display()
            )));
        }
        if let Some((was, is)) = kernels(baseline, record) {
            return Err(usage(format!(
                "{} rates the processor by version {is} of the integer kernel, the baseline by \
                 version {was}: run both with one version of ioscape",
                path.display()
            )));
        }
        let contrasts = pool::between(&baseline.suite.trials, &record.suite.trials);
        if json {
            let record = path.to_string_lossy();
            documents.push(serde_json::json!({ "record": record, "contrasts": contrasts }));
        } else {
            answer(&text(&path.display().to_string(), &contrasts, baseline))?;
        }
    }
    if json {
        let baseline = paths[0].to_string_lossy();
        let document = serde_json::json!({ "baseline": baseline, "records": documents });
        answer(&crate::output::json(&document)?)?;
    }
    Ok(Some(Exit::Fine))
}

/// The versions of the integer kernel, where they are known and differ.
fn kernels(a: &Record, b: &Record) -> Option<(u32, u32)> {
    let version = |record: &Record| record.suite.suite.as_ref()?.kernel_version;
    version(a).zip(version(b)).filter(|(a, b)| a != b)
}

fn settings(record: &Record) -> Option<ioscape_model::SuiteSettings> {
    record.suite.suite.as_ref().map(|suite| suite.settings.clone())
}

/// Says how fast system calls are for the speed of the processor, with the baseline's machine as 1
/// (MIPS-relative speed: Ousterhout 1990, section 3).
fn keeps_up(contrasts: &[Contrast]) -> Option<String> {
    let ratio = |name: &str| {
        let mut of_os = contrasts.iter().filter(|one| one.benchmark == Name::Os.as_str());
        of_os.find(|one| one.name == name).map(|one| one.ratio.mean)
    };
    let processor = ratio("integer kernel")?;
    // A rate is better where it is higher, a time where it is lower.
    let of = |(name, theirs): (&str, &str)| {
        let ratio = ratio(name)?;
        let faster = if ousterhout::unit_of(theirs).1 == "s" { 1.0 / ratio } else { ratio };
        Some(faster / processor)
    };
    let speeds: Vec<f64> = ousterhout::calls().filter_map(of).collect();
    let mean = ousterhout::geometric_mean(speeds.iter().copied());
    mean.is_finite().then(|| {
        format!(
            "  the processor is × {processor:.2}; calls of the operating system are {mean:.2} times \
             as fast as such a processor would make them (geometric mean of {} kinds)",
            speeds.len()
        )
    })
}

fn text(path: &str, contrasts: &[Contrast], baseline: &Record) -> String {
    let mut lines = vec![format!("{path} over the baseline, 95 % intervals")];
    if contrasts.is_empty() {
        lines.push("  no figure was measured twice in both: nothing can be said".to_owned());
    }
    for contrast in contrasts {
        let of = &contrast.ratio;
        let score = baseline.suite.scores.iter().find(|score| {
            score.target == 0
                && (&score.benchmark, &score.name) == (&contrast.benchmark, &contrast.name)
        });
        let verdict = match (contrast.shown, score.map(|score| score.better)) {
            (false, _) => "no difference shown",
            (true, Some(Better::Higher)) if of.mean > 1.0 => "better",
            (true, Some(Better::Lower)) if of.mean < 1.0 => "better",
            (true, Some(Better::Higher | Better::Lower)) => "worse",
            (true, _) => "differs",
        };
        let was = score.map_or_else(String::new, |s| suite_figure(s.mean, &s.unit));
        lines.push(format!(
            "  {:<14}{:<32}{was:>14}  × {:.3} ({:.3} to {:.3})  {verdict}",
            contrast.benchmark, contrast.name, of.mean, of.low, of.high
        ));
    }
    lines.extend(keeps_up(contrasts));
    lines.join("\n")
}
