//! Steps of block requests become events: of a request that was queued, issued and completed, one
//! step may count, or it counts three times.

use std::collections::{HashMap, VecDeque};

use super::ledger::Ledger;
use super::source::{Item, Step};
use crate::event::{Event, Flags, Op};

/// Items that are looked at before it is decided which step counts.
const LOOKED_AT: usize = 4096;
/// Requests on their way; with more, completions were lost, and the oldest are let go.
const PENDING_MAX: usize = 1 << 16;

/// File, offset and operation: a flush has an offset of 0 as well.
type Key = (u32, u64, Op);

/// Makes events of items.
#[derive(Default)]
pub(crate) struct Pairing {
    looked_at: Vec<Item>,
    rule: Option<Rule>,
    /// Issued requests, with their number.
    pending: HashMap<Key, (Event, u64)>,
    /// The order in which they were issued.
    issued: VecDeque<(Key, u64)>,
    count: u64,
}

/// The step that makes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    step: Step,
    /// Whether completions give the duration.
    is_timed: bool,
}

impl Pairing {
    /// Takes an item; gives events by `give`.
    pub(crate) fn push(&mut self, item: Item, ledger: &mut Ledger, give: &mut impl FnMut(Event)) {
        match self.rule {
            _ if item.step == Step::Whole => give(item.event),
            Some(rule) => self.decided(rule, item, give),
            None => {
                self.looked_at.push(item);
                if self.looked_at.len() >= LOOKED_AT {
                    self.decide(ledger, give);
                }
            }
        }
    }

    /// There is no more.
    pub(crate) fn finish(&mut self, ledger: &mut Ledger, give: &mut impl FnMut(Event)) {
        if !self.looked_at.is_empty() {
            self.decide(ledger, give);
        }
        while let Some((key, count)) = self.issued.pop_front() {
            self.let_go(key, count, give);
        }
    }

    fn decide(&mut self, ledger: &mut Ledger, give: &mut impl FnMut(Event)) {
        let has = |step| self.looked_at.iter().any(|item| item.step == step);
        let is_timed = has(Step::Issued) && has(Step::Completed);
        let steps = [Step::Issued, Step::Queued, Step::Completed];
        let step = steps.into_iter().find(|&step| has(step)).unwrap_or(Step::Completed);
        let rule = Rule { step, is_timed };
        ledger.limit(said(rule));
        self.rule = Some(rule);
        for item in std::mem::take(&mut self.looked_at) {
            self.decided(rule, item, give);
        }
    }

    fn decided(&mut self, rule: Rule, item: Item, give: &mut impl FnMut(Event)) {
        let Item { event: this, step } = item;
        let key = (this.file, this.offset, this.op);
        if step == Step::Completed && rule.is_timed {
            // A request whose issue was lost is none that can be timed.
            let Some((request, _)) = self.pending.remove(&key) else { return };
            let duration_ns = Some(this.start_ns.saturating_sub(request.start_ns));
            give(Event { duration_ns, error: this.error, ..request });
            return;
        }
        if step != rule.step {
            return;
        }
        if !rule.is_timed {
            // One request to the block layer; the device sees a flush of its own before the data.
            if step == Step::Queued && this.other == PREFLUSH && this.op == Op::Write {
                give(Event {
                    file: this.file,
                    stream: this.stream,
                    ..Event::new(this.start_ns, Op::Flush)
                });
            }
            give(Event { other: 0, ..this });
            return;
        }
        self.count += 1;
        if self.issued.len() >= PENDING_MAX
            && let Some((key, count)) = self.issued.pop_front()
        {
            self.let_go(key, count, give);
        }
        // Issued again under the same address: requeued, the one before never reached the device.
        self.pending.insert(key, (Event { other: 0, ..this }, self.count));
        self.issued.push_back((key, self.count));
    }

    /// Gives a request that was never completed, if it is still the one that was issued then.
    fn let_go(&mut self, key: Key, count: u64, give: &mut impl FnMut(Event)) {
        if self.pending.get(&key).is_some_and(|(_, pending)| *pending == count)
            && let Some((event, _)) = self.pending.remove(&key)
        {
            give(event);
        }
    }
}

