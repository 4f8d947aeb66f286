//! Runs a suite: each benchmark is prepared on every target, then tried there in turn, the order
//! of the targets turned round from one repetition to the next.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::counters::{Counters, Swapped};
use ioscape_engine::error::{Error, Result};
use ioscape_engine::target::Directory;
use ioscape_engine::{Clock, RunId};
use ioscape_model::units::show_bytes;
use ioscape_model::{Code, Host, Suite, Trial, Warning, Words};

use crate::benchmark::{Benchmark, Turn};
use crate::catalogue::Name;
use crate::site::Site;

/// A target of a suite.
#[derive(Clone, Debug)]
pub struct SuiteTarget {
    /// The directory.
    pub directory: Arc<Directory>,
}

/// What to run, and what was run already.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// What.
    pub suite: &'a Suite,
    /// Where all chance comes from.
    pub seed: u64,
    /// Names the directories.
    pub run: &'a RunId,
    /// The machine.
    pub host: &'a Arc<Host>,
    /// Trials of an earlier part of the run: not made again.
    pub done: &'a [Trial],
    /// Raised by whoever wants it to end.
    pub interrupt: &'a Arc<AtomicBool>,
    /// The run's clock.
    pub clock: Clock,
}

/// Progress.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// A benchmark lays out what it needs.
    Preparing {
        /// Which.
        benchmark: &'a str,
        /// Where, counted from 0.
        target: u32,
    },
    /// A trial begins.
    Trying {
        /// Which benchmark.
        benchmark: &'a str,
        /// Where, counted from 0.
        target: u32,
        /// Which repetition.
        repeat: u32,
        /// Trials made, all parts of the run together.
        made: usize,
        /// Trials there are to be.
        of: usize,
    },
    /// A trial was made.
    Made(&'a Trial),
}

/// One trial to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    target: u32,
    repeat: u32,
    scored: bool,
}

