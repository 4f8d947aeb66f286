//! The predictor as the page of a record runs it: `ioscape-analysis` compiled to WebAssembly, so
//! that the page and `ioscape predict` are one implementation.
//!
//! The binary packs a fitted predictor into the page ([`packed`]), the module loads it there
//! ([`Session`]). The compiled module is `crates/report/assets/predictor.wasm`; `cargo xtask wasm`
//! makes it anew.

use ioscape_analysis::predict::Predictor;
use ioscape_model::{Prediction, Workload, WorkloadError};
use serde::Serialize;

#[cfg(any(test, target_arch = "wasm32"))]
mod exports;

/// Packs a predictor as [`Session::load`] takes it. The bytes are for a module made from the same
/// sources, in the same page: to keep a predictor, store it as JSON. Code that reads JSON would
/// make the module twice as large.
pub fn packed(predictor: &Predictor) -> Vec<u8> {
    postcard::to_allocvec(predictor).expect("a predictor is plain data")
}

/// One page's predictor.
#[derive(Debug, Default)]
pub struct Session {
    predictor: Option<Predictor>,
}

/// What is said about a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What it would get.
    Prediction(Box<Prediction>),
    /// Why it cannot be answered, in one line.
    Wrong(String),
}

impl Session {
    /// A page that has no predictor yet.
    pub const fn new() -> Self {
        Self { predictor: None }
    }

    /// Takes a predictor that was [`packed`].
    ///
    /// # Errors
    /// One line, where it cannot be read.
    pub fn load(&mut self, packed: &[u8]) -> Result<(), String> {
        let predictor = postcard::from_bytes(packed);
        self.predictor = Some(predictor.map_err(|error| format!("the fitted model: {error}"))?);
        Ok(())
    }

    /// Answers for a workload: `key=value` lines, as they are typed. Keys that are missing have
    /// their defaults, except that requests pass the page cache as in the record.
    pub fn predict(&self, typed: &str) -> Answer {
        self.prediction(typed)
            .map_or_else(Answer::Wrong, |prediction| Answer::Prediction(Box::new(prediction)))
    }

    fn prediction(&self, typed: &str) -> Result<Prediction, String> {
        let predictor = self.predictor.as_ref().ok_or("no model is loaded")?;
        let not_a_pair = |line: &str| WorkloadError::NotAPair(line.to_owned());
        let pairs = typed.lines().map(|line| line.split_once('=').ok_or_else(|| not_a_pair(line)));
        let work = pairs.collect::<Result<Vec<_>, _>>().and_then(Workload::from_pairs);
        let mut work = work.map_err(|error| error.to_string())?;
        if !typed.lines().any(|line| line.starts_with("access=")) {
            work.access = predictor.access();
        }
        match predictor.refuses(&work) {
            Some(why) => Err(why),
            None => Ok(predictor.predict(&work.literal(), &work)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_model_nothing_is_answered() {
        let mut session = Session::new();
        let expected = Answer::Wrong("no model is loaded".to_owned());
        assert_eq!(session.predict("read_frac=1"), expected);
        let error = session.load(b"").unwrap_err();
        assert!(error.starts_with("the fitted model: "), "{error}");
        assert_eq!(session.predict("read_frac=1"), expected);
    }
}
