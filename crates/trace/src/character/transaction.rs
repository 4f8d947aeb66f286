//! Finds a sequence of calls that comes again and again: the shift at which a stream is most like
//! itself, as pitch is found in sound.

use std::collections::HashMap;

use ioscape_model::app::Transaction;

use crate::{Event, Op};

/// Calls of a stream that are remembered.
const REMEMBERED: usize = 8192;
/// Streams that are watched: the first to make calls.
const STREAMS_MAX: usize = 16;
/// Longer sequences are not looked for.
const CALLS_MAX: usize = 512;
/// A sequence that comes again is so like itself.
const LIKENESS_MIN: f64 = 0.7;
/// And so much more than calls drawn at random.
const GAIN_MIN: f64 = 0.2;
/// Steps that a model tells.
const STEPS_MAX: usize = 48;

/// A call as far as sequences go: what, and about how large.
type Token = (Op, u32);

/// The last calls of some streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens {
    streams: HashMap<u32, Stream>,
}

#[derive(Clone, Debug, Default)]
struct Stream {
    ring: Vec<Token>,
    count: usize,
}

impl Tokens {
    pub(super) fn add(&mut self, event: &Event) {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&event.stream) {
            return;
        }
        let size = if event.length == 0 { 0 } else { event.length.ilog2() + 1 };
        let stream = self.streams.entry(event.stream).or_default();
        let token = (event.op, size);
        if stream.ring.len() < REMEMBERED {
            stream.ring.push(token);
        } else {
            stream.ring[stream.count % REMEMBERED] = token;
        }
        stream.count += 1;
    }

    /// The sequence of the stream that made most calls, if it has one.
    pub(super) fn transaction(&self) -> Option<Transaction> {
        let by_count = |(id, stream): &(&u32, &Stream)| (stream.count, std::cmp::Reverse(**id));
        let (_, stream) = self.streams.iter().max_by_key(by_count)?;
        let split = if stream.ring.len() < REMEMBERED { 0 } else { stream.count % REMEMBERED };
        let (late, early) = stream.ring.split_at(split);
        repeated(&[early, late].concat())
    }
}

/// The shortest shift that is about as like as the best.
fn repeated(tokens: &[Token]) -> Option<Transaction> {
    let longest = CALLS_MAX.min(tokens.len() / 3);
    let likeness = |shift: usize| {
        let pairs = tokens[shift..].iter().zip(tokens);
        let like = pairs.filter(|(a, b)| a == b).count();
        like as f64 / (tokens.len() - shift) as f64
    };
    let all: Vec<f64> = (1..=longest).map(likeness).collect();
    let best = all.iter().copied().fold(0.0, f64::max);
    let at = all.iter().position(|likeness| *likeness >= best - 0.03)?;
    let calls = at + 1;
    if calls < 2 || best < LIKENESS_MIN || best - chance(tokens) < GAIN_MIN {
        return None;
    }
    Some(Transaction { calls: calls as u64, likeness: all[at], steps: steps(tokens, calls) })
}

/// How like two calls drawn at random are.
fn chance(tokens: &[Token]) -> f64 {
    let mut counts: HashMap<Token, u64> = HashMap::new();
    for token in tokens {
        *counts.entry(*token).or_default() += 1;
    }
    let total = tokens.len() as f64;
    counts.values().map(|count| (*count as f64 / total).powi(2)).sum()
}

/// The last of the sequences, from after a sync where it has one.
fn steps(tokens: &[Token], calls: usize) -> Vec<String> {
    let end = tokens[..tokens.len()]
        .iter()
        .rposition(|(op, _)| matches!(op, Op::Sync | Op::Dsync))
        .map_or(tokens.len(), |at| at + 1);
    let from = end.checked_sub(calls).unwrap_or(tokens.len() - calls);
    let mut told: Vec<(Token, u64)> = Vec::new();
    for token in &tokens[from..from + calls] {
        match told.last_mut() {
            Some((last, count)) if last == token => *count += 1,
            _ => told.push((*token, 1)),
        }
    }
    told.truncate(STEPS_MAX);
    told.into_iter().map(|((op, size), count)| step(op, size, count)).collect()
}

fn step(op: Op, size: u32, count: u64) -> String {
    let moves = matches!(op, Op::Read | Op::Write | Op::Copy | Op::Sendfile);
    let about = if moves && size > 0 {
        format!(" ~{}", ioscape_model::units::show_size((1_u64 << (size - 1)) as f64))
    } else {
        String::new()
    };
    let times = if count > 1 { format!(" ×{count}") } else { String::new() };
    format!("{}{about}{times}", op.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tokens: &[Token]) -> Option<u64> {
        repeated(tokens).map(|transaction| transaction.calls)
    }

    #[test]
    fn a_repeated_sequence_is_found() {
        let one = [(Op::Lock, 0), (Op::Read, 13), (Op::Read, 13), (Op::Write, 13), (Op::Sync, 0)];
        let tokens: Vec<Token> = one.iter().copied().cycle().take(1000).collect();
        let transaction = repeated(&tokens).unwrap();
        assert_eq!(transaction.calls, 5);
        assert_eq!(transaction.steps, ["LOCK", "READ ~4 KiB ×2", "WRITE ~4 KiB", "SYNC"]);
    }

    #[test]
    fn calls_in_no_order_are_no_sequence() {
        let mut random = 7_u64;
        let mut draw = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            [(Op::Read, 13), (Op::Write, 13), (Op::Stat, 0)][(random >> 33) as usize % 3]
        };
        let tokens: Vec<Token> = (0..3000).map(|_| draw()).collect();
        assert_eq!(found(&tokens), None);
        assert_eq!(found(&[(Op::Read, 13); 100]), None);
        assert_eq!(found(&[]), None);
    }
}
