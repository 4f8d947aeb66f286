//! Counters of the kernel that tell what requests became: device bytes, dirty pages, processor
//! time, time taken by others. Files are opened once and read with one system call per sample.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::ClockId;

use crate::clock::Clock;

/// `/proc/self/io`: all threads of this process, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes asked for by read calls, answered from wherever.
    pub asked_read_bytes: u64,
    /// Bytes given to write calls.
    pub asked_write_bytes: u64,
    /// Bytes fetched from storage on this process's account, read-ahead included.
    pub device_read_bytes: u64,
    /// Bytes of pages that this process made dirty: to be written, later and by others.
    pub dirtied_bytes: u64,
}

/// The machine's pages that are newer than storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Waiting.
    pub dirty_bytes: u64,
    /// On their way.
    pub writeback_bytes: u64,
}

/// Processor time of the machine since it started, in clock ticks, all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTicks {
    /// All of it.
    pub total: u64,
    /// Given by the hypervisor to others while there was work to do here.
    pub stolen: u64,
}

impl ProcessorTicks {
    /// Share of the time since `earlier` that was stolen; `None` where no tick has passed.
    pub fn stolen_fraction_since(self, earlier: Self) -> Option<f64> {
        let total = self.total.saturating_sub(earlier.total);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        (total > 0).then(|| stolen as f64 / total as f64)
    }
}

/// Pages swapped by the machine since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swapped {
    /// Read back from swap.
    pub pages_in: u64,
    /// Written to swap.
    pub pages_out: u64,
}

impl Swapped {
    /// Pages swapped between an earlier look and this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            pages_in: self.pages_in.saturating_sub(earlier.pages_in),
            pages_out: self.pages_out.saturating_sub(earlier.pages_out),
        }
    }
}

/// The counters, held open. One that the system does not offer answers `None`.
#[derive(Debug)]
pub struct Counters {
    process_io: Option<File>,
    meminfo: Option<File>,
    stat: Option<File>,
    vmstat: Option<File>,
}

impl Counters {
    /// Opens what there is.
    pub fn open() -> Self {
        let open = |path| File::open(path).ok();
        Self {
            process_io: open("/proc/self/io"),
            meminfo: open("/proc/meminfo"),
            stat: open("/proc/stat"),
            vmstat: open("/proc/vmstat"),
        }
    }

    /// What this process asked for and what storage delivered.
    pub fn process_io(&self) -> Option<ProcessIo> {
        read(self.process_io.as_ref()?, |text| {
            Some(ProcessIo {
                asked_read_bytes: value(text, "rchar:")?,
                asked_write_bytes: value(text, "wchar:")?,
                device_read_bytes: value(text, "read_bytes:")?,
                dirtied_bytes: value(text, "write_bytes:")?,
            })
        })
    }

    /// Dirty pages and pages under write-back of the whole machine.
    pub fn dirty(&self) -> Option<Dirty> {
        read(self.meminfo.as_ref()?, |text| {
            Some(Dirty {
                dirty_bytes: value(text, "Dirty:")? * 1024,
                writeback_bytes: value(text, "Writeback:")? * 1024,
            })
        })
    }

    /// Processor time of the machine.
    pub fn processor_ticks(&self) -> Option<ProcessorTicks> {
        read(self.stat.as_ref()?, |text| {
            let line = text.lines().next()?.strip_prefix("cpu ")?;
            // user nice system idle iowait irq softirq steal; guest time is in user already.
            let ticks: Vec<u64> =
                line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
            Some(ProcessorTicks { total: ticks.iter().sum(), stolen: *ticks.get(7)? })
        })
    }

    /// Swapping. Dearer than the others on machines with many processors: once per point.
    pub fn swapped(&self) -> Option<Swapped> {
        read(self.vmstat.as_ref()?, |text| {
            Some(Swapped { pages_in: value(text, "pswpin")?, pages_out: value(text, "pswpout")? })
        })
    }

    /// Processor time of this process, all threads, seconds.
    pub fn cpu_s(&self) -> f64 {
        let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    }

    /// What reading all that a window needs costs, seconds: the shortest of a few.
    pub fn read_cost_s(&self, clock: &Clock) -> f64 {
        let once = |_| {
            let start_s = clock.now_s();
            std::hint::black_box((
                self.process_io(),
                self.dirty(),
                self.processor_ticks(),
                self.cpu_s(),
            ));
            clock.now_s() - start_s
        };
        (0..5).map(once).fold(f64::INFINITY, f64::min)
    }
}

/// The file's text as it is now, handed to `parse`. These files are made anew for each read that
/// starts at their beginning; what does not fit the buffer is not needed.
fn read<T>(file: &File, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut buffer = [0; 8192];
    let length = file.read_at(&mut buffer, 0).ok()?;
    let text = match std::str::from_utf8(&buffer[..length]) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&buffer[..error.valid_up_to()]).ok()?,
    };
    parse(text)
}

/// The number behind `key` at the start of a line.
fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        if words.next()? == key { words.next()?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_were_read_are_counted() {
        let counters = Counters::open();
        let Some(before) = counters.process_io() else {
            ioscape_test_support::skipped("this kernel offers no /proc/self/io");
            return;
        };
        let mut buffer = vec![0; 1_234_577];
        File::open("/dev/zero").unwrap().read_at(&mut buffer, 0).unwrap();
        let after = counters.process_io().unwrap();
        // Other tests of this process read as well.
        assert!(after.asked_read_bytes - before.asked_read_bytes >= 1_234_577);
    }

    #[test]
    fn machine_wide_counters_are_there_and_move_forwards() {
        let counters = Counters::open();
        let before = counters.processor_ticks().unwrap();
        let cpu_before_s = counters.cpu_s();
        assert!(before.total > 0 && before.stolen <= before.total);
        assert!(counters.dirty().is_some());
        assert!(counters.swapped().is_some());
        let after = counters.processor_ticks().unwrap();
        assert!(after.total >= before.total);
        assert!(counters.cpu_s() > cpu_before_s);
    }

    #[test]
    fn stolen_time_is_a_share_of_what_passed() {
        let earlier = ProcessorTicks { total: 1000, stolen: 10 };
        let later = ProcessorTicks { total: 1200, stolen: 15 };
        assert_eq!(later.stolen_fraction_since(earlier), Some(0.025));
        assert_eq!(earlier.stolen_fraction_since(earlier), None);
    }

    #[test]
    fn a_window_of_counters_costs_a_small_part_of_its_length() {
        let cost_s = Counters::open().read_cost_s(&Clock::start());
        eprintln!("one sample of all counters: {:.1} us", cost_s * 1e6);
        // Tens of microseconds where the machine is quiet; a window lasts 0.1 s.
        assert!(cost_s > 0.0 && cost_s < 0.05, "{cost_s} s");
    }
}
