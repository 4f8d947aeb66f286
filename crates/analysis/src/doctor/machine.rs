//! The machine: what others take of it, and what it does not give.

use ioscape_model::checkup::Facts;
use ioscape_model::{Code, Severity, Warning, Words};

use super::graded;

/// Processors' time taken by the hypervisor: noise from here, and another machine from there.
const STOLEN: [f64; 2] = [0.02, 0.1];
/// Processors' time that others use while the doctor sleeps.
const BUSY: [f64; 2] = [0.2, 0.5];
/// Time in which the target's device works for others.
const DEVICE_BUSY: [f64; 2] = [0.05, 0.3];
/// Time in which somebody waits for memory.
const MEMORY_PRESSURE: [f64; 2] = [0.01, 0.1];
/// Periods in which the processor quota had run out.
const THROTTLED: f64 = 0.01;
/// Dirty data at the start, of the limit.
const DIRTY_OF_LIMIT: f64 = 0.1;

pub(super) fn doubts(facts: &Facts) -> Vec<Warning> {
    let all = [
        stolen(facts),
        busy(facts),
        device_busy(facts),
        memory(facts),
        swapping(facts),
        dirty(facts),
        processor_quota(facts),
        io_quota(facts),
        memory_limit(facts),
        power(facts),
        governor(facts),
        nodes(facts),
    ];
    all.into_iter().flatten().collect()
}

fn stolen(facts: &Facts) -> Option<Warning> {
    let share = facts.sample.cpu_stolen_fraction?;
    graded(share, STOLEN[0], STOLEN[1], || {
        let sentence =
            "the hypervisor gave {stolen_share} of the processors' time to others within a second";
        let text = Words::new(sentence).figure("stolen_share", share);
        Warning::new(Code::StolenTime, text, "measure when the host is quieter, or on another one")
    })
}

fn busy(facts: &Facts) -> Option<Warning> {
    let share = facts.sample.cpu_busy_fraction?;
    let pressure = facts.sample.cpu_pressure.unwrap_or(0.0);
    graded(share.max(pressure / 2.0), BUSY[0], BUSY[1], || {
        let text = Words::new(
            "other programs use {busy_share} of the processors; during {pressure_share} of the time \
             some program had to wait for one",
        )
        .figure("busy_share", share)
        .figure("pressure_share", pressure);
        Warning::new(Code::Neighbours, text, "stop what else runs, or measure when it is done")
    })
}

fn device_busy(facts: &Facts) -> Option<Warning> {
    let sample = &facts.sample;
    let share = sample.device_busy_fraction?;
    let device = facts.target.device.as_deref().unwrap_or("the device");
    let [reads, writes, discards] = [
        sample.device_read_bytes_per_s,
        sample.device_write_bytes_per_s,
        sample.device_discard_bytes_per_s,
    ]
    .map(|rate| rate.unwrap_or(0.0));
    // What deletes files also writes to a journal; a large discard is counted when it ends.
    let is_discarding = discards > reads + writes;
    if (is_discarding || reads + writes <= 0.0) && share > DEVICE_BUSY[0] {
        let text = if is_discarding {
            Words::new(
                "{device} was busy during {busy_share} of the time with discarding the blocks of \
                 deleted files ({discard_bytes_per_s})",
            )
            .figure("discard_bytes_per_s", discards)
        } else {
            Words::new(
                "{device} was busy during {busy_share} of the time although nothing was read or \
                 written: it discards the blocks of deleted files, flushes its cache, or does not \
                 answer",
            )
        };
        let text = text.name("device", device).figure("busy_share", share);
        let remedy = "wait until that is done: files that were just deleted take a while";
        return Some(Warning::new(Code::Neighbours, text, remedy));
    }
    graded(share, DEVICE_BUSY[0], DEVICE_BUSY[1], || {
        let text = Words::new(
            "{device} was busy with others during {busy_share} of the time (reads {read_bytes_per_s}, \
             writes {write_bytes_per_s})",
        )
        .name("device", device)
        .figure("busy_share", share)
        .figure("read_bytes_per_s", reads)
        .figure("write_bytes_per_s", writes);
        let remedy = "stop what else reads and writes there, or wait for write-back to end";
        Warning::new(Code::Neighbours, text, remedy)
    })
}

fn memory(facts: &Facts) -> Option<Warning> {
    let share = facts.sample.memory_pressure?;
    graded(share, MEMORY_PRESSURE[0], MEMORY_PRESSURE[1], || {
        let sentence = "some program had to wait for memory during {pressure_share} of the time";
        let text = Words::new(sentence).figure("pressure_share", share);
        let remedy = "free memory: caches are smaller now than they will be";
        Warning::new(Code::Swapping, text, remedy)
    })
}

