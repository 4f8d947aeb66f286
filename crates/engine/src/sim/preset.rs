//! The descriptions that come with the tool. Where each number comes from is said in the files.

use super::spec::SimSpec;
use crate::error::{Error, Result};

const PRESETS: [(&str, &str); 8] = [
    ("nvme", include_str!("presets/nvme.toml")),
    ("hdd", include_str!("presets/hdd.toml")),
    ("cloud-volume", include_str!("presets/cloud-volume.toml")),
    ("sparcstation-1plus", include_str!("presets/sparcstation-1plus.toml")),
    ("decstation-5000", include_str!("presets/decstation-5000.toml")),
    ("hp-730", include_str!("presets/hp-730.toml")),
    ("convex-c240", include_str!("presets/convex-c240.toml")),
    ("solbourne-5e", include_str!("presets/solbourne-5e.toml")),
];

/// Without a law that is known.
const MACHINES: [(&str, &str); 2] = [
    ("pages-disk", include_str!("presets/pages-disk.toml")),
    ("pages-flash", include_str!("presets/pages-flash.toml")),
];

/// Faster at first than for long: with a known law for both.
const FADING: [(&str, &str); 2] = [
    ("consumer-ssd", include_str!("presets/consumer-ssd.toml")),
    ("burst-volume", include_str!("presets/burst-volume.toml")),
];

impl SimSpec {
    /// A description that comes with the tool.
    ///
    /// # Errors
    /// When there is none of that name; says which there are.
    pub fn preset(name: &str) -> Result<Self> {
        let all = || PRESETS.iter().chain(&MACHINES).chain(&FADING);
        let Some((_, text)) = all().find(|(known, _)| *known == name) else {
            return Err(Error::Sim(format!(
                "there is no simulated device `{name}`; try one of {}",
                Self::all_names().join(", ")
            )));
        };
        Self::from_toml(text)
    }

    /// The names of the presets with a known law.
    pub fn names() -> Vec<&'static str> {
        PRESETS.iter().map(|(name, _)| *name).collect()
    }

    /// The names of those with a `[machine]`, whose law nobody knows.
    pub fn machine_names() -> Vec<&'static str> {
        MACHINES.iter().map(|(name, _)| *name).collect()
    }

    pub(super) fn all_names() -> Vec<&'static str> {
        let fading = FADING.iter().map(|(name, _)| *name).collect();
        [Self::names(), Self::machine_names(), fading].concat()
    }
}
