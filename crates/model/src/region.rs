//! Regions: the stretches of a map that have one behaviour, and what they are called.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::show_size;
use crate::{Layer, Workload};

/// Extent of a region, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionUniqueBytes {
    /// From here.
    pub from: f64,
    /// To here.
    pub to: f64,
    /// Where its family is measured.
    pub focal: f64,
}

/// What a region seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// All that was measured: no border divides it.
    WholeRange,
    /// Reads hit, and writes are absorbed.
    Cache,
    /// Writes are absorbed, and reads go to the storage.
    WriteCache,
    /// Reads hit, and writes wait for the storage.
    WriteBack,
    /// Nothing is cached.
    Storage,
    /// The page cache is passed by.
    Device,
}

impl RegionKind {
    const ALL: [Self; 6] = [
        Self::WholeRange,
        Self::Cache,
        Self::WriteCache,
        Self::WriteBack,
        Self::Storage,
        Self::Device,
    ];

    /// As it stands in a region's name: `write-back`.
    fn words(self) -> &'static str {
        match self {
            Self::WholeRange => "whole range",
            Self::Cache => "cache",
            Self::WriteCache => "write cache",
            Self::WriteBack => "write-back",
            Self::Storage => "storage",
            Self::Device => "device",
        }
    }

    /// The names of a map's regions, from the smallest data on: where several are of one kind, they
    /// are numbered from 1.
    pub fn names(kinds: &[Self]) -> Vec<RegionName> {
        let count = |kind: Self, among: &[Self]| -> u32 {
            among.iter().filter(|one| **one == kind).map(|_| 1).sum()
        };
        let name = |(at, &kind): (usize, &Self)| RegionName {
            kind,
            number: (count(kind, kinds) > 1).then(|| count(kind, &kinds[..=at])),
        };
        kinds.iter().enumerate().map(name).collect()
    }
}

/// What a map calls a region: `cache`, `write-back`; `cache 1`, `cache 2` where there are several of
/// a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct RegionName {
    /// What it seems to be.
    pub kind: RegionKind,
    /// Its number among those of its kind, from 1; none where it is the only one.
    pub number: Option<u32>,
}

/// A name that no region has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no region is called `{0}`")]
pub struct UnknownRegion(String);

impl RegionName {
    /// This name, where the first of several is called as the only one is in another map: `cache`
    /// for `cache 1`.
    #[must_use]
    pub fn with_first_unnumbered(self) -> Self {
        Self { number: self.number.filter(|number| *number != 1), ..self }
    }
}

impl From<RegionKind> for RegionName {
    /// The name of the only region of a kind.
    fn from(kind: RegionKind) -> Self {
        Self { kind, number: None }
    }
}

impl fmt::Display for RegionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.words())?;
        self.number.map_or(Ok(()), |number| write!(f, " {number}"))
    }
}

impl FromStr for RegionName {
    type Err = UnknownRegion;

    fn from_str(text: &str) -> Result<Self, UnknownRegion> {
        let numbered = text.rsplit_once(' ');
        let numbered = numbered.and_then(|(words, number)| Some((words, number.parse().ok()?)));
        let (words, number) = numbered.map_or((text, None), |(words, it)| (words, Some(it)));
        let kind = RegionKind::ALL.into_iter().find(|kind| kind.words() == words);
        let name = kind.map(|kind| Self { kind, number });
        // `cache 01` would not be written again as it was read.
        name.filter(|name| name.to_string() == text).ok_or_else(|| UnknownRegion(text.to_owned()))
    }
}

impl TryFrom<String> for RegionName {
    type Error = UnknownRegion;

    fn try_from(text: String) -> Result<Self, UnknownRegion> {
        text.parse()
    }
}

impl From<RegionName> for String {
    fn from(name: RegionName) -> Self {
        name.to_string()
    }
}

/// A region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// What it seems to be: `cache`, `write-back`, `storage`, …
    pub name: RegionName,
    /// Where.
    pub unique_bytes: RegionUniqueBytes,
    /// The focal vector: what the other parameters are held at.
    pub focal: Workload,
    /// The layer it is about.
    #[serde(default)]
    pub layer: Layer,
    /// The revision of the map this belongs to.
    #[serde(default)]
    pub revision: u32,
}

impl Region {
    /// `cache region`, `whole range`.
    pub fn noun(&self) -> String {
        match self.name.kind {
            RegionKind::WholeRange => self.name.to_string(),
            _ => format!("{} region", self.name),
        }
    }

    /// `the cache region (8 MiB to 249 MiB)`, as sentences name it.
    pub fn place(&self) -> String {
        let at = self.unique_bytes;
        format!("the {} ({} to {})", self.noun(), show_size(at.from), show_size(at.to))
    }

    /// `In the cache region (8 MiB to 249 MiB), reads run faster.` out of `reads run faster`.
    pub fn sentence(&self, clause: &str) -> String {
        format!("In {}, {clause}.", self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_about_a_region_names_its_place() {
        let region = |name| Region {
            name,
            unique_bytes: RegionUniqueBytes { from: 8_388_608.0, to: 67_108_864.0, focal: 2e7 },
            focal: Workload::default(),
            layer: Layer::Cache,
            revision: 0,
        };
        let cache = region(RegionName { kind: RegionKind::Cache, number: Some(2) });
        let said = cache.sentence("reads run faster");
        assert_eq!(said, "In the cache 2 region (8 MiB to 64 MiB), reads run faster.");
        let whole = region(RegionKind::WholeRange.into());
        assert_eq!(whole.sentence("x"), "In the whole range (8 MiB to 64 MiB), x.");
    }

    #[test]
    fn names_are_strings_in_a_record_and_read_back() {
        use RegionKind::{Cache, Storage, WriteBack};
        let names = RegionKind::names(&[Cache, WriteBack, Cache, Storage]);
        let texts: Vec<String> = names.iter().map(RegionName::to_string).collect();
        assert_eq!(texts, ["cache 1", "write-back", "cache 2", "storage"]);
        for name in RegionKind::ALL.map(RegionName::from).into_iter().chain(names) {
            let json = serde_json::to_value(name).unwrap();
            assert_eq!(json, name.to_string());
            assert_eq!(serde_json::from_value::<RegionName>(json).unwrap(), name);
        }
        for other in ["", "cache ", "cache 01", "cache +1", "cache  1", "1", "Cache", "<b>"] {
            assert_eq!(other.parse::<RegionName>(), Err(UnknownRegion(other.to_owned())));
        }
    }
}
