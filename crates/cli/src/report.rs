//! `ioscape report`: renders a record again.

use std::path::{Path, PathBuf};

use ioscape_analysis::predict::Predictor;
use ioscape_model::{Method, Record};
use ioscape_report::{ValidationPage, page_mark};

use crate::args::{FormatArg, ReportArgs};
use crate::exit::{Exit, usage};
use crate::out_file::{self, Existing};
use crate::output::{self, answer, say};
use crate::page_file::{self, Standing, WIDTH, refusal, standing};
use crate::{compare, journal, validate};

/// Renders a record, with the validation of it where that is named too; or several, side by side.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let subject = Subject::open(&args.records)?;
    let out = match (args.format, &args.out) {
        (FormatArg::Text, None) => {
            let color = output::is_colourful();
            answer(&subject.text(color)?)?;
            return Ok(Exit::Fine);
        }
        (_, Some(out)) => out.clone(),
        (FormatArg::Html, None) => subject.page_path(),
    };
    if args.records.contains(&out) {
        return Err(usage(format!("{} is the record: name another --out", out.display())));
    }
    let existing = match (args.format, standing(&out, &subject.mark())) {
        (_, Standing::Free) => Existing::Kept,
        (FormatArg::Html, Standing::Ours) => Existing::Replaced,
        (FormatArg::Html, standing) => return Err(refusal(&out, standing, "--out")),
        (FormatArg::Text, _) => return Err(refusal(&out, Standing::Ours, "--out")),
    };
    let text = match args.format {
        FormatArg::Html => subject.page()?,
        FormatArg::Text => subject.text(false)?,
    };
    out_file::write(&out, text.as_bytes(), existing, "--out")?;
    say(&format!("report  {}", out.display()));
    Ok(Exit::Fine)
}

/// What a report is about.
enum Subject<'a> {
    /// One system, with a validation where there was one.
    One { path: &'a Path, record: Box<Record>, trial: Option<Box<Record>> },
    /// Several, the first one the baseline; what their page is known by.
    Several { paths: Vec<PathBuf>, mark: String },
}

impl<'a> Subject<'a> {
    fn open(paths: &'a [PathBuf]) -> anyhow::Result<Self> {
        if let [path] = paths {
            return Ok(Self::One { path, record: Box::new(journal::open(path)?), trial: None });
        }
        let mut maps = Vec::new();
        let mut trials = Vec::new();
        for path in paths {
            let record = Box::new(journal::open(path)?);
            let is_trial = record.header.method == Method::Validate;
            if is_trial { trials.push((path, record)) } else { maps.push((path, record)) }
        }
        match (maps.len(), trials.len()) {
            (1, 1) => {
                let ((path, record), (trial_path, trial)) = (maps.remove(0), trials.remove(0));
                if record.header.target.path != trial.header.target.path {
                    return Err(usage(format!(
                        "{} is a validation of {}, {} a record of {}: name those that belong \
                         together",
                        trial_path.display(),
                        trial.header.target.path,
                        path.display(),
                        record.header.target.path
                    )));
                }
                Ok(Self::One { path, record, trial: Some(trial) })
            }
            (2.., 0) => {
                let mark = page_mark(maps.iter().map(|(_, record)| &**record));
                Ok(Self::Several { paths: paths.to_vec(), mark })
            }
            _ => Err(usage(
                "name one record, with one validation of it or none, or several records and no \
                 validation",
            )),
        }
    }

    /// Beside the first record.
    fn page_path(&self) -> PathBuf {
        match self {
            Self::One { path, .. } => path.with_extension("html"),
            Self::Several { paths, .. } => {
                let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_owned();
                let mut name = stem(&paths[0]);
                for path in &paths[1..] {
                    name.push("-and-");
                    name.push(stem(path));
                }
                name.push(".html");
                paths[0].with_file_name(name)
            }
        }
    }

    /// What its page is known by.
    fn mark(&self) -> String {
        match self {
            Self::One { record, .. } => page_mark([&**record]),
            Self::Several { mark, .. } => mark.clone(),
        }
    }

    fn page(&self) -> anyhow::Result<String> {
        match self {
            Self::One { path, record, trial } => {
                let models = Predictor::of_record(record).ok();
                let page = |check| page_file::page(path, record, models.as_ref(), check);
                let Some(trial) = trial else { return Ok(page(None)) };
                let validation = validate::scored(&path.to_string_lossy(), None, record, trial)?;
                let validation = &validation;
                Ok(page(Some(ValidationPage { record, trial, validation, single_points: &[] })))
            }
            Self::Several { paths, .. } => {
                compare::rendered(paths, &ioscape_report::comparison_html)
            }
        }
    }

    fn text(&self, color: bool) -> anyhow::Result<String> {
        match self {
            Self::One { path, record, trial } => {
                let text = page_file::summary(path, record, color);
                let Some(trial) = trial else { return Ok(text) };
                let validation = validate::scored(&path.to_string_lossy(), None, record, trial)?;
                let page =
                    ValidationPage { record, trial, validation: &validation, single_points: &[] };
                Ok(text + "\n" + &ioscape_report::validation_text(&page, WIDTH, color))
            }
            Self::Several { paths, .. } => compare::rendered(paths, &|page| {
                ioscape_report::comparison_text(page, WIDTH, color)
            }),
        }
    }
}
