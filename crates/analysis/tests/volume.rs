//! Maps of the corpus of a volume with known limits: 3000 requests and 125 MB per second each way.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read};

use flate2::read::GzDecoder;
use ioscape_analysis::model::Training;
use ioscape_analysis::predict::Predictor;
use ioscape_model::line::ParameterValue;
use ioscape_model::{Record, Workload};
use ioscape_stats::median;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn unpacked(file: &str) -> Result<GzDecoder<File>> {
    Ok(GzDecoder::new(File::open(format!("{}/corpus/{file}", env!("CARGO_MANIFEST_DIR")))?))
}

fn map(file: &str) -> Result<Record> {
    Ok(Record::read(BufReader::new(unpacked(file)?))?)
}

/// Fits the law to the direct visits of a map.
fn parameters(file: &str) -> Result<BTreeMap<String, ParameterValue>> {
    let training = Training::of_device(&map(file)?).ok_or("no device layer")?;
    Ok(Predictor::fit(training)?.models()[0].parameters())
}

#[test]
fn the_limits_of_a_volume_are_found() -> Result<()> {
    let first = parameters("ext4-volume/map-10m-a.jsonl.gz")?;
    let second = parameters("ext4-volume-xeon/map-10m-a.jsonl.gz")?;
    for found in [&first, &second] {
        for (limit, truth) in
            [("storage_requests_per_s", 3000.0), ("storage_read_bytes_per_s", 125e6)]
        {
            let over = found[limit].value / truth;
            assert!((over - 1.0).abs() < 0.02, "{limit} {over}");
        }
        // Each direction has limits of its own: 1 would be shared ones.
        let shared = found["storage_shared"].value;
        assert!(shared < 0.1, "{shared}");
    }
    // The other map has hardly any visit that writes as much.
    let written = first["storage_write_bytes_per_s"].value / 125e6;
    assert!((written - 1.0).abs() < 0.05, "{written}");
    Ok(())
}

#[test]
fn cold_reads_wait_for_what_is_read_in_vain() -> Result<()> {
    let record = map("ext4-volume-xeon/map-10m-a.jsonl.gz")?;
    let predictor = Predictor::fit(Training::from_record(&record))?;
    let mut lists = String::new();
    unpacked("ext4-volume-xeon/measured.tsv.gz")?.read_to_string(&mut lists)?;
    let mut off = Vec::new();
    for line in lists.lines().filter(|line| line.contains("state=cold")) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (work, bytes_per_s) = (Workload::parse(columns[4])?, columns[5].parse::<f64>()?);
        let said = predictor.models()[0].predict(&work).ok_or("no answer")?.ln_throughput;
        off.push((said - bytes_per_s.ln()).abs());
    }
    assert_eq!(off.len(), 80);
    // 0.10; without what is read in vain 0.76.
    let median = median(off).ok_or("no workload")?;
    assert!(median < 0.2, "{median}");
    Ok(())
}
