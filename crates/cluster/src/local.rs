//! A group of threads in one process: for tests, with any clocks.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::group::{Group, Wait};

/// One rank of a group of threads. A rank that is dropped is gone for the others.
pub struct Local {
    rank: u32,
    clock: Box<dyn Clock + Send>,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

/// As many ranks as there are clocks, each to be moved to a thread of its own.
pub fn local(clocks: Vec<Box<dyn Clock + Send>>) -> Vec<Local> {
    let size = clocks.len();
    let mut members: Vec<Local> = (0..)
        .zip(clocks)
        .map(|(rank, clock)| Local { rank, clock, to: Vec::new(), from: Vec::new() })
        .collect();
    for sender in 0..size {
        for receiver in 0..size {
            let (to, from) = channel();
            members[sender].to.push(to);
            members[receiver].from.push(from);
        }
    }
    members
}

impl Group for Local {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.to.len() as u32
    }

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<()> {
        self.to[to as usize].send(bytes.to_vec()).map_err(|_| Error::Gone { rank: to })
    }

    fn receive(&self, from: u32, wait: Wait) -> Result<Vec<u8>> {
        let most = match wait {
            Wait::Spinning | Wait::Sleeping { most_ns: i64::MAX } => Duration::MAX,
            Wait::Sleeping { most_ns } => Duration::from_nanos(most_ns.max(0).cast_unsigned()),
        };
        self.from[from as usize].recv_timeout(most).map_err(|error| match error {
            RecvTimeoutError::Timeout => Error::Silent { rank: from },
            RecvTimeoutError::Disconnected => Error::Gone { rank: from },
        })
    }

    /// Threads cannot be ended from outside: the others see this one gone.
    fn abort(&self, _code: i32) {}

    /// Nobody is waited for.
    fn abandon(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Monotonic;

    /// Runs `work` on each of so many ranks.
    fn each<T: Send>(size: usize, work: impl Fn(Local) -> T + Sync) -> Vec<T> {
        let clocks = (0..size).map(|_| Box::new(Monotonic) as Box<dyn Clock + Send>).collect();
        std::thread::scope(|scope| {
            let work = &work;
            let spawn = |member| scope.spawn(move || work(member));
            let threads: Vec<_> = local(clocks).into_iter().map(spawn).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn rank_0_hears_all_and_all_hear_rank_0() {
        let heard = each(4, |group| {
            let said = group.gather(&[group.rank() as u8; 3]).unwrap();
            let told = group.broadcast(&[group.rank() as u8 + 40]).unwrap();
            group.barrier().unwrap();
            (said, told)
        });
        assert_eq!(heard[0].0, [[0; 3], [1; 3], [2; 3], [3; 3]]);
        assert!(heard[1..].iter().all(|(said, _)| said.is_empty()));
        assert!(heard.iter().all(|(_, told)| told == &[40]));
    }

    #[test]
    fn a_group_of_one_has_nobody_to_wait_for() {
        assert_eq!(
            each(1, |group| (group.barrier(), group.gather(&[7]))),
            [(Ok(()), Ok(vec![vec![7]]))]
        );
    }

    #[test]
    fn who_is_gone_or_silent_is_named() {
        let heard = each(3, |group| match group.rank() {
            0 => {
                let silent = group.receive(2, Wait::Sleeping { most_ns: 1_000_000 });
                group.send(2, &[]).unwrap();
                vec![group.receive(1, Wait::LONG), silent]
            }
            2 => vec![group.receive(0, Wait::LONG)],
            _ => Vec::new(),
        });
        assert_eq!(heard[0], [Err(Error::Gone { rank: 1 }), Err(Error::Silent { rank: 2 })]);
    }
}
