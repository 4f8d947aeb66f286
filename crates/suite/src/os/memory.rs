//! Copying memory, in and out of the processor's cache, and reading a file that lies in memory.

use std::fs::File;

use ioscape_engine::counters::Counters;
use ioscape_engine::error::{Error, Result};
use ioscape_model::warning::Code;
use ioscape_model::{Host, TrialFigure, Warning, Words};

use super::timing::Timer;
use crate::benchmark::bytes_per_s;
use crate::handle::Handle;
use crate::site::Site;

/// Where the cache's size is not known, bytes.
const LLC_USUAL_BYTES: u64 = 32 << 20;
/// Two blocks of at most this size fit whatever part of a cache a machine's owner leaves us.
const CACHED_MAX_BYTES: u64 = 256 << 10;
const UNCACHED_MAX_BYTES: u64 = 512 << 20;
const FILE_MIN_BYTES: u64 = 16 << 20;
const FILE_MAX_BYTES: u64 = 256 << 20;
/// Of the read benchmark of 1990, bytes.
const READ_BYTES: usize = 16 << 10;

/// The rate of copies that stay in the cache, and of copies far larger than it.
pub(super) fn copies(timer: &Timer, site: &Site) -> Result<Vec<TrialFigure>> {
    let llc_bytes = site.host.llc_bytes.unwrap_or(LLC_USUAL_BYTES);
    let room_bytes = site.host.memory_available_bytes / 8;
    let cached = (llc_bytes / 8).min(CACHED_MAX_BYTES);
    let uncached = (llc_bytes * 2).min(UNCACHED_MAX_BYTES).min(room_bytes).max(cached);
    let mut figures = Vec::new();
    for (name, length) in [("bcopy in cache", cached), ("bcopy out of cache", uncached)] {
        let source = vec![1_u8; length as usize];
        let mut target = vec![2_u8; length as usize];
        let timed = timer.time(&site.meter, || {
            target.copy_from_slice(std::hint::black_box(&source));
            std::hint::black_box(&mut target);
            Ok(())
        })?;
        figures.push(bytes_per_s(name, length as f64 / timed.per_call_s));
    }
    Ok(figures)
}

/// Size of the file that is read: larger than the processor's cache, small beside memory.
pub(super) fn file_bytes(host: &Host) -> u64 {
    let wanted = host.llc_bytes.unwrap_or(LLC_USUAL_BYTES).saturating_mul(4);
    let most = (host.memory_available_bytes / 8).clamp(1 << 20, FILE_MAX_BYTES);
    wanted.max(FILE_MIN_BYTES).min(most)
}

/// A file that lies in the page cache.
#[derive(Debug)]
pub(super) struct CachedFile {
    path: std::path::PathBuf,
    length: u64,
}

impl CachedFile {
    /// Writes it.
    pub(super) fn lay_out(site: &mut Site) -> Result<Self> {
        let (path, length) = (site.at("large"), file_bytes(&site.host));
        let mut file = Handle::create(&mut site.meter, &path, 0)?;
        let block = vec![7; 1 << 20];
        let mut written = 0;
        while written < length {
            let part = (length - written).min(block.len() as u64);
            file.write(&mut site.meter, &block[..part as usize])?;
            written += part;
        }
        file.sync_data(&mut site.meter)?;
        Ok(Self { path, length })
    }

    /// The rate of reading it again and again into one small buffer.
    pub(super) fn figures(&self, timer: &Timer, site: &mut Site) -> Result<Vec<TrialFigure>> {
        use std::os::unix::fs::FileExt;
        let failed = |error| Error::path("read", &self.path, error);
        let file = File::open(&self.path).map_err(failed)?;
        let mut buffer = vec![0; READ_BYTES];
        // Once through, so that what memory had given up comes back before the clock runs.
        for place in 0..self.length / READ_BYTES as u64 {
            file.read_exact_at(&mut buffer, place * READ_BYTES as u64).map_err(failed)?;
        }
        let counters = Counters::open();
        let fetched = || counters.process_io().map(|io| io.device_read_bytes);
        let before = fetched();
        let mut offset = 0;
        let timed = timer.time(&site.meter, || {
            file.read_exact_at(&mut buffer, offset).map_err(failed)?;
            offset += READ_BYTES as u64;
            if offset + READ_BYTES as u64 > self.length {
                offset = 0;
            }
            Ok(())
        })?;
        let from_device = fetched().zip(before).map_or(0, |(after, before)| after - before);
        if from_device > 0 {
            site.warnings.push(Warning::new(
                Code::CacheState,
                Words::new(
                    "{device_read_bytes:.0} bytes of the read benchmark came from the device: not all \
                     of {file_bytes:.0} bytes stayed in memory",
                )
                .figure("device_read_bytes", from_device as f64)
                .figure("file_bytes", self.length as f64),
                "free some memory",
            ));
        }
        Ok(vec![bytes_per_s("read", READ_BYTES as f64 / timed.per_call_s)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_larger_than_the_processors_cache_and_small_beside_memory() {
        let host = |llc_mib: u64, memory_mib: u64| Host {
            llc_bytes: Some(llc_mib << 20),
            memory_available_bytes: memory_mib << 20,
            ..Host::default()
        };
        assert_eq!(file_bytes(&host(8, 16_000)), 32 << 20);
        assert_eq!(file_bytes(&host(2, 16_000)), 16 << 20);
        assert_eq!(file_bytes(&host(260, 16_000)), 256 << 20);
        assert_eq!(file_bytes(&host(32, 256)), 32 << 20);
    }
}
