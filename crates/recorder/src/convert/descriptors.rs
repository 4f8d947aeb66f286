//! Tables of descriptors as processes have them, and open descriptions that tables share.

use std::cell::RefCell;
use std::rc::Rc;

use ioscape_trace::FileKind;

/// An open description: what `open` makes and `dup` and `fork` share.
#[derive(Debug)]
pub(crate) struct Description {
    /// Its number in the trace.
    pub(crate) handle: u32,
    /// An id of `Files`.
    pub(crate) file: u32,
    pub(crate) kind: FileKind,
    /// Where the next transfer without an offset happens, bytes.
    pub(crate) position: u64,
    /// `O_APPEND`, `O_DIRECT`, `O_SYNC`, `O_DSYNC`.
    pub(crate) flags: i32,
}

/// A description as several descriptors have it.
pub(crate) type Shared = Rc<RefCell<Description>>;

#[derive(Clone, Debug)]
struct Slot {
    description: Shared,
    closes_on_exec: bool,
    since_ns: u64,
}

/// A table of descriptors. Copies share the descriptions, as after `fork`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Descriptors {
    slots: Vec<Option<Slot>>,
}

/// The kernel's own limit on the number of descriptors is about this.
const DESCRIPTORS_MAX: usize = 1 << 20;

impl Descriptors {
    fn index(descriptor: i32) -> Option<usize> {
        usize::try_from(descriptor).ok().filter(|index| *index < DESCRIPTORS_MAX)
    }

    /// What a descriptor stands for; `None` where nobody has seen it made.
    pub(crate) fn get(&self, descriptor: i32) -> Option<Shared> {
        let slot = self.slots.get(Self::index(descriptor)?)?.as_ref()?;
        Some(Rc::clone(&slot.description))
    }

    /// A descriptor was made by a call that ended at `since_ns`.
    pub(crate) fn install(
        &mut self,
        descriptor: i32,
        description: Shared,
        closes_on_exec: bool,
        since_ns: u64,
    ) {
        let Some(index) = Self::index(descriptor) else { return };
        if index >= self.slots.len() {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = Some(Slot { description, closes_on_exec, since_ns });
    }

    /// A descriptor was closed by a call that began at `start_ns`. One that was made since then
    /// only has its number: another thread was quicker.
    pub(crate) fn close(&mut self, descriptor: i32, start_ns: u64) -> Option<Shared> {
        let slot = self.slots.get_mut(Self::index(descriptor)?)?;
        if slot.as_ref().is_some_and(|slot| slot.since_ns > start_ns) {
            return None;
        }
        slot.take().map(|slot| slot.description)
    }

    /// All descriptors from one to another are closed.
    pub(crate) fn close_range(&mut self, first: u64, last: u64, start_ns: u64) {
        let end = last.min(DESCRIPTORS_MAX as u64).min(self.slots.len() as u64);
        for descriptor in first..=end {
            self.close(descriptor as i32, start_ns);
        }
    }

    /// Whether a descriptor is closed when its process becomes another program.
    pub(crate) fn set_closes_on_exec(&mut self, descriptor: i32, closes: bool) {
        let slot = Self::index(descriptor).and_then(|index| self.slots.get_mut(index));
        if let Some(Some(slot)) = slot {
            slot.closes_on_exec = closes;
        }
    }

    /// Likewise, for all from one to another.
    pub(crate) fn range_closes_on_exec(&mut self, first: u64, last: u64) {
        let end = last.min(DESCRIPTORS_MAX as u64).min(self.slots.len() as u64);
        for descriptor in first..=end {
            self.set_closes_on_exec(descriptor as i32, true);
        }
    }

    /// The process became another program.
    pub(crate) fn become_program(&mut self) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|slot| slot.closes_on_exec) {
                *slot = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn description(handle: u32) -> Shared {
        let kind = FileKind::Regular;
        Rc::new(RefCell::new(Description { handle, file: 1, kind, position: 0, flags: 0 }))
    }

    #[derive(Clone, Debug)]
    enum Step {
        Open(i32, bool),
        Duplicate(i32, i32),
        Close(i32),
        CloseRange(u64, u64),
        Fork,
        Exec,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..12, any::<bool>()).prop_map(|(at, closes)| Step::Open(at, closes)),
            (0..12, 0..12).prop_map(|(from, to)| Step::Duplicate(from, to)),
            (-1..13).prop_map(Step::Close),
            (0..12_u64, 0..20_u64).prop_map(|(first, last)| Step::CloseRange(first, last)),
            Just(Step::Fork),
            Just(Step::Exec),
        ]
    }

    proptest! {
        #[test]
        fn tables_are_what_a_simple_model_says(steps in prop::collection::vec(step(), 1..200)) {
            let (mut table, mut model) = (Descriptors::default(), BTreeMap::new());
            let mut kept = Vec::new();
            for (now, step) in (1..).zip(steps) {
                match step {
                    Step::Open(at, closes) => {
                        table.install(at, description(now), closes, u64::from(now));
                        model.insert(at, (now, closes));
                    }
                    Step::Duplicate(from, to) => {
                        if let Some(found) = table.get(from) {
                            table.install(to, found, false, u64::from(now));
                            model.insert(to, (model[&from].0, false));
                        }
                    }
                    Step::Close(at) => {
                        table.close(at, u64::from(now));
                        model.remove(&at);
                    }
                    Step::CloseRange(first, last) => {
                        table.close_range(first, last, u64::from(now));
                        model.retain(|at, _| !(first..=last).contains(&u64::from(at.unsigned_abs())));
                    }
                    Step::Fork => kept.push((table.clone(), model.clone())),
                    Step::Exec => {
                        table.become_program();
                        model.retain(|_, (_, closes)| !*closes);
                    }
                }
            }
            kept.push((table, model));
            for (table, model) in kept {
                for at in -1..14 {
                    let found = table.get(at).map(|found| found.borrow().handle);
                    prop_assert_eq!(found, model.get(&at).map(|(handle, _)| *handle));
                }
            }
        }
    }

    #[test]
    fn copies_share_the_position() {
        let mut table = Descriptors::default();
        table.install(3, description(1), false, 1);
        let forked = table.clone();
        table.get(3).unwrap().borrow_mut().position = 7;
        assert_eq!(forked.get(3).unwrap().borrow().position, 7);
    }

    #[test]
    fn a_close_that_ends_late_does_not_close_what_took_its_number() {
        let mut table = Descriptors::default();
        table.install(3, description(1), false, 10);
        // Begun at 20, ended after another thread had opened a file at 25.
        table.install(3, description(2), false, 25);
        assert!(table.close(3, 20).is_none());
        assert_eq!(table.get(3).unwrap().borrow().handle, 2);
    }
}
