//! What storage this is and what it was measured on, in words (Chen and Patterson 1994, Fig. 2).

use ioscape_model::units::{show_bytes, show_rate, show_seconds, three_digits};
use ioscape_model::{Header, Host, Target, word};

use crate::figures::{self, UNKNOWN};

/// A name and what stands there.
pub(crate) type Fact = (&'static str, String);

/// `ext4 on Samsung SSD 990 PRO 2TB (nvme0n1), under a memory limit of 256 MiB`.
pub(crate) fn storage(header: &Header) -> String {
    let target = &header.target;
    let filesystem = match target.filesystem.as_str() {
        "" => word(target.kind).replace('_', " "),
        name => name.to_owned(),
    };
    let on = match (&target.device_model, &target.device) {
        (Some(model), Some(name)) => format!(" on {model} ({name})"),
        (Some(name), None) | (None, Some(name)) => format!(" on {name}"),
        (None, None) if target.source.is_empty() || target.source == target.filesystem => {
            String::new()
        }
        (None, None) => format!(" on {}", target.source),
    };
    let limit = match header.host.memory_limit() {
        Some(bytes) => format!(", under a memory limit of {}", figures::size(bytes as f64)),
        None => String::new(),
    };
    format!("{filesystem}{on}{limit}")
}

/// What has to be known before any figure is read.
pub(crate) fn first_facts(header: &Header) -> Vec<Fact> {
    let (target, host) = (&header.target, &header.host);
    let device = [
        target.device_model.clone().or_else(|| target.device.clone()),
        target
            .rotational
            .map(|turns| if turns { "rotational" } else { "not rotational" }.to_owned()),
        target.scheduler.as_ref().map(|name| format!("scheduler {name}")),
        target.loop_backing.as_ref().map(|file| format!("a loop device on {file}")),
    ];
    let limits = [
        host.memory_limit().map(|bytes| format!("memory {}", figures::size(bytes as f64))),
        host.cpu_limit.map(|cpus| format!("{} processors", three_digits(cpus))),
        (!host.io_limits.is_empty()).then(|| format!("I/O {}", host.io_limits.join(", "))),
        positive(host.dirty_limit_bytes).map(|bytes| format!("dirty data {}", show_bytes(bytes))),
    ];
    let size = positive(target.size_bytes).map(|bytes| {
        format!("{}, {} free", show_bytes(bytes), show_bytes(target.free_bytes as f64))
    });
    let memory = positive(host.memory_bytes).map(|bytes| {
        let available = show_bytes(host.memory_available_bytes as f64);
        format!("{}, {available} available", show_bytes(bytes))
    });
    let mut all = vec![
        ("Filesystem", joined(&[given(&target.filesystem), size])),
        ("Device", joined(&device)),
        ("Memory", memory.unwrap_or_else(|| UNKNOWN.to_owned())),
        ("Limits", joined(&limits)),
        ("Processor", joined(&[given(&host.cpu_model), processors(host)])),
        ("System", joined(&[given(&host.os), given(&host.kernel), host.virtualisation.clone()])),
    ];
    all.retain(|(_, value)| value != UNKNOWN);
    all
}

/// Everything the header knows.
pub(crate) fn environment(header: &Header) -> Vec<Fact> {
    let mut all = target_facts(&header.target);
    all.extend(host_facts(&header.host));
    all.extend(run_facts(header));
    all.retain(|(_, value)| !value.is_empty());
    all
}

fn target_facts(target: &Target) -> Vec<Fact> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    vec![
        ("target", target.path.clone()),
        ("kind of target", word(target.kind)),
        ("filesystem", target.filesystem.clone()),
        ("mount options", target.mount_options.clone()),
        ("mounted from", target.source.clone()),
        ("filesystem size", sized(target.size_bytes)),
        ("free at the start", sized(target.free_bytes)),
        ("device", text(&target.device)),
        ("device model", text(&target.device_model)),
        ("rotational", yes_or_no(target.rotational)),
        ("I/O scheduler", text(&target.scheduler)),
        ("device queue", target.queue_depth.map_or_else(String::new, |n| format!("{n} requests"))),
        (
            "read-ahead",
            target.read_ahead_bytes.map_or_else(String::new, |b| figures::size(b as f64)),
        ),
        ("device write cache", text(&target.write_cache)),
        ("loop device on", text(&target.loop_backing)),
        ("simulated device", text(&target.sim)),
    ]
}

