//! Bonnie (Bray 1990): one large file written byte by byte, rewritten, written in blocks, read
//! byte by byte, read in blocks; then seeks by three at a time, every tenth of which updates.
//!
//! The form of 1990 makes 4000 seeks, that of 1996 makes 8000; otherwise they agree. A phase ends
//! with closing its file, inside the timed part, as in the original, which does not wait for
//! storage. Bytes go one call each through a buffer of the filesystem's block size, like putc and
//! getc; that figure is one of the processor and differs from a C program's. The three seekers are
//! threads with descriptors of their own, where the original forks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ioscape_engine::counters::Counters;
use ioscape_engine::error::{Error, Result};
use ioscape_model::TrialFigure;
use ioscape_model::warning::Code;
use ioscape_model::{Severity, Warning};
use rand::RngExt;

use crate::benchmark::{Benchmark, Turn, bytes_per_s, count, rate};
use crate::handle::Handle;
use crate::meter::Meter;
use crate::site::{Site, chance};

/// Of the original: 100 MB.
const FILE_BYTES: u64 = 100 << 20;
/// Blocks are written and read in chunks of this size.
pub const CHUNK_BYTES: usize = 8192;
/// A file through which stdio goes has a buffer of this size here as there.
const STDIO_BYTES: usize = 4096;
const SEEKERS: u32 = 3;
/// One seek in so many updates what it read.
const UPDATE_EVERY: u32 = 10;
const FILE: u32 = 0;

/// Which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 4000 seeks.
    Of1990,
    /// 8000 seeks.
    Of1996,
}

/// The benchmark.
#[derive(Debug)]
pub struct Bonnie {
    form: Form,
}

impl Bonnie {
    /// In one of its forms.
    pub fn new(form: Form) -> Self {
        Self { form }
    }

    fn seeks(&self) -> u32 {
        match self.form {
            Form::Of1990 => 4000,
            Form::Of1996 => 8000,
        }
    }
}

/// Size of the file: whole chunks.
fn file_bytes(site: &Site) -> u64 {
    let asked = site.settings.file_bytes.unwrap_or(FILE_BYTES);
    (asked / CHUNK_BYTES as u64).max(1) * CHUNK_BYTES as u64
}

impl Benchmark for Bonnie {
    fn room_bytes(&self, site: &Site) -> u64 {
        file_bytes(site)
    }

    fn prepare(&mut self, _: &mut Site) -> Result<()> {
        Ok(())
    }

    fn trial(&mut self, site: &mut Site, turn: Turn) -> Result<Vec<TrialFigure>> {
        let (path, length) = (site.at("bonnie"), file_bytes(site));
        let memory = site.host.memory_limit_bytes.unwrap_or(site.host.memory_bytes);
        if length < memory {
            site.warnings.push(
                Warning::new(
                    Code::CacheState,
                    "the file is smaller than memory: reads come from the page cache",
                    "to reach storage, make the file twice as large as memory (--size), or use --memory-limit",
                )
                .with_severity(Severity::Note),
            );
        }
        let mut run =
            Run { path: &path, length, meter: &mut site.meter, counters: Counters::open() };
        let mut figures = Vec::new();
        let phases: [(&str, Phase<'_>); 5] = [
            ("write by byte", Run::put),
            ("rewrite", Run::rewrite),
            ("write by block", Run::write),
            ("read by byte", Run::get),
            ("read by block", Run::read),
        ];
        for (name, phase) in phases {
            let (elapsed_s, cpu) = run.timed(phase)?;
            figures.push(bytes_per_s(name, length as f64 / elapsed_s));
            figures.push(count(&format!("{name}: processor"), cpu, "fraction"));
        }
        let seeks = self.seeks();
        let (elapsed_s, cpu) = run.timed(|run| run.seek(seeks, turn))?;
        figures.push(rate("seeks", f64::from(seeks) / elapsed_s, "1/s"));
        figures.push(count("seeks: processor", cpu, "fraction"));
        std::fs::remove_file(&path).map_err(|error| Error::path("remove", &path, error))?;
        Ok(figures)
    }
}

/// Part of a run.
type Phase<'a> = fn(&mut Run<'a>) -> Result<()>;

struct Run<'a> {
    path: &'a Path,
    length: u64,
    meter: &'a mut Meter,
    counters: Counters,
}

