//! The block device, and what lies between it and the medium.

use ioscape_model::checkup::{Device, Facts};
use ioscape_model::{Code, Severity, Warning, Words};

/// A page from flash takes longer; from memory somewhere below it does not.
const FLASH_MIN_S: f64 = 20e-6;
/// A turning disk has to turn.
const DISK_MIN_S: f64 = 1e-3;
/// Degrees below the limit from which on it is near.
const NEAR_CELSIUS: f64 = 5.0;

pub(super) fn doubts(facts: &Facts) -> Vec<Warning> {
    let Some(device) = &facts.device else { return vec![] };
    let all = [
        in_memory(device),
        over_a_file(facts, device),
        too_quick(facts),
        rebuilding(device),
        layers(device),
        zones(facts, device),
        heat(device),
        carries(device),
    ];
    all.into_iter().flatten().collect()
}

fn in_memory(device: &Device) -> Option<Warning> {
    let kind = device.layers.iter().find(|layer| matches!(layer.as_str(), "zram" | "ram"))?;
    let text =
        format!("{} is a {kind} device: it lives in memory, no disk is involved", device.name);
    let remedy = "name a target on a disk to measure one";
    Some(Warning::new(Code::MemoryFilesystem, text, remedy).with_severity(Severity::Serious))
}

fn over_a_file(facts: &Facts, device: &Device) -> Option<Warning> {
    let backing = facts.target.loop_backing.as_deref()?;
    (device.loop_direct == Some(false)).then(|| {
        let text = format!(
            "{} is a loop device over {backing}, which is cached once more: what misses one cache \
             is found in the other",
            device.name
        );
        let remedy = "`losetup --direct-io=on` goes past the second cache";
        Warning::new(Code::CachesBelow, text, remedy)
    })
}

fn too_quick(facts: &Facts) -> Option<Warning> {
    let read_s = facts.probe?.direct_read_s?;
    let turns = facts.target.rotational == Some(true);
    let sentence = if turns && read_s < DISK_MIN_S {
        "the device says that it is a spinning disk, but reads a page in {read_s}: it does not spin, \
         or a cache of the host or controller answers"
    } else if !turns && read_s < FLASH_MIN_S {
        "a page read past the page cache took {read_s}: a cache below the operating system answers"
    } else {
        return None;
    };
    let text = Words::new(sentence).figure("read_s", read_s);
    let remedy = "behind the page cache there may be caches of host, controller and drive; only more \
                  data than they hold reaches the medium";
    Some(Warning::new(Code::CachesBelow, text, remedy))
}

fn rebuilding(device: &Device) -> Option<Warning> {
    let action = device.raid_sync.as_deref()?;
    let text = format!("the array below is busy with itself ({action})");
    let remedy = "wait until /proc/mdstat shows no progress bar";
    Some(Warning::new(Code::Rebuilding, text, remedy).with_severity(Severity::Serious))
}

fn layers(device: &Device) -> Option<Warning> {
    let layers: Vec<&str> = device
        .layers
        .iter()
        .map(String::as_str)
        .filter(|layer| !matches!(*layer, "loop" | "zram" | "ram"))
        .collect();
    if layers.is_empty() {
        return None;
    }
    let text = format!(
        "{} is not a disk but made of others ({}): encryption, parity and copies cost time that \
         counts as the device's",
        device.name,
        layers.join(", ")
    );
    let remedy = "compare only with devices that are made alike";
    Some(Warning::new(Code::Placement, text, remedy).with_severity(Severity::Note))
}

fn zones(facts: &Facts, device: &Device) -> Option<Warning> {
    if let Some(zoned) = &device.zoned {
        let text = format!("the device writes in zones ({zoned}): random writes are moved later");
        let remedy = "measure for longer than its buffer lasts";
        return Some(Warning::new(Code::Placement, text, remedy));
    }
    (facts.target.rotational == Some(true) && too_quick(facts).is_none()).then(|| {
        let text = "a turning disk is up to twice as fast at its outer edge as at the inner";
        let remedy = "where the test files lie is the filesystem's choice: compare on empty ones";
        Warning::new(Code::Placement, text, remedy).with_severity(Severity::Note)
    })
}

fn heat(device: &Device) -> Option<Warning> {
    let (now, limit) = (device.temperature_celsius?, device.temperature_limit_celsius?);
    (now > limit - NEAR_CELSIUS).then(|| {
        let text = Words::new(
            "{device} is at {temperature_celsius:.0} °C and slows down from {limit_celsius:.0} °C on",
        )
        .name("device", &device.name)
        .figure("temperature_celsius", now)
        .figure("limit_celsius", limit);
        Warning::new(Code::PowerSaving, text, "let it cool down, or cool it better")
    })
}

fn carries(device: &Device) -> Option<Warning> {
    if device.contents.is_empty() {
        return None;
    }
    let text = format!("{} carries {}", device.name, device.contents.join(", and "));
    let remedy = "it is only read; `--destroy` refuses it as long as that is on it";
    Some(Warning::new(Code::ReadOnly, text, remedy).with_severity(Severity::Note))
}
