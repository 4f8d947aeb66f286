use super::*;
use ioscape_engine::elements::Shape;
use ioscape_model::ElementName::{Create, Fork, Lock, ReadHit, SyncGrown};

/// A machine whose time passes only as it is asked for something.
struct Machine {
    /// What each part measures, what a visit takes, and from which visit on it fails.
    parts: Vec<(&'static [ElementName], f64, usize)>,
    visits: Vec<usize>,
    now_s: f64,
}

impl Machine {
    fn new(parts: &[(&'static [ElementName], f64, usize)]) -> Self {
        Self { parts: parts.to_vec(), visits: vec![0; parts.len()], now_s: 0.0 }
    }

    fn measure(&mut self, budget_s: f64) -> SystemVector {
        let taken = take(self, budget_s, &mut |_| {}).unwrap();
        assemble(taken, &[], |_| None)
    }
}

impl Source for Machine {
    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn names(&self, part: usize) -> &'static [ElementName] {
        self.parts[part].0
    }

    fn visit(&mut self, part: usize) -> Result<Vec<Sample>> {
        let (names, cost_s, fails_from) = self.parts[part];
        self.now_s += cost_s;
        self.visits[part] += 1;
        if self.visits[part] > fails_from {
            return Err(Error::Refused("broken".to_owned()));
        }
        let sample = |name: &ElementName| Sample {
            name: *name,
            shape: Shape::NONE,
            calls: 2,
            time_s: 2.0 * cost_s,
        };
        Ok(names.iter().map(sample).collect())
    }

    fn elapsed_s(&self) -> f64 {
        self.now_s
    }
}

const WELL: usize = usize::MAX;

#[test]
fn rounds_are_interleaved_and_end_with_the_budget() {
    let mut machine = Machine::new(&[(&[SyncGrown], 1.0, WELL), (&[Create, Lock], 0.5, WELL)]);
    let vector = machine.measure(10.0);
    assert!(machine.now_s <= 10.0, "{}", machine.now_s);
    assert!(machine.visits[0].abs_diff(machine.visits[1]) <= 1, "{:?}", machine.visits);
    assert!(machine.visits[0] >= 6);
    assert_eq!(vector.elements.len(), 3);
    assert!(vector.elements.iter().all(|element| element.warnings.is_empty()));
}

#[test]
fn a_quick_system_is_not_measured_for_ever() {
    let mut machine = Machine::new(&[(&[ReadHit], 0.01, WELL)]);
    machine.measure(60.0);
    assert_eq!(machine.visits, [ROUNDS_MAX + 1]);
}

#[test]
fn what_is_most_important_is_measured_where_there_is_not_time_for_all() {
    let mut machine =
        Machine::new(&[(&[SyncGrown], 8.0, WELL), (&[Create], 8.0, WELL), (&[Fork], 8.0, WELL)]);
    let vector = machine.measure(20.0);
    let measured: Vec<ElementName> = vector.elements.iter().map(|element| element.name).collect();
    assert_eq!(measured, [SyncGrown, Create, Fork]);
    let vector = Machine::new(&[(&[SyncGrown], 8.0, WELL), (&[Fork], 8.0, WELL)]).measure(7.0);
    let measured: Vec<ElementName> = vector.elements.iter().map(|element| element.name).collect();
    assert_eq!(measured, [SyncGrown]);
    let (_, why) = vector.dropped.iter().find(|(name, _)| *name == Fork).unwrap();
    assert!(why.contains("--budget"), "{why}");
}

#[test]
fn a_part_that_fails_takes_nothing_else_with_it() {
    let mut machine =
        Machine::new(&[(&[SyncGrown], 0.1, 0), (&[Create], 0.1, WELL), (&[Fork], 0.1, 3)]);
    let vector = machine.measure(60.0);
    let measured: Vec<ElementName> = vector.elements.iter().map(|element| element.name).collect();
    assert_eq!(measured, [Create, Fork], "what was taken before stands");
    let (_, why) = vector.dropped.iter().find(|(name, _)| *name == SyncGrown).unwrap();
    assert_eq!(why, "broken");
    assert_eq!(machine.visits[0], 1, "it is not tried again");
    let all = vector.elements.len() + vector.dropped.len();
    assert_eq!(all, ElementName::ALL.len(), "each is measured or has a reason");
}