fn said(rule: Rule) -> &'static str {
    match (rule.step, rule.is_timed) {
        (Step::Issued, true) => {
            "An event is a request from its issue to the device to its completion."
        }
        (Step::Issued, false) => {
            "An event is a request when it was issued to the device; completions are not in the file, \
             so nothing is known of durations."
        }
        (Step::Queued, _) => {
            "An event is a request when it came to the block layer, before merging; nothing is known \
             of durations."
        }
        _ => {
            "An event is a request when the device was done with it; nothing is known of durations."
        }
    }
}

/// In `other` of a step: the device's cache is flushed before the data.
pub(crate) const PREFLUSH: u64 = 1;

/// Operation and flags of `rwbs`, such as `WS`, `FF`, `FWFSM`; `None` for a request without I/O.
pub(crate) fn rwbs(text: &[u8]) -> Option<(Op, Flags, u64)> {
    let (preflush, text) = match text {
        [b'F', rest @ ..] => (PREFLUSH, rest),
        _ => (0, text),
    };
    let op = match text.first() {
        Some(b'R') => Op::Read,
        Some(b'W') => Op::Write,
        Some(b'D') => Op::Discard,
        _ if preflush > 0 => Op::Flush,
        _ => return None,
    };
    // Forced unit access and synchronous both make the writer wait; read-ahead does not matter here.
    let is_sync = text.iter().skip(1).any(|byte| matches!(byte, b'S' | b'F'));
    let flags = if is_sync && op != Op::Read { Flags::SYNC } else { Flags::default() };
    let preflush = if op == Op::Flush { 0 } else { preflush };
    Some((op, flags, preflush))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(items: &[(Step, u64, u64)]) -> (Vec<(u64, Option<u64>)>, Vec<String>) {
        let (mut pairing, mut ledger) = (Pairing::default(), Ledger::default());
        let mut events = vec![];
        for &(step, start_ns, offset) in items {
            let event = Event { offset, file: 1, ..Event::new(start_ns, Op::Read) };
            pairing.push(Item { event, step }, &mut ledger, &mut |event| events.push(event));
        }
        pairing.finish(&mut ledger, &mut |event| events.push(event));
        (events.iter().map(|event| (event.start_ns, event.duration_ns)).collect(), ledger.limits)
    }

    #[test]
    fn each_request_counts_once_whichever_steps_were_recorded() {
        use Step::{Completed, Issued, Queued};
        let all =
            [(Queued, 1, 0), (Issued, 2, 0), (Queued, 3, 8), (Completed, 7, 0), (Issued, 9, 8)];
        assert_eq!(paired(&all).0, [(2, Some(5)), (9, None)]);
        assert_eq!(paired(&[(Queued, 1, 0), (Completed, 7, 0)]).0, [(1, None)]);
        assert_eq!(paired(&[(Completed, 7, 0)]).0, [(7, None)]);
        assert_eq!(paired(&[(Issued, 7, 0), (Queued, 5, 0)]).0, [(7, None)]);
        assert!(paired(&all).1[0].contains("completion"));
    }

    #[test]
    fn a_request_that_is_issued_again_is_timed_from_the_last_issue() {
        use Step::{Completed, Issued};
        let steps = [(Issued, 1, 0), (Issued, 5, 0), (Completed, 7, 0), (Completed, 9, 0)];
        assert_eq!(paired(&steps).0, [(5, Some(2))]);
    }

    #[test]
    fn requests_without_completion_take_bounded_memory() {
        let mut items: Vec<_> = (0..3 * PENDING_MAX as u64).map(|n| (Step::Issued, n, n)).collect();
        items[5].0 = Step::Completed;
        items[5].2 = 4;
        assert_eq!(paired(&items).0.len(), items.len() - 1);
    }

    #[test]
    fn rwbs_tells_flush_and_data_apart() {
        let check = |text: &str, op, preflush| {
            let (found, _, flush) = rwbs(text.as_bytes()).unwrap();
            assert_eq!((found, flush), (op, preflush), "{text}");
        };
        check("R", Op::Read, 0);
        check("RAM", Op::Read, 0);
        check("WS", Op::Write, 0);
        check("FWFSM", Op::Write, PREFLUSH);
        check("FF", Op::Flush, 0);
        check("FN", Op::Flush, 0);
        check("F", Op::Flush, 0);
        check("D", Op::Discard, 0);
        assert_eq!(rwbs(b"N"), None);
        assert_eq!(rwbs(b""), None);
        assert!(rwbs(b"WFS").unwrap().1.has(Flags::SYNC));
        assert!(!rwbs(b"W").unwrap().1.has(Flags::SYNC));
    }
}
