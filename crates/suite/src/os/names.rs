//! Opening and closing, creating and deleting: what the filesystem does besides moving data.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use ioscape_engine::error::{Error, Result};
use ioscape_model::{Score, TrialFigure};

use super::timing::Timer;
use crate::benchmark::{count, seconds};
use crate::site::Site;

/// 1990's kilobyte.
const KILOBYTE: usize = 1024;
/// The sweep that finds a step: to twice the size at which `SunOS` 4.0.3 had its own.
const SWEPT_KB: usize = 16;
/// What figures of the sweep are called, before the size.
const SWEEP: &str = "create-delete sweep ";
/// A step is a time this many times the one before.
const STEP: f64 = 3.0;
/// Depths at which a file is opened.
const DEPTHS: [(&str, &str); 3] = [
    ("open-close foo", "foo"),
    ("open-close a/b/c/foo", "a/b/c/foo"),
    ("open-close a/b/c/d/e/f/g/foo", "a/b/c/d/e/f/g/foo"),
];

/// Makes the files that are opened.
pub(super) fn prepare(site: &Site) -> Result<()> {
    let directory = site.at("names");
    let failed = |error| Error::path("create", &directory, error);
    fs::create_dir_all(directory.join("a/b/c/d/e/f/g")).map_err(failed)?;
    for (_, name) in DEPTHS {
        fs::write(directory.join(name), b"").map_err(failed)?;
    }
    Ok(())
}

/// All of them.
pub(super) fn figures(timer: &Timer, site: &Site) -> Result<Vec<TrialFigure>> {
    let directory = site.at("names");
    let mut figures = Vec::new();
    for (name, path) in DEPTHS {
        // The path from the target is as long for all; what differs is the depth below.
        let path = directory.join(path);
        let timed = timer.time(&site.meter, || {
            File::open(&path).map(drop).map_err(|error| Error::path("open", &path, error))
        })?;
        figures.push(seconds(name, timed.per_call_s));
    }
    let path = directory.join("temporary");
    for (name, length, synced) in [
        ("create-delete no data", 0, false),
        ("create-delete 10 KB", 10 * KILOBYTE, false),
        ("create-delete 100 KB", 100 * KILOBYTE, false),
        ("create-delete 10 KB, synced", 10 * KILOBYTE, true),
    ] {
        let before = device_writes(site);
        let timed = timer.time(&site.meter, || create_delete(&path, length, synced))?;
        figures.push(seconds(name, timed.per_call_s));
        if let Some((before, after)) = before.zip(device_writes(site)) {
            let per_call = (after - before) as f64 / timed.calls as f64;
            figures.push(count(&format!("{name}: device writes"), per_call, "each"));
        }
    }
    let short = timer.shortened(0.25);
    let mut swept_s = Vec::new();
    for length in 0..=SWEPT_KB {
        let once = || create_delete(&path, length * KILOBYTE, false);
        swept_s.push(short.time(&site.meter, once)?.per_call_s);
    }
    for (length, time_s) in swept_s.iter().enumerate().skip(1) {
        figures.push(seconds(&format!("{SWEEP}{length} KB"), *time_s));
    }
    Ok(figures)
}

/// The life of a temporary file: created, written, closed; opened, read, closed; deleted.
fn create_delete(path: &Path, length: usize, synced: bool) -> Result<()> {
    const LARGEST: usize = 100 * KILOBYTE;
    static ZEROS: [u8; LARGEST] = [0; LARGEST];
    let failed = |operation| move |error| Error::path(operation, path, error);
    let mut file = File::create(path).map_err(failed("create"))?;
    if length > 0 {
        file.write_all(&ZEROS[..length]).map_err(failed("write"))?;
    }
    if synced {
        file.sync_all().map_err(failed("sync"))?;
    }
    drop(file);
    let mut file = File::open(path).map_err(failed("open"))?;
    let mut buffer = [0; 16 * KILOBYTE];
    while file.read(&mut buffer).map_err(failed("read"))? > 0 {}
    drop(file);
    fs::remove_file(path).map_err(failed("remove"))
}

/// Writes that the target's device has done so far, of whomever.
fn device_writes(site: &Site) -> Option<u64> {
    const WRITES: usize = 4;
    let device = site.directory().describe().device?;
    let text = fs::read_to_string(format!("/sys/class/block/{device}/stat")).ok()?;
    text.split_whitespace().nth(WRITES)?.parse().ok()
}

/// The largest size before the first step, and by how much the time rises there; times are the
/// shortest of all trials, by size in KB. What rises once and falls again is a disturbance.
fn step_in(times_s: &[(usize, f64)]) -> Option<(usize, f64)> {
    let rises = |(place, pair): (usize, &[(usize, f64)])| {
        let (size, before_s) = pair[0];
        let stays = times_s[place + 1..].iter().all(|(_, time_s)| time_s / before_s >= STEP / 2.0);
        let factor = pair[1].1 / before_s;
        (factor >= STEP && stays).then_some((size, factor))
    };
    times_s.windows(2).enumerate().find_map(rises)
}

/// The step in the sweep of a target: the size in KB beyond which creating and deleting takes at
/// least three times as long, and by how much longer it takes.
pub fn step(scores: &[Score], target: u32) -> Option<(usize, f64)> {
    let mut times_s: Vec<(usize, f64)> = scores
        .iter()
        .filter(|score| score.target == target)
        .filter_map(|score| {
            let size = score.name.strip_prefix(SWEEP)?.strip_suffix(" KB")?.parse().ok()?;
            Some((size, score.min))
        })
        .collect();
    times_s.sort_unstable_by_key(|(size, _)| *size);
    step_in(&times_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_where_it_is() {
        // SunOS 4.0.3: 60 to 80 ms up to 8 KB, about 800 ms from 9 KB on.
        let sweep = |time_s: fn(usize) -> f64| -> Vec<(usize, f64)> {
            (1..=SWEPT_KB).map(|size| (size, time_s(size))).collect()
        };
        let sunos = sweep(|size| if size <= 8 { 0.067 + 0.001 * size as f64 } else { 0.8 });
        let (size, factor) = step_in(&sunos).unwrap();
        assert_eq!(size, 8);
        assert!((factor - 0.8 / 0.075).abs() < 1e-9);
        assert_eq!(step_in(&sunos[..8]), None);
        assert_eq!(step_in(&sweep(|size| if size == 5 { 0.8 } else { 0.07 })), None);
        assert_eq!(step_in(&[]), None);
    }

    #[test]
    fn a_temporary_file_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        for (length, synced) in [(0, false), (100 * KILOBYTE, true)] {
            create_delete(&path, length, synced).unwrap();
            assert!(!path.exists());
        }
    }
}
