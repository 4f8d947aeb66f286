//! An external merge sort, one of the two applications that Chen and Patterson (1994, Fig. 3) held
//! their workload model against: four files, 48 MB in all, of 100-byte records are read through a
//! small memory into sorted runs, and the runs merged into one file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ioscape_engine::error::{Error, Result};
use ioscape_model::TrialFigure;
use rand::Rng;

use crate::benchmark::{Benchmark, Turn, bytes_per_s, seconds};
use crate::handle::Handle;
use crate::meter::Meter;
use crate::site::{Site, chance};

const INPUTS: u32 = 4;
const TOTAL_BYTES: f64 = 48e6;
const RECORD_BYTES: usize = 100;
const KEY_BYTES: usize = 10;
/// A run fills the memory: a twelfth of the data.
const RUNS: usize = 12;
/// Read and written at a time: whole records, about 16 KiB.
const BLOCK_BYTES: usize = 163 * RECORD_BYTES;

/// The benchmark.
#[derive(Debug, Default)]
pub struct Sort {
    input_bytes: usize,
}

/// Size of each input: whole blocks.
fn input_bytes(site: &Site) -> usize {
    let each = (TOTAL_BYTES * site.settings.scale) as usize / INPUTS as usize;
    (each / BLOCK_BYTES).max(1) * BLOCK_BYTES
}

impl Benchmark for Sort {
    fn room_bytes(&self, site: &Site) -> u64 {
        3 * u64::from(INPUTS) * input_bytes(site) as u64
    }

    fn prepare(&mut self, site: &mut Site) -> Result<()> {
        self.input_bytes = input_bytes(site);
        for number in 0..INPUTS {
            let mut random = chance(u64::from(number), 0, 1);
            let path = site.at(&format!("input{number}"));
            let mut file = Handle::create(&mut site.meter, &path, number)?;
            let mut block = vec![0; BLOCK_BYTES];
            for _ in 0..self.input_bytes / BLOCK_BYTES {
                random.fill_bytes(&mut block);
                file.write(&mut site.meter, &block)?;
            }
            file.sync_data(&mut site.meter)?;
        }
        Ok(())
    }

    fn trial(&mut self, site: &mut Site, _: Turn) -> Result<Vec<TrialFigure>> {
        site.meter.begin();
        let runs = self.make_runs(site)?;
        let runs_s = site.meter.end();
        site.meter.begin();
        merge(site, runs)?;
        let merge_s = site.meter.end();
        for name in (0..runs).map(|run| format!("run{run}")).chain(["sorted".to_owned()]) {
            let path = site.at(&name);
            std::fs::remove_file(&path).map_err(|error| Error::path("remove", &path, error))?;
        }
        // Each byte is read and written twice.
        let moved = 4.0 * f64::from(INPUTS) * self.input_bytes as f64;
        Ok(vec![
            seconds("make runs", runs_s),
            seconds("merge", merge_s),
            seconds("total", runs_s + merge_s),
            bytes_per_s("data rate", moved / (runs_s + merge_s)),
        ])
    }
}

impl Sort {
    /// Sorts as much as fits memory at a time; gives the number of runs.
    fn make_runs(&self, site: &mut Site) -> Result<u32> {
        let memory = (INPUTS as usize * self.input_bytes / RUNS / BLOCK_BYTES).max(1) * BLOCK_BYTES;
        let mut data: Vec<u8> = Vec::with_capacity(memory);
        let mut block = vec![0; BLOCK_BYTES];
        let mut runs = 0;
        for number in 0..INPUTS {
            let path = site.at(&format!("input{number}"));
            let mut file = Handle::read_only(&mut site.meter, &path, number)?;
            for _ in 0..self.input_bytes / BLOCK_BYTES {
                file.read_exact(&mut site.meter, &mut block)?;
                data.extend_from_slice(&block);
                if data.len() >= memory {
                    write_run(site, &mut data, runs)?;
                    runs += 1;
                }
            }
            file.close(&mut site.meter)?;
        }
        if !data.is_empty() {
            write_run(site, &mut data, runs)?;
            runs += 1;
        }
        Ok(runs)
    }
}

