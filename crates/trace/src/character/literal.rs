//! A behaviour as a workload: the five parameters and what else `-w` takes.

use ioscape_model::app::{Behaviour, Loop};
use ioscape_model::workload::SHARE_REQUESTS_MIN;
use ioscape_model::{Access, Arrivals, SizeDist, Workload};

/// One size for this share of all requests is a fixed size.
const FIXED_SHARE: f64 = 0.95;
/// Requests that scatter more than this around a schedule come at random.
const RANDOM_VARIATION: f64 = 0.5;
const ALIGN_MAX: u64 = 4096;
const SIZE_MAX: u64 = 1 << 30;

/// The workload that is most like it. Where its data are fewer than eight requests per process,
/// which no workload can be, it has as many.
#[must_use]
pub fn workload(behaviour: &Behaviour) -> Workload {
    let five = &behaviour.five;
    let usual = Workload::default();
    let fixed = fixed_size(behaviour);
    let size_mean = fixed.unwrap_or(five.size_mean.round() as u64).clamp(1, SIZE_MAX);
    let align = match fixed {
        Some(bytes) => (1 << bytes.trailing_zeros()).min(ALIGN_MAX),
        None => (1_u64 << size_mean.ilog2()).min(ALIGN_MAX),
    };
    let process_num = five.process_num.clamp(1, 4096);
    let share_min = (SHARE_REQUESTS_MIN * size_mean).next_multiple_of(align);
    let is_open = behaviour.arrivals == Loop::Open;
    let is_random = behaviour.arriving.variation > RANDOM_VARIATION;
    Workload {
        unique_bytes: five.unique_bytes.max(share_min * u64::from(process_num)),
        size_mean,
        size_dist: if fixed.is_some() { SizeDist::Fixed } else { usual.size_dist },
        read_frac: rounded(five.read_frac),
        seq_frac: rounded(five.seq_frac),
        process_num,
        align,
        depth: behaviour.concurrency.depth.clamp(1, 4096),
        access: if behaviour.concurrency.direct_frac > 0.5 {
            Access::Direct
        } else {
            Access::Buffered
        },
        fsync_every: behaviour.syncs.every,
        rate: if is_open { three_digits(behaviour.arriving.rate_per_s) } else { 0.0 },
        arrivals: if is_open && is_random { Arrivals::Poisson } else { Arrivals::Fixed },
        ..usual
    }
}

/// The size of nearly all requests.
fn fixed_size(behaviour: &Behaviour) -> Option<u64> {
    let sizes = [&behaviour.sizes.read, &behaviour.sizes.write];
    let top = |bytes: u64| {
        let found = sizes.iter().flat_map(|law| &law.top).filter(|size| size.bytes == bytes);
        found.map(|size| size.count).sum::<u64>()
    };
    let most = sizes.iter().filter_map(|law| law.top.first()).map(|size| size.bytes);
    let most = most.max_by_key(|bytes| top(*bytes))?;
    (top(most) as f64 >= FIXED_SHARE * behaviour.requests as f64).then_some(most)
}

fn rounded(fraction: f64) -> f64 {
    ((fraction * 1000.0).round() / 1000.0).clamp(0.0, 1.0)
}

fn three_digits(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powi(2 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use ioscape_model::app::{Five, SizeCount};

    fn behaviour(size: f64, unique_bytes: u64) -> Behaviour {
        let five = Five { unique_bytes, size_mean: size, process_num: 3, ..Five::default() };
        Behaviour { five, ..Behaviour::default() }
    }

    #[test]
    fn whatever_was_seen_is_a_workload_that_can_be() {
        for size in [0.0, 1.0, 7.3, 511.0, 2300.0, 5000.5, 1e6, 1e12] {
            for unique_bytes in [0, 4096, 1 << 40] {
                let work = workload(&behaviour(size, unique_bytes));
                work.check().unwrap();
                assert_eq!(Workload::parse(&work.literal()).unwrap(), work, "{work}");
            }
        }
    }

    #[test]
    fn a_write_ahead_log_is_said_as_it_is() {
        let mut log = behaviour(2300.2, 13_800_000);
        log.requests = 6010;
        log.sizes.write.top = vec![SizeCount { bytes: 2300, count: 6000 }];
        log.syncs.every = 1;
        let work = workload(&log);
        assert_eq!((work.size_mean, work.align, work.fsync_every), (2300, 4, 1));
        assert_eq!(Workload::parse(&work.literal()).unwrap(), work);
    }
}
