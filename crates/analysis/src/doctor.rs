//! What the facts of a checkup mean for a measurement: what would make it misleading, what to do
//! about it, and what no look can tell. The hazards are those of `docs/hazards.md`.

mod device;
mod machine;
mod network;
mod place;
mod unknown;

use ioscape_model::checkup::{Checkup, Facts, Privilege};
use ioscape_model::{Code, Severity, Warning};

/// Judges. The gravest doubts come first.
pub fn judge(facts: &Facts) -> Checkup {
    let mut doubts: Vec<Warning> = facts.warnings.iter().cloned().map(graver).collect();
    doubts.extend(machine::doubts(facts));
    doubts.extend(place::doubts(facts));
    doubts.extend(network::doubts(facts));
    doubts.extend(device::doubts(facts));
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.severity));
    Checkup { doubts, unknown: unknown::unknown(facts), privileges: privileges(facts) }
}

/// Before a measurement it is not too late to choose another target.
fn graver(warning: Warning) -> Warning {
    match warning.code {
        Code::MemoryFilesystem => warning.with_severity(Severity::Serious),
        _ => warning,
    }
}

/// Nothing of the main job needs any of them.
fn privileges(facts: &Facts) -> Vec<Privilege> {
    let machine = &facts.machine;
    let of = |text: &str, granted| Privilege { text: text.to_owned(), granted };
    vec![
        of(
            "`--memory-limit`: a memory control group of its own, which shows the border of a \
             cache larger than time and space allow",
            machine.can_limit_memory,
        ),
        of("`--dirty-limit`: the machine's limit on dirty data, for a while", machine.is_root),
        of("block devices as targets, read past their filesystem", machine.is_root),
        of("seeing whose programs hold a device open", machine.is_root),
    ]
}

/// A doubt about an option that the target is mounted with.
fn mounted_with(
    option: &str,
    means: &str,
    remedy: &str,
    (code, severity): (Code, Severity),
) -> Warning {
    let text = format!("mounted with `{option}`: {means}");
    Warning::new(code, text, remedy).with_severity(severity)
}

/// A doubt whose severity grows with a figure: none up to `from`, serious from `serious` on.
fn graded(
    value: f64,
    from: f64,
    serious: f64,
    warning: impl FnOnce() -> Warning,
) -> Option<Warning> {
    if value <= from {
        return None;
    }
    let severity = if value > serious { Severity::Serious } else { Severity::Warning };
    Some(warning().with_severity(severity))
}

#[cfg(test)]
mod tests;
