//! How fast the exact curve is made: requests of one page with a skewed law over a million pages, and
//! requests of 64 pages; then a sampled curve. The requests lie in memory.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "an example that measures")]

use std::time::Instant;

use ioscape_trace::caches::mrc::{Access, ExactCurve, SampledCurve};

const PAGES: u64 = 1_000_000;
const REQUESTS: usize = 20_000_000;

fn main() {
    for (name, skew) in [("uniform", 1), ("skewed", 3)] {
        let requests = requests(skew);
        let start = Instant::now();
        let mut curve = ExactCurve::new();
        for page in &requests {
            curve.touch(Access::Read, 1, u64::from(*page), 1);
        }
        show(&format!("exact, {name}, {} pages", curve.pages()), REQUESTS, start);
        let start = Instant::now();
        let mut curve = SampledCurve::new(0.01);
        for page in &requests {
            curve.touch(Access::Read, 1, u64::from(*page), 1);
        }
        show(&format!("sampled 0.01 twice, {name}"), REQUESTS, start);
        let start = Instant::now();
        let mut curve = ExactCurve::new();
        for page in &requests[..REQUESTS / 10] {
            curve.touch(Access::Read, 1, u64::from(*page) / 64 * 64, 64);
        }
        show(&format!("exact, {name}, 64 pages each"), REQUESTS / 10, start);
    }
}

fn requests(skew: i32) -> Vec<u32> {
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (PAGES as f64 * uniform.powi(skew)) as u64;
        // Ranks are scattered over the file.
        (rank * 611_953 % PAGES) as u32
    };
    (0..REQUESTS).map(|_| draw()).collect()
}

fn show(what: &str, requests: usize, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{what}: {:.1} M requests/s", requests as f64 / seconds / 1e6);
}
