//! random(3) of the GNU C library: the additive feedback generator of degree 31 that C programs
//! draw from on Linux. BSD of 1987 seeds the same recurrence differently, so a VAX drew others.

/// Degree and separation of the trinomial.
const DEGREE: usize = 31;
const SEPARATION: usize = 3;
/// Values thrown away after seeding.
const DISCARDED: usize = 310;
/// What a program that never seeds gets.
const UNSEEDED: i32 = 1;

/// The generator.
#[derive(Clone, Debug)]
pub struct GlibcRandom {
    state: [i32; DEGREE],
    /// Where the next value goes.
    at: usize,
}

impl GlibcRandom {
    /// As after srandom(3).
    pub fn seeded(seed: i32) -> Self {
        const MULTIPLIER: i64 = 16_807;
        const MODULUS: i64 = 2_147_483_647;
        let mut state = [0; DEGREE];
        let mut word = i64::from(if seed == 0 { 1 } else { seed });
        for slot in &mut state {
            *slot = word as i32;
            // The library's arithmetic on a negative seed is C's: the remainder keeps its sign.
            word = (MULTIPLIER * word) % MODULUS;
            if word < 0 {
                word += MODULUS;
            }
        }
        let mut made = Self { state, at: SEPARATION };
        for _ in 0..DISCARDED {
            made.draw();
        }
        made
    }

    /// As in a program that never calls srandom(3).
    pub fn unseeded() -> Self {
        Self::seeded(UNSEEDED)
    }

    /// The next value, 31 bits.
    pub fn draw(&mut self) -> u32 {
        // o[i] = o[i-31] + o[i-3], in a ring of 31.
        let other = (self.at + DEGREE - SEPARATION) % DEGREE;
        let sum = self.state[self.at].wrapping_add(self.state[other]);
        self.state[self.at] = sum;
        self.at = (self.at + 1) % DEGREE;
        sum.cast_unsigned() >> 1
    }

    /// The next value modulo `n`, as C programs draw below a limit.
    pub fn below(&mut self, n: u32) -> u32 {
        self.draw() % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_draws_what_the_library_draws() {
        // Printed by a C program on glibc 2.36.
        let check = |mut random: GlibcRandom, expected: [u32; 5]| {
            assert_eq!(std::array::from_fn(|_| random.draw()), expected);
        };
        check(
            GlibcRandom::unseeded(),
            [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793],
        );
        check(GlibcRandom::seeded(34_710_373), SEEDED);
    }

    const SEEDED: [u32; 5] = [960_721_146, 1_883_516_719, 936_438_710, 21_342_993, 48_933_446];
}
