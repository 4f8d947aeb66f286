//! A checkup in characters: what is doubtful about a target before anything is measured.

use ioscape_model::checkup::{Checkup, Facts};
use ioscape_model::units::show_bytes;
use ioscape_model::{Severity, TargetKind, Warning};

/// What a checkup says, for people.
pub fn checkup_text(facts: &Facts, checkup: &Checkup) -> String {
    let mut lines = vec![headline(facts), String::new()];
    lines.extend(checkup.doubts.iter().map(doubt));
    let conclusion = match (count(checkup, Severity::Serious), count(checkup, Severity::Warning)) {
        (0, 0) => "Nothing seen that would make a measurement here misleading.",
        (0, 1) => "A measurement here is possible, with that warning in mind.",
        (0, _) => "A measurement here is possible, with those warnings in mind.",
        (1, _) => "A measurement here would be misleading: see to the serious doubt first.",
        _ => "A measurement here would be misleading: see to the serious doubts first.",
    };
    if !checkup.doubts.is_empty() {
        lines.push(String::new());
    }
    lines.push(conclusion.to_owned());
    if !checkup.unknown.is_empty() {
        lines.extend([String::new(), "What cannot be known from here:".to_owned()]);
        let unknown = checkup.unknown.iter();
        lines.extend(unknown.map(|unknown| format!("- {}\n  {}", unknown.text, unknown.remedy)));
    }
    let missing: Vec<&str> = checkup
        .privileges
        .iter()
        .filter(|privilege| !privilege.granted)
        .map(|privilege| privilege.text.as_str())
        .collect();
    if !missing.is_empty() {
        lines.extend([String::new(), "Not needed, but root would add:".to_owned()]);
        lines.extend(missing.into_iter().map(|text| format!("- {text}")));
    }
    lines.join("\n")
}

/// `/data: ext4 on nvme0n1 (a model), 1.20 TiB free`
fn headline(facts: &Facts) -> String {
    let target = &facts.target;
    let device = target.device.as_deref().map_or(String::new(), |device| {
        let model = target.device_model.as_deref();
        format!(" on {device}{}", model.map_or(String::new(), |model| format!(" ({model})")))
    });
    let (path, free_bytes) =
        (target.path.replace('\n', "\\u000a"), show_bytes(target.free_bytes as f64));
    match target.kind {
        TargetKind::Directory => {
            format!("{path}: {}{device}, {free_bytes} free", target.filesystem)
        }
        TargetKind::BlockDevice => format!("{path}: a block device{device}, {free_bytes}"),
        TargetKind::File => format!("{path}: a file on {}{device}", target.filesystem),
        _ => format!("{path}: a simulated device, the same on every machine"),
    }
}

fn doubt(warning: &Warning) -> String {
    let severity = match warning.severity {
        Severity::Note => "note   ",
        Severity::Warning => "warning",
        Severity::Serious => "serious",
    };
    format!("{severity}  {}\n         {}", warning.text, warning.remedy)
}

fn count(checkup: &Checkup, severity: Severity) -> usize {
    checkup.doubts.iter().filter(|doubt| doubt.severity == severity).count()
}
