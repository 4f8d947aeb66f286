//! The other ranks, as rank 0 sees them: what their clocks show, what they were told and said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_cluster::{Group, Offset, Track, Wait, measure};
use ioscape_engine::Error;
use ioscape_engine::error::Result;

use super::orders::{Answer, Order, Said, Sums};

/// How often rank 0 looks whether somebody who is silent is still there.
const LOOK_NS: i64 = 50_000_000;
/// A rank that was to answer within a known time is given so much more …
const PATIENCE_NS: i64 = 20_000_000_000;
/// … and so much once the run is asked to stop, or as much as this where nobody knows how long an
/// answer takes: the launcher may have lost a rank, and ends all.
const GRACE_NS: i64 = 300_000_000;
const GRACE_UNKNOWN_NS: i64 = 10_000_000_000;

/// One of the other ranks.
#[derive(Debug, Default)]
pub(super) struct Other {
    pub(super) rank: u32,
    /// Process number, where it runs on this machine in the same space of numbers.
    pub(super) process: Option<u32>,
    /// Whether it has the clock of rank 0.
    pub(super) has_our_clock: bool,
    pub(super) track: Track,
    /// The quickest message there and back, nanoseconds: longer than one there, and known of ranks with
    /// our clock, too.
    pub(super) trip_ns: i64,
    pub(super) sums: Sums,
}

/// The other ranks.
pub(super) struct Crew {
    pub(super) group: Box<dyn Group>,
    pub(super) others: Vec<Other>,
    interrupt: Arc<AtomicBool>,
    /// The rank that is gone, where one is.
    lost: Option<u32>,
}

impl Crew {
    pub(super) fn new(
        group: Box<dyn Group>,
        others: Vec<Other>,
        interrupt: Arc<AtomicBool>,
    ) -> Self {
        Self { group, others, interrupt, lost: None }
    }

    pub(super) fn now_ns(&self) -> i64 {
        self.group.clock().now_ns()
    }

    /// Tells a rank something; a rank that cannot be told is gone.
    pub(super) fn tell(&mut self, rank: u32, order: &Order) -> Result<()> {
        self.refuse_lost()?;
        let order = serde_json::to_vec(order).expect("an order is plain data");
        self.group.send(rank, &order).map_err(|error| self.lose(rank, &error.to_string()))
    }

    /// Tells every other rank the same.
    pub(super) fn tell_all(&mut self, order: &Order) -> Result<()> {
        (1..self.group.size()).try_for_each(|rank| self.tell(rank, order))
    }

    /// Hears every other rank. All are heard before the first that had trouble is told of:
    /// none is left with an answer on its way.
    pub(super) fn hear_all(&mut self, within_ns: Option<i64>) -> Result<Vec<Said>> {
        let mut said = Vec::new();
        let mut trouble = None;
        for rank in 1..self.group.size() {
            match self.hear(rank, within_ns) {
                Ok(theirs) => said.push(theirs),
                Err(error) if self.lost.is_some() => return Err(error),
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        trouble.map_or(Ok(said), Err)
    }

    /// Hears a rank, which should answer within a time where that is known.
    pub(super) fn hear(&mut self, rank: u32, within_ns: Option<i64>) -> Result<Said> {
        self.refuse_lost()?;
        let began_ns = self.now_ns();
        let mut asked_ns = None;
        loop {
            match self.group.receive(rank, Wait::Sleeping { most_ns: LOOK_NS }) {
                Ok(bytes) => {
                    let answer: Answer = serde_json::from_slice(&bytes)
                        .map_err(|error| self.lose(rank, &format!("says nonsense: {error}")))?;
                    self.others[rank as usize - 1].sums = answer.sums;
                    return answer.said.map_err(|trouble| trouble.on(rank));
                }
                Err(ioscape_cluster::Error::Silent { .. }) => {}
                Err(error) => return Err(self.lose(rank, &error.to_string())),
            }
            let now_ns = self.now_ns();
            if self.others[rank as usize - 1].has_ended() {
                return Err(self.lose(rank, "its process has ended"));
            }
            if within_ns.is_some_and(|within_ns| now_ns - began_ns > within_ns + PATIENCE_NS) {
                return Err(self.lose(rank, "it does not answer any more"));
            }
            let grace_ns = within_ns.map_or(GRACE_UNKNOWN_NS, |within_ns| within_ns + GRACE_NS);
            if self.interrupt.load(Ordering::Relaxed)
                && now_ns - *asked_ns.get_or_insert(now_ns) > grace_ns
            {
                return Err(
                    self.lose(rank, "it does not answer any more, and all were told to end")
                );
            }
        }
    }

    /// Holds the clocks of all ranks against ours. They answer pings meanwhile.
    pub(super) fn compare_clocks(&mut self) -> Result<()> {
        for index in 0..self.others.len() {
            let rank = self.others[index].rank;
            self.tell(rank, &Order::Pings)?;
            let measured = measure(&*self.group, rank);
            let offset = measured.map_err(|error| self.lose(rank, &error.to_string()))?;
            let other = &mut self.others[index];
            other.trip_ns = 2 * offset.bound_ns;
            let is_ours = other.has_our_clock && offset.theta_ns.abs() <= offset.bound_ns;
            other.track.note(if is_ours {
                Offset { at_ns: offset.at_ns, ..Offset::default() }
            } else {
                offset
            });
        }
        Ok(())
    }

    /// The quickest message to the farthest rank and back, nanoseconds.
    pub(super) fn trip_ns(&self) -> i64 {
        self.others.iter().map(|other| other.trip_ns).max().unwrap_or(0)
    }

    /// Lets all others go.
    pub(super) fn leave(&mut self) {
        let in_order = self.lost.is_none();
        let order = serde_json::to_vec(&Order::Leave { in_order }).expect("an order is plain data");
        for rank in self.group.others().filter(|rank| Some(*rank) != self.lost) {
            self.group.send(rank, &order).ok(); // it may be gone as well
        }
        if in_order {
            self.group.barrier().ok(); // their files are removed by now
        } else {
            self.group.abandon();
        }
    }

    fn lose(&mut self, rank: u32, why: &str) -> Error {
        self.lost = Some(rank);
        Error::Rank { rank, text: format!("lost: {why}") }
    }

    /// Nothing is measured any more once a rank is gone.
    fn refuse_lost(&self) -> Result<()> {
        match self.lost {
            Some(rank) => Err(Error::Rank { rank, text: "lost".to_owned() }),
            None => Ok(()),
        }
    }
}

impl Other {
    /// Whether its process is gone, where that can be seen from here.
    fn has_ended(&self) -> bool {
        let Some(process) = self.process else { return false };
        // A process that ended stays as one that is waited for until the launcher has done that.
        std::fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |stat| {
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            matches!(after_name.trim_start().chars().next(), Some('Z' | 'X'))
        })
    }
}