fn write_run(site: &mut Site, data: &mut Vec<u8>, number: u32) -> Result<()> {
    let mut records: Vec<&[u8]> = data.chunks(RECORD_BYTES).collect();
    records.sort_unstable_by_key(|record| &record[..KEY_BYTES]);
    let path = site.at(&format!("run{number}"));
    let mut out = Out::create(site, &path, INPUTS + number)?;
    for record in records {
        out.put(&mut site.meter, record)?;
    }
    out.close(&mut site.meter)?;
    data.clear();
    Ok(())
}

fn merge(site: &mut Site, runs: u32) -> Result<()> {
    let mut sources = Vec::new();
    let mut first = BinaryHeap::new();
    for number in 0..runs {
        let path = site.at(&format!("run{number}"));
        let file = Handle::read_only(&mut site.meter, &path, INPUTS + number)?;
        let mut source = Source { file, buffer: vec![0; BLOCK_BYTES], filled: 0, at: 0 };
        if let Some(record) = source.next(&mut site.meter)? {
            first.push(Reverse((record, number)));
        }
        sources.push(source);
    }
    let path = site.at("sorted");
    let mut out = Out::create(site, &path, INPUTS + runs)?;
    while let Some(Reverse((record, number))) = first.pop() {
        out.put(&mut site.meter, &record)?;
        if let Some(record) = sources[number as usize].next(&mut site.meter)? {
            first.push(Reverse((record, number)));
        }
    }
    out.close(&mut site.meter)
}

type Record = [u8; RECORD_BYTES];

/// Records out of a run.
struct Source {
    file: Handle,
    buffer: Vec<u8>,
    filled: usize,
    at: usize,
}

impl Source {
    fn next(&mut self, meter: &mut Meter) -> Result<Option<Record>> {
        if self.at == self.filled {
            (self.filled, self.at) = (self.file.read(meter, &mut self.buffer)?, 0);
            if self.filled == 0 {
                return Ok(None);
            }
        }
        let record = self.buffer[self.at..].first_chunk::<RECORD_BYTES>().copied();
        self.at += RECORD_BYTES;
        Ok(record)
    }
}

/// Records into a file.
struct Out {
    file: Handle,
    buffer: Vec<u8>,
}

impl Out {
    fn create(site: &mut Site, path: &std::path::Path, number: u32) -> Result<Self> {
        let file = Handle::create(&mut site.meter, path, number)?;
        Ok(Self { file, buffer: Vec::with_capacity(BLOCK_BYTES) })
    }

    fn put(&mut self, meter: &mut Meter, record: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(record);
        if self.buffer.len() >= BLOCK_BYTES { self.flush(meter) } else { Ok(()) }
    }

    fn flush(&mut self, meter: &mut Meter) -> Result<()> {
        self.file.write(meter, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn close(mut self, meter: &mut Meter) -> Result<()> {
        if !self.buffer.is_empty() {
            self.flush(meter)?;
        }
        self.file.close(meter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::site_with;
    use ioscape_model::SuiteSettings;

    #[test]
    fn what_comes_out_is_sorted_and_is_what_went_in() {
        let settings = SuiteSettings { scale: 0.02, ..SuiteSettings::default() };
        let (_directory, mut site) = site_with(&settings);
        let mut sort = Sort::default();
        sort.prepare(&mut site).unwrap();
        site.renew(true);
        site.meter.begin();
        let runs = sort.make_runs(&mut site).unwrap();
        assert!((10..=16).contains(&runs), "{runs} runs");
        merge(&mut site, runs).unwrap();
        site.meter.end();
        let records = |name: &str| -> Vec<Vec<u8>> {
            let text = std::fs::read(site.at(name)).unwrap();
            text.chunks(RECORD_BYTES).map(<[u8]>::to_vec).collect()
        };
        let sorted = records("sorted");
        assert!(sorted.is_sorted_by_key(|record| record[..KEY_BYTES].to_vec()));
        let mut given: Vec<Vec<u8>> =
            (0..INPUTS).flat_map(|number| records(&format!("input{number}"))).collect();
        let mut found = sorted;
        given.sort();
        found.sort();
        assert!(given == found);
        let share = site.meter.share().unwrap();
        let total = u64::from(INPUTS) * sort.input_bytes as u64;
        assert_eq!(share.written_bytes, 2 * total);
        assert_eq!(share.read_bytes, 2 * total);
        // Files one after the other, each from its start to its end.
        let requests = share.reads + share.writes;
        assert!(share.sequential as f64 > 0.8 * requests as f64, "{share:?}");
    }
}