fn swapping(facts: &Facts) -> Option<Warning> {
    let used_bytes = facts.machine.swap_used_bytes as f64;
    let remedy = "free memory, or switch swap off while measuring";
    match facts.sample.swapped_pages {
        Some(pages) if pages > 0 => {
            let text = Words::new("the machine swapped {pages} pages within a second")
                .figure("pages", pages as f64);
            Some(Warning::new(Code::Swapping, text, remedy))
        }
        _ if used_bytes > 0.0 => {
            let text = Words::new("{swap_used_bytes} of memory lie in swap")
                .figure("swap_used_bytes", used_bytes);
            Some(Warning::new(Code::Swapping, text, remedy).with_severity(Severity::Note))
        }
        _ => None,
    }
}

fn dirty(facts: &Facts) -> Option<Warning> {
    let dirty_bytes = facts.sample.dirty_bytes? as f64;
    let limit_bytes = facts.host.dirty_limit_bytes as f64;
    (limit_bytes > 0.0 && dirty_bytes > DIRTY_OF_LIMIT * limit_bytes).then(|| {
        let text = Words::new(
            "{dirty_bytes} wait to be written already; writers are held back at {dirty_limit_bytes}",
        )
        .figure("dirty_bytes", dirty_bytes)
        .figure("dirty_limit_bytes", limit_bytes);
        let remedy = "a run writes back what lies on its own filesystem; for the rest, `sync`";
        Warning::new(Code::DirtyAtStart, text, remedy)
    })
}

fn processor_quota(facts: &Facts) -> Option<Warning> {
    let limit = facts.host.cpu_limit?;
    let remedy = "raise the quota of the control group: the container's or the service's";
    let (text, severity) = match facts.sample.cpu_throttled_fraction {
        Some(share) if share > THROTTLED => {
            let text = Words::new(
                "a control group allows {processors:.2} processors and held this process back in \
                 {throttled_share} of its periods",
            );
            (text.figure("throttled_share", share), Severity::Serious)
        }
        _ => (Words::new("a control group allows {processors:.2} processors"), Severity::Note),
    };
    let text = text.figure("processors", limit);
    Some(Warning::new(Code::Throttled, text, remedy).with_severity(severity))
}

fn io_quota(facts: &Facts) -> Option<Warning> {
    let number = facts.device.as_ref().map(|device| device.number.as_str())?;
    let is_ours = |limit: &&String| limit.split(' ').any(|word| word == number);
    let limit = facts.host.io_limits.iter().find(is_ours)?;
    let text = format!("a control group limits this device: {limit}");
    let remedy =
        "the limit is what will be measured: raise it, or report the result as that of the limit";
    Some(Warning::new(Code::Throttled, text, remedy).with_severity(Severity::Serious))
}

fn memory_limit(facts: &Facts) -> Option<Warning> {
    let limit_bytes =
        facts.host.memory_limit_bytes.filter(|limit| *limit < facts.host.memory_bytes)?;
    let text = Words::new(
        "a control group allows {memory_limit_bytes} of memory, page cache included, of the \
         machine's {memory_bytes}",
    )
    .figure("memory_limit_bytes", limit_bytes as f64)
    .figure("memory_bytes", facts.host.memory_bytes as f64);
    let remedy = "caches will be found that large, not larger";
    Some(Warning::new(Code::Throttled, text, remedy).with_severity(Severity::Note))
}

fn power(facts: &Facts) -> Option<Warning> {
    let machine = &facts.machine;
    let (text, remedy) = if machine.on_battery == Some(true) {
        ("the machine runs on battery", "plug it in")
    } else if machine.laptop_mode {
        (
            "write-back waits for somebody to read (vm.laptop_mode)",
            "as root: sysctl vm.laptop_mode=0",
        )
    } else {
        return None;
    };
    Some(Warning::new(Code::PowerSaving, text, remedy))
}

fn governor(facts: &Facts) -> Option<Warning> {
    let governor = facts.host.governor.as_deref().filter(|name| *name != "performance")?;
    let text = format!("processors change their speed as they please (governor {governor})");
    let remedy = "compare only runs under the same governor; `performance` scatters least";
    Some(Warning::new(Code::PowerSaving, text, remedy).with_severity(Severity::Note))
}

fn nodes(facts: &Facts) -> Option<Warning> {
    let nodes = facts.machine.numa_nodes;
    (nodes > 1).then(|| {
        let text = Words::new(
            "memory lies in {numa_nodes} nodes: cached data may be near or far, and each has a cache \
             of its own",
        )
        .figure("numa_nodes", f64::from(nodes));
        let remedy = "`numactl --cpunodebind=0 --membind=0 ioscape …` keeps to one of them";
        Warning::new(Code::ManyNodes, text, remedy).with_severity(Severity::Note)
    })
}
