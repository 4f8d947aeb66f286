//! `docs/record.schema.json` describes one line of a record and is generated from the types.
//! `IOSCAPE_BLESS=1 cargo test -p ioscape-model --test schema` writes it anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ioscape_model::Line;
use serde_json::Value;

fn generated() -> String {
    let schema = schemars::schema_for!(Line);
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

#[test]
fn the_schema_in_the_docs_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/record.schema.json");
    if std::env::var_os("IOSCAPE_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, generated()).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == generated(),
        "docs/record.schema.json is stale: run\n  \
         IOSCAPE_BLESS=1 cargo test -p ioscape-model --test schema"
    );
}

#[test]
fn the_old_record_holds_every_kind_of_the_schema() {
    let schema: Value = serde_json::from_str(&generated()).unwrap();
    let kinds: BTreeSet<&str> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["properties"]["kind"]["const"].as_str().unwrap())
        .collect();
    let lines: Vec<Value> = include_str!("records/v1.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let held: BTreeSet<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(held, kinds);
}
