//! `ioscape report`: renders a record again.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use ioscape_analysis::model::Training;
use ioscape_analysis::predict::Predictor;
use ioscape_model::{Method, Record, Workload};
use ioscape_report::{Answers, PagePredictor, ReportPage, ValidationPage, page_mark};

use crate::args::{FormatArg, ReportArgs};
use crate::exit::{Exit, usage};
use crate::out_file::{self, Existing};
use crate::output::{answer, say};
use crate::{compare, journal, validate};

/// How every page begins, how its title ends, and within which part of it that stands.
const PAGE_BEGIN: &str = "<!doctype html>";
const TITLE_END: &str = " · ioscape</title>";
const HEAD_BYTES: u64 = 1 << 20;
/// What names the page of commands that measure.
const REPORT: &str = "--report";
/// Columns of the summary.
pub(crate) const WIDTH: usize = 80;

/// Renders a record, with the validation of it where that is named too; or several, side by side.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let subject = Subject::open(&args.records)?;
    let out = match (args.format, &args.out) {
        (FormatArg::Text, None) => {
            let color = crate::output::is_colourful();
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
                let models = Predictor::fit(Training::of(record)).ok();
                page(path, record, models.as_ref(), trial.as_deref())
            }
            Self::Several { paths, .. } => {
                compare::rendered(paths, &ioscape_report::comparison_html)
            }
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
            Self::Several { paths, .. } => compare::rendered(paths, &|page| {
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

/// What stands where a page is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nothing, or no file: a pipe is not read, it would be waited for.
    Free,
    /// A page of the same records, which may be written anew, or an empty file.
    Ours,
    /// A page of other records.
    OfOthers,
    /// Something else, or what cannot be read.
    Foreign,
}

/// What stands there, by the mark that the page of these records has.
fn standing(path: &Path, mark: &str) -> Standing {
    if !path.is_file() {
        return Standing::Free;
    }
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    match read {
        Err(_) => Standing::Foreign,
        Ok(_) if head.is_empty() => Standing::Ours,
        Ok(_) if !(head.starts_with(PAGE_BEGIN) && head.contains(TITLE_END)) => Standing::Foreign,
        Ok(_) if head.contains(mark) => Standing::Ours,
        Ok(_) => Standing::OfOthers,
    }
}

/// Why what stands there is not replaced; a page of the same records only where none may be.
fn refusal(path: &Path, standing: Standing, flag: &str) -> anyhow::Error {
    let what = match standing {
        Standing::Free | Standing::Ours => "",
        Standing::OfOthers => " and is the page of another record",
        Standing::Foreign => " and is no page of an earlier report",
    };
    usage(format!("{} exists{what}: name another {flag}", path.display()))
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
/// ours to replace, or nowhere. Of a run that is gone on with, an earlier page may be there.
pub(crate) fn check(
    asked: Option<&Path>,
    record: &Path,
    resumed: Option<&Record>,
) -> anyhow::Result<()> {
    let Some(report) = path(asked, record) else { return Ok(()) };
    if report == record {
        return Err(usage(format!(
            "{} is the record: name another file by --report, or end --out in .jsonl",
            report.display()
        )));
    }
    existing(&report, resumed)?;
    out_file::check(&report, REPORT)
}

/// Writes the page of a record that was measured by this command.
pub(crate) fn write(path: &Path, page: &str, resumed: Option<&Record>) -> anyhow::Result<()> {
    out_file::write(path, page.as_bytes(), existing(path, resumed)?, REPORT)
}

fn existing(report: &Path, resumed: Option<&Record>) -> anyhow::Result<Existing> {
    let refused = |standing| Err(refusal(report, standing, REPORT));
    match resumed.map(|record| standing(report, &page_mark([record]))) {
        Some(Standing::Ours) => Ok(Existing::Replaced),
        Some(Standing::Free) => Ok(Existing::Kept),
        Some(standing) => refused(standing),
        None if report.is_file() => refused(Standing::Ours),
        None => Ok(Existing::Kept),
    }
}
