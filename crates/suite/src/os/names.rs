//! Opening and closing, creating and deleting: what the filesystem does besides moving data.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use ioscape_engine::error::{Error, Result};
use ioscape_model::{Score, TrialFigure};
use ioscape_stats::median;

use super::timing::Timer;
use crate::benchmark::{count, seconds};
use crate::site::Site;

/// 1990's kilobyte.
const KILOBYTE: usize = 1024;
/// The sweep that finds a step: to twice the size at which `SunOS` 4.0.3 had its own.
const SWEPT_KB: usize = 16;
/// What figures of the sweep are called, before the size.
const SWEEP: &str = "create-delete sweep ";
/// A step is a time this many times the one before, and stays.
const STEP: f64 = 3.0;
/// One time beyond it could be a disturbance.
const BEYOND_MIN: usize = 2;
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
            figures.push(count(&format!("{name}: device writes"), per_call, "per file"));
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
/// shortest of all trials, by size in KB. A single time may be disturbed either way: a step is one
/// from a time to the next, and also from the median up to it to the median beyond.
fn step_in(times_s: &[(usize, f64)]) -> Option<(usize, f64)> {
    (1..times_s.len()).find_map(|place| {
        let (upto, beyond) = times_s.split_at(place);
        let (size, before_s) = upto[place - 1];
        let usual = |times_s: &[(usize, f64)]| median(times_s.iter().map(|(_, time_s)| *time_s));
        let factor = usual(beyond)? / usual(upto)?;
        let rises = beyond[0].1 >= STEP * before_s && factor >= STEP;
        (rises && beyond.len() >= BEYOND_MIN).then_some((size, factor))
    })
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
        assert!((factor - 0.8 / 0.0715).abs() < 1e-9);
        assert_eq!(step_in(&sunos[..8]), None);
        assert_eq!(step_in(&sweep(|size| if size == 5 { 0.8 } else { 0.07 })), None);
        assert_eq!(step_in(&[]), None);
    }

    #[test]
    fn times_that_scatter_are_no_step() {
        // Of a machine that others were using, µs: 15 KB takes four times as long as 14 KB, and
        // 16 KB twice as long, but no longer than many of the smaller files.
        let scattered = [
            26.5, 26.4, 16.1, 25.8, 19.3, 51.2, 26.9, 51.6, 20.5, 31.4, 28.1, 17.8, 47.2, 13.2,
            59.2, 28.9,
        ];
        let times_s: Vec<_> = (1..).zip(scattered.map(|time_us| time_us * 1e-6)).collect();
        assert_eq!(step_in(&times_s), None);
        let last_only: Vec<_> = (1..).zip([26e-6, 27e-6, 26e-6, 900e-6]).collect();
        assert_eq!(step_in(&last_only), None, "one time is no step");
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
