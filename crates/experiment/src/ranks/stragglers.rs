//! Ranks that fall behind, and what they wait for: pure arithmetic over the windows of a visit.
//!
//! Throughput of storage that many share scatters, so falling behind is a matter of most windows, not
//! of the mean alone: a rank is named when each of its processes gets much less than those of the
//! typical other rank, in nearly every window.

use ioscape_model::units::three_digits;
use ioscape_model::{Code, RankFigures, Resource, Severity, Waits, Warning, Words};

/// A rank is behind when its mean is below this share of what the typical other gets.
const BEHIND: f64 = 0.8;
/// In place of [`BEHIND`] for a rank that a quota holds back while another is free (a rank held to
/// 70 % of a processor got 81 %, because the other was slower by chance).
const BEHIND_BY_QUOTA: f64 = 0.9;
/// In place of [`BEHIND`] where all ranks are on one machine, for a rank that ran nearly all the time:
/// processors of one machine differ from second to second (of 60 pairs that nothing held, reading
/// cached data on two processors, six had a rank that got 65 to 84 % of the other).
const BEHIND_RUNNING: f64 = 0.6;
/// A rank that is behind is below this share of the others in nearly every window as well.
const BEHIND_IN_WINDOW: f64 = 0.95;
/// Nearly every window: this share of them.
const WINDOWS_SHARE: f64 = 0.8;
/// Visits with fewer windows name nobody.
const WINDOWS_MIN: usize = 8;
/// Of the time measured, what a quota takes before it is the reason.
const QUOTA_SHARE: f64 = 0.05;
/// Of each process's time, what waiting for a processor takes beyond what it takes the others.
const QUEUE_SHARE: f64 = 0.1;
/// A process that runs, or is ready to run, for this share of its time is held up by nothing but its
/// processor, which may be a slower one, or one whose cache others fill.
const RUNNING_SHARE: f64 = 0.9;

/// The windows of a rank, and its waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Course {
    /// Number of its host.
    pub(super) host: u32,
    pub(super) processes: u32,
    /// Bytes per second of each window.
    pub(super) rates: Vec<f64>,
    pub(super) length_s: f64,
    pub(super) waits: Waits,
    /// Each process is one thread that makes one request at a time: the time of its threads is that
    /// of its processes.
    pub(super) is_one_by_one: bool,
    /// The resource that its files wait for where nothing else holds them up.
    pub(super) storage: Option<Resource>,
}

impl Course {
    /// True if its quota of processor time had run out for a good part of the visit.
    fn is_held_by_quota(&self) -> bool {
        self.waits.quota_s > QUOTA_SHARE * self.length_s
    }

    /// Of each of its processes, in the mean.
    fn mean(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len().max(1) as f64 / f64::from(self.processes)
    }

    fn rate(&self, window: usize) -> Option<f64> {
        Some(self.rates.get(window)? / f64::from(self.processes))
    }

    /// Share of each process's time that it waited for a processor.
    fn queue_share(&self) -> f64 {
        self.waits.run_queue_s / self.time_s()
    }

    /// Share of each process's time that it ran or was ready to.
    fn ready_share(&self) -> f64 {
        (self.waits.running_s + self.waits.run_queue_s) / self.time_s()
    }

    /// Time of all its processes.
    fn time_s(&self) -> f64 {
        (self.length_s * f64::from(self.processes)).max(1e-9)
    }
}

/// Why a rank is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Quota,
    RunQueue,
    Memory,
    /// It ran all the while: a slower processor, or one whose cache others fill.
    Running,
    IoLimit,
    Storage(Resource),
}

impl Cause {
    fn resource(self) -> Resource {
        match self {
            Self::Quota | Self::RunQueue | Self::Running => Resource::Processor,
            Self::Memory => Resource::Memory,
            Self::IoLimit => Resource::Device,
            Self::Storage(resource) => resource,
        }
    }
}

