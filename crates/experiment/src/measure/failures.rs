//! Requests that failed, in words: a number beside which they stand is that of the others alone.

use ioscape_engine::Window;
use ioscape_model::{Code, Failed, Failure, RequestClass, Severity, Warning, Words};

/// With more failures than this share the number is one of another device than was meant.
const SERIOUS_SHARE: f64 = 0.01;

/// One doubt per kind of failure.
pub(super) fn doubts(failed: &[Failed], windows: &[Window]) -> Vec<Warning> {
    let done: u64 = windows.iter().map(Window::ops).sum();
    Failure::ALL.into_iter().filter_map(|kind| doubt(kind, failed, done)).collect()
}

fn doubt(kind: Failure, failed: &[Failed], done: u64) -> Option<Warning> {
    let alike: Vec<&Failed> = failed.iter().filter(|failed| failed.failure == kind).collect();
    let first = alike.first()?;
    let count: u64 = alike.iter().map(|failed| failed.count).sum();
    let share = count as f64 / (count + done).max(1) as f64;
    let what = match kind {
        Failure::TimedOut => "timed out",
        Failure::Short => "were cut short",
        Failure::Mismatch => "brought other data than had been written",
        _ => "failed",
    };
    let text = Words::new(
        "{requests} requests ({failed_share}) {what}, beside {measured_requests} that were measured: \
         {classes}; the first at offset {first_offset}: {error}",
    )
    .figure("requests", count as f64)
    .figure("failed_share", share)
    .figure("measured_requests", done as f64)
    .figure("first_offset", first.first_offset as f64)
    .name("what", what)
    .name("classes", classes(&alike))
    .name("error", &first.text);
    let (code, remedy) = match kind {
        Failure::Mismatch => (
            Code::DataMismatch,
            "do not trust this storage with data: look at the kernel's log (dmesg), the device's \
             health (smartctl), memory and cables",
        ),
        Failure::Short => {
            (Code::RequestErrors, "the file or device ends sooner than it did: find out who cut it")
        }
        _ => (
            Code::RequestErrors,
            "look at the kernel's log (dmesg) and the device's health (smartctl); the throughput is \
             that of the requests that were done",
        ),
    };
    let is_serious = code == Code::DataMismatch || share > SERIOUS_SHARE;
    let severity = if is_serious { Severity::Serious } else { Severity::Warning };
    Some(Warning::new(code, text, remedy).with_severity(severity))
}

/// `12 random reads, 3 sequential writes`
fn classes(failed: &[&Failed]) -> String {
    let name = |class| match class {
        RequestClass::ReadSeq => "sequential reads",
        RequestClass::ReadRand => "random reads",
        RequestClass::WriteSeq => "sequential writes",
        RequestClass::WriteRand => "random writes",
    };
    let each = failed.iter().map(|failed| format!("{} {}", failed.count, name(failed.class)));
    each.collect::<Vec<_>>().join(", ")
}
