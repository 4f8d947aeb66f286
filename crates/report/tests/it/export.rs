//! The exports of a small record, against what they should be.

use std::collections::BTreeSet;
use std::path::Path;

use ioscape_model::{Line, Record, Workload};
use ioscape_report::export::{self, Table, Values};

const RECORD: &str = include_str!("export/record.jsonl");
const FORMATS: &str = include_str!("../../../../docs/formats.md");

fn record() -> Record {
    Record::read(RECORD.as_bytes()).unwrap()
}

/// `IOSCAPE_BLESS=1` writes what was found, after a change that is meant.
#[track_caller]
fn is_as_ever(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/export").join(name);
    if std::env::var_os("IOSCAPE_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap(), "{name}");
}

#[test]
fn tables_are_as_ever() {
    let record = record();
    let estimates = export::estimates(&record).csv();
    is_as_ever("estimates.csv", &estimates);
    is_as_ever("visits.csv", &export::visits(&record).csv());
}

#[test]
fn the_document_and_the_metrics_are_as_ever() {
    let record = record();
    is_as_ever("record.json", &export::json(&record));
    let metrics = export::openmetrics(&record);
    is_as_ever("metrics.txt", &metrics);
}

#[test]
fn job_files_are_as_ever() {
    let record = record();
    let job = |index: usize| {
        let estimate = &record.estimates[index];
        export::fio::job(&record.header, &estimate.workload, Some(estimate))
    };
    is_as_ever("read-random.fio", &job(0));
    is_as_ever("mixed.fio", &job(1));
    is_as_ever("write-sequential.fio", &job(2));
    is_as_ever("cold-shared.fio", &job(3));
    let text = "depth=8,access=direct,fsync_every=16,rate=1000,arrivals=poisson,process_num=2,\
                size_dist=exponential";
    let other = Workload::parse(text).unwrap();
    let job = export::fio::job(&record.header, &other, None);
    is_as_ever("other.fio", &job);
}

#[test]
fn a_job_file_says_where_fio_means_another_workload() {
    let header = record().header;
    let differs = |text: &str| {
        let job = export::fio::job(&header, &Workload::parse(text).unwrap(), None);
        job.lines().filter(|line| line.starts_with("; differs")).count()
    };
    assert_eq!(differs("read_frac=0.5,seq_frac=0.5"), 1, "its stream is per direction");
    assert_eq!(differs("read_frac=0.5,seq_frac=0.5,seq_scope=direction"), 0);
    assert_eq!(differs("read_frac=1,seq_frac=0.5"), 0);
    assert_eq!(differs("read_frac=0.5,seq_frac=0"), 0);
    assert_eq!(differs("read_frac=0.333,seq_frac=0"), 1, "whole percent");
    assert_eq!(differs("rate=100,seq_frac=0"), 1);
    assert_eq!(differs("read_frac=0.5,seq_frac=0,fsync_every=1"), 1, "it syncs after reads");
    assert_eq!(differs("read_frac=0,seq_frac=0,fsync_every=1"), 0);
    assert_eq!(differs("read_frac=0,seq_frac=0,fsync_every=1,depth=8"), 1, "and too often");
}

#[test]
fn nothing_in_an_export_depends_on_when_or_where_it_is_made() {
    let (one, other) = (record(), record());
    assert_eq!(export::estimates(&one), export::estimates(&other));
    assert_eq!(export::openmetrics(&one), export::openmetrics(&other));
    #[cfg(feature = "parquet")]
    assert_eq!(export::visits(&one).parquet().unwrap(), export::visits(&other).parquet().unwrap());
}

/// `| column | type | …` under the heading of a table.
fn documented(heading: &str) -> Vec<(String, String)> {
    let section = FORMATS.split(heading).nth(1).expect("the heading is there");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let kind = cells[2].to_owned();
        let names = cells[1].split(", ").map(|name| name.trim_matches('`').to_owned());
        names.map(|name| (name, kind.clone())).collect::<Vec<_>>()
    });
    rows.collect()
}

fn columns(table: &Table) -> Vec<(String, String)> {
    let column =
        |column: &export::Column| (column.name.clone(), column.values.type_name().to_owned());
    table.columns.iter().map(column).collect()
}

#[test]
fn every_column_is_documented_with_its_type_and_in_its_place() {
    let shared = documented("\n### Both tables\n");
    let shared: Vec<_> = shared.into_iter().take_while(|(name, _)| name != "visits").collect();
    let whole = |heading: &str| [shared[..17].to_vec(), documented(heading)].concat();
    let record = record();
    let first = |all: Vec<(String, String)>, count: usize| -> Vec<_> {
        all.into_iter().take(count).collect()
    };
    for (heading, table) in [
        ("\n### Estimates\n", export::estimates(&record)),
        ("\n### Visits\n", export::visits(&record)),
    ] {
        let found = columns(&table);
        assert_eq!(first(whole(heading), found.len()), found, "{heading}");
    }
}

#[test]
fn a_table_without_rows_has_all_columns() {
    let mut empty = record();
    empty.points.clear();
    empty.estimates.clear();
    assert_eq!(columns(&export::visits(&empty)), columns(&export::visits(&record())));
    assert_eq!(export::estimates(&empty).csv().lines().count(), 1);
    #[cfg(feature = "parquet")]
    assert!(export::visits(&empty).parquet().unwrap().ends_with(b"PAR1"));
}

