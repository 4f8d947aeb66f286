//! How one visit departs from the law: a lognormal factor for the visit as a whole, correlated
//! noise from window to window, a transient at the start, stalls.

use rand::RngExt;
use rand_distr::{Distribution, Exp, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::spec::Noise;

/// The step in which noise is drawn, seconds: the window that the coefficients are stated for.
const STEP_S: f64 = 0.1;
/// However noisy, work never goes backwards.
const SPEED_MIN: f64 = 0.02;

/// The speed of one visit over time, 1 being the law's.
#[derive(Clone, Debug)]
pub(super) struct NoiseStream {
    noise: Noise,
    visit: f64,
    /// Current state of the AR(1) process, in standard deviations.
    state: f64,
    age_s: f64,
    /// Time of work left until the next stall; infinite where there are none.
    until_stall_s: f64,
    stall_left_s: f64,
}

/// Time at one speed; at none while the device stalls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) length_s: f64,
    pub(super) speed: f64,
}

impl NoiseStream {
    pub(super) fn new(noise: Noise, rng: &mut Xoshiro256PlusPlus) -> Self {
        let mut stream = Self {
            noise,
            visit: lognormal(noise.between_cv, rng),
            state: StandardNormal.sample(rng),
            age_s: 0.0,
            until_stall_s: f64::INFINITY,
            stall_left_s: 0.0,
        };
        stream.until_stall_s = stream.draw_stall_s(rng);
        stream
    }

    /// Lets `length_s` pass, stretch by stretch; returns the seconds' worth of undisturbed work
    /// done in it.
    pub(super) fn advance(
        &mut self,
        length_s: f64,
        rng: &mut Xoshiro256PlusPlus,
        each: &mut dyn FnMut(Stretch),
    ) -> f64 {
        let mut left_s = length_s;
        let mut worked_s = 0.0;
        while left_s > 1e-12 {
            let step_s = left_s.min(STEP_S);
            let speed = self.speed(step_s, rng);
            worked_s += speed
                * self.running_s(step_s, rng, &mut |length_s, is_running| {
                    each(Stretch { length_s, speed: if is_running { speed } else { 0.0 } });
                });
            self.age_s += step_s;
            left_s -= step_s;
        }
        worked_s
    }

    fn speed(&mut self, step_s: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let correlation = self.noise.within_correlation.powf(step_s / STEP_S);
        let fresh: f64 = StandardNormal.sample(rng);
        self.state = correlation * self.state + (1.0 - correlation * correlation).sqrt() * fresh;
        let missing = if self.noise.transient_s > 0.0 {
            let middle_s = self.age_s + step_s / 2.0;
            self.noise.transient_amplitude * (-middle_s / self.noise.transient_s).exp()
        } else {
            0.0
        };
        let within = 1.0 + self.noise.within_cv * self.state;
        (self.visit * within * (1.0 - missing)).max(SPEED_MIN)
    }

    /// How much of a step is not spent stalled.
    fn running_s(
        &mut self,
        step_s: f64,
        rng: &mut Xoshiro256PlusPlus,
        each: &mut dyn FnMut(f64, bool),
    ) -> f64 {
        let mut left_s = step_s;
        let mut running_s = 0.0;
        while left_s > 0.0 {
            if self.stall_left_s > 0.0 {
                let stalled_s = self.stall_left_s.min(left_s);
                self.stall_left_s -= stalled_s;
                left_s -= stalled_s;
                each(stalled_s, false);
            } else {
                let worked_s = self.until_stall_s.min(left_s);
                self.until_stall_s -= worked_s;
                running_s += worked_s;
                left_s -= worked_s;
                each(worked_s, true);
                if self.until_stall_s <= 0.0 {
                    self.stall_left_s = self.noise.stall_s;
                    self.until_stall_s = self.draw_stall_s(rng);
                }
            }
        }
        running_s
    }

    fn draw_stall_s(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        if self.noise.stall_every_s <= 0.0 || self.noise.stall_s <= 0.0 {
            return f64::INFINITY;
        }
        let law = Exp::new(1.0 / self.noise.stall_every_s).expect("the mean is above zero");
        rng.sample(law)
    }
}

/// A draw from the lognormal law with mean 1 and this coefficient of variation.
pub(super) fn lognormal(cv: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let variance = (1.0 + cv * cv).ln();
    let normal: f64 = StandardNormal.sample(rng);
    (variance.sqrt() * normal - variance / 2.0).exp()
}

/// Seed of a visit to a device that was seeded itself. An odd factor keeps visits with small
/// neighbouring seeds apart.
pub(super) fn visit_seed(device: u64, visit: u64) -> u64 {
    device ^ visit.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
