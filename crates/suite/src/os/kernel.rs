//! How fast the processor computes with integers: a few small programs whose elementary
//! operations are counted, so that the rate means the same on every machine.
//!
//! Counted are loads, stores, arithmetic and logic operations, comparisons and branches, as the
//! source has them, whatever the compiler makes of them. A million a second is called one MIPS;
//! that is about what a VAX-11/780 does, which is 1 by definition in Ousterhout's Table 1, but
//! nobody ran this kernel on one. So a rating against 1990 is good to a factor of two or so, the
//! same for all figures; between records of this tool it is as good as the measurement.

use ioscape_engine::error::Result;

use super::timing::Timer;
use crate::meter::Meter;

/// Raised whenever a program or its data change: ratings of different versions do not compare.
pub const VERSION: u32 = 1;

/// Counts operations, or does not.
trait Tally {
    fn add(&mut self, operations: u64);
}

/// For the timed runs: nothing is left of it.
struct Uncounted;

impl Tally for Uncounted {
    #[inline]
    fn add(&mut self, _: u64) {}
}

struct Counted(u64);

impl Tally for Counted {
    fn add(&mut self, operations: u64) {
        self.0 += operations;
    }
}

/// Operations of one pass.
pub fn operations() -> u64 {
    let mut counted = Counted(0);
    pass(&mut Data::new(), &mut counted);
    counted.0
}

/// Millions of counted operations per second.
pub(super) fn rate_mips(timer: &Timer, meter: &Meter) -> Result<f64> {
    let mut data = Data::new();
    let timed = timer.time(meter, || {
        std::hint::black_box(pass(std::hint::black_box(&mut data), &mut Uncounted));
        Ok(())
    })?;
    Ok(operations() as f64 / timed.per_call_s * 1e-6)
}

const SIEVE: usize = 8192;
const SORTED: usize = 512;
const SIDE: usize = 24;
const TEXT: usize = 4096;
const NODES: usize = 1024;

struct Data {
    composite: Vec<bool>,
    words: Vec<u32>,
    matrices: [Vec<u32>; 3],
    text: Vec<u8>,
    next: Vec<u32>,
}

impl Data {
    fn new() -> Self {
        Self {
            composite: vec![false; SIEVE],
            words: vec![0; SORTED],
            matrices: std::array::from_fn(|k| (0..SIDE * SIDE).map(|i| (i + k) as u32).collect()),
            text: (0..TEXT).map(|i| (i * 7 % 61) as u8 + b'A').collect(),
            // A walk through all nodes: the step has no divisor in common with their number.
            next: (0..NODES).map(|i| ((i + 421) % NODES) as u32).collect(),
        }
    }
}

fn pass(data: &mut Data, tally: &mut impl Tally) -> u32 {
    let primes = sieve(&mut data.composite, tally);
    let middle = sort(&mut data.words, tally);
    let product = multiply(&mut data.matrices, tally);
    let hash = hash(&data.text, tally);
    let walked = walk(&data.next, tally);
    primes ^ middle ^ product ^ hash ^ walked
}

/// Counts the primes below the length.
fn sieve(composite: &mut [bool], tally: &mut impl Tally) -> u32 {
    composite.fill(false);
    tally.add(2 * composite.len() as u64);
    let mut primes = 0;
    for i in 2..composite.len() {
        tally.add(4); // load, test, count, loop
        if composite[i] {
            continue;
        }
        primes += 1;
        let mut multiple = i * i;
        while multiple < composite.len() {
            composite[multiple] = true;
            multiple += i;
            tally.add(4); // store, add, compare, branch
        }
    }
    primes
}

/// Shell's sort of words drawn anew; gives the one in the middle.
fn sort(words: &mut [u32], tally: &mut impl Tally) -> u32 {
    let mut drawn = 12_345_u32;
    for word in words.iter_mut() {
        drawn = drawn.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        *word = drawn >> 8;
        tally.add(5); // multiply, add, shift, store, loop
    }
    let mut gap = words.len() / 2;
    while gap > 0 {
        for i in gap..words.len() {
            let word = words[i];
            let mut at = i;
            tally.add(3);
            while at >= gap && words[at - gap] > word {
                words[at] = words[at - gap];
                at -= gap;
                tally.add(7); // two compares, subtract, load, store, subtract, branch
            }
            words[at] = word;
            tally.add(3);
        }
        gap /= 2;
    }
    words[words.len() / 2]
}

/// A product of matrices; gives its last element.
fn multiply(matrices: &mut [Vec<u32>; 3], tally: &mut impl Tally) -> u32 {
    let [one, other, product] = matrices;
    for row in 0..SIDE {
        for column in 0..SIDE {
            let mut sum = 0_u32;
            for k in 0..SIDE {
                let term = one[row * SIDE + k].wrapping_mul(other[k * SIDE + column]);
                sum = sum.wrapping_add(term);
                tally.add(7); // two addresses, two loads, multiply, add, loop
            }
            product[row * SIDE + column] = sum;
            tally.add(3);
        }
    }
    product[SIDE * SIDE - 1]
}

/// A hash over the words of a text, as a compiler's symbol table has one.
fn hash(text: &[u8], tally: &mut impl Tally) -> u32 {
    let (mut hash, mut total) = (0_u32, 0_u32);
    for &byte in text {
        tally.add(4); // load, compare, branch, loop
        if byte == b'A' {
            total ^= hash;
            hash = 0;
            tally.add(2);
        } else {
            hash = hash.rotate_left(5) ^ u32::from(byte);
            tally.add(2);
        }
    }
    total
}

/// From node to node until the first one comes again, which takes as many steps as there are.
fn walk(next: &[u32], tally: &mut impl Tally) -> u32 {
    let (mut at, mut steps) = (next[0], 1);
    while at != 0 {
        at = next[at as usize];
        steps += 1;
        tally.add(4); // load, count, compare, branch
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_compute_what_they_should() {
        let mut data = Data::new();
        let tally = &mut Uncounted;
        assert_eq!(sieve(&mut data.composite, tally), 1028); // primes below 8192
        sort(&mut data.words, tally);
        assert!(data.words.is_sorted());
        multiply(&mut data.matrices, tally);
        let [one, other, product] = &data.matrices;
        let last: u32 = (0..SIDE).map(|k| one[23 * SIDE + k] * other[k * SIDE + 23]).sum();
        assert_eq!(product[SIDE * SIDE - 1], last);
        assert_eq!(walk(&data.next, tally), NODES as u32);
    }

    #[test]
    fn the_count_of_operations_belongs_to_the_version() {
        assert_eq!((VERSION, operations()), (1, OPERATIONS));
        // Data are the same before each pass, so each pass costs the same.
        let mut data = Data::new();
        for _ in 0..2 {
            let mut counted = Counted(0);
            pass(&mut data, &mut counted);
            assert_eq!(counted.0, OPERATIONS);
        }
    }

    const OPERATIONS: u64 = 294_338;
}
