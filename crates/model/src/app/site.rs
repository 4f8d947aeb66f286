//! A web site as its access log shows it: a set of files like the site's, and profiles of visitors
//! (after Seltzer et al. 1999, section 4.2). No path, address or agent is in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Larger counts and sizes are none of a site.
const COUNT_MAX: u64 = 1 << 50;
/// Requests of a session, at most.
const LENGTH_MAX: u64 = 1 << 24;
/// A year: who pauses longer comes back as another visitor.
const GAP_MAX_MS: u64 = 366 * 86_400_000;
const BYTES_MAX: u64 = 1 << 40;
const DIRECTORIES_MAX: u64 = 10_000_000;
const STARTS_MAX: usize = 100_000;
const TIME_MIN_S: f64 = 0.001;
const TIME_MAX_S: f64 = 1e10;

/// A web site: its files, and how visitors ask for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Site {
    /// How long the log is, seconds.
    pub elapsed_s: f64,
    /// Requests of all sessions.
    pub requests: u64,
    /// Sessions: requests of one visitor, without a pause of half an hour.
    pub sessions: u64,
    /// Sessions at a time, mean.
    pub sessions_mean: f64,
    /// Directories that the files are in.
    pub directories: u64,
    /// Files, those first that are asked for most.
    pub files: Vec<FileGroup>,
    /// Visitors, by how much they ask for.
    pub profiles: Vec<Profile>,
    /// Sessions that began in each of several stretches of time, all as long.
    pub starts: Vec<u64>,
    /// How long each of them is, seconds; 0 where they divide the log evenly.
    pub stretch_s: f64,
    /// Month by month of the calendar, to see growth.
    pub months: Vec<Month>,
}

impl Site {
    /// Files of a kind.
    #[must_use]
    pub fn files_of(&self, kind: PageKind) -> u64 {
        let groups = self.files.iter().filter(|group| group.kind == kind);
        groups.fold(0, |sum, group| sum.saturating_add(group.files))
    }

    /// All files together, bytes: of each group as many as if all had its middle size.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        let middle = |group: &FileGroup| {
            (group.bytes_min as f64 * group.bytes_max as f64).sqrt() * group.files as f64
        };
        self.files.iter().map(middle).sum()
    }

    /// Requests of as many sessions as begin, by the lengths of the profiles.
    #[must_use]
    pub fn expected_requests(&self) -> f64 {
        let lengths = || self.profiles.iter().flat_map(|profile| &profile.lengths);
        let sessions: f64 = lengths().map(|each| each.count as f64).sum();
        let requests: f64 = lengths()
            .map(|each| each.count as f64 * f64::midpoint(each.from as f64, each.to as f64))
            .sum();
        let begin: f64 = self.starts.iter().map(|starts| *starts as f64).sum();
        if sessions > 0.0 { requests / sessions * begin } else { 0.0 }
    }

    /// Whether any visitor pauses between requests.
    #[must_use]
    pub fn has_pauses(&self) -> bool {
        let gaps = |profile: &Profile| {
            [&profile.page_gaps_ms, &profile.object_gaps_ms].map(Vec::as_slice).concat()
        };
        self.profiles.iter().flat_map(gaps).any(|gap| gap.count > 0 && gap.to > 0)
    }

    /// Names what cannot be, if anything: a site may be typed by hand.
    pub(super) fn check(&self) -> Result<(), String> {
        let times = [self.elapsed_s, self.stretch_s];
        let is_sound = |number: &f64| *number == 0.0 || (TIME_MIN_S..=TIME_MAX_S).contains(number);
        if !times.iter().all(is_sound) || !(0.0..=TIME_MAX_S).contains(&self.sessions_mean) {
            return Err(format!(
                "elapsed_s and stretch_s must be 0 or lie between {TIME_MIN_S} and \
                 {TIME_MAX_S}, and sessions_mean be no less than 0"
            ));
        }
        if self.directories > DIRECTORIES_MAX || self.starts.len() > STARTS_MAX {
            return Err(format!(
                "directories must be no more than {DIRECTORIES_MAX}, and starts no longer than \
                 {STARTS_MAX}"
            ));
        }
        for (at, group) in self.files.iter().enumerate() {
            let is_sound = group.bytes_min <= group.bytes_max && group.bytes_max <= BYTES_MAX;
            if !is_sound || group.unchanged > group.requests {
                return Err(format!(
                    "files[{at}]: bytes_min must be no more than bytes_max, that no more than \
                     {BYTES_MAX}, and unchanged no more than requests"
                ));
            }
        }
        for (at, profile) in self.profiles.iter().enumerate() {
            let all = [&profile.lengths, &profile.page_gaps_ms, &profile.object_gaps_ms];
            let is_sound = |each: &Counted| each.from <= each.to && each.to <= GAP_MAX_MS;
            let long = |each: &Counted| each.to > LENGTH_MAX || each.from == 0;
            if !all.iter().all(|list| list.iter().all(is_sound)) || profile.lengths.iter().any(long)
            {
                return Err(format!(
                    "profiles[{at}]: each of lengths and gaps is [from, to, count], from no more than \
                     to, a length no more than {LENGTH_MAX}"
                ));
            }
        }
        let counts = self.files.iter().flat_map(|group| [group.files, group.requests]);
        let lists = self
            .profiles
            .iter()
            .flat_map(|profile| [&profile.lengths, &profile.page_gaps_ms, &profile.object_gaps_ms]);
        let spread = lists.flatten().map(|each| each.count);
        let turns = self.profiles.iter().flat_map(|profile| {
            [profile.first, profile.after_page, profile.after_object].into_iter().flatten()
        });
        let mut all = counts.chain(spread).chain(turns).chain(self.starts.iter().copied());
        if all.try_fold(0, u64::checked_add).is_none_or(|sum| sum > COUNT_MAX) {
            return Err(format!("all counts together must be no more than {COUNT_MAX}"));
        }
        Ok(())
    }
}

