//! `docs/record-format.md` names whatever a record may hold: every kind of line with its fields, every
//! code, role, method and reason. The schema, which follows from the types, is what it is held
//! against.

use std::path::Path;

use serde_json::Value;

fn page_and_schema() -> (String, Value) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = std::fs::read_to_string(docs.join("record-format.md")).expect("the page is there");
    let schema = std::fs::read_to_string(docs.join("record.schema.json")).expect("it is there");
    (page, serde_json::from_str(&schema).expect("the schema is JSON"))
}

/// The names of an object's properties.
fn properties(schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object();
    properties.into_iter().flat_map(|all| all.keys().cloned()).collect()
}

/// The values of an enumeration, as they are written.
fn values(schema: &Value) -> Vec<String> {
    let plain = schema["enum"].as_array().into_iter().flatten();
    let described = schema["oneOf"].as_array().into_iter().flatten();
    let all = plain.chain(described.map(|one| &one["const"]));
    all.filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

#[test]
fn the_page_about_the_format_names_everything_that_a_line_may_hold() {
    let (page, schema) = page_and_schema();
    let mut names: Vec<String> = Vec::new();
    let lines = schema["oneOf"].as_array().expect("a line is one of its kinds");
    assert!(lines.len() >= 11, "{} kinds of lines", lines.len());
    for line in lines {
        names.extend(properties(line));
        names.extend(line["properties"]["kind"]["const"].as_str().map(str::to_owned));
    }
    for part in ["Code", "Role", "Method", "EndReason", "Severity", "Curve"] {
        let found = values(&schema["$defs"][part]);
        assert!(!found.is_empty(), "{part} has no values");
        names.extend(found);
    }
    let missing: Vec<&String> =
        names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/record-format.md does not say what these are: {missing:?}");
}
