//! The preflight alone.

use ioscape_test_support::{LoopDevice, Mount, run, skipped};

use crate::workdir::Workdir;

#[test]
fn a_directory_is_examined_and_left_as_it_was() {
    let work = Workdir::new();
    let output = work.output(&["doctor", "target", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let doubts = answer["doubts"].as_array().unwrap();
    let is_serious = doubts.iter().any(|doubt| doubt["severity"] == "serious");
    assert_eq!(output.status.code(), Some(i32::from(is_serious)), "{answer:#}");
    assert_eq!(answer["verdict"] == "misleading", is_serious);
    for doubt in doubts {
        assert!(!doubt["text"].as_str().unwrap().is_empty(), "{doubt}");
        assert!(!doubt["remedy"].as_str().unwrap().is_empty(), "{doubt}");
    }
    assert!(!answer["unknown"].as_array().unwrap().is_empty(), "nobody knows everything");
    assert!(answer["facts"]["sample"]["length_s"].as_f64().unwrap() >= 1.0);
    assert!(answer["facts"]["probe"]["length_bytes"].as_u64().unwrap() > 0);
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
}

#[test]
fn the_answer_for_people_says_what_to_do_and_what_is_not_known() {
    let work = Workdir::new();
    let output = work.output(&["doctor", "target"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.stderr.is_empty());
    assert!(text.contains("What cannot be known from here"), "{text}");
    assert!(text.contains("measurement here"), "{text}");
}

#[test]
fn memory_taken_for_a_disk_is_serious() {
    let work = Workdir::new();
    if !std::path::Path::new("/dev/shm").is_dir() {
        skipped("no /dev/shm");
        return;
    }
    let output = work.output(&["doctor", "/dev/shm", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{answer:#}");
    assert_eq!(answer["doubts"][0]["code"], "memory_filesystem");
}

/// A filesystem made and mounted like this over a loop device raises these doubts, among others.
#[track_caller]
fn check_mounted(filesystem: &str, options: &str, expected: &[&str]) {
    let work = Workdir::new();
    let mounted = match Mount::of_image(&work.target(), filesystem, options) {
        Ok(mounted) => mounted,
        Err(why) => return skipped(why),
    };
    let output = work.output(&["doctor", "target", "--json"]);
    let left = work.left_behind();
    drop(mounted);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let doubts = answer["doubts"].as_array().unwrap();
    let codes: Vec<&str> = doubts.iter().map(|doubt| doubt["code"].as_str().unwrap()).collect();
    for code in expected {
        assert!(codes.contains(code), "{code} is not in {codes:?}");
    }
    assert!(left.iter().all(|path| path.ends_with("lost+found")), "{left:?}");
}

#[test]
fn a_cached_image_synchronous_writes_and_flushes_that_are_swallowed_are_noticed() {
    check_mounted("ext4", "sync", &["caches_below", "mount_options", "border_not_reached"]);
    check_mounted("ext4", "nobarrier", &["caches_below", "flush_suspect"]);
    check_mounted("ext4", "data=journal,strictatime", &["mount_options"]);
}

#[test]
fn a_filesystem_that_compresses_is_noticed() {
    check_mounted("btrfs", "compress-force=zstd", &["copy_on_write", "caches_below"]);
}

#[test]
fn what_a_block_device_carries_is_said() {
    let work = Workdir::new();
    let image = work.path("image");
    std::fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
    run("mkswap", &[image.to_str().unwrap()]).ok();
    let device = match LoopDevice::over(&image, &[]) {
        Ok(device) => device,
        Err(why) => return skipped(why),
    };
    let output = work.output(&["doctor", device.path(), "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["facts"]["target"]["kind"], "block_device", "{answer:#}");
    assert_eq!(answer["facts"]["device"]["contents"][0], "swap space", "{answer:#}");
    let doubts = answer["doubts"].as_array().unwrap();
    let has = |code: &str| doubts.iter().any(|doubt| doubt["code"] == code);
    assert!(has("read_only") && has("never_written"), "{answer:#}");
}

#[test]
fn a_simulated_device_has_nothing_to_doubt() {
    let work = Workdir::new();
    let answer = work.json(&["doctor", "sim:nvme", "--json"]);
    assert_eq!(answer["verdict"], "fine");
    assert!(work.refusal(&["doctor", "sim:abacus"]).contains("try one of"));
}

#[test]
fn what_would_be_refused_as_a_target_is_refused() {
    let work = Workdir::new();
    std::fs::write(work.path("file"), "mine").unwrap();
    assert!(work.refusal(&["doctor", "file"]).contains("regular file"));
    assert!(work.refusal(&["doctor", "/proc"]).contains("makes up"));
}

#[test]
fn every_hazard_has_an_answer_of_a_known_kind() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hazards.md");
    let text = std::fs::read_to_string(page).unwrap();
    let mut next = 1;
    for row in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let Ok(number) = cells[0].parse::<u32>() else { continue };
        assert_eq!(number, next, "{row}");
        assert_eq!(cells.len(), 4, "{row}");
        let kinds: Vec<&str> = cells[2].split(", ").collect();
        assert!(kinds.iter().all(|kind| ["run", "doctor", "record"].contains(kind)), "{row}");
        next += 1;
    }
    assert_eq!(next, 46, "45 hazards are known");
}
