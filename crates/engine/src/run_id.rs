//! The name of a run in file names, control groups and state files: hexadecimal, so that what a
//! killed run left behind is told from anything a user could have made.

use std::fmt;

use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Result};

const LENGTH_MIN: usize = 8;
const LENGTH_MAX: usize = 32;

/// Names one run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId(String);

impl RunId {
    /// A new one, by chance. Asks the kernel and no file, for a container may have no `/dev`.
    ///
    /// # Errors
    /// When the kernel gives no random numbers.
    pub fn random() -> Result<Self> {
        let mut bytes = [0_u8; 8];
        getrandom(&mut bytes, GetRandomFlags::empty())
            .map_err(|error| Error::path("read", "the kernel's random numbers", error))?;
        Ok(Self(format!("{:012x}", u64::from_ne_bytes(bytes) >> 16)))
    }

    /// The one that `text` names: 8 to 32 lower-case hexadecimal digits, nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let length_fits = (LENGTH_MIN..=LENGTH_MAX).contains(&text.len());
        let hexadecimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (length_fits && hexadecimal).then(|| Self(text.to_owned()))
    }

    /// Name of what a rank has for itself, beside other ranks on one machine: its control group.
    #[must_use]
    pub fn of_rank(&self, rank: u32) -> Self {
        if rank == 0 { self.clone() } else { Self(format!("{self}{rank:06x}")) }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are of one command: the two sides of a live comparison have names that differ in
    /// their last digit only.
    pub fn is_of_same_command(&self, other: &Self) -> bool {
        let shared = |id: &Self| id.0[..id.0.len() - 1].to_owned();
        shared(self) == shared(other)
    }

    /// Name of the run's file `number` in the target directory.
    pub fn file_name(&self, number: usize) -> String {
        format!(".ioscape-{self}-{number}")
    }

    /// The run and number that a file name stands for: the inverse of [`Self::file_name`], exact.
    pub fn of_file_name(name: &str) -> Option<(Self, usize)> {
        let (run, number) = name.strip_prefix(".ioscape-")?.split_once('-')?;
        let (run, number) = (Self::parse(run)?, number.parse().ok()?);
        (run.file_name(number) == name).then_some((run, number))
    }

    /// Name of the run's control group.
    pub fn group_name(&self) -> String {
        format!("ioscape-{self}")
    }

    /// The run that a control group's name stands for.
    pub fn of_group_name(name: &str) -> Option<Self> {
        Self::parse(name.strip_prefix("ioscape-")?)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_go_there_and_back() {
        let run = RunId::random().unwrap();
        assert_eq!(RunId::parse(run.as_str()), Some(run.clone()));
        assert_eq!(RunId::of_file_name(&run.file_name(17)), Some((run.clone(), 17)));
        assert_eq!(RunId::of_group_name(&run.group_name()), Some(run));
    }

    #[test]
    fn two_sides_of_one_comparison_are_known_as_such() {
        let run = |text: &str| RunId::parse(text).unwrap();
        assert!(run("0123456789aba").is_of_same_command(&run("0123456789abb")));
        assert!(!run("0123456789ab").is_of_same_command(&run("0123456789aba")));
        assert!(!run("0123456789ab").is_of_same_command(&run("0123456789bb")));
    }

    #[test]
    fn names_that_a_user_could_have_chosen_are_not_ours() {
        for name in [
            ".ioscape-notes-1",
            ".ioscape-0123abcd",
            ".ioscape-0123abcd-",
            ".ioscape-0123abcd-01",
            ".ioscape-0123abcd-+1",
            ".ioscape-0123abcd-1.bak",
            ".ioscape-0123ABCD-1",
            ".ioscape-0123abc-1",
            "ioscape-0123abcd-1",
        ] {
            assert_eq!(RunId::of_file_name(name), None, "{name}");
        }
        assert_eq!(RunId::of_group_name("ioscape-other-group"), None);
    }
}
