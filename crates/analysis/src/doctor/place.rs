//! The filesystem: room, mount options, and what the test file said.

use ioscape_model::checkup::{Facts, Probe};
use ioscape_model::units::MIB;
use ioscape_model::{Code, READ_AHEAD_BYTES, Severity, TargetKind, Warning, Words};

/// Less room for test files holds no workload worth the name.
const ROOM_MIN_BYTES: u64 = 64 * MIB;
/// A filesystem this full has to look for free blocks, and finds them in pieces.
const FULL: f64 = 0.9;
/// No medium confirms a write sooner, but for those whose memory survives a power cut.
const FLUSH_MIN_S: f64 = 50e-6;
/// Pieces per MiB of the test file from which on it counts as scattered.
const EXTENTS_PER_MIB: u64 = 1;

pub(super) fn doubts(facts: &Facts) -> Vec<Warning> {
    let mut all: Vec<Warning> = mount_options(facts);
    if facts.target.kind == TargetKind::Directory {
        all.extend(room(facts));
        all.extend(fullness(facts));
        all.extend(border(facts));
    }
    if let Some(probe) = &facts.probe {
        all.extend(
            [flush(probe), direct(facts, probe), compression(facts, probe)].into_iter().flatten(),
        );
        all.extend([scattered(probe), read_ahead(facts, probe)].into_iter().flatten());
    }
    all
}

fn room(facts: &Facts) -> Option<Warning> {
    let room_bytes = facts.target.free_bytes / 2;
    (room_bytes < ROOM_MIN_BYTES).then(|| {
        let text = Words::new("{free_bytes} are free, and test files take half of that at most")
            .figure("free_bytes", facts.target.free_bytes as f64);
        let remedy = "make room, or name a directory on another filesystem";
        Warning::new(Code::NearlyFull, text, remedy).with_severity(Severity::Serious)
    })
}

fn fullness(facts: &Facts) -> Option<Warning> {
    let target = &facts.target;
    let used = 1.0 - target.free_bytes as f64 / (target.size_bytes as f64).max(1.0);
    (used > FULL).then(|| {
        let sentence =
            "{used_share} of the filesystem are taken: new files lie in pieces between the old ones";
        let text = Words::new(sentence).figure("used_share", used);
        Warning::new(Code::NearlyFull, text, "compare only with filesystems as full as this one")
    })
}

fn border(facts: &Facts) -> Option<Warning> {
    let available = facts.host.memory_available_bytes;
    let cache_bytes = facts.host.memory_limit_bytes.map_or(available, |limit| limit.min(available));
    let room_bytes = facts.target.free_bytes / 2;
    let goes_past = |probe: &Probe| {
        probe.direct_align_bytes.is_some_and(|bytes| bytes > 0)
            && probe.direct_is_direct != Some(false)
    };
    let is_device_seen = facts.probe.as_ref().is_some_and(goes_past);
    let (means, severity) = if is_device_seen {
        let means = "a run of three minutes or more also measures the storage behind it, by direct I/O; \
                     where the cache ends is computed, not measured";
        (means, Severity::Note)
    } else {
        ("a run would see the cache and not what is behind it", Severity::Warning)
    };
    (!facts.target.is_in_memory() && room_bytes < cache_bytes).then(|| {
        let text = Words::new(
            "the page cache can hold {cache_bytes}, but test files may only take {room_bytes}: {means}",
        )
        .figure("cache_bytes", cache_bytes as f64)
        .figure("room_bytes", room_bytes as f64)
        .name("means", means);
        let limit_bytes = (room_bytes / 4 / MIB).max(64) * MIB;
        let is_smaller = facts.host.memory_limit_bytes.is_none_or(|limit| limit_bytes < limit);
        let remedy = if is_smaller {
            Words::new("`--memory-limit {limit_mib}M` measures that border")
                .name("limit_mib", limit_bytes / MIB)
                .figure("memory_limit_bytes", limit_bytes as f64)
        } else {
            Words::new("make room for test files of four times the memory limit")
        };
        Warning::new(Code::BorderNotReached, text, remedy).with_severity(severity)
    })
}

