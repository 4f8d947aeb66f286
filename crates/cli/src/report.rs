//! `ioscape report`: renders a record again.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ioscape_analysis::model::Training;
use ioscape_analysis::predict::Predictor;
use ioscape_model::{Method, Record, Workload};
use ioscape_report::{Answers, PagePredictor, ReportPage, ValidationPage};

use crate::args::{FormatArg, ReportArgs};
use crate::exit::{Exit, usage};
use crate::{answer, compare, journal, say, validate};

/// How every page begins, how its title ends, and within which part of it that stands.
const PAGE_BEGIN: &str = "<!doctype html>";
const TITLE_END: &str = " · ioscape</title>";
const HEAD_BYTES: u64 = 1 << 20;
/// Columns of the summary.
pub(crate) const WIDTH: usize = 80;

/// Renders a record, with the validation of it where that is named too; or several, side by side.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let subject = Subject::open(&args.records)?;
    let out = match (args.format, &args.out) {
        (FormatArg::Text, None) => {
            let color = crate::is_colourful();
            answer(&subject.text(color)?);
            return Ok(Exit::Fine);
        }
        (_, Some(out)) => out.clone(),
        (FormatArg::Html, None) => subject.page_path(),
    };
    if args.records.contains(&out) {
        return Err(usage(format!("{} is the record: name another --out", out.display())));
    }
    let is_ours = args.format == FormatArg::Html && is_page(&out);
    if out.is_file() && !is_ours {
        let shown = out.display();
        let text = match args.format {
            FormatArg::Html => format!("{shown} exists and is no page of an earlier report"),
            FormatArg::Text => format!("{shown} exists"),
        };
        return Err(usage(format!("{text}: name another --out")));
    }
    let text = match args.format {
        FormatArg::Html => subject.page()?,
        FormatArg::Text => subject.text(false)?,
    };
    fs::write(&out, text).with_context(|| format!("cannot write {}", out.display()))?;
    say(&format!("report  {}", out.display()));
    Ok(Exit::Fine)
}

/// What a report is about.
enum Subject<'a> {
    /// One system, with a validation where there was one.
    One { path: &'a Path, record: Box<Record>, trial: Option<Box<Record>> },
    /// Several, the first one the baseline.
    Several(Vec<PathBuf>),
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
            (2.., 0) => Ok(Self::Several(paths.to_vec())),
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
            Self::Several(paths) => {
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

    fn page(&self) -> anyhow::Result<String> {
        match self {
            Self::One { path, record, trial } => {
                let models = Predictor::fit(Training::of(record)).ok();
                page(path, record, models.as_ref(), trial.as_deref())
            }
            Self::Several(paths) => compare::rendered(paths, &ioscape_report::comparison_html),
        }
    }

    fn text(&self, color: bool) -> anyhow::Result<String> {
        match self {
            Self::One { path, record, trial } => {
                let file = path.to_string_lossy();
                let text = ioscape_report::text(record, &file, WIDTH, color);
                let Some(trial) = trial else { return Ok(text) };
                let validation = validate::scored(&file, None, record, trial)?;
                let page =
                    ValidationPage { record, trial, validation: &validation, single_points: &[] };
                Ok(text + "\n" + &ioscape_report::validation_text(&page, WIDTH, color))
            }
            Self::Several(paths) => compare::rendered(paths, &|page| {
                ioscape_report::comparison_text(page, WIDTH, color)
            }),
        }
    }
}

/// The page of a record: what its models say is worked out here, where there are enough workloads
/// for `models` to have been fitted.
pub(crate) fn page(
    path: &Path,
    record: &Record,
    models: Option<&Predictor>,
    trial: Option<&Record>,
) -> anyhow::Result<String> {
    let answer = models.map(|models| |work: &Workload| models.predict("", work));
    let answers = answer.as_ref().map(|answer| Answers::of(answer)).unwrap_or_default();
    let packed = models.map(ioscape_page_predictor::packed);
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let predictor = models.zip(packed.as_ref()).map(|(models, model)| PagePredictor {
        model,
        measured: models.measured(),
        record: &file,
    });
    let Some(trial) = trial else {
        let page = ReportPage { record, answers, predictor, check: None };
        return Ok(ioscape_report::html(&page));
    };
    let validation = validate::scored(&path.to_string_lossy(), None, record, trial)?;
    let check = ValidationPage { record, trial, validation: &validation, single_points: &[] };
    let page = ReportPage { record, answers, predictor, check: Some(check) };
    Ok(ioscape_report::html(&page))
}

/// Whether a file is a page of ours, which may be written anew, or empty, as a run that was killed
/// may leave one. A pipe is neither, and would be waited for.
fn is_page(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let Ok(file) = fs::File::open(path) else { return false };
    let mut head = Vec::new();
    let read = file.take(HEAD_BYTES).read_to_end(&mut head);
    let head = String::from_utf8_lossy(&head);
    read.is_ok() && (head.is_empty() || head.starts_with(PAGE_BEGIN) && head.contains(TITLE_END))
}

/// What becomes of a report that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// It may be anybody's: another one is refused.
    Kept,
    /// It is of the record that is gone on with, if it is a page of ours.
    Replaced,
}

/// Where the report of a record goes; none where `none` was asked for.
pub(crate) fn path(asked: Option<&Path>, record: &Path) -> Option<PathBuf> {
    match asked {
        Some(file) if file.as_os_str() == "none" => None,
        Some(file) => Some(file.to_owned()),
        None => Some(record.with_extension("html")),
    }
}

/// Before ten minutes are spent: the report must not land on the record, on a file that is not
/// ours to replace, or nowhere.
pub(crate) fn check(asked: Option<&Path>, record: &Path, earlier: Earlier) -> anyhow::Result<()> {
    let Some(report) = path(asked, record) else { return Ok(()) };
    if report == record {
        return Err(usage(format!(
            "{} is the record: name another file by --report, or end --out in .jsonl",
            report.display()
        )));
    }
    let may_be_replaced = earlier == Earlier::Replaced && is_page(&report);
    if report.exists() && !may_be_replaced {
        return Err(usage(format!("{} exists: choose another --report", report.display())));
    }
    let parent = report.parent().filter(|parent| !parent.as_os_str().is_empty());
    if parent.is_some_and(|parent| !parent.is_dir()) {
        return Err(usage(format!("{}: there is no such directory", report.display())));
    }
    Ok(())
}
