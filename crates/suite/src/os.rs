//! The operating-system suite of Ousterhout 1990: entering the kernel, switching processes,
//! select, copying memory, reading from the file cache, opening and closing, creating and
//! deleting, and the modified Andrew benchmark; beside them the speed of the processor alone.
//!
//! A figure over the same of a MicroVAX II, over the ratio of their processors, is its
//! MIPS-relative speed: below one, the operating system has not kept up with the processor.

pub mod kernel;
mod memory;
pub mod names;
mod processes;
mod timing;

use ioscape_engine::error::Result;
use ioscape_model::TrialFigure;

use crate::andrew::Andrew;
use crate::benchmark::{Benchmark, Turn, rate};
use crate::ousterhout::{self, Published};
use crate::site::Site;
use memory::CachedFile;
use timing::Timer;

/// Of the last file that is kept: the one that is read.
const ROOM_BESIDE_BYTES: u64 = 16 << 20;

/// The benchmark.
#[derive(Debug, Default)]
pub struct Os {
    andrew: Andrew,
    cached: Option<CachedFile>,
}

impl Benchmark for Os {
    fn room_bytes(&self, site: &Site) -> u64 {
        memory::file_bytes(&site.host) + ROOM_BESIDE_BYTES
    }

    fn prepare(&mut self, site: &mut Site) -> Result<()> {
        self.cached = Some(CachedFile::lay_out(site)?);
        names::prepare(site)?;
        self.andrew.prepare(site)
    }

    fn trial(&mut self, site: &mut Site, turn: Turn) -> Result<Vec<TrialFigure>> {
        let timer = Timer { clock: site.clock(), slice_s: site.settings.slice_s };
        let mips = kernel::rate_mips(&timer, &site.meter)?;
        let mut figures = vec![rate("integer kernel", mips, "MIPS")];
        figures.extend(processes::figures(&timer, site)?);
        figures.extend(memory::copies(&timer, site)?);
        if let Some(cached) = &self.cached {
            figures.extend(cached.figures(&timer, site)?);
        }
        figures.extend(names::figures(&timer, site)?);
        let andrew = self.andrew.trial(site, turn)?;
        figures.extend(
            andrew
                .into_iter()
                .map(|figure| TrialFigure { name: format!("andrew {}", figure.name), ..figure }),
        );
        figures.extend(relative(&figures, mips));
        Ok(figures)
    }
}

/// MIPS-relative speeds against the MicroVAX II of 1990, and their geometric means.
fn relative(figures: &[TrialFigure], mips: f64) -> Vec<TrialFigure> {
    let published = Published::of_1990();
    let mut relative = Vec::new();
    for (ours, theirs) in ousterhout::COMPARED {
        let figure = figures.iter().find(|figure| figure.name == ours);
        let speed = figure.and_then(|figure| {
            ousterhout::relative_to_1990(&published, theirs, (figure.value, &figure.unit), mips)
        });
        if let Some(speed) = speed {
            relative.push((ours, speed));
        }
    }
    let mean = |with_copy: bool| {
        let chosen = relative.iter().filter(|(name, _)| with_copy || *name != ousterhout::COPY);
        ousterhout::geometric_mean(chosen.map(|(_, speed)| *speed))
    };
    let (without, with) = (mean(false), mean(true));
    let mut made: Vec<TrialFigure> = relative
        .into_iter()
        .map(|(name, speed)| rate(&format!("relative {name}"), speed, ""))
        .collect();
    made.push(rate("relative, geometric mean", without, ""));
    made.push(rate("relative, with bcopy", with, ""));
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::site_with;
    use ioscape_model::SuiteSettings;

    #[test]
    fn a_trial_has_all_figures_and_they_are_plausible() {
        let settings = SuiteSettings { slice_s: 0.002, ..SuiteSettings::default() };
        let (_directory, mut site) = site_with(&settings);
        let mut os = Os::default();
        os.prepare(&mut site).unwrap();
        // Slices are so short that whoever is put aside in one seems slow. In five trials the median
        // of a figure counts: it is wrong where three of them are put aside at the same figure, with
        // one in twenty once in a thousand times.
        let trials =
            [0, 1, 2, 3, 4].map(|repeat| os.trial(&mut site, Turn { repeat, seed: 1 }).unwrap());
        let value = |name: &str| {
            let mut values = trials.each_ref().map(|figures| {
                let found = figures.iter().find(|figure| figure.name == name);
                found.unwrap_or_else(|| panic!("no {name} in {figures:?}")).value
            });
            values.sort_by(f64::total_cmp);
            values[2]
        };
        for (ours, _) in ousterhout::COMPARED {
            assert!(value(ours) > 0.0 && value(&format!("relative {ours}")) > 0.0, "{ours}");
        }
        assert!(value("open-close a/b/c/foo") > 0.0 && value("andrew total") > 0.0);
        let plausible = [
            ("getpid", 1e-8..1e-3),
            ("cswitch", value("getpid")..1.0),
            ("switches per round trip", 1.9..f64::MAX),
            ("read", 1e7..1e13),
            ("relative, geometric mean", 1e-4..1e3),
            ("relative, with bcopy", 1e-4..1e3),
        ];
        for (name, range) in plausible {
            assert!(range.contains(&value(name)), "{name}: {} in {range:?}", value(name));
        }
    }
}
