//! Runs over many hosts: what each rank did in a visit, and where the ranks were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host::{is_in_memory, is_network};

/// The resource that a rank that fell behind waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Resource {
    /// Its processors: a quota of its control group, others that want them, or slower ones.
    Processor,
    /// Memory: its control group's limit, reclaim or swapping.
    Memory,
    /// Storage that lies in its host, or a limit on it.
    Device,
    /// The network to the storage, or its server.
    Network,
    /// None of these is shown by the counters at hand.
    Unknown,
}

/// Waits of a process, as far as the kernel counts them: running totals, or those between two
/// looks at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// A quota on processors had run out, seconds.
    pub quota_s: f64,
    /// Threads were ready to run and did not, all of them together, seconds.
    pub run_queue_s: f64,
    /// Threads ran, all of them together, seconds; zero in older records.
    #[serde(default)]
    pub running_s: f64,
    /// How often the memory limit was run into.
    pub memory_events: u64,
    /// Whether a limit on I/O is in force.
    pub has_io_limit: bool,
}

impl Waits {
    /// The waits between an earlier look and this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            quota_s: (self.quota_s - earlier.quota_s).max(0.0),
            run_queue_s: (self.run_queue_s - earlier.run_queue_s).max(0.0),
            running_s: (self.running_s - earlier.running_s).max(0.0),
            memory_events: self.memory_events.saturating_sub(earlier.memory_events),
            has_io_limit: self.has_io_limit,
        }
    }
}

/// One rank in one visit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankFigures {
    /// Its number.
    pub rank: u32,
    /// Processes of the workload that it ran.
    pub processes: u32,
    /// When the last of its workers ran, from the instant that was agreed on, seconds; 0 without workers.
    pub start_offset_s: f64,
    /// When it was last looked at, from the instant at which the last window ended, seconds.
    pub finish_offset_s: f64,
    /// Requests in the windows.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Of all bytes in the windows.
    pub share: f64,
    /// Bytes per second by its own clock.
    pub throughput_bytes_per_s: f64,
    /// How well its clock is known by that of rank 0, seconds: offsets are right to this.
    pub clock_bound_s: f64,
    /// Millionths by which its clock gains on that of rank 0; null where none is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_drift_ppm: Option<f64>,
    /// Its waits in the windows.
    pub waits: Waits,
    /// Where it fell behind the others: what for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Resource>,
}

/// The ranks in one visit. Throughput is over the interval that they have in common: from when
/// the last had begun to when the windows ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranks {
    /// From when the first worker of any rank began to when the last did, seconds.
    pub start_spread_s: f64,
    /// From the agreed instant to when all were running, seconds.
    pub common_from_s: f64,
    /// From the agreed instant to the end of the last window, when all were running still, seconds.
    pub common_to_s: f64,
    /// From the agreed instant to when the first had stopped, seconds.
    pub first_done_s: f64,
    /// From the agreed instant to when the last had stopped, seconds.
    pub last_done_s: f64,
    /// The rank that did least for each of its processes.
    pub slowest: u32,
    /// Each of them, in order.
    pub each: Vec<RankFigures>,
}

/// One rank of a run, and the machine that it is on. No names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankPlace {
    /// The rank's number.
    pub rank: u32,
    /// Number of the host that it is on, from 0: ranks with one number share a kernel.
    pub host: u32,
    /// Processors of the host.
    pub cpus: u32,
    /// Processors that the rank may use: launchers bind ranks.
    pub cpus_allowed: u32,
    /// Memory that pages of files can have, bytes.
    pub cache_bytes: u64,
    /// Version of the kernel.
    pub kernel: String,
    /// The filesystem that it sees.
    pub filesystem: String,
}

/// Where the ranks of a run were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hosts {
    /// How many hosts.
    pub hosts: u32,
    /// The launcher that started the ranks.
    pub launcher: String,
    /// The version that the MPI library gives.
    pub mpi: String,
    /// Whether all ranks see one directory: private directories are storage of each host's own.
    pub is_one_directory: bool,
    /// Each rank, in order.
    pub ranks: Vec<RankPlace>,
}

impl RankPlace {
    /// The resource that its files wait for where nothing else holds them up.
    pub fn storage(&self) -> Resource {
        if is_network(&self.filesystem) {
            Resource::Network
        } else if is_in_memory(&self.filesystem) {
            Resource::Unknown
        } else {
            Resource::Device
        }
    }
}

impl Hosts {
    /// Processors that the ranks may use on all hosts.
    pub fn cpus(&self) -> u32 {
        let of_host = |first: &RankPlace| {
            let here = self.ranks.iter().filter(|place| place.host == first.host);
            here.map(|place| place.cpus_allowed).sum::<u32>().min(first.cpus)
        };
        self.firsts().map(of_host).sum()
    }

    /// Memory that pages of files can have on all hosts, bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.firsts().map(|place| place.cache_bytes).sum()
    }

    /// Over how many ranks the graph of ranks goes: at most two of 2, 4, 8 …, and all. One is the data
    /// sheet itself.
    pub fn steps(&self) -> Vec<u32> {
        let all = self.ranks.len() as u32;
        let doubled = std::iter::successors(Some(2), |step| Some(2 * step));
        let between: Vec<u32> = doubled.take_while(|&step| step < all).collect();
        let mut steps: Vec<u32> =
            between.first().into_iter().chain(between.last()).copied().collect();
        steps.dedup();
        steps.extend((all > 1).then_some(all));
        steps
    }

    /// What to call one of the ranks: a host, where each rank has one of its own.
    pub fn noun(&self) -> &'static str {
        if self.hosts as usize == self.ranks.len() { "host" } else { "rank" }
    }

    /// The first rank of each host.
    pub fn firsts(&self) -> impl Iterator<Item = &RankPlace> {
        let is_first = |place: &&RankPlace| {
            let earlier = self.ranks.iter().take_while(|other| other.rank < place.rank);
            earlier.into_iter().all(|other| other.host != place.host)
        };
        self.ranks.iter().filter(is_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_has_counts_once() {
        let place = |rank, host| RankPlace {
            rank,
            host,
            cpus: 4,
            cpus_allowed: 3,
            cache_bytes: 10,
            ..RankPlace::default()
        };
        let hosts = Hosts {
            ranks: vec![place(0, 0), place(1, 1), place(2, 0), place(3, 1), place(4, 2)],
            ..Hosts::default()
        };
        assert_eq!((hosts.cpus(), hosts.cache_bytes()), (11, 30));
    }

    #[test]
    fn the_graph_of_ranks_ends_with_all() {
        let of = |ranks: usize| {
            Hosts { ranks: vec![RankPlace::default(); ranks], ..Hosts::default() }.steps()
        };
        assert_eq!([of(1), of(2), of(3), of(4)], [vec![], vec![2], vec![2, 3], vec![2, 4]]);
        assert_eq!([of(11), of(64)], [[2, 8, 11], [2, 32, 64]]);
    }
}