/// Runs what is left of a suite.
///
/// # Errors
/// What a benchmark failed with, [`Error::Interrupted`], or what `on_event` said.
pub fn run(
    plan: &Plan<'_>,
    places: &[SuiteTarget],
    on_event: &mut dyn FnMut(Event<'_>) -> Result<()>,
) -> Result<()> {
    let names: Vec<Name> = plan
        .suite
        .benchmarks
        .iter()
        .map(|name| Name::parse(name).ok_or_else(|| Error::Refused(Name::unknown(name))))
        .collect::<Result<_>>()?;
    let of = names.len() * slots(plan.suite, places.len()).len();
    let mut made = plan.done.len();
    for (number, name) in names.into_iter().enumerate() {
        let left: Vec<Slot> = slots(plan.suite, places.len())
            .into_iter()
            .filter(|slot| !plan.done.iter().any(|trial| is(trial, name, *slot)))
            .collect();
        if left.is_empty() {
            continue;
        }
        let mut benches = prepare(plan, places, (name, number), on_event)?;
        for slot in left {
            let (target, repeat) = (slot.target, slot.repeat);
            on_event(Event::Trying { benchmark: name.as_str(), target, repeat, made, of })?;
            let trial = attempt(plan, name, slot, &mut benches[target as usize])?;
            made += 1;
            on_event(Event::Made(&trial))?;
        }
    }
    Ok(())
}

struct PreparedBenchmark {
    site: Site,
    benchmark: Box<dyn Benchmark>,
}

fn prepare(
    plan: &Plan<'_>,
    places: &[SuiteTarget],
    which: (Name, usize),
    on_event: &mut dyn FnMut(Event<'_>) -> Result<()>,
) -> Result<Vec<PreparedBenchmark>> {
    let (name, number) = which;
    let mut benches = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let target = index as u32;
        on_event(Event::Preparing { benchmark: name.as_str(), target })?;
        let number = number * places.len() + index;
        let settings = &plan.suite.settings;
        let time = (plan.clock, plan.interrupt);
        let mut site = Site::new(&place.directory, (plan.run, number), settings, plan.host, time)?;
        let mut benchmark = name.make();
        let (wanted, free) = (benchmark.room_bytes(&site), place.directory.free_bytes()?);
        if wanted > free / 2 {
            return Err(Error::Refused(format!(
                "{} needs {} on {}, which has {} free, and at most half of that is used: lower \
                 --scale or --size",
                name.as_str(),
                show_bytes(wanted as f64),
                place.directory.path().display(),
                show_bytes(free as f64)
            )));
        }
        benchmark.prepare(&mut site)?;
        benches.push(PreparedBenchmark { site, benchmark });
    }
    Ok(benches)
}

fn attempt(
    plan: &Plan<'_>,
    name: Name,
    slot: Slot,
    bench: &mut PreparedBenchmark,
) -> Result<Trial> {
    let metered = plan.suite.metered || !slot.scored;
    bench.site.renew(metered);
    bench.site.meter.check()?;
    let started_s = plan.clock.now_s();
    let turn = Turn { repeat: slot.repeat, seed: plan.seed };
    let counters = Counters::open();
    let before = counters.swapped();
    let figures = bench.benchmark.trial(&mut bench.site, turn)?;
    let elapsed_s = plan.clock.now_s() - started_s;
    bench
        .site
        .warnings
        .extend(before.zip(counters.swapped()).and_then(|(before, after)| paged(before, after)));
    Ok(Trial {
        benchmark: name.as_str().to_owned(),
        target: slot.target,
        repeat: slot.repeat,
        scored: slot.scored,
        started_s,
        elapsed_s,
        figures,
        io: bench.site.meter.share(),
        warnings: std::mem::take(&mut bench.site.warnings),
    })
}

/// Classic benchmarks are to have memory enough and no paging (Ousterhout 1990, section 2).
fn paged(before: Swapped, after: Swapped) -> Option<Warning> {
    let Swapped { pages_in: came, pages_out: went } = after.since(&before);
    (came + went > 0).then(|| {
        let sentence = "the machine swapped during the trial: pages in {pages_in}, out {pages_out}";
        let text =
            Words::new(sentence).figure("pages_in", came as f64).figure("pages_out", went as f64);
        Warning::new(Code::Swapping, text, "free some memory, and run it again")
    })
}

/// All trials of one benchmark in order: scored ones round by round, then one metered on each
/// target, unless all are.
fn slots(suite: &Suite, n_targets: usize) -> Vec<Slot> {
    let mut slots = Vec::new();
    let extra = u32::from(!suite.metered);
    for repeat in 0..suite.repeats + extra {
        let scored = repeat < suite.repeats;
        let mut round: Vec<Slot> =
            (0..n_targets as u32).map(|target| Slot { target, repeat, scored }).collect();
        if repeat % 2 == 1 {
            round.reverse();
        }
        slots.extend(round);
    }
    slots
}

fn is(trial: &Trial, name: Name, slot: Slot) -> bool {
    trial.benchmark == name.as_str() && (trial.target, trial.repeat) == (slot.target, slot.repeat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ioscape_model::SuiteSettings;

    fn suite(repeats: u32, metered: bool) -> Suite {
        Suite {
            benchmarks: vec!["iostone-1987".to_owned()],
            targets: vec![],
            repeats,
            metered,
            purpose: ioscape_model::Purpose::Scores,
            settings: SuiteSettings::default(),
            kernel_version: None,
        }
    }

    #[test]
    fn a_trial_beside_swapping_is_doubted() {
        let swapped = |pages_in, pages_out| Swapped { pages_in, pages_out };
        assert_eq!(paged(swapped(5, 7), swapped(5, 7)), None);
        for after in [swapped(8, 7), swapped(5, 9)] {
            let doubt = paged(swapped(5, 7), after).unwrap();
            let pages = (after.pages_in - 5 + after.pages_out - 7) as f64;
            assert_eq!(doubt.code, Code::Swapping);
            assert!((doubt.figures["pages_in"] + doubt.figures["pages_out"] - pages).abs() < 1e-9);
        }
    }

    #[test]
    fn targets_take_turns_and_the_last_round_is_metered() {
        let order: Vec<(u32, u32, bool)> =
            slots(&suite(2, false), 2).iter().map(|s| (s.repeat, s.target, s.scored)).collect();
        let expected =
            [(0, 0, true), (0, 1, true), (1, 1, true), (1, 0, true), (2, 0, false), (2, 1, false)];
        assert_eq!(order, expected);
        assert_eq!(slots(&suite(3, true), 1).len(), 3);
    }

    fn tried(directory: &std::path::Path, done: &[Trial]) -> Vec<Trial> {
        let opened = ioscape_engine::target::open_directory(directory).unwrap();
        let places = [SuiteTarget { directory: Arc::new(opened) }];
        let (run_id, suite) = (RunId::random().unwrap(), suite(2, false));
        let plan = Plan {
            suite: &suite,
            seed: 1,
            run: &run_id,
            host: &Arc::default(),
            done,
            interrupt: &Arc::default(),
            clock: Clock::start(),
        };
        let mut trials = Vec::new();
        let mut keep = |event: Event<'_>| {
            if let Event::Made(trial) = event {
                trials.push(trial.clone());
            }
            Ok(())
        };
        run(&plan, &places, &mut keep).unwrap();
        trials
    }

    #[test]
    fn what_was_done_is_not_done_again_and_nothing_is_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let all = tried(directory.path(), &[]);
        assert_eq!(all.len(), 3);
        let rest = tried(directory.path(), &all[..1]);
        let repeats: Vec<u32> = rest.iter().map(|trial| trial.repeat).collect();
        assert_eq!(repeats, [1, 2]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
