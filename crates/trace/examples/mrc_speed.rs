//! How fast miss-ratio curves are made, from requests that are drawn in memory.
//!
//! usage: `mrc_speed exact`: a million pages, requests of one page and of 64, uniform and skewed;
//! `mrc_speed sampled [REQUESTS]`: a billion requests over 40 million pages, sampled until two samples
//! agree, and the memory that took; `mrc_speed error [REQUESTS]`: how far such a curve is off the exact
//! one; `mrc_speed make FILE [REQUESTS]`: requests of one page over a million pages as libCacheSim reads
//! them (oracleGeneral), and `mrc_speed file FILE`: the exact curve of such a file, with its reading, so
//! that both can be timed on one file. Times are of the processor, in chunks of the requests of which
//! the middle one is told.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example that prints")]

use std::io::{self, Read, Write};

use ioscape_trace::caches::mrc::{
    Access, Agreement, Curve, ExactCurve, SampledCurve, Touch, sample_until_agreed,
};

const PAGES: u64 = 1_000_000;
const PAGES_SAMPLED: u64 = 40_000_000;
const REQUESTS: usize = 20_000_000;
const REQUESTS_SAMPLED: usize = 1_000_000_000;
/// Requests of which the time is taken.
const CHUNK: usize = 1 << 20;
/// Requests that the curve is shown at once.
const AT_ONCE: usize = 512;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let path = matches!(mode.as_str(), "make" | "file").then(|| arguments.next().unwrap());
    let count = arguments.next().map_or(REQUESTS_SAMPLED, |count| count.parse().unwrap());
    match mode.as_str() {
        "exact" => exact(),
        "sampled" => {
            for skew in [1, 3] {
                let start = seconds();
                let agreement = sampled(count, skew);
                println!(
                    "skew {skew}: {count} requests in {:.1} s of the processor, {:.1} MiB at most: \
                     {} of the pages in each sample, {:.1} % apart",
                    seconds() - start,
                    memory_mib(),
                    agreement.rate,
                    100.0 * agreement.relative_error
                );
            }
        }
        "error" => {
            for skew in [1, 3] {
                let (exact, sampled) = (exact_of(count, skew), sampled(count, skew).curve);
                println!(
                    "skew {skew}: misses at most {:.1} % off",
                    100.0 * error(&sampled, &exact)
                );
            }
        }
        "make" => make(&path.unwrap(), count.min(REQUESTS)),
        "file" => file(&path.unwrap()),
        other => println!("exact, sampled, error, make or file, not {other:?}"),
    }
}

fn exact() {
    for skew in [1, 3] {
        let pages: Vec<u64> = draws(PAGES, skew).take(REQUESTS).collect();
        for length in [1, 64] {
            let mut curve = ExactCurve::new();
            let mut times: Vec<f64> = Vec::new();
            for chunk in pages.chunks_exact(CHUNK) {
                let start = seconds();
                for some in chunk.chunks(AT_ONCE) {
                    let touches: Vec<Touch> =
                        some.iter().map(|page| request(page / length * length, length)).collect();
                    curve.touch_all(&touches, |_, _, _| {});
                }
                times.push((seconds() - start) / CHUNK as f64);
            }
            // The first few find most pages for the first time.
            times.drain(..4);
            times.sort_by(f64::total_cmp);
            println!(
                "skew {skew}, {length} pages each, {} pages: {:.1} M requests/s",
                curve.pages(),
                1e-6 / times[times.len() / 2]
            );
        }
    }
}

/// Bytes of a request: seconds, object, bytes, and when the object comes next (here: unknown).
const ORACLE_BYTES: usize = 4 + 8 + 4 + 8;

fn make(path: &str, count: usize) {
    let mut out = io::BufWriter::new(std::fs::File::create(path).unwrap());
    for (second, page) in draws(PAGES, 3).take(count).enumerate() {
        let mut record = [0; ORACLE_BYTES];
        record[..4].copy_from_slice(&((second / 100_000) as u32).to_le_bytes());
        record[4..12].copy_from_slice(&page.to_le_bytes());
        record[12..16].copy_from_slice(&4096_u32.to_le_bytes());
        record[16..].copy_from_slice(&(-2_i64).to_le_bytes());
        out.write_all(&record).unwrap();
    }
    out.flush().unwrap();
}

fn file(path: &str) {
    let start = seconds();
    let mut input = std::fs::File::open(path).unwrap();
    let (mut curve, mut requests) = (ExactCurve::new(), 0);
    let mut buffer = vec![0; ORACLE_BYTES * AT_ONCE * 8];
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match input.read(&mut buffer[filled..]).unwrap() {
                0 => break,
                count => filled += count,
            }
        }
        if filled == 0 {
            break;
        }
        let records = buffer[..filled].chunks_exact(ORACLE_BYTES);
        let touches: Vec<Touch> = records
            .map(|record| request(u64::from_le_bytes(record[4..12].try_into().unwrap()), 1))
            .collect();
        requests += touches.len();
        curve.touch_all(&touches, |_, _, _| {});
    }
    let curve = curve.finish();
    let took = seconds() - start;
    println!(
        "{requests} requests, {} pages in {took:.2} s: {:.1} M requests/s; miss ratio with half of \
         the pages {:.4}",
        curve.pages(),
        requests as f64 * 1e-6 / took,
        curve.miss_ratio(curve.pages() / 2)
    );
}

const fn request(first_page: u64, pages: u64) -> Touch {
    Touch { access: Access::Read, file: 1, first_page, pages }
}

fn sampled(count: usize, skew: i32) -> Agreement {
    let pass = |curve: &mut SampledCurve| {
        for page in draws(PAGES_SAMPLED, skew).take(count) {
            curve.touch(Access::Read, 1, page, 1);
        }
        io::Result::Ok(())
    };
    sample_until_agreed(0.05, pass).unwrap()
}

fn exact_of(count: usize, skew: i32) -> Curve {
    let mut curve = ExactCurve::new();
    let mut touches = Vec::new();
    for page in draws(PAGES_SAMPLED, skew).take(count) {
        touches.push(request(page, 1));
        if touches.len() == AT_ONCE {
            curve.touch_all(&touches, |_, _, _| {});
            touches.clear();
        }
    }
    curve.touch_all(&touches, |_, _, _| {});
    curve.finish()
}

/// The largest relative error of the misses, of a hundred sizes with more than one per cent of misses.
fn error(sampled: &Curve, exact: &Curve) -> f64 {
    let misses = |curve: &Curve, pages| curve.misses(Access::Read, pages) as f64;
    let sizes = exact.sizes(100).into_iter().filter(|pages| exact.miss_ratio(*pages) > 0.01);
    let errors = sizes.map(|pages| (misses(sampled, pages) / misses(exact, pages) - 1.0).abs());
    errors.fold(0.0, f64::max)
}

/// Pages whose probability falls with their rank; ranks are scattered over the file.
fn draws(pages: u64, skew: i32) -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        (pages as f64 * uniform.powi(skew)) as u64 * 611_953 % pages
    })
}

/// Seconds of the processor that this thread took.
fn seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The largest resident memory so far.
fn memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}
