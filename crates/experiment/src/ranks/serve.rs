//! A rank other than 0 at work: it obeys, until it is told to leave or rank 0 is gone.

use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_cluster::{Group, Wait, answer_pings};
use ioscape_engine::error::Result;
use ioscape_engine::host::waits;
use ioscape_engine::{Ahead, Error, Finished, Prepared, Rig, Window};
use ioscape_model::{Hints, Waits, Workload};

use super::orders::{Answer, Order, Rest, Said, Sums, Trouble};

/// Asked to stop, a rank waits this long to hear what rank 0 makes of it.
const GRACE_NS: i64 = 5_000_000_000;
/// How often somebody who waits looks whether he is to stop.
const LOOK_NS: i64 = 50_000_000;

/// How a rank left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// With all others.
    InOrder,
    /// Because one of them is gone.
    Abandoned,
}

/// A rank at work.
struct Member<'a> {
    group: &'a dyn Group,
    rig: &'a mut dyn Rig,
    interrupt: &'a AtomicBool,
    /// When the window before ended, or the workers began.
    last_ns: i64,
    /// Waits before the windows began to count.
    waits: Waits,
}

/// Obeys until told to leave.
pub(super) fn serve(group: &dyn Group, rig: &mut dyn Rig, interrupt: &AtomicBool) -> Left {
    let mut member = Member { group, rig, interrupt, last_ns: 0, waits: Waits::default() };
    loop {
        let obeyed = match next_order(group, interrupt) {
            Ok(Order::Leave { in_order: true }) => return Left::InOrder,
            Ok(Order::Leave { in_order: false }) => return Left::Abandoned,
            Ok(order) => member.obey(order),
            Err(error) => Err(error),
        };
        if obeyed.is_err() {
            return Left::Abandoned;
        }
    }
}

type Heard<T> = std::result::Result<T, ioscape_cluster::Error>;

/// The next order, however long it takes to come while nobody asks this rank to stop.
fn next_order(group: &dyn Group, interrupt: &AtomicBool) -> Heard<Order> {
    let mut asked_ns = None;
    loop {
        match group.receive(0, Wait::Sleeping { most_ns: LOOK_NS }) {
            Ok(bytes) => {
                return serde_json::from_slice(&bytes)
                    .map_err(|error| ioscape_cluster::Error::Refused(error.to_string()));
            }
            Err(ioscape_cluster::Error::Silent { .. }) => {}
            Err(error) => return Err(error),
        }
        if interrupt.load(Ordering::Relaxed) {
            let now_ns = group.clock().now_ns();
            if now_ns - *asked_ns.get_or_insert(now_ns) > GRACE_NS {
                return Err(ioscape_cluster::Error::Silent { rank: 0 });
            }
        }
    }
}

/// Why a rank that waited to begin does not.
enum Stayed {
    /// Rank 0 told it to stay.
    Told,
    /// Rank 0 is gone.
    Alone(ioscape_cluster::Error),
}

impl Member<'_> {
    fn answer(&self, said: Result<Said>) -> Heard<()> {
        let sums = Sums::read(self.rig);
        let answer = Answer { said: said.map_err(Trouble::from), sums };
        self.group.send(0, &serde_json::to_vec(&answer).expect("an answer is plain data"))
    }

    fn obey(&mut self, order: Order) -> Heard<()> {
        let said = match order {
            Order::Pings => return answer_pings(self.group),
            Order::Prepare(work) => self.rig.prepare(&work).map(Said::Prepared),
            Order::Start { work, seed } => return self.start(&work, seed),
            Order::Window { until_ns } => self.window(until_ns),
            Order::Mark => {
                self.rig.mark();
                self.waits = waits::now();
                Ok(Said::Done)
            }
            Order::Finish { sync } => self.finish(sync),
            Order::LimitWritten { most_bytes } => {
                self.rig.limit_written(most_bytes);
                Ok(Said::Done)
            }
            // Nothing waits to begin: its rank has said why.
            Order::Go { .. } | Order::Stay | Order::Leave { .. } => return Ok(()),
        };
        self.answer(said)
    }

    /// Makes the workers, says so and lets them begin when told.
    fn start(&mut self, work: &Workload, seed: u64) -> Heard<()> {
        let (group, interrupt) = (self.group, self.interrupt);
        let mut stayed = None;
        let mut wait = || {
            wait_to_begin(group, interrupt).map_err(|why| {
                stayed = Some(why);
                Error::Interrupted
            })
        };
        let started = self.rig.start_when(work, seed, &mut wait);
        self.last_ns = group.clock().now_ns();
        match stayed {
            None => self.answer(started.map(|()| Said::Done)),
            Some(Stayed::Told) => Ok(()),
            Some(Stayed::Alone(error)) => Err(error),
        }
    }

    fn window(&mut self, until_ns: i64) -> Result<Said> {
        // From when the window before ended: the rig counts from there as well.
        let length_s = (until_ns - self.last_ns).max(0) as f64 * 1e-9;
        let window = self.rig.window(length_s)?;
        self.last_ns += (window.length_s * 1e9) as i64;
        Ok(Said::Window { window: Box::new(window), at_ns: self.last_ns })
    }

    fn finish(&mut self, sync: bool) -> Result<Said> {
        let waits = waits::now().since(&self.waits);
        let finished = self.rig.finish(sync)?;
        let sync_ns = (finished.sync_s.unwrap_or(0.0) * 1e9) as i64;
        let stopped_ns = self.group.clock().now_ns() - sync_ns;
        Ok(Said::Finished(Box::new(Rest::new(&finished, stopped_ns, waits))))
    }
}

/// In place of the rig of a rank that could not open its target: it is only told to leave.
pub(super) struct Nothing;

impl Rig for Nothing {
    fn engine(&self) -> &'static str {
        "null"
    }

    fn hints(&self) -> Hints {
        Hints::default()
    }

    fn now_s(&self) -> f64 {
        0.0
    }

    fn prepare(&mut self, _: &Workload) -> Result<Prepared> {
        Err(Error::Interrupted)
    }

    fn start(&mut self, _: &Workload, _: u64) -> Result<()> {
        Err(Error::Interrupted)
    }

    fn window(&mut self, _: f64) -> Result<Window> {
        Err(Error::Interrupted)
    }

    fn mark(&mut self) {}

    fn finish(&mut self, _: bool) -> Result<Finished> {
        Err(Error::Interrupted)
    }

    fn written_bytes(&self) -> u64 {
        0
    }
}

/// Says that all is ready, has the clock compared, and waits for the instant that is agreed on. Puts this
/// thread ahead of others for it.
fn wait_to_begin(group: &dyn Group, interrupt: &AtomicBool) -> std::result::Result<Ahead, Stayed> {
    let told = || -> Heard<Option<i64>> {
        let ready = Answer { said: Ok(Said::Ready), sums: Sums::default() };
        group.send(0, &serde_json::to_vec(&ready).expect("an answer is plain data"))?;
        loop {
            match next_order(group, interrupt)? {
                Order::Pings => answer_pings(group)?,
                Order::Go { at_ns } => return Ok(Some(at_ns)),
                _ => return Ok(None),
            }
        }
    };
    let at_ns = told().map_err(Stayed::Alone)?.ok_or(Stayed::Told)?;
    let ahead = Ahead::begin();
    group.clock().sleep_until_ns(at_ns);
    Ok(ahead)
}