/// The ranks that fell behind, and what for. Ranks without processes do not count.
pub(super) fn find(courses: &[Course]) -> Vec<(usize, Resource)> {
    let working = |rank: &usize| courses[*rank].processes > 0;
    let ranks: Vec<usize> = (0..courses.len()).filter(working).collect();
    let others = |rank: usize| ranks.iter().copied().filter(move |other| *other != rank);
    let typical = |rank: usize, value: &dyn Fn(&Course) -> f64| {
        median(others(rank).map(|other| value(&courses[other])).collect())
    };
    let cause = |rank: usize| {
        let course = &courses[rank];
        let queue = typical(rank, &Course::queue_share).unwrap_or(0.0);
        let events = typical(rank, &|course| course.waits.memory_events as f64).unwrap_or(0.0);
        if course.is_held_by_quota() {
            Cause::Quota
        } else if course.queue_share() > queue + QUEUE_SHARE {
            Cause::RunQueue
        } else if course.waits.memory_events as f64 > 10.0 * events.max(1.0) {
            // Memory is reclaimed on the time of who needs it, so that it runs all the while.
            Cause::Memory
        } else if course.is_one_by_one && course.ready_share() > RUNNING_SHARE {
            Cause::Running
        } else if course.waits.has_io_limit {
            Cause::IoLimit
        } else {
            Cause::Storage(course.storage.unwrap_or(Resource::Unknown))
        }
    };
    let is_one_machine = ranks.iter().all(|&rank| courses[rank].host == courses[ranks[0]].host);
    let is_any_free = ranks.iter().any(|&rank| !courses[rank].is_held_by_quota());
    let is_behind = |rank: &usize| {
        let course = &courses[*rank];
        let windows = course.rates.len();
        let behind = match cause(*rank) {
            Cause::Quota if is_any_free => BEHIND_BY_QUOTA,
            Cause::Running if is_one_machine => BEHIND_RUNNING,
            _ => BEHIND,
        };
        let lower = (0..windows).filter(|window| {
            let theirs = others(*rank).filter_map(|other| courses[other].rate(*window)).collect();
            course
                .rate(*window)
                .zip(median(theirs))
                .is_some_and(|(ours, theirs)| ours < BEHIND_IN_WINDOW * theirs)
        });
        windows >= WINDOWS_MIN
            && typical(*rank, &Course::mean).is_some_and(|typical| course.mean() < behind * typical)
            && lower.count() as f64 >= WINDOWS_SHARE * windows as f64
    };
    let behind: Vec<usize> = ranks.iter().copied().filter(is_behind).collect();
    // Where half of several get less than the other half, none of them is out of line.
    if behind.len() > 1 && behind.len() * 2 >= ranks.len() {
        return Vec::new();
    }
    behind.into_iter().map(|rank| (rank, cause(rank).resource())).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// The doubt about a rank that fell behind.
pub(super) fn warning(rank: &RankFigures, ratio: f64, resource: Resource) -> Warning {
    let reason = match resource {
        Resource::Processor => "its processors",
        Resource::Memory => "memory: it runs into a limit",
        Resource::Device => "storage on its side",
        Resource::Network => "the network or the server",
        _ => "something that no counter at hand shows",
    };
    let sentence = "rank {rank} gets {of_typical_share} of what the typical other gets for each \
                    process, and is held up by {reason}";
    let mut text = Words::new(sentence);
    if rank.waits.quota_s > 0.0 {
        text = Words::new(format!("{sentence}; a quota held it back for {{quota}} s"))
            .figure("quota_s", rank.waits.quota_s)
            .name("quota", three_digits(rank.waits.quota_s));
    }
    let text = text
        .figure("rank", f64::from(rank.rank))
        .figure("of_typical_share", ratio)
        .name("reason", reason);
    let remedy = match resource {
        Resource::Processor => "look at cpu.max of its control group, and who else runs there",
        Resource::Memory => "look at memory.max of its control group",
        Resource::Network => "look at its link: ping, ethtool, and the mount options",
        _ => "look at its device and at limits on I/O (io.max, blkio.throttle)",
    };
    Warning::new(Code::Ranks, text, remedy).with_severity(Severity::Warning)
}

/// The ratio of what each process of a rank gets to what those of the typical other get.
pub(super) fn ratio(courses: &[Course], rank: usize) -> f64 {
    let others = courses.iter().enumerate().filter(|(other, c)| *other != rank && c.processes > 0);
    let typical = median(others.map(|(_, course)| course.mean()).collect()).unwrap_or(0.0);
    if typical > 0.0 { courses[rank].mean() / typical } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// A rank that gets this much, with this scatter.
    fn course(level: f64, scatter: f64, seed: u64) -> Course {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rates = (0..20).map(|_| 1e8 * level * rng.random_range(1.0 - scatter..1.0 + scatter));
        Course {
            processes: 1,
            rates: rates.collect(),
            length_s: 2.0,
            is_one_by_one: true,
            storage: Some(Resource::Device),
            ..Course::default()
        }
    }

    #[test]
    fn a_rank_held_to_seven_tenths_is_named_and_nobody_else() {
        for seed in 0..200 {
            let mut courses: Vec<Course> =
                (0..4).map(|rank| course(1.0, 0.2, seed * 10 + rank)).collect();
            assert_eq!(find(&courses), [], "seed {seed}");
            let rank = seed as usize % 4;
            courses[rank] = course(0.7, 0.2, seed * 10 + 5);
            assert_eq!(find(&courses), [(rank, Resource::Device)], "seed {seed}");
            courses[rank].waits.quota_s = 0.6;
            assert_eq!(find(&courses), [(rank, Resource::Processor)]);
            courses[rank].waits = Waits { memory_events: 5000, ..Waits::default() };
            assert_eq!(find(&courses), [(rank, Resource::Memory)]);
            courses[rank].waits = Waits::default();
            courses[rank].storage = Some(Resource::Network);
            assert_eq!(find(&courses), [(rank, Resource::Network)]);
        }
    }

    #[test]
    fn a_quota_on_one_rank_alone_is_named_sooner() {
        let mut courses = [course(0.85, 0.02, 1), course(1.0, 0.02, 2)];
        assert_eq!(find(&courses), []);
        courses[0].waits.quota_s = 0.6;
        assert_eq!(find(&courses), [(0, Resource::Processor)]);
        courses[1].waits.quota_s = 0.6;
        assert_eq!(find(&courses), []);
    }

    #[test]
    fn who_waits_in_the_run_queue_waits_for_a_processor() {
        let mut courses: Vec<Course> = (0..3).map(|rank| course(1.0, 0.05, rank)).collect();
        courses[2] = course(0.6, 0.05, 9);
        courses[2].waits.run_queue_s = 0.7;
        assert_eq!(find(&courses), [(2, Resource::Processor)]);
        // It ran all the time, and slower: on one machine much of that is chance.
        courses[2].waits = Waits { running_s: 1.96, ..Waits::default() };
        courses[2].rates = course(0.5, 0.05, 9).rates;
        assert_eq!(find(&courses), [(2, Resource::Processor)]);
        courses[2].rates = course(0.7, 0.05, 9).rates;
        assert_eq!(find(&courses), []);
        courses[2].host = 1;
        assert_eq!(find(&courses), [(2, Resource::Processor)]);
        courses[2].host = 0;
        courses[2].waits.memory_events = 5000;
        assert_eq!(find(&courses), [(2, Resource::Memory)]);
        courses[2].waits.memory_events = 0;
        // Sixteen threads that mostly wait run as long together.
        courses[2].is_one_by_one = false;
        assert_eq!(find(&courses), [(2, Resource::Device)]);
        courses[2].is_one_by_one = true;
        courses[2].waits.running_s = 1.2;
        assert_eq!(find(&courses), [(2, Resource::Device)]);
    }

    #[test]
    fn fewer_processes_are_no_falling_behind_and_few_windows_say_nothing() {
        let mut courses = vec![course(3.0, 0.1, 1), course(2.0, 0.1, 2), course(0.0, 0.1, 3)];
        (courses[0].processes, courses[1].processes, courses[2].processes) = (3, 2, 0);
        assert_eq!(find(&courses), []);
        let mut brief = vec![course(1.0, 0.1, 1), course(0.5, 0.1, 2)];
        for course in &mut brief {
            course.rates.truncate(5);
        }
        assert_eq!(find(&brief), []);
    }

    #[test]
    fn two_halves_that_get_more_and_less_are_no_stragglers() {
        let halves: Vec<Course> =
            [1.0, 0.76, 0.77, 1.02].into_iter().zip(0..).map(|(l, s)| course(l, 0.02, s)).collect();
        assert_eq!(find(&halves), []);
    }

    #[test]
    fn of_two_the_slower_is_named() {
        assert_eq!(find(&[course(0.7, 0.1, 1), course(1.0, 0.1, 2)]), [(0, Resource::Device)]);
    }
}
