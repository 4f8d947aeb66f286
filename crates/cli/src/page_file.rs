//! The page of a record as a file: what is on it, where it goes, and what it may replace.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use ioscape_analysis::conclusion::conclude;
use ioscape_analysis::predict::Predictor;
use ioscape_model::{Record, Workload};
use ioscape_report::{Answers, PagePredictor, ReportPage, Summary, ValidationPage, page_mark};

use crate::exit::usage;
use crate::out_file::{self, Existing};

/// How every page begins, how its title ends, and within which part of it that stands.
const PAGE_BEGIN: &str = "<!doctype html>";
const TITLE_END: &str = " · ioscape</title>";
const HEAD_BYTES: u64 = 1 << 20;
/// What names the page of commands that measure.
const REPORT: &str = "--report";
/// Columns of the summary.
pub(crate) const WIDTH: usize = 80;

/// The page of a record, where there are enough workloads for `models` to have been fitted with what
/// they say; and how far that was off, where somebody tried.
pub(crate) fn page(
    path: &Path,
    record: &Record,
    models: Option<&Predictor>,
    check: Option<ValidationPage<'_>>,
) -> String {
    let answer = models.map(|models| |work: &Workload| models.predict("", work));
    let answers = answer.as_ref().map(|answer| Answers::new(answer)).unwrap_or_default();
    let packed = models.map(ioscape_page_predictor::packed);
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let predictor = models.zip(packed.as_ref()).map(|(models, model)| PagePredictor {
        model,
        measured: models.measured(),
        record: &file,
    });
    let conclusion = conclude(record);
    let conclusion = conclusion.as_ref();
    ioscape_report::html(&ReportPage { record, conclusion, answers, predictor, check })
}

/// The summary of a record in characters.
pub(crate) fn summary(path: &Path, record: &Record, color: bool) -> String {
    let (conclusion, file) = (conclude(record), path.to_string_lossy());
    let summary = Summary { record, conclusion: conclusion.as_ref(), file: &file };
    ioscape_report::text(&summary, WIDTH, color)
}

/// What stands where a page is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
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
pub(crate) fn standing(path: &Path, mark: &str) -> Standing {
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
pub(crate) fn refusal(path: &Path, standing: Standing, flag: &str) -> anyhow::Error {
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
/// ours to replace, or nowhere. Of a run that is continued, an earlier page may be there.
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
