//! The system vector: measures all elements in interleaved rounds, so that drift hits all alike,
//! within a budget, and makes each a mean with its interval and its linear terms. The most important
//! come first where there is not time for all.

mod fit;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ioscape_engine::elements::{Elements, Limits, Pace, Sample};
use ioscape_engine::error::Result;
use ioscape_engine::target::Directory;
use ioscape_engine::{Clock, Error, RunId};
use ioscape_model::{Element, ElementName, LeftOut, Part, Warning};

/// More rounds than this narrow the intervals no further than the machine itself wanders.
const ROUNDS_MAX: usize = 12;
/// Fewer rounds say nothing of the scatter.
pub(crate) const ROUNDS_MIN: usize = 2;
/// A part takes now and then longer than the last time, by this factor.
const PRUDENCE: f64 = 1.25;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Where.
    pub directory: Arc<Directory>,
    /// Names the scratch directory.
    pub run: &'a RunId,
    /// How long it may take.
    pub budget: Duration,
    /// Most bytes that may be written.
    pub written_max_bytes: u64,
    /// Where all chance comes from.
    pub seed: u64,
    /// Time.
    pub clock: Clock,
    /// Raised when it is to stop.
    pub interrupt: Arc<AtomicBool>,
}

/// The vector of a system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemVector {
    /// In the order in which they are shown.
    pub elements: Vec<Element>,
    /// What was not measured, and why.
    pub dropped: Vec<(ElementName, String)>,
    /// Rounds that were begun.
    pub rounds: usize,
    /// Bytes written.
    pub written_bytes: u64,
}

/// Progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Which round, from 0.
    pub round: usize,
    /// The first element of the part that comes next.
    pub name: ElementName,
    /// Since the vector was begun, seconds.
    pub elapsed_s: f64,
}

/// Measures a vector.
///
/// # Errors
/// When there is no room, nothing can be made there, or the run was interrupted.
pub fn measure(request: &Request<'_>, on_step: &mut dyn FnMut(Step)) -> Result<SystemVector> {
    let Request { directory, run, budget, written_max_bytes, seed, clock, interrupt } = request;
    let (began_s, budget_s) = (clock.now_s(), budget.as_secs_f64());
    let limits =
        Limits { pace: Pace::within(budget_s), written_max_bytes: *written_max_bytes, seed: *seed };
    let opened = Elements::open(Arc::clone(directory), run, limits, Arc::clone(interrupt))?;
    let mut source = Timed { elements: opened, clock: *clock, began_s };
    let taken = take(&mut source, budget_s, on_step)?;
    let elements = &source.elements;
    let vector = assemble(taken, elements.warnings(), |name| {
        let refused = elements.refusals().iter().find(|refusal| refusal.name == name);
        refused.map(|refusal| refusal.why.clone())
    });
    Ok(SystemVector { written_bytes: elements.written_bytes(), ..vector })
}

/// What a run of so many seconds spends on its vector, seconds: a ninth of it, but 20 to 60.
pub fn budget_s(run_budget_s: f64) -> f64 {
    (run_budget_s / 9.0).clamp(20.0, 60.0)
}

/// What was not measured, by reason; empty where all was.
pub fn left_out(vector: &SystemVector) -> Vec<LeftOut> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in &vector.dropped {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(name.word()),
            None => reasons.push((why, vec![name.word()])),
        }
    }
    let text: Vec<String> =
        reasons.iter().map(|(why, names)| format!("{} ({why})", names.join(", "))).collect();
    let part = Part::SystemVector;
    if text.is_empty() { vec![] } else { vec![LeftOut { part, text: text.join("; ") }] }
}

/// What the rounds are made of, and their time.
trait Source {
    fn parts(&self) -> usize;
    fn names(&self, part: usize) -> &'static [ElementName];
    fn visit(&mut self, part: usize) -> Result<Vec<Sample>>;
    fn elapsed_s(&self) -> f64;
}

struct Timed {
    elements: Elements,
    clock: Clock,
    began_s: f64,
}

impl Source for Timed {
    fn parts(&self) -> usize {
        self.elements.parts()
    }

    fn names(&self, part: usize) -> &'static [ElementName] {
        self.elements.names(part)
    }

    fn visit(&mut self, part: usize) -> Result<Vec<Sample>> {
        self.elements.visit(part)
    }

    fn elapsed_s(&self) -> f64 {
        self.clock.now_s() - self.began_s
    }
}

/// Samples of all rounds, and why parts were given up.
#[derive(Debug, Default)]
struct Taken {
    rounds: Vec<Vec<Sample>>,
    given_up: Vec<(&'static [ElementName], String)>,
}

/// State of a part.
#[derive(Clone, Debug)]
struct Course {
    /// What its last visit took, without what it had to make; `None` before the first.
    cost_s: Option<f64>,
    is_given_up: bool,
}

/// Visits every part in each round while there is time. The first round makes what is measured and
/// is not counted where another follows: caches and journals were cold in it.
fn take(source: &mut dyn Source, budget_s: f64, on_step: &mut dyn FnMut(Step)) -> Result<Taken> {
    let mut taken = Taken::default();
    let mut parts = vec![Course { cost_s: None, is_given_up: false }; source.parts()];
    for round in 0..=ROUNDS_MAX {
        let mut samples = Vec::new();
        let mut visited = 0;
        for (part, course) in parts.iter_mut().enumerate() {
            let elapsed_s = source.elapsed_s();
            let left_s = budget_s - elapsed_s;
            let fits = course.cost_s.map_or(left_s > 0.0, |cost_s| PRUDENCE * cost_s <= left_s);
            if course.is_given_up || !fits {
                continue;
            }
            on_step(Step { round, name: source.names(part)[0], elapsed_s });
            match source.visit(part) {
                Ok(mut found) => samples.append(&mut found),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    course.is_given_up = true;
                    taken.given_up.push((source.names(part), error.to_string()));
                }
            }
            course.cost_s = Some(source.elapsed_s() - elapsed_s);
            visited += 1;
        }
        taken.rounds.push(samples);
        if visited == 0 {
            break;
        }
    }
    Ok(taken)
}

/// Makes elements of the samples, and says of each that is none why.
fn assemble(
    taken: Taken,
    warnings: &[(ElementName, Warning)],
    refused: impl Fn(ElementName) -> Option<String>,
) -> SystemVector {
    let Taken { rounds, given_up } = taken;
    let mut vector = SystemVector { rounds: rounds.len(), ..SystemVector::default() };
    for &name in ElementName::ALL {
        let of_it: Vec<Vec<Sample>> = rounds
            .iter()
            .map(|round| round.iter().filter(|sample| sample.name == name).copied().collect())
            .filter(|round: &Vec<Sample>| !round.is_empty())
            .collect();
        if let Some(mut element) = fit::element(name, &of_it) {
            let doubts = warnings.iter().filter(|(of, _)| *of == name);
            element.warnings.extend(doubts.map(|(_, warning)| warning.clone()));
            vector.elements.push(element);
            continue;
        }
        let failed = given_up.iter().find(|(names, _)| names.contains(&name));
        let why = refused(name)
            .or_else(|| failed.map(|(_, why)| why.clone()))
            .unwrap_or_else(|| "there was no time for it: give a longer --budget".to_owned());
        vector.dropped.push((name, why));
    }
    vector
}

#[cfg(test)]
mod tests;
