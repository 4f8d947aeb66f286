//! The benchmarks there are, by name.

use crate::andrew::Andrew;
use crate::benchmark::Benchmark;
use crate::bonnie::{Bonnie, Form};
use crate::iostone::{first::First, second::Second};
use crate::netnews::NetNews;
use crate::os::Os;
use crate::sdet::Sdet;
use crate::sort::Sort;
use crate::tpcb::TpcB;

/// A benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// `IOStone` of 1987.
    Iostone1987,
    /// `IOStone` of 1990.
    Iostone1990,
    /// Bonnie of 1990.
    Bonnie1990,
    /// Bonnie of 1996.
    Bonnie1996,
    /// The modified Andrew benchmark.
    Andrew,
    /// In the manner of Sdet.
    Sdet,
    /// TPC-B on flat files.
    TpcB,
    /// Reading news.
    NetNews,
    /// An external merge sort.
    Sort,
    /// The operating-system suite.
    Os,
}

impl Name {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 10] = [
        Self::Iostone1987,
        Self::Iostone1990,
        Self::Bonnie1990,
        Self::Bonnie1996,
        Self::Andrew,
        Self::Sdet,
        Self::TpcB,
        Self::NetNews,
        Self::Sort,
        Self::Os,
    ];

    /// Those that Chen and Patterson (1994, Fig. 1) look at.
    pub const CRITICISED: [Self; 5] =
        [Self::Andrew, Self::TpcB, Self::Sdet, Self::Bonnie1990, Self::Iostone1990];

    /// As it is typed and recorded.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iostone1987 => "iostone-1987",
            Self::Iostone1990 => "iostone-1990",
            Self::Bonnie1990 => "bonnie",
            Self::Bonnie1996 => "bonnie-1996",
            Self::Andrew => "andrew",
            Self::Sdet => "sdet",
            Self::TpcB => "tpcb",
            Self::NetNews => "netnews",
            Self::Sort => "sort",
            Self::Os => "os",
        }
    }

    /// In one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Iostone1987 => "4608 reads and writes at random places of one file of 4 MiB",
            Self::Iostone1990 => "396 files opened, read or written whole, and closed",
            Self::Bonnie1990 => "one large file by byte and by block, then 4000 seeks",
            Self::Bonnie1996 => "the same with 8000 seeks",
            Self::Andrew => "a tree of sources made, copied, looked at, read, compiled",
            Self::Sdet => "scripts of UNIX commands per hour, more at a time up to the peak",
            Self::TpcB => "debit and credit on flat files, each commit waits for storage",
            Self::NetNews => "8192 articles of 16 KiB read, with and without noting access times",
            Self::Sort => "an external merge sort of 48 MB",
            Self::Os => "getpid, cswitch, select, bcopy, read, open-close, create-delete, Andrew",
        }
    }

    /// How the benchmark grows with the system, by its own rules.
    pub fn scaling(self) -> &'static str {
        match self {
            Self::Sdet => "load, to the peak",
            Self::TpcB => "load and data",
            Self::Bonnie1990 | Self::Bonnie1996 => "by hand: file size",
            _ => "no",
        }
    }

    /// The benchmark of that name.
    pub fn parse(text: &str) -> Option<Self> {
        let text = if text == "bonnie-1990" { "bonnie" } else { text };
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    /// What to say of a name that is none.
    pub fn unknown(text: &str) -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|name| name.as_str()).collect();
        format!("no benchmark is called `{text}`: try one of {}", names.join(", "))
    }

    /// How often it is tried where nobody says.
    pub fn repeats(self) -> u32 {
        match self {
            Self::Iostone1987 | Self::Iostone1990 | Self::NetNews | Self::Andrew => 10,
            Self::Os => 11,
            Self::TpcB | Self::Sort | Self::Bonnie1990 | Self::Bonnie1996 => 5,
            Self::Sdet => 3,
        }
    }

    /// Makes it.
    pub(crate) fn make(self) -> Box<dyn Benchmark> {
        match self {
            Self::Iostone1987 => Box::new(First),
            Self::Iostone1990 => Box::<Second>::default(),
            Self::Bonnie1990 => Box::new(Bonnie::new(Form::Of1990)),
            Self::Bonnie1996 => Box::new(Bonnie::new(Form::Of1996)),
            Self::Andrew => Box::<Andrew>::default(),
            Self::Sdet => Box::new(Sdet),
            Self::TpcB => Box::<TpcB>::default(),
            Self::NetNews => Box::<NetNews>::default(),
            Self::Sort => Box::<Sort>::default(),
            Self::Os => Box::<Os>::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for name in Name::ALL {
            assert_eq!(Name::parse(name.as_str()), Some(name));
            assert!(!name.about().is_empty() && name.repeats() >= 2);
        }
        assert_eq!(Name::parse("bonnie-1990"), Some(Name::Bonnie1990));
        assert_eq!(Name::parse("iostone"), None);
        assert!(Name::unknown("x").contains("iostone-1990"));
    }
}
