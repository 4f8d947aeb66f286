//! NetNews (Seltzer and others 1999, section 3): reading many small articles that lie in wide
//! directories, where the filesystem notes the time of each access and where it does not.
//!
//! 8192 files of 16 KiB are written, 512 to a directory. In each trial all of them are read once
//! in a random order: once in the filesystem's own way, once without noting access times
//! (`O_NOATIME`), which of the two comes first changing from trial to trial. Before each reading
//! the data are dropped from the page cache, and access times are set a day back, for a mount with
//! `relatime` notes an access only where the last one is older than the last change or a day. After
//! it, the time until everything is on storage counts in a figure of its own, since the times that
//! were noted are written then.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ioscape_engine::counters::Counters;
use ioscape_engine::error::{Error, Result};
use ioscape_model::warning::Code;
use ioscape_model::{Better, Severity, TrialFigure, Warning, Words};
use rand::seq::SliceRandom;
use rustix::fs::OFlags;

use crate::benchmark::{Benchmark, Turn, bytes_per_s, count};
use crate::handle::Handle;
use crate::meter::Call;
use crate::site::{Site, chance};

const ARTICLES: f64 = 8192.0;
const ARTICLE_BYTES: usize = 16 << 10;
const DIRECTORY_ARTICLES: usize = 512;
/// How old access times are made. More than the day that `relatime` asks for.
const AGE: Duration = Duration::from_secs(2 * 24 * 3600);
/// Below this share of the data read from the device it was not cold.
const COLD: f64 = 0.9;

/// The benchmark.
#[derive(Debug, Default)]
pub struct NetNews {
    articles: Vec<PathBuf>,
}

/// How articles are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// As the mount has it.
    Noted,
    /// `O_NOATIME`.
    Unnoted,
}

fn articles(scale: f64) -> usize {
    ((ARTICLES * scale) as usize).max(16)
}

impl Benchmark for NetNews {
    fn room_bytes(&self, site: &Site) -> u64 {
        (articles(site.settings.scale) * (ARTICLE_BYTES + 4096)) as u64
    }

    fn prepare(&mut self, site: &mut Site) -> Result<()> {
        self.articles.clear();
        let mut text = vec![0; ARTICLE_BYTES];
        let mut random = chance(0, 0, 0);
        for number in 0..articles(site.settings.scale) {
            let directory = site.at(&format!("group{:03}", number / DIRECTORY_ARTICLES));
            if number % DIRECTORY_ARTICLES == 0 {
                fs::create_dir(&directory).map_err(|e| Error::path("create", &directory, e))?;
            }
            rand::Rng::fill_bytes(&mut random, &mut text);
            let path = directory.join(number.to_string());
            let mut file = Handle::create(&mut site.meter, &path, number as u32)?;
            file.write(&mut site.meter, &text)?;
            self.articles.push(path);
        }
        sync(site)
    }

    fn trial(&mut self, site: &mut Site, turn: Turn) -> Result<Vec<TrialFigure>> {
        let mut order: Vec<usize> = (0..self.articles.len()).collect();
        order.shuffle(&mut chance(turn.seed, turn.repeat, 0));
        let mut ways = [Access::Noted, Access::Unnoted];
        if turn.repeat % 2 == 1 {
            ways.reverse();
        }
        let mut rates = [[0.0; 2]; 2];
        for way in ways {
            rates[way as usize] = self.read_all(site, &order, way)?;
        }
        let [noted, unnoted] = rates;
        let gain = TrialFigure { better: Better::Neither, ..count("", 0.0, "") };
        let ratio = |name: &str, k: usize| TrialFigure {
            name: name.to_owned(),
            value: unnoted[k] / noted[k],
            ..gain.clone()
        };
        Ok(vec![
            bytes_per_s("read", noted[0]),
            bytes_per_s("read, O_NOATIME", unnoted[0]),
            ratio("gain by O_NOATIME", 0),
            bytes_per_s("read and sync", noted[1]),
            bytes_per_s("read and sync, O_NOATIME", unnoted[1]),
            ratio("gain by O_NOATIME, with sync", 1),
        ])
    }
}

