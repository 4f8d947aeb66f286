//! The rest of a stretch that is still to be done: calls by class, what follows what, sizes, syncs.

use ioscape_model::app::Behaviour;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Scale;
use super::bags::{Bag, SizeBag};
use super::places::{READ, WRITE};
use super::timing::{Timing, transfers};
use crate::character::Class;
use crate::event::Op;

/// Calls that are made into events; for others time passes.
const MADE: [Op; 22] = [
    Op::Sync,
    Op::Dsync,
    Op::Open,
    Op::Create,
    Op::Close,
    Op::Stat,
    Op::LookupNeg,
    Op::Readdir,
    Op::Unlink,
    Op::Rename,
    Op::Mkdir,
    Op::Rmdir,
    Op::Symlink,
    Op::Chattr,
    Op::Xattr,
    Op::Lock,
    Op::Rsync,
    Op::Read,
    Op::Write,
    Op::Wait,
    Op::Mmap,
    Op::Munmap,
];
/// Classes of calls, by the name that a model has for them.
pub(super) const CLASSES: [&str; 9] =
    ["read", "write", "sync", "open", "close", "look", "change", "map", "other"];

/// Of these, those that open and close.
pub(super) const OPEN: usize = 3;
pub(super) const CLOSE: usize = 4;
/// Mappings.
pub(super) const MAP: usize = 7;

/// A call to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A read or write that moves bytes.
    Transfer(usize),
    Call(Op),
    /// Time passes.
    Pass,
}

/// The rest of a stretch.
#[derive(Debug)]
pub(super) struct Bags {
    pub(super) calls: [Bag<What>; CLASSES.len()],
    next: [Bag<usize>; CLASSES.len()],
    pub(super) sizes: [SizeBag; 2],
    /// Requests that go on where the one before of their handle ended.
    pub(super) follows: [f64; 2],
    pub(super) requests: [f64; 2],
    /// Syncs by the word of their kind: of a directory, of nothing, of data.
    pub(super) syncs: Bag<Synced>,
    pub(super) timing: Timing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    Directory,
    Clean,
    Data,
}

impl Bags {
    pub(super) fn new(
        behaviour: &Behaviour,
        sequential: Option<f64>,
        scale: &Scale,
        streams: f64,
    ) -> Self {
        let counts = transfers(behaviour);
        let factors = factors(counts, scale);
        let transfer = |at: usize| (counts[at] as f64 * factors[at]).round() as u64;
        let mut calls: [Vec<(What, u64)>; CLASSES.len()] = Default::default();
        let mut passing = [0_u64; CLASSES.len()];
        for (name, count) in &behaviour.operations {
            let Some(op) = Op::parse(name) else { continue };
            let class = class_index(Class::holding(op).name());
            let count = (*count as f64 * scale.users).round() as u64;
            let is_transfer = matches!(op, Op::Read | Op::Write);
            match op {
                _ if class <= 1 || is_transfer => passing[class] += count,
                Op::Wait => calls[class].push((What::Pass, count)),
                op if MADE.contains(&op) => calls[class].push((What::Call(op), count)),
                _ => calls[class].push((What::Pass, count)),
            }
        }
        for (at, class) in [(READ, 0), (WRITE, 1)] {
            calls[class].push((What::Transfer(at), transfer(at)));
            let moving = (counts[at] as f64 * scale.users).round() as u64;
            calls[class].push((What::Pass, passing[class].saturating_sub(moving)));
        }
        let row =
            |class: &str| {
                let row = behaviour.order.transitions.get(class);
                let row = row.into_iter().flatten();
                Bag::new(row.map(|(to, count)| {
                    (class_index(to), (*count as f64 * scale.users).round() as u64)
                }))
            };
        let requests = [transfer(READ) as f64, transfer(WRITE) as f64];
        let synced = |name: &str| match name {
            "directory" => Synced::Directory,
            "clean" => Synced::Clean,
            _ => Synced::Data,
        };
        let kinds = behaviour.syncs.by_kind.iter();
        let sizes = [(&behaviour.sizes.read, READ), (&behaviour.sizes.write, WRITE)];
        Self {
            calls: calls.map(Bag::new),
            next: CLASSES.map(row),
            sizes: sizes.map(|(law, at)| {
                SizeBag::new(law, (counts[at], behaviour.five.size_mean), factors[at])
            }),
            follows: follows(behaviour, sequential, requests),
            requests,
            syncs: Bag::new(kinds.map(|(name, kind)| (synced(name), kind.count))),
            timing: Timing::new(behaviour, streams, scale.rate),
        }
    }

    /// The class that comes after one, as long as calls of it are left; `None` at the end.
    pub(super) fn next_class(
        &mut self,
        before: Option<usize>,
        chance: &mut Xoshiro256PlusPlus,
    ) -> Option<usize> {
        let next = before.and_then(|class| self.next[class].draw(chance));
        if let Some(class) = next.filter(|class| self.calls[*class].left() > 0) {
            return Some(class);
        }
        let left: u64 = self.calls.iter().map(Bag::left).sum();
        let mut at = chance.random_range(0..left.max(1));
        for (class, calls) in self.calls.iter().enumerate() {
            if at < calls.left() {
                return Some(class);
            }
            at -= calls.left();
        }
        None
    }
}

/// How many reads and writes go on where one ended. The model tells it of both together, and which
/// share of the bytes read that is, where its demand was counted.
fn follows(behaviour: &Behaviour, sequential: Option<f64>, requests: [f64; 2]) -> [f64; 2] {
    let frac = behaviour.five.seq_frac;
    let all = frac * (requests[READ] + requests[WRITE]);
    let reads = requests[READ] * sequential.unwrap_or(frac);
    let reads = reads.clamp((all - requests[WRITE]).max(0.0), all.min(requests[READ]));
    [reads, all - reads]
}

/// By what reads and writes are multiplied.
pub(super) fn factors(counts: [u64; 2], scale: &Scale) -> [f64; 2] {
    let all = (counts[READ] + counts[WRITE]) as f64;
    let Some(read) = scale.read else { return [scale.users; 2] };
    [read, 1.0 - read]
        .into_iter()
        .zip(counts)
        .map(
            |(share, count)| {
                if count == 0 { 0.0 } else { scale.users * share * all / count as f64 }
            },
        )
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or([scale.users; 2])
}

fn class_index(name: &str) -> usize {
    CLASSES.iter().position(|class| *class == name).unwrap_or(CLASSES.len() - 1)
}