/// Files that are asked for about equally often, and are about as large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FileGroup {
    /// What they are.
    pub kind: PageKind,
    /// How many.
    pub files: u64,
    /// Requests for all of them.
    pub requests: u64,
    /// Of these, requests of visitors who had the file already ("304 Not Modified").
    #[serde(skip_serializing_if = "is_zero")]
    pub unchanged: u64,
    /// Size of the smallest, bytes.
    pub bytes_min: u64,
    /// Size of the largest, bytes.
    pub bytes_max: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a file is to a visitor.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PageKind {
    /// A page, or whatever else is asked for by itself.
    #[default]
    Page,
    /// An object embedded in pages: an image, a script, a style sheet.
    Object,
    /// A name that is not there.
    Missing,
}

/// Visitors who ask for about as much in a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Profile {
    /// Sessions, by the number of their requests.
    pub lengths: Vec<Counted>,
    /// Requests that follow a page: for a page, for an object.
    pub after_page: [u64; 2],
    /// Requests that follow an object: for a page, for an object.
    pub after_object: [u64; 2],
    /// Sessions that begin with a page, with an object.
    pub first: [u64; 2],
    /// Time from the request before to one for a page (off time), milliseconds.
    pub page_gaps_ms: Vec<Counted>,
    /// Time from the request before to one for an object, milliseconds.
    pub object_gaps_ms: Vec<Counted>,
}

/// A value between two, and how often it came: `[from, to, count]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "[u64; 3]", into = "[u64; 3]")]
#[schemars(with = "[u64; 3]")]
pub struct Counted {
    /// The smallest value.
    pub from: u64,
    /// The largest value.
    pub to: u64,
    /// How often.
    pub count: u64,
}

impl From<[u64; 3]> for Counted {
    fn from([from, to, count]: [u64; 3]) -> Self {
        Self { from, to, count }
    }
}

impl From<Counted> for [u64; 3] {
    fn from(counted: Counted) -> Self {
        [counted.from, counted.to, counted.count]
    }
}

/// A month of the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Month {
    /// The first month of the log is 0.
    pub number: u32,
    /// Share of the month that the log covers.
    pub covered_frac: f64,
    /// Requests in it.
    pub requests: u64,
    /// Sessions that began in it.
    pub sessions: u64,
    /// Files that were asked for in it.
    pub files: u64,
}