fn mount_options(facts: &Facts) -> Vec<Warning> {
    let options: Vec<&str> = facts.target.mount_options.split(',').collect();
    let has = |wanted: &[&str]| options.iter().copied().find(|option| wanted.contains(option));
    let mut all = Vec::new();
    let mut add = |code, severity, option: &str, means: &str, remedy: &str| {
        all.push(super::mounted_with(option, means, remedy, (code, severity)));
    };
    let alike = "compare only with what is mounted alike";
    if let Some(option) = has(&["nobarrier", "barrier=0", "disable_barrier"]) {
        let means = "fsync does not reach the medium, durable rates are not durable";
        let remedy = "mount it with barriers, unless the device's memory survives power cuts";
        add(Code::FlushSuspect, Severity::Warning, option, means, remedy);
    }
    if let Some(option) = has(&["sync"]) {
        let means = "every write waits for the medium, nothing is absorbed by the cache";
        add(Code::MountOptions, Severity::Warning, option, means, alike);
    }
    if let Some(option) = has(&["data=journal"]) {
        add(Code::MountOptions, Severity::Warning, option, "data are written twice", alike);
    }
    if let Some(option) = has(&["dax", "dax=always"]) {
        let means = "there is no page cache between programs and the medium";
        add(Code::MountOptions, Severity::Note, option, means, alike);
    }
    if let Some(option) = has(&["strictatime"]) {
        let means = "programs that read also write access times; the test files are spared it";
        add(Code::MountOptions, Severity::Note, option, means, alike);
    }
    if let Some(option) = has(&["discard"]) {
        let means = "deleting costs I/O of its own; test files are deleted after the last point";
        add(Code::MountOptions, Severity::Note, option, means, alike);
    }
    let quotas = ["usrquota", "grpquota", "prjquota", "uquota", "gquota", "pquota", "quota"];
    if let Some(option) = has(&quotas) {
        let means = "a quota may end before the free space does; a run that meets it stops and keeps \
                     what it has";
        add(Code::NearlyFull, Severity::Note, option, means, "look at yours with `quota`");
    }
    all
}

fn flush(probe: &Probe) -> Option<Warning> {
    let flush_s = probe.flush_s.filter(|flush_s| *flush_s < FLUSH_MIN_S)?;
    let text = Words::new(
        "a page was called durable after {flush_s}: sooner than any medium without protected memory",
    )
    .figure("flush_s", flush_s);
    let remedy = "find out who swallows flushes: the host (cache=unsafe), a RAID controller, the \
                  drive; read durable rates as absorbed ones";
    Some(Warning::new(Code::FlushSuspect, text, remedy))
}

fn direct(facts: &Facts, probe: &Probe) -> Option<Warning> {
    if probe.direct_is_direct == Some(false) {
        let text = format!(
            "direct reads on {} went through the page cache all the same",
            facts.target.filesystem
        );
        let remedy = "leave access=direct out here: it would not mean what it says";
        return Some(Warning::new(Code::DirectNotDirect, text, remedy));
    }
    (probe.direct_align_bytes == Some(0)).then(|| {
        let text = format!("{} offers no direct I/O", facts.target.filesystem);
        let remedy = "buffered requests are measured as usual";
        Warning::new(Code::DirectNotDirect, text, remedy).with_severity(Severity::Note)
    })
}

fn compression(facts: &Facts, probe: &Probe) -> Option<Warning> {
    // The filesystem was asked for it, and a warning says so.
    let is_said = facts.target.compress_option().is_some();
    (probe.compresses == Some(true) && !is_said).then(|| {
        let text = "zeros took less room than they should: this filesystem compresses";
        let remedy = "the test data cannot be compressed; programs' own data may do better";
        Warning::new(Code::CopyOnWrite, text, remedy)
    })
}

fn scattered(probe: &Probe) -> Option<Warning> {
    let extents = probe.extents?;
    (extents > EXTENTS_PER_MIB * probe.length_bytes / MIB).then(|| {
        let text = Words::new("a file of {length_bytes} lies in {extents} pieces")
            .figure("length_bytes", probe.length_bytes as f64)
            .figure("extents", extents as f64);
        let remedy = "sequential requests will not be sequential on the medium: free space is \
                      scattered";
        Warning::new(Code::Placement, text, remedy)
    })
}

fn read_ahead(facts: &Facts, probe: &Probe) -> Option<Warning> {
    let brought_bytes = probe.read_ahead_bytes.filter(|bytes| *bytes > READ_AHEAD_BYTES)?;
    let setting = facts.target.read_ahead_bytes;
    let shown =
        setting.map_or(String::new(), |bytes| format!(" (read_ahead_kb is {})", bytes >> 10));
    let mut text = Words::new(
        "one page read brings in {brought_bytes}{setting}: small random reads cost more than they ask for",
    )
    .figure("brought_bytes", brought_bytes as f64)
    .name("setting", shown);
    if let Some(bytes) = setting {
        text = text.figure("read_ahead_bytes", bytes as f64);
    }
    let remedy = "programs here meet the same; lower it only if they will run with less";
    Some(Warning::new(Code::ReadAhead, text, remedy).with_severity(Severity::Note))
}
