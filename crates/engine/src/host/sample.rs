//! What the machine does while nobody measures: processors, pressure, the target's device.

use std::path::Path;

use ioscape_model::checkup::Sample;

use crate::cgroup::{self, Group};
use crate::clock::Clock;
use crate::counters::Counters;
use crate::sysfs::{attribute, read};

/// Long enough for a share of a per cent to show.
const LENGTH_NS: u64 = 1_000_000_000;

/// Lets a second pass and says what happened in it. `device` is its directory in sysfs.
pub(super) fn take(clock: &Clock, device: Option<&Path>) -> Sample {
    let counters = Counters::open();
    let before = Reading::now(&counters, clock, device);
    clock.sleep_until(clock.now_ns() + LENGTH_NS);
    let after = Reading::now(&counters, clock, device);
    let length_s = after.at_s - before.at_s;
    let share = |of: fn(&Reading) -> Option<f64>| {
        Some(((of(&after)? - of(&before)?) / length_s).clamp(0.0, 1.0))
    };
    let rate = |of: fn(&Disk) -> f64| {
        Some((of(after.disk.as_ref()?) - of(before.disk.as_ref()?)).max(0.0) / length_s)
    };
    let ticks = |of: fn(&Ticks) -> f64| {
        let (then, now) = (before.ticks.as_ref()?, after.ticks.as_ref()?);
        let total = now.total - then.total;
        (total > 0.0).then(|| ((of(now) - of(then)) / total).clamp(0.0, 1.0))
    };
    let pages = |then: crate::counters::Swapped, now: crate::counters::Swapped| {
        now.pages_in.saturating_sub(then.pages_in) + now.pages_out.saturating_sub(then.pages_out)
    };
    Sample {
        length_s,
        cpu_busy_fraction: ticks(|ticks| ticks.busy),
        cpu_stolen_fraction: ticks(|ticks| ticks.stolen),
        cpu_throttled_fraction: cpu_throttled_fraction(),
        cpu_pressure: share(|reading| reading.cpu_wait_s),
        memory_pressure: share(|reading| reading.memory_wait_s),
        io_pressure: share(|reading| reading.io_wait_s),
        device_busy_fraction: rate(|disk| disk.busy_s).map(|busy| busy.min(1.0)),
        device_read_bytes_per_s: rate(|disk| disk.read_bytes),
        device_write_bytes_per_s: rate(|disk| disk.written_bytes),
        device_discard_bytes_per_s: rate(|disk| disk.discarded_bytes),
        swapped_pages: before.swapped.zip(after.swapped).map(|(then, now)| pages(then, now)),
        dirty_bytes: counters.dirty().map(|dirty| dirty.dirty_bytes + dirty.writeback_bytes),
    }
}

struct Reading {
    at_s: f64,
    ticks: Option<Ticks>,
    cpu_wait_s: Option<f64>,
    memory_wait_s: Option<f64>,
    io_wait_s: Option<f64>,
    disk: Option<Disk>,
    swapped: Option<crate::counters::Swapped>,
}

impl Reading {
    fn now(counters: &Counters, clock: &Clock, device: Option<&Path>) -> Self {
        let waited_s =
            |resource: &str| pressure_s(&read(Path::new("/proc/pressure").join(resource))?);
        Self {
            at_s: clock.now_s(),
            ticks: read("/proc/stat").as_deref().and_then(Ticks::parse),
            cpu_wait_s: waited_s("cpu"),
            memory_wait_s: waited_s("memory"),
            io_wait_s: waited_s("io"),
            disk: device.and_then(|device| Disk::parse(&attribute(device, "stat")?)),
            swapped: counters.swapped(),
        }
    }
}

/// Of all processors together.
struct Ticks {
    total: f64,
    busy: f64,
    stolen: f64,
}

impl Ticks {
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        // user nice system idle iowait irq softirq steal; guest time is in user already.
        let ticks: Vec<f64> =
            line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, waiting, interrupts, soft, stolen] = ticks[..] else {
            return None;
        };
        let busy = user + nice + system + interrupts + soft;
        Some(Self { total: busy + idle + waiting + stolen, busy, stolen })
    }
}

/// A device's `stat` in sysfs; sectors there are of 512 bytes, whatever the device's are.
struct Disk {
    read_bytes: f64,
    written_bytes: f64,
    discarded_bytes: f64,
    busy_s: f64,
}

impl Disk {
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<f64> =
            stat.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        Some(Self {
            read_bytes: fields.get(2)? * 512.0,
            written_bytes: fields.get(6)? * 512.0,
            // Linux before 4.18 does not count discards.
            discarded_bytes: fields.get(13).unwrap_or(&0.0) * 512.0,
            busy_s: fields.get(9)? * 1e-3,
        })
    }
}

/// `some avg10=… total=123`: microseconds in which at least one task waited.
fn pressure_s(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.split(' ').find_map(|word| word.strip_prefix("total="))?;
    Some(total.parse::<f64>().ok()? * 1e-6)
}

/// Since the group was made: whoever was throttled before will be throttled again.
fn cpu_throttled_fraction() -> Option<f64> {
    let group = Group::current("cpu")?;
    group.cpu_limit()?;
    let stat = read(group.path.join("cpu.stat"))?;
    let (periods, throttled) =
        (cgroup::keyed(&stat, "nr_periods")?, cgroup::keyed(&stat, "nr_throttled")?);
    (periods > 0).then(|| throttled as f64 / periods as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read_by_their_columns() {
        let ticks = Ticks::parse("cpu  10 1 20 100 5 2 3 9 0 0\ncpu0 1").unwrap();
        assert_eq!((ticks.total, ticks.busy, ticks.stolen), (150.0, 36.0, 9.0));
        assert!(Ticks::parse("cpu  10 1").is_none());
        let disk = Disk::parse(" 525 3 20838 95 821 129 318824 446 0 420 810 0 0").unwrap();
        assert_eq!(
            (disk.read_bytes, disk.written_bytes, disk.busy_s),
            (20_838.0 * 512.0, 318_824.0 * 512.0, 0.42)
        );
        assert!(disk.discarded_bytes.abs() < 1.0, "not counted there");
        let disk = Disk::parse("1 0 8 0 2 0 16 0 1 990 990 7 0 4096 3 0 0").unwrap();
        assert!((disk.discarded_bytes - 4096.0 * 512.0).abs() < 1.0, "{}", disk.discarded_bytes);
        let pressure = "some avg10=16.36 avg60=27.56 avg300=22.03 total=4384212086\nfull total=1";
        let waited_s = pressure_s(pressure).unwrap();
        assert!((waited_s - 4_384.212_086).abs() < 1e-6, "{waited_s}");
    }
}