#[test]
fn what_is_not_known_is_null_and_never_zero() {
    let record = record();
    let table = export::visits(&record);
    let column = |name: &str| &table.columns.iter().find(|c| c.name == name).unwrap().values;
    let Values::Real(hits) = column("hit_fraction") else { panic!("of another type") };
    assert_eq!(hits.iter().filter(|hit| hit.is_none()).count(), 1);
    let Values::Real(times) = column("write_seq_mean_s") else { panic!("of another type") };
    assert_eq!(times.iter().flatten().count(), 1, "only one workload writes in sequence");
    let Values::Integer(dirty) = column("dirty_bytes") else { panic!("of another type") };
    assert_eq!(dirty[0], Some(0), "a zero that was counted stays");
}

#[test]
fn every_object_of_the_document_is_a_line_of_a_record() {
    let document: serde_json::Value = serde_json::from_str(&export::json(&record())).unwrap();
    assert_eq!(document["schema"], "docs/record.schema.json");
    let mut count = 0;
    for (name, value) in document.as_object().unwrap() {
        let lines = match value {
            serde_json::Value::Array(lines) => lines.clone(),
            serde_json::Value::Object(_) => vec![value.clone()],
            _ => vec![],
        };
        for line in lines {
            let read: Line = serde_json::from_value(line).unwrap_or_else(|e| panic!("{name}: {e}"));
            drop(read);
            count += 1;
        }
    }
    assert_eq!(count, RECORD.lines().count(), "nothing of the record is missing");
}

/// What the `OpenMetrics` text format asks of a document without timestamps and exemplars.
fn check_openmetrics(text: &str) -> Result<usize, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("does not end with # EOF")?;
    let (mut families, mut series) = (BTreeSet::new(), BTreeSet::new());
    let (mut family, mut unit) = (String::new(), String::new());
    for line in body.lines() {
        if let Some(described) = line.strip_prefix("# ") {
            let mut words = described.splitn(3, ' ');
            let (what, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let value = words.next().ok_or(format!("nothing said: {line}"))?;
            if what == "TYPE" {
                if !families.insert(name.to_owned()) {
                    return Err(format!("two families {name}"));
                }
                (family, unit) = (name.to_owned(), String::new());
            }
            match what {
                // node_exporter's textfile collector drops a file that has any type of OpenMetrics alone.
                "TYPE" if value == "gauge" => {}
                "UNIT" => value.clone_into(&mut unit),
                "HELP" => {}
                _ => return Err(format!("what is this: {line}")),
            }
            if name != family || !family.ends_with(&unit) {
                return Err(format!("out of place: {line}"));
            }
            continue;
        }
        let name_ends = line.find(['{', ' ']).ok_or(format!("no value: {line}"))?;
        let (name, rest) = line.split_at(name_ends);
        if name != family {
            return Err(format!("not of {family}: {line}"));
        }
        let (labels, value) = rest.rsplit_once(' ').ok_or(format!("no value: {line}"))?;
        value.parse::<f64>().map_err(|_| format!("no number: {line}"))?;
        if !labels.is_empty() {
            let inner = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            check_labels(inner.ok_or(format!("labels: {line}"))?)?;
        }
        if !series.insert(format!("{name}{labels}")) {
            return Err(format!("twice: {line}"));
        }
    }
    Ok(series.len())
}

fn check_labels(mut rest: &str) -> Result<(), String> {
    loop {
        let (name, after) = rest.split_once("=\"").ok_or(format!("no label: {rest}"))?;
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("no name of a label: {name}"));
        }
        let mut ends = None;
        let mut escaped = false;
        for (at, c) in after.char_indices() {
            match (escaped, c) {
                (true, 'n' | '"' | '\\') => escaped = false,
                (true, _) => return Err(format!("no such escape: {after}")),
                (false, '\\') => escaped = true,
                (false, '"') => {
                    ends = Some(at);
                    break;
                }
                (false, '\n') => return Err("a line break".to_owned()),
                _ => {}
            }
        }
        let after = &after[ends.ok_or("a label does not end")? + 1..];
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(()),
            None => return Err(format!("after a label: {after}")),
        }
    }
}

#[test]
fn the_metrics_keep_to_the_format_whatever_the_record_holds() {
    assert!(check_openmetrics(&export::openmetrics(&record())).unwrap() > 60);
    let mut strange = record();
    strange.header.target.path = "a \"quoted\"\\ path\nof two lines".into();
    strange.regions[1].name = strange.regions[0].name;
    strange.estimates[0].throughput_bytes_per_s.high = f64::INFINITY;
    strange.borders.push(strange.borders[0].clone());
    check_openmetrics(&export::openmetrics(&strange)).unwrap();
    strange.estimates.clear();
    check_openmetrics(&export::openmetrics(&strange)).unwrap();
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let dashboard = include_str!("../../../../docs/dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let metrics = export::openmetrics(&record());
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels {
        let asked = panel["targets"][0]["expr"].as_str().unwrap();
        let name = asked.split('{').next().unwrap();
        assert!(metrics.contains(&format!("# TYPE {name} gauge\n")), "{name}");
    }
    assert!(panels.len() >= 5);
}

#[test]
fn the_checker_notices_what_is_wrong() {
    for wrong in [
        "",
        "a 1\n# EOF\n",
        "# TYPE a gauge\na 1\na 1\n# EOF\n",
        "# TYPE a gauge\na{x=\"\\q\"} 1\n# EOF\n",
        "# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n",
        "# TYPE a gauge\nb 1\n# EOF\n",
        "# TYPE a gauge\na one\n# EOF\n",
        "# TYPE a info\na_info 1\n# EOF\n",
        "# TYPE a gauge\na 1\n# EOF\nmore\n",
    ] {
        assert!(check_openmetrics(wrong).is_err(), "{wrong}");
    }
}
