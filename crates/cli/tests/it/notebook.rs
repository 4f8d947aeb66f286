//! The notebook in `docs/notebook` reads what this build writes. Runs where a Python with pandas and
//! matplotlib is: beside the build as `.ci/run` puts it there, or the system's.

use std::path::Path;
use std::process::Command;

use crate::export::python;
use crate::maps::{self, HDD};
use crate::workdir::record;

/// All code of the notebook, cell after cell.
fn code() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notebook/landscape.ipynb");
    let text = std::fs::read_to_string(path).unwrap();
    let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = notebook["cells"].as_array().unwrap();
    let lines = cells.iter().filter(|cell| cell["cell_type"] == "code").flat_map(|cell| {
        let lines = cell["source"].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap()).chain(["\n"])
    });
    lines.collect()
}

#[test]
fn the_notebook_reads_a_record_and_draws_its_landscape() {
    let Some(python) = python("pandas, matplotlib") else { return };
    let work = maps::beside(&HDD);
    let mut command = Command::new(python);
    command.current_dir(work.path(".")).env("MPLBACKEND", "Agg").env("RECORD", "r.jsonl");
    let output = command.args(["-c", &code()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = record(&work.path("r.jsonl"));
    let expected = format!(
        "revision {}: {} workloads, {} borders",
        record.map.unwrap().revision,
        record.estimates.len(),
        record.borders.len()
    );
    assert!(said.contains(&expected), "{expected}: {said}");
    let picture = std::fs::read(work.path("landscape.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000);
}
