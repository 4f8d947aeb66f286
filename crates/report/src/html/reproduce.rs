//! Every workload with its figures, and what measures it again.

use ioscape_model::units::{show_iops, show_seconds};
use ioscape_model::{Estimate, Record};

use super::script_gzip;
use crate::export::fio;
use crate::figures;
use crate::sample::Samples;

/// A row of the table.
pub(crate) struct ReproduceRow {
    pub(crate) workload: String,
    pub(crate) command: String,
    pub(crate) throughput: String,
    pub(crate) ops: String,
    pub(crate) response: String,
    pub(crate) p99: String,
    pub(crate) cached: String,
    pub(crate) durable: String,
    pub(crate) visits: u32,
    pub(crate) steady: &'static str,
}

/// Every workload, with the command that measures it again.
pub(crate) fn reproduce(record: &Record, samples: &Samples<'_>) -> Vec<ReproduceRow> {
    let target = shell_word(&record.header.target.path);
    let row = |estimate: &Estimate| ReproduceRow {
        workload: estimate.workload.literal(),
        command: format!("ioscape measure {target} -w {}", estimate.workload.literal()),
        throughput: figures::rate(&estimate.throughput_bytes_per_s),
        ops: format!("{} IOPS", show_iops(estimate.ops_per_s.mean)),
        response: show_seconds(estimate.response_time_s.mean),
        p99: show_seconds(estimate.response_time_s.p99),
        cached: figures::percent_or_unknown(estimate.hit_fraction),
        durable: estimate
            .durable_bytes_per_s
            .map_or_else(|| figures::UNKNOWN.to_owned(), ioscape_model::units::show_rate),
        visits: estimate.visits,
        steady: if estimate.steady { "yes" } else { "no" },
    };
    samples.estimates.iter().map(row).collect()
}

/// The fio job of every row, in the order of [`reproduce`]: a list of texts in JSON, packed. Jobs
/// differ in few of their lines; plain, they would be half of the page.
pub(crate) fn jobs(record: &Record, samples: &Samples<'_>) -> String {
    let job = |estimate: &Estimate| fio::job(&record.header, &estimate.workload, None);
    let jobs: Vec<String> = samples.estimates.iter().map(job).collect();
    script_gzip(&serde_json::to_vec(&jobs).expect("it is plain data"))
}

/// A path as a shell takes it: in single quotes unless it is plain.
pub(super) fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine as _};

    use super::*;

    #[test]
    fn the_jobs_are_unpacked_as_they_were() {
        let header = serde_json::json!({
            "format_version": 1, "tool": {"name": "ioscape", "version": "1", "build": ""},
            "run_id": "r", "command_line": [], "seed": 1, "start_time": "", "host": {},
            "target": {"path": "/mnt", "kind": "directory"}, "method": "measure",
            "rules": ioscape_model::Rules::brief(), "ranges": ioscape_model::Ranges::usual(2),
            "budget_s": 1.0, "forecast": null,
        });
        let point = |size_mean: u64| {
            serde_json::json!({
                "kind": "estimate", "workload": {"size_mean": size_mean}, "visits": 1,
                "throughput_bytes_per_s": ioscape_model::Interval::exact(1.0),
                "durable_bytes_per_s": null, "ops_per_s": ioscape_model::Interval::exact(1.0),
                "response_time_s": ioscape_model::ResponseTime::default(), "hit_fraction": null,
                "steady": true, "warnings": [], "revision": 1,
            })
        };
        let map = serde_json::json!({
            "kind": "map", "revision": 1, "provisional": false, "repeatability": null,
            "elapsed_s": 1.0,
        });
        let mut header = header;
        header["kind"] = "header".into();
        let lines = [header, point(4096), point(65536), map].map(|line| format!("{line}\n"));
        let record = Record::read(lines.concat().as_bytes()).unwrap();
        let packed = BASE64_STANDARD.decode(jobs(&record, &Samples::from_record(&record))).unwrap();
        let jobs: Vec<String> =
            serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap();
        let job = |estimate: &Estimate| fio::job(&record.header, &estimate.workload, None);
        assert_eq!(jobs, record.estimates.iter().map(job).collect::<Vec<_>>());
    }

    #[test]
    fn paths_are_quoted_for_the_shell_where_they_must_be() {
        assert_eq!(shell_word("/mnt/data"), "/mnt/data");
        assert_eq!(shell_word("/mnt/my data"), "'/mnt/my data'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
