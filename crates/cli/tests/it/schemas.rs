//! `docs/answers.schema.json` says for each command what `--json` prints. It is made from answers of
//! the commands themselves and holds for all of them: a field that it does not know, that is missing or
//! that is of another type makes this test fail. `IOSCAPE_BLESS=1` widens it.
//!
//! Answers of simulated devices are the same on every machine. Of others (marked) only the types are
//! held: a kernel that tells less leaves fields out.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::applications::log;
use crate::workdir::Workdir;

/// Objects with more different keys than this, or with keys that are no identifiers, are maps.
const FIELDS_MAX: usize = 60;

const RUN: [&str; 7] = ["run", "sim:nvme", "--budget", "3m", "--quiet", "--report", "none"];

/// A directory with records, a trace and a history for the commands to come.
fn prepared() -> Workdir {
    let work = log();
    let run = |more: &[&str]| drop(work.stdout(&[&RUN[..], more].concat()));
    run(&["--seed", "1", "--out", "one.jsonl"]);
    run(&["--seed", "2", "--out", "two.jsonl"]);
    for (file, more) in [("a.jsonl", "1"), ("b.jsonl", "2"), ("c.jsonl", "3"), ("d.jsonl", "4")] {
        work.stdout(&[
            "measure", "sim:nvme", "-w", "oltp", "--seed", more, "--out", file, "--quiet",
        ]);
        work.stdout(&["history", "add", "kept", file]);
    }
    work.stdout(&["trace", "model", "log.trace", "-o", "app.json"]);
    let brief = ["--repeats", "1", "--out", "s.jsonl", "--quiet"];
    work.stdout(&[&["suite", "iostone-1990", "target"][..], &brief].concat());
    work
}

/// Name in the schema, command line, whether the answer is the same everywhere.
type Asked = (&'static str, &'static [&'static str], bool);

const ASKED: [Asked; 19] = [
    ("run", &["run", "sim:nvme", "--budget", "1m", "--seed", "3", "--out", "r.jsonl"], true),
    ("run", &["run", "sim:hdd", "--quick", "--seed", "3", "--out", "q.jsonl"], true),
    ("run --dry-run", &["run", "sim:nvme", "--dry-run"], true),
    ("measure", &["measure", "sim:nvme", "-w", "oltp", "--seed", "1"], true),
    ("measure", &["measure", "sim:nvme", "-w", "rate=100", "--seed", "1"], true),
    (
        "measure --p99-below",
        &["measure", "sim:nvme", "-w", "read_4k_32", "--p99-below", "1ms", "--seed", "1"],
        true,
    ),
    ("predict", &["predict", "one.jsonl", "-w", "oltp", "-w", "scan"], true),
    ("predict", &["predict", "one.jsonl", "-w", "oltp", "--p99-max", "10ms"], true),
    ("compare", &["compare", "one.jsonl", "two.jsonl"], true),
    ("compare", &["compare", "one.jsonl", "two.jsonl", "--price", "A=100,B=200"], true),
    (
        "validate",
        &["validate", "one.jsonl", "--workloads", "10", "--seed", "1", "--report", "none"],
        true,
    ),
    (
        "validate",
        &["validate", "one.jsonl", "--workloads", "10", "--suite", "s.jsonl", "--report", "none"],
        false,
    ),
    ("history show", &["history", "show", "kept"], true),
    ("history check", &["history", "check", "kept", "d.jsonl"], true),
    ("suite list", &["suite", "list"], true),
    ("trace caches", &["trace", "caches", "log.trace", "--memory", "4MiB,16MiB"], true),
    ("trace export", &["trace", "export", "log.trace", "--format", "fio", "-o", "log.fio"], true),
    ("replay", &["replay", "log.trace", "target", "--speed", "max", "--out", "p.jsonl"], false),
    ("doctor", &["doctor", "target"], false),
];

#[test]
fn every_answer_is_of_the_form_that_the_schema_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/answers.schema.json");
    let blesses = std::env::var_os("IOSCAPE_BLESS").is_some_and(|value| value == "1");
    let committed: Value = match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).unwrap(),
        Err(_) if blesses => Value::Null,
        Err(error) => panic!("docs/answers.schema.json: {error}"),
    };
    let mut known = committed["$defs"].as_object().cloned().unwrap_or_default();
    let work = prepared();
    let mut faults = Vec::new();
    for (name, command, is_same_everywhere) in ASKED {
        let mut command = command.to_vec();
        command.push("--json");
        if matches!(command[0], "run" | "measure" | "validate" | "replay") {
            command.push("--quiet");
        }
        let turn = (!is_same_everywhere).then(Workdir::alone);
        let output = work.output(&command);
        drop(turn);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command:?}: {output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["format_version"], 1, "{command:?}");
        let shape = shape(&answer);
        match known.get(name) {
            Some(schema) if !blesses => {
                differences(schema, &answer, name, is_same_everywhere, &mut faults);
            }
            Some(schema) => drop(known.insert(name.to_owned(), merged(schema, &shape))),
            None if blesses => drop(known.insert(name.to_owned(), shape)),
            None => faults.push(format!("{name}: the schema has no such answer")),
        }
    }
    if blesses {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Answers of ioscape",
            "description": "What --json prints, by command. Fields may be added under the same \
                format_version. Made from answers: a field that is not required may be absent. \
                `trace show` and `trace model` print an application model (app.schema.json).",
            "$defs": known,
        });
        std::fs::write(&path, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
    }
    assert!(
        faults.is_empty(),
        "docs/answers.schema.json does not hold for what is printed:\n{}\n\
         IOSCAPE_BLESS=1 cargo test -p ioscape --test it schemas  widens it",
        faults.join("\n")
    );
}

