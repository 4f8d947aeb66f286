//! What the models of a record say about workloads, for the curves of the page. Nothing is fitted
//! here: whoever has the models hands in a function that answers.

use ioscape_model::{Interval, Prediction, Workload};

/// Answers for workloads, or none where the record holds too few to predict others from.
#[derive(Clone, Copy, Default)]
pub struct Answers<'a>(Option<&'a dyn Fn(&Workload) -> Prediction>);

impl<'a> Answers<'a> {
    /// Those of a fitted model.
    pub fn new(answer: &'a dyn Fn(&Workload) -> Prediction) -> Self {
        Self(Some(answer))
    }

    /// Whether there is a model at all.
    pub(crate) fn are_there(&self) -> bool {
        self.0.is_some()
    }

    /// Throughput with its 90 % interval, bytes per second.
    pub(crate) fn throughput(&self, work: &Workload) -> Option<Interval> {
        self.ask(work).map(|prediction| prediction.throughput_bytes_per_s.into())
    }

    /// Mean response time with its 90 % interval, seconds.
    pub(crate) fn response_s(&self, work: &Workload) -> Option<Interval> {
        self.ask(work).map(|prediction| prediction.response_time_s.mean.into())
    }

    /// Throughput, where the answer is put together beyond what was measured.
    pub(crate) fn put_together(&self, work: &Workload) -> Option<Interval> {
        let answer = self.ask(work).filter(|answer| answer.put_together && answer.in_range)?;
        Some(answer.throughput_bytes_per_s.into())
    }

    fn ask(&self, work: &Workload) -> Option<Prediction> {
        let answer = self.0?;
        work.check().is_ok().then(|| answer(work))
    }
}