impl NetNews {
    /// Bytes per second of reading, and of reading with what is left to write.
    fn read_all(&self, site: &mut Site, order: &[usize], way: Access) -> Result<[f64; 2]> {
        self.age(site)?;
        sync(site)?;
        self.drop_from_cache()?;
        let counters = Counters::open();
        let fetched = || counters.process_io().map(|io| io.device_read_bytes);
        let before = fetched();
        let mut how = File::options();
        how.read(true);
        if way == Access::Unnoted {
            how.custom_flags(OFlags::NOATIME.bits().cast_signed());
        }
        let mut buffer = vec![0; ARTICLE_BYTES];
        let bytes = (order.len() * ARTICLE_BYTES) as f64;
        site.meter.begin();
        for &number in order {
            let path = &self.articles[number];
            let mut file = Handle::open(&mut site.meter, path, number as u32, &how)?;
            file.read_exact(&mut site.meter, &mut buffer)?;
            file.close(&mut site.meter)?;
        }
        let read_s = site.meter.end();
        let from_device = fetched().zip(before).map(|(after, before)| (after - before) as f64);
        site.meter.begin();
        sync(site)?;
        let synced_s = site.meter.end();
        if site.directory().counters_trusted() {
            warn_if_warm(site, from_device.map(|device| device / bytes));
        }
        if way == Access::Noted {
            warn_if_unnoted(site, &self.articles[order[0]])?;
        }
        Ok([bytes / read_s, bytes / (read_s + synced_s)])
    }

    /// Sets access times back, behind the times of change.
    fn age(&self, site: &Site) -> Result<()> {
        for path in &self.articles {
            site.meter.check()?;
            let failed = |error| Error::path("set the times of", path, error);
            let file = File::open(path).map_err(failed)?;
            let modified = file.metadata().and_then(|found| found.modified()).map_err(failed)?;
            let accessed = modified.checked_sub(AGE).unwrap_or(SystemTime::UNIX_EPOCH);
            file.set_times(FileTimes::new().set_accessed(accessed)).map_err(failed)?;
        }
        Ok(())
    }

    fn drop_from_cache(&self) -> Result<()> {
        for path in &self.articles {
            let failed = |error: std::io::Error| Error::path("drop from the cache", path, error);
            let file = File::open(path).map_err(failed)?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .map_err(|error| failed(error.into()))?;
        }
        Ok(())
    }
}

/// Waits until all of the filesystem is on storage.
fn sync(site: &mut Site) -> Result<()> {
    let path = site.path().to_owned();
    let failed = |error: std::io::Error| Error::path("sync", &path, error);
    let directory = File::open(&path).map_err(failed)?;
    site.meter.at(Call::Sync, 0, (0, 0), || Ok(rustix::fs::syncfs(&directory)?)).map_err(failed)
}

fn warn_if_warm(site: &mut Site, from_device: Option<f64>) {
    let Some(share) = from_device.filter(|share| *share < COLD) else { return };
    site.warnings.push(
        Warning::new(
            Code::CacheState,
            Words::new(
                "only {device_share:.0} of the articles came from the device: something else holds \
                 them in memory, or the filesystem reads past this process's account",
            )
            .figure("device_share", share),
            "name a directory on a local disk",
        )
        .with_severity(Severity::Warning),
    );
}

/// An access that was not noted is no comparison.
fn warn_if_unnoted(site: &mut Site, path: &Path) -> Result<()> {
    let found = fs::metadata(path).map_err(|error| Error::path("look at", path, error))?;
    let noted = found.accessed().ok().zip(found.modified().ok());
    if noted.is_none_or(|(accessed, modified)| accessed < modified) {
        site.warnings.push(
            Warning::new(
                Code::NotFaithful,
                "this mount notes no access times: both ways of reading are the same",
                "mount with strictatime, or name a second target that is",
            )
            .with_severity(Severity::Note),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::site_with;
    use ioscape_model::SuiteSettings;

    #[test]
    fn all_articles_are_read_twice_and_only_one_of_the_ways_may_be_noted() {
        let settings = SuiteSettings { scale: 0.005, ..SuiteSettings::default() };
        let (_directory, mut site) = site_with(&settings);
        let mut news = NetNews::default();
        news.prepare(&mut site).unwrap();
        assert_eq!(news.articles.len(), 40);
        site.renew(true);
        let figures = news.trial(&mut site, Turn { repeat: 0, seed: 1 }).unwrap();
        assert!(figures.iter().all(|figure| figure.value > 0.0), "{figures:?}");
        let share = site.meter.share().unwrap();
        assert_eq!(share.reads, 80);
        assert_eq!(share.unique_bytes, Some(40 * ARTICLE_BYTES as u64));
        // Read without a note, the access stays two days old.
        news.age(&site).unwrap();
        let order: Vec<usize> = (0..40).collect();
        news.read_all(&mut site, &order, Access::Unnoted).unwrap();
        let found = fs::metadata(&news.articles[0]).unwrap();
        let before = found.modified().unwrap().duration_since(found.accessed().unwrap()).unwrap();
        assert_eq!(before, AGE);
    }
}
