//! `docs/app.schema.json` describes an application model and is generated from the types.
//! `IOSCAPE_BLESS=1 cargo test -p ioscape-model --test app_schema` writes it anew.

use std::fs;
use std::path::Path;

use ioscape_model::App;

#[test]
fn the_schema_of_models_in_the_docs_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/app.schema.json");
    let schema = schemars::schema_for!(App);
    let generated = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("IOSCAPE_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, &generated).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == generated,
        "docs/app.schema.json is stale: run\n  \
         IOSCAPE_BLESS=1 cargo test -p ioscape-model --test app_schema"
    );
}