impl Run<'_> {
    /// Seconds, and the share of them that a processor was busy for us.
    fn timed(&mut self, phase: impl FnOnce(&mut Self) -> Result<()>) -> Result<(f64, f64)> {
        let cpu_before_s = self.counters.cpu_s();
        self.meter.begin();
        phase(self)?;
        let elapsed_s = self.meter.end();
        Ok((elapsed_s, (self.counters.cpu_s() - cpu_before_s) / elapsed_s))
    }

    fn chunks(&self) -> u64 {
        self.length / CHUNK_BYTES as u64
    }

    fn put(&mut self) -> Result<()> {
        let mut out = Put { file: Handle::create(self.meter, self.path, FILE)?, buffer: vec![] };
        for at in 0..self.length {
            out.put(self.meter, at as u8 & 0x7f)?;
        }
        out.flush(self.meter)?;
        out.file.close(self.meter)
    }

    fn rewrite(&mut self) -> Result<()> {
        let mut file = self.open()?;
        let mut chunk = vec![0; CHUNK_BYTES];
        for number in 0..self.chunks() {
            file.read_exact(self.meter, &mut chunk)?;
            chunk[(number % CHUNK_BYTES as u64) as usize] ^= 1;
            file.seek(number * CHUNK_BYTES as u64)?;
            file.write(self.meter, &chunk)?;
        }
        file.close(self.meter)
    }

    fn write(&mut self) -> Result<()> {
        let mut file = Handle::create(self.meter, self.path, FILE)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        for number in 0..self.chunks() {
            chunk[(number % CHUNK_BYTES as u64) as usize] ^= 1;
            file.write(self.meter, &chunk)?;
        }
        file.close(self.meter)
    }

    fn get(&mut self) -> Result<()> {
        let file = Handle::read_only(self.meter, self.path, FILE)?;
        let mut from = Get { file, buffer: vec![0; STDIO_BYTES], filled: 0, at: 0 };
        let mut seen = [0_u64; 256];
        while let Some(byte) = from.get(self.meter)? {
            seen[usize::from(byte)] += 1;
        }
        std::hint::black_box(&seen);
        from.file.close(self.meter)
    }

    fn read(&mut self) -> Result<()> {
        let mut file = Handle::read_only(self.meter, self.path, FILE)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut seen = [0_u64; 256];
        for number in 0..self.chunks() {
            file.read_exact(self.meter, &mut chunk)?;
            seen[usize::from(chunk[(number % CHUNK_BYTES as u64) as usize])] += 1;
        }
        std::hint::black_box(&seen);
        file.close(self.meter)
    }

    /// Seekers take the next seek each, until there is none left.
    fn seek(&mut self, seeks: u32, turn: Turn) -> Result<()> {
        let next = AtomicU32::new(0);
        let (chunks, path) = (self.chunks(), self.path.to_owned());
        let outcomes: Vec<Result<Meter>> = std::thread::scope(|scope| {
            let seekers: Vec<_> = (0..SEEKERS)
                .map(|number| {
                    let seeker = Seeker {
                        path: path.clone(),
                        meter: self.meter.fork(),
                        next: &next,
                        seeks,
                        chunks,
                        random: chance(turn.seed, turn.repeat, u64::from(number)),
                    };
                    scope.spawn(|| seeker.run())
                })
                .collect();
            seekers.into_iter().map(|one| one.join().expect("a seeker does not panic")).collect()
        });
        for outcome in outcomes {
            self.meter.join(outcome?);
        }
        Ok(())
    }

    fn open(&mut self) -> Result<Handle> {
        Handle::open(self.meter, self.path, FILE, File::options().read(true).write(true))
    }
}

struct Seeker<'a> {
    path: PathBuf,
    meter: Meter,
    next: &'a AtomicU32,
    seeks: u32,
    chunks: u64,
    random: rand_xoshiro::Xoshiro256PlusPlus,
}

impl Seeker<'_> {
    fn run(mut self) -> Result<Meter> {
        let meter = &mut self.meter;
        meter.begin();
        let mut how = File::options();
        let file = Handle::open(meter, &self.path, FILE, how.read(true).write(true))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.seeks {
                break;
            }
            let place = self.random.random_range(0..self.chunks) * CHUNK_BYTES as u64;
            file.read_at(meter, &mut chunk, place)?;
            if number.is_multiple_of(UPDATE_EVERY) {
                chunk[0] ^= 1;
                file.write_at(meter, &chunk, place)?;
            }
        }
        meter.end();
        Ok(self.meter)
    }
}

/// Bytes on their way into a file.
struct Put {
    file: Handle,
    buffer: Vec<u8>,
}

impl Put {
    /// A call for each byte, as the original makes one.
    #[inline(never)]
    fn put(&mut self, meter: &mut Meter, byte: u8) -> Result<()> {
        self.buffer.push(byte);
        if self.buffer.len() == STDIO_BYTES { self.flush(meter) } else { Ok(()) }
    }

    fn flush(&mut self, meter: &mut Meter) -> Result<()> {
        self.file.write(meter, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Bytes on their way out of a file.
struct Get {
    file: Handle,
    buffer: Vec<u8>,
    filled: usize,
    at: usize,
}

impl Get {
    /// A call for each byte, as the original makes one; none at the end.
    #[inline(never)]
    fn get(&mut self, meter: &mut Meter) -> Result<Option<u8>> {
        if self.at == self.filled {
            (self.filled, self.at) = (self.file.read(meter, &mut self.buffer)?, 0);
            if self.filled == 0 {
                return Ok(None);
            }
        }
        self.at += 1;
        Ok(Some(self.buffer[self.at - 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::site_with;
    use ioscape_model::SuiteSettings;

    #[test]
    fn each_phase_moves_what_it_should_and_one_seek_in_ten_updates() {
        const LENGTH: u64 = 1 << 20;
        let settings = SuiteSettings { file_bytes: Some(LENGTH), ..SuiteSettings::default() };
        let (_directory, mut site) = site_with(&settings);
        for (form, seeks) in [(Form::Of1990, 4000), (Form::Of1996, 8000)] {
            site.renew(true);
            let mut bonnie = Bonnie::new(form);
            bonnie.prepare(&mut site).unwrap();
            let figures = bonnie.trial(&mut site, Turn { repeat: 0, seed: 7 }).unwrap();
            assert_eq!(figures.len(), 12);
            assert!(figures.iter().all(|figure| figure.value >= 0.0), "{figures:?}");
            let share = site.meter.share().unwrap();
            let chunk = CHUNK_BYTES as u64;
            // Written by byte, rewritten, written by block; then every tenth seek.
            assert_eq!(share.written_bytes, 3 * LENGTH + seeks / 10 * chunk);
            // Rewritten, read by byte, read by block; each seek.
            assert_eq!(share.read_bytes, 3 * LENGTH + seeks * chunk);
            assert_eq!(share.unique_bytes, Some(LENGTH));
            assert!(!site.at("bonnie").exists());
        }
    }
}