/// The schema that this value alone would have.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!({ "type": "null" }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(_) => json!({ "type": "number" }),
        Value::String(_) => json!({ "type": "string" }),
        Value::Array(values) => {
            let items = values.iter().map(shape).reduce(|one, other| merged(&one, &other));
            items.map_or(
                json!({ "type": "array" }),
                |items| json!({ "type": "array", "items": items }),
            )
        }
        Value::Object(fields) if is_map(fields.keys()) => {
            let of_all = fields.values().map(shape).reduce(|one, other| merged(&one, &other));
            json!({ "type": "object", "additionalProperties": of_all })
        }
        Value::Object(fields) => {
            let properties: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect();
            let required: Vec<&String> = fields.keys().collect();
            json!({ "type": "object", "properties": properties, "required": required })
        }
    }
}

fn is_map<'a>(keys: impl Iterator<Item = &'a String>) -> bool {
    let keys: Vec<&String> = keys.collect();
    let is_name = |key: &&String| {
        key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            && !key.starts_with(|c: char| c.is_ascii_digit())
    };
    keys.len() > FIELDS_MAX || !keys.iter().all(is_name)
}

fn types(schema: &Value) -> BTreeSet<String> {
    match &schema["type"] {
        Value::String(one) => BTreeSet::from([one.clone()]),
        Value::Array(all) => all.iter().filter_map(|t| t.as_str().map(str::to_owned)).collect(),
        _ => BTreeSet::new(),
    }
}

/// A schema for every value that fits one of the two.
fn merged(one: &Value, other: &Value) -> Value {
    let all: Vec<String> = types(one).union(&types(other)).cloned().collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), if all.len() == 1 { json!(all[0]) } else { json!(all) });
    for key in ["items", "additionalProperties"] {
        let both = [&one[key], &other[key]].into_iter().filter(|schema| schema.is_object());
        if let Some(schema_of) = both.cloned().reduce(|a, b| merged(&a, &b)) {
            schema.insert(key.to_owned(), schema_of);
        }
    }
    let fields = |schema: &Value| schema["properties"].as_object().cloned();
    if let Some((mut properties, more)) = match (fields(one), fields(other)) {
        (Some(properties), Some(more)) => Some((properties, more)),
        (Some(properties), None) | (None, Some(properties)) => Some((properties, Map::new())),
        (None, None) => None,
    } {
        for (name, schema) in more {
            let joint = properties.get(&name).map(|known| merged(known, &schema));
            properties.insert(name, joint.unwrap_or(schema));
        }
        let required = |schema: &Value| -> Option<BTreeSet<String>> {
            schema["properties"].as_object()?;
            serde_json::from_value(schema["required"].clone()).ok()
        };
        let required = match (required(one), required(other)) {
            (Some(a), Some(b)) => a.intersection(&b).cloned().collect(),
            (a, b) => a.or(b).unwrap_or_default(),
        };
        schema.insert("properties".to_owned(), properties.into());
        schema.insert("required".to_owned(), json!(required));
    }
    Value::Object(schema)
}

/// Where a value is not as the schema says.
fn differences(schema: &Value, value: &Value, at: &str, is_strict: bool, found: &mut Vec<String>) {
    let kind = shape(value)["type"].as_str().unwrap_or_default().to_owned();
    if !types(schema).contains(&kind) {
        let tells_nothing = types(schema) == BTreeSet::from(["null".to_owned()]);
        if is_strict || !(kind == "null" || tells_nothing) {
            found.push(format!("{at}: is {kind}, not {}", schema["type"]));
        }
        return;
    }
    match value {
        Value::Array(values) if schema["items"].is_object() => {
            for value in values {
                differences(&schema["items"], value, &format!("{at}[]"), is_strict, found);
            }
        }
        Value::Array(values) if is_strict && !values.is_empty() => {
            found.push(format!("{at}: nothing is said of what stands in it"));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let at = format!("{at}.{name}");
                match (&schema["properties"][name], &schema["additionalProperties"]) {
                    (known @ Value::Object(_), _) | (Value::Null, known @ Value::Object(_)) => {
                        differences(known, value, &at, is_strict, found);
                    }
                    _ if is_strict => found.push(format!("{at}: is not in the schema")),
                    _ => {}
                }
            }
            let required = schema["required"].as_array().into_iter().flatten();
            let missing =
                required.filter_map(Value::as_str).filter(|name| !fields.contains_key(*name));
            found.extend(
                missing.filter(|_| is_strict).map(|name| format!("{at}.{name}: is missing")),
            );
        }
        _ => {}
    }
}

#[test]
fn a_schema_of_answers_refuses_what_is_not_like_them() {
    let known =
        merged(&shape(&json!({ "a": 1, "b": [1] })), &shape(&json!({ "a": null, "b": [] })));
    let faults = |value: Value| {
        let mut found = Vec::new();
        differences(&known, &value, "x", true, &mut found);
        found.len()
    };
    assert_eq!(faults(json!({ "a": 2.5, "b": [3, 4] })), 0);
    assert_eq!(faults(json!({ "a": null, "b": [] })), 0);
    assert_eq!(faults(json!({ "a": "2.5", "b": [3, "4"] })), 2);
    assert_eq!(faults(json!({ "b": [], "c": 1 })), 2);
    assert_eq!(faults(json!([])), 1);
}
