//! What cannot be known from here, as far as it concerns this target.

use ioscape_model::TargetKind;
use ioscape_model::checkup::{Facts, Unknown};

pub(super) fn unknown(facts: &Facts) -> Vec<Unknown> {
    let mut all = storage(facts);
    all.extend(host(facts));
    all.extend(instruments(facts));
    all
}

fn item(text: impl Into<String>, remedy: &str) -> Unknown {
    Unknown { text: text.into(), remedy: remedy.to_owned() }
}

/// The storage itself.
fn storage(facts: &Facts) -> Vec<Unknown> {
    let target = &facts.target;
    if target.is_served() || target.filesystem.starts_with("fuse") {
        return vec![item(
            "how large the caches on the other side are, and who else uses them",
            "ask the server; data several times its memory outgrow its cache",
        )];
    }
    if facts.target.is_in_memory() {
        return vec![];
    }
    let mut all = vec![
        item(
            "whether a flush reaches the medium: only a power cut tells",
            "trust durable rates as far as you trust the device",
        ),
        item(
            "whether the storage compresses or deduplicates",
            "the test data can be neither compressed nor deduplicated, so figures are rather too low than too high",
        ),
    ];
    if target.rotational == Some(false) {
        all.push(item(
            "how worn and how full the flash is, and how long its quick buffer lasts",
            "write the device full beforehand, and let the budget be long",
        ));
    } else if facts.host.virtualisation.is_none() {
        all.push(item(
            "whether the drive shingles its tracks, which it may hide",
            "look its model up; its random writes fall off after some minutes",
        ));
    }
    all
}

/// What a virtual machine stands on.
fn host(facts: &Facts) -> Vec<Unknown> {
    let Some(host) = &facts.host.virtualisation else { return vec![] };
    vec![
        item(
            format!("what the host does ({host}): its cache, its other guests, its limits"),
            "measure at several times of the day; steal time is watched throughout each measurement",
        ),
        item(
            "whether there is credit for bursts, and how much of it is left",
            "if a rate drops to a round figure, such as 3000 IOPS, during a run, the rate before it came from such credit: look for drift warnings",
        ),
    ]
}

/// What would be seen if this kernel or filesystem told.
fn instruments(facts: &Facts) -> Vec<Unknown> {
    let no_residency = facts.target.kind == TargetKind::Directory
        && !facts.target.is_in_memory()
        && facts.probe.is_some_and(|probe| probe.read_ahead_bytes.is_none());
    let no_temperature = facts.target.rotational == Some(false)
        && facts.host.virtualisation.is_none()
        && facts.device.as_ref().is_some_and(|device| device.temperature_celsius.is_none());
    [
        (
            facts.sample.io_pressure.is_none(),
            "who waits for what: this kernel shows no pressure",
            "boot with psi=1",
        ),
        (
            facts.host.governor.is_none(),
            "how fast the processors run just now",
            "cached figures may differ by a third between machines of the same type",
        ),
        (
            no_residency,
            "what is in the page cache: this filesystem does not say",
            "hit fractions stay empty and borders are found by timing",
        ),
        (
            no_temperature,
            "how hot the device is",
            "load the drivetemp module, or look at `nvme smart-log`",
        ),
    ]
    .into_iter()
    .filter(|(is_unknown, ..)| *is_unknown)
    .map(|(_, text, remedy)| item(text, remedy))
    .collect()
}