fn host_facts(host: &Host) -> Vec<Fact> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let optional_size =
        |bytes: Option<u64>| bytes.map_or_else(String::new, |b| figures::size(b as f64));
    let seconds = |s: f64| if s > 0.0 { show_seconds(s) } else { String::new() };
    vec![
        ("processor", host.cpu_model.clone()),
        ("processors", processors(host).unwrap_or_default()),
        ("last-level cache", optional_size(host.llc_bytes)),
        ("frequency governor", text(&host.governor)),
        ("memory", sized(host.memory_bytes)),
        ("memory available at the start", sized(host.memory_available_bytes)),
        ("copying in memory", host.memory_copy_bytes_per_s.map_or_else(String::new, show_rate)),
        ("memory limit found", optional_size(host.memory_limit_bytes)),
        ("memory limit set for this run", optional_size(host.memory_limit_set_bytes)),
        ("control group version", host.cgroup_version.map_or_else(String::new, |v| v.to_string())),
        ("processor limit", host.cpu_limit.map_or_else(String::new, three_digits)),
        ("I/O limits", host.io_limits.join(", ")),
        ("dirty limit", sized(host.dirty_limit_bytes)),
        ("background dirty limit", sized(host.dirty_background_bytes)),
        ("dirty data expires after", seconds(host.dirty_expire_s)),
        ("write-back wakes every", seconds(host.dirty_writeback_s)),
        ("multi-generational LRU", yes_or_no(host.lru_gen)),
        ("swap", sized(host.swap_bytes)),
        ("kernel", host.kernel.clone()),
        ("distribution", host.os.clone()),
        ("virtualisation", text(&host.virtualisation)),
        ("clock source", host.clock_source.clone()),
        ("reading the clock takes", seconds(host.clock_read_s)),
        ("load average at the start", format!("{:.2}", host.load_average)),
    ]
}

fn run_facts(header: &Header) -> Vec<Fact> {
    let rules = &header.rules;
    let ranges = &header.ranges;
    vec![
        ("command line", header.command_line.join(" ")),
        ("method", word(header.method)),
        ("started", header.start_time.clone()),
        ("seed", header.seed.to_string()),
        ("budget", show_seconds(header.budget_s)),
        (
            "how a visit is measured",
            format!(
                "{} before the windows count (at most {} waiting for write-back), then at least {} \
                 windows of {}, at most {} together, until the interval is within {}",
                show_seconds(rules.ramp_s),
                show_seconds(rules.ramp_max_s),
                rules.windows_min,
                show_seconds(rules.window_s),
                show_seconds(rules.measure_max_s),
                figures::percent(rules.precision),
            ),
        ),
        (
            "ranges",
            format!(
                "unique_bytes {}, size_mean {}, process_num {} to {}",
                crate::chart::stretch(
                    ranges.unique_bytes.min as f64,
                    ranges.unique_bytes.max as f64
                ),
                crate::chart::stretch(ranges.size_mean.min as f64, ranges.size_mean.max as f64),
                ranges.process_num.min,
                ranges.process_num.max,
            ),
        ),
        ("tool", format!("{} {} ({})", header.tool.name, header.tool.version, header.tool.build)),
        ("record format", header.format_version.to_string()),
    ]
}

fn processors(host: &Host) -> Option<String> {
    (host.cpus > 0).then(|| figures::count(host.cpus as usize, "processor"))
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn positive(bytes: u64) -> Option<f64> {
    (bytes > 0).then_some(bytes as f64)
}

fn sized(bytes: u64) -> String {
    positive(bytes).map_or_else(String::new, show_bytes)
}

fn yes_or_no(value: Option<bool>) -> String {
    value.map_or_else(String::new, |yes| if yes { "yes" } else { "no" }.to_owned())
}

fn joined(parts: &[Option<String>]) -> String {
    let known: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    if known.is_empty() { UNKNOWN.to_owned() } else { known.join(", ") }
}
