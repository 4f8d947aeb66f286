//! How much one processor can ask for: `loopback serve PORT` on one, `loopback drive PORT USERS
//! SECONDS [RATE]` on another. With a rate, each user has its share of so many requests a second.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::AtomicBool;

use ioscape_engine::Stopwatch;
use ioscape_model::Spacing;
use ioscape_trace::site::{Answer, Ask, Session};
use ioscape_web::{Job, Origin, ResponseTimes, Server, Times, drive, serve};

const N_FILES: u32 = 100;
const FILE_BYTES: u64 = 1024;
const ASKS: u64 = 1000;

#[expect(clippy::print_stderr, reason = "a program for the terminal")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", port] => serve_files(port.parse()?),
        ["drive", port, users, seconds] => load(port, users.parse()?, seconds.parse()?, None),
        ["drive", port, users, seconds, rate] => {
            load(port, users.parse()?, seconds.parse()?, Some(rate.parse()?))
        }
        _ => {
            eprintln!("loopback serve PORT | loopback drive PORT USERS SECONDS [RATE]");
            Ok(())
        }
    }
}

fn serve_files(port: u16) -> Result<(), Box<dyn Error>> {
    let paths: HashMap<String, u64> =
        (0..N_FILES).map(|file| (format!("f/{file}"), FILE_BYTES)).collect();
    serve(Origin {
        listen: ([127, 0, 0, 1], port).into(),
        paths,
        response_times: ResponseTimes::none(),
        seed: 1,
        interrupt: &AtomicBool::new(false),
        on_listen: &mut |_| {},
        watch: Stopwatch::calibrated(),
        threads: 1,
    })?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program for the terminal")]
fn load(port: &str, users: u32, seconds: u64, rate: Option<f64>) -> Result<(), Box<dyn Error>> {
    let server = Server::parse(&format!("http://127.0.0.1:{port}"))?;
    let paths: Vec<String> = (0..N_FILES).map(|file| format!("/f/{file}")).collect();
    let gap_ns = rate.map_or(0, |rate| (1e9 * f64::from(users) / rate) as u64);
    let session = |number: u64| {
        // The users' requests are spread over the gap.
        let first_ns = gap_ns * (number % u64::from(users)) / u64::from(users);
        let ask = |n: u64| Ask {
            gap_ns: if n == 0 { first_ns } else { gap_ns },
            file: ((number + n) % u64::from(N_FILES)) as u32,
            answer: Answer::Whole,
        };
        Session { number, start_ns: 0, asks: (0..ASKS).map(ask).collect() }
    };
    let traffic = drive(
        Job {
            server: &server,
            paths: &paths,
            sizes: Some(&vec![FILE_BYTES; N_FILES as usize]),
            sessions: Box::new((0..).map(session)),
            users: Some(users),
            spacing: if rate.is_some() { Spacing::Open } else { Spacing::None },
            speed: 1.0,
            duration_ns: Some(seconds * 1_000_000_000),
            threads: 1,
            connections_max: users as usize,
            interrupt: &AtomicBool::new(false),
            watch: Stopwatch::calibrated(),
            agent: "loopback".to_owned(),
            date_unchanged: None,
        },
        &mut |_| {},
    )?;
    let per_s = traffic.requests as f64 / (traffic.elapsed_ns as f64 / 1e9);
    println!("{} requests, {per_s:.0} per second, {} failed", traffic.requests, traffic.failed);
    println!("{} unexpected, {} connections", traffic.unexpected, traffic.connections);
    let show = |name: &str, times: &Times| {
        let us = |quantile| times.quantile_ns(quantile) as f64 / 1e3;
        let (p50, p99, p999, max) = (us(0.5), us(0.99), us(0.999), times.max_ns() as f64 / 1e3);
        println!("{name:>10}: p50 {p50:.0}, p99 {p99:.0}, p99.9 {p999:.0}, max {max:.0} µs");
    };
    show("time", &traffic.time);
    show("first byte", &traffic.first_byte);
    show("late", &traffic.late);
    show("latency", &traffic.latency);
    Ok(())
}
