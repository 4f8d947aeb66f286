//! Every reader of a format gives items, one after another, in the time of its own clock.

use std::collections::VecDeque;
use std::io;

use super::ledger::Ledger;
use crate::event::Event;

/// An event, or one of the steps of a block request that make up an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) event: Event,
    pub(crate) step: Step,
}

/// The part of a request that a line tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All of it.
    Whole,
    /// It came to the block layer.
    Queued,
    /// It was sent to the device.
    Issued,
    /// The device is done with it.
    Completed,
}

impl From<Event> for Item {
    fn from(event: Event) -> Self {
        Self { event, step: Step::Whole }
    }
}

/// A line that is of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row<T> {
    Is(T),
    /// It is about something else than I/O.
    Other,
}

/// A file that is being read.
pub(crate) trait Source {
    /// The next item; `None` at the end.
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>>;
}

/// Events of a buffer of such size are put in order: per-processor files, calls that took long.
const HELD: usize = 1 << 14;

/// Puts events in the order of their start, as far as a bounded buffer reaches.
#[derive(Default)]
pub(crate) struct Order {
    held: VecDeque<Event>,
}

impl Order {
    /// Takes an event, gives the earliest where the buffer is full.
    pub(crate) fn push(&mut self, event: Event) -> Option<Event> {
        if self.held.back().is_none_or(|last| last.start_ns <= event.start_ns) {
            self.held.push_back(event);
        } else {
            let at = self.held.partition_point(|held| held.start_ns <= event.start_ns);
            self.held.insert(at, event);
        }
        (self.held.len() > HELD).then(|| self.held.pop_front()).flatten()
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The earliest of those that are left.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.held.pop_front()
    }
}

/// Several files as one, by time; at equal times in the order of the files.
pub(crate) struct Merge<'a> {
    sources: Vec<(Box<dyn Source + 'a>, Option<Item>)>,
    is_begun: bool,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(sources: Vec<Box<dyn Source + 'a>>) -> Self {
        let sources = sources.into_iter().map(|source| (source, None)).collect();
        Self { sources, is_begun: false }
    }
}

impl Source for Merge<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        if let [(only, _)] = &mut self.sources[..] {
            return only.next(ledger);
        }
        if !self.is_begun {
            self.is_begun = true;
            for (source, item) in &mut self.sources {
                *item = source.next(ledger)?;
            }
        }
        let waiting = self.sources.iter().enumerate();
        let times = waiting.filter_map(|(at, (_, item))| Some((item.as_ref()?.event.start_ns, at)));
        let Some((_, first)) = times.min() else { return Ok(None) };
        let (source, item) = &mut self.sources[first];
        let next = source.next(ledger)?;
        Ok(std::mem::replace(item, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Op;

    struct Given(VecDeque<Event>);

    impl Source for Given {
        fn next(&mut self, _: &mut Ledger) -> io::Result<Option<Item>> {
            Ok(self.0.pop_front().map(Item::from))
        }
    }

    fn at(times: &[u64]) -> Box<dyn Source> {
        Box::new(Given(times.iter().map(|&time| Event::new(time, Op::Read)).collect()))
    }

    #[test]
    fn files_are_merged_by_time() {
        let mut merge = Merge::new(vec![at(&[1, 4, 9]), at(&[]), at(&[2, 4, 5])]);
        let mut ledger = Ledger::default();
        let mut times = vec![];
        while let Some(item) = merge.next(&mut ledger).unwrap() {
            times.push(item.event.start_ns);
        }
        assert_eq!(times, [1, 2, 4, 4, 5, 9]);
    }

    #[test]
    fn what_lies_near_is_put_in_order_and_equal_times_stay_as_they_are() {
        let mut order = Order::default();
        let numbered = |time, file| Event { file, ..Event::new(time, Op::Read) };
        for (time, file) in [(5, 0), (1, 1), (5, 2), (3, 3), (1, 4)] {
            assert_eq!(order.push(numbered(time, file)), None);
        }
        let files: Vec<u32> = std::iter::from_fn(|| order.pop()).map(|event| event.file).collect();
        assert_eq!(files, [1, 4, 3, 0, 2]);
    }

    #[test]
    fn the_buffer_is_bounded() {
        let mut order = Order::default();
        let given = (0..HELD as u64 + 10).filter_map(|time| order.push(Event::new(time, Op::Read)));
        assert_eq!(
            given.map(|event| event.start_ns).collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
    }
}
