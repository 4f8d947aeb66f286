//! The client against the origin server, and against servers that misbehave.

#![expect(clippy::unwrap_used, reason = "a test binary is all test")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use ioscape_engine::Stopwatch;
use ioscape_model::Spacing;
use ioscape_trace::site::{Answer, Ask, Session};
use ioscape_web::{Error, Job, Origin, ResponseTimes, Served, Server, Traffic, drive, serve};

const MS: u64 = 1_000_000;

fn ask(gap_ns: u64, file: u32, answer: Answer) -> Ask {
    Ask { gap_ns, file, answer }
}

fn session(number: u64, start_ns: u64, asks: Vec<Ask>) -> Session {
    Session { number, start_ns, asks }
}

/// Files of prime lengths, `f0/f0` to `f0/f4`, and one path that the server does not know.
const SIZES: [u64; 6] = [1, 1021, 65_537, 262_147, 0, 13];

fn paths() -> Vec<String> {
    (0..6).map(|n| format!("/f0/f{n}")).collect()
}

fn files() -> HashMap<String, u64> {
    (0..5).map(|n| (format!("f0/f{n}"), SIZES[n])).collect()
}

/// Runs `body` with the address of an origin server; gives back what that counted.
fn with_origin<T>(times: &str, threads: usize, body: impl FnOnce(SocketAddr) -> T) -> (T, Served) {
    let interrupt = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let interrupt = &interrupt;
        let server = scope.spawn(move || {
            serve(Origin {
                listen: "127.0.0.1:0".parse().unwrap(),
                paths: files(),
                response_times: ResponseTimes::parse(times).unwrap(),
                seed: 7,
                interrupt,
                on_listen: &mut |address| tell.send(address).unwrap(),
                watch: Stopwatch::calibrated(),
                threads,
            })
        });
        let ends = Ends(interrupt);
        let value = body(told.recv().unwrap());
        drop(ends);
        (value, server.join().unwrap().unwrap())
    })
}

/// Ends a server even when the test panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Load<'a> {
    sessions: Box<dyn Iterator<Item = Session> + Send + 'a>,
    users: Option<u32>,
    spacing: Spacing,
    speed: f64,
    duration_ns: Option<u64>,
    threads: usize,
    connections_max: usize,
    date_unchanged: Option<String>,
}

impl<'a> Load<'a> {
    fn new(sessions: impl IntoIterator<Item = Session, IntoIter: Send + 'a>) -> Self {
        Self {
            sessions: Box::new(sessions.into_iter()),
            users: None,
            spacing: Spacing::None,
            speed: 1.0,
            duration_ns: None,
            threads: 1,
            connections_max: 1000,
            date_unchanged: None,
        }
    }

    fn try_at(self, address: SocketAddr) -> Result<Traffic, Error> {
        self.try_until(address, &AtomicBool::new(false), &mut |_| {})
    }

    fn try_until(
        self,
        address: SocketAddr,
        interrupt: &AtomicBool,
        on_progress: &mut dyn FnMut(u64),
    ) -> Result<Traffic, Error> {
        let server = Server::parse(&format!("http://{address}/mirror/")).unwrap();
        let job = Job {
            server: &server,
            paths: &paths(),
            sizes: Some(&SIZES),
            sessions: self.sessions,
            users: self.users,
            spacing: self.spacing,
            speed: self.speed,
            duration_ns: self.duration_ns,
            threads: self.threads,
            connections_max: self.connections_max,
            interrupt,
            watch: Stopwatch::calibrated(),
            agent: "tests".to_owned(),
            date_unchanged: self.date_unchanged,
        };
        drive(job, on_progress)
    }

    fn at(self, address: SocketAddr) -> Traffic {
        let traffic = self.try_at(address).unwrap();
        adds_up(&traffic);
        traffic
    }
}

#[track_caller]
fn adds_up(traffic: &Traffic) {
    let answered: u64 = traffic.by_status.values().sum();
    assert_eq!(answered + traffic.failed, traffic.requests);
    assert_eq!(traffic.latency.count(), traffic.requests, "those that failed, too");
    for times in [&traffic.time, &traffic.first_byte, &traffic.late] {
        assert_eq!(times.count(), answered);
    }
    assert!(traffic.latency.max_ns() >= traffic.late.max_ns());
    assert!(traffic.time.max_ns() >= traffic.first_byte.max_ns());
    assert!(traffic.sessions_ended <= traffic.sessions_begun);
}

fn whole(n_sessions: u64) -> Vec<Session> {
    let asks = || (0..5).map(|file| ask(0, file, Answer::Whole)).collect();
    (0..n_sessions).map(|number| session(number, 0, asks())).collect()
}

#[test]
fn counts_and_bodies_are_exact_on_both_sides() {
    for threads in [1, 2] {
        let (traffic, served) = with_origin("none", threads, |address| {
            Load { users: Some(3), threads, ..Load::new(whole(41)) }.at(address)
        });
        let bytes = 41 * SIZES[..5].iter().sum::<u64>();
        assert_eq!((traffic.requests, traffic.bytes), (205, bytes));
        assert_eq!((served.requests, served.bytes), (205, bytes));
        assert_eq!((traffic.sessions_begun, traffic.sessions_ended), (41, 41));
        assert_eq!((traffic.connections, served.connections), (41, 41));
        assert_eq!(traffic.by_status, [(200, 205)].into());
        assert_eq!((traffic.unexpected, traffic.failed, traffic.sent_again), (0, 0, 0));
        assert!(traffic.first_unexpected.is_empty());
    }
}

#[test]
fn users_are_so_many_at_a_time() {
    for users in [1, 2, 7] {
        let (traffic, _) = with_origin("1ms", 1, |address| {
            Load { users: Some(users), ..Load::new(whole(29)) }.at(address)
        });
        assert_eq!(traffic.sessions_ended, 29);
        assert_eq!(traffic.sessions_at_a_time, u64::from(users));
    }
}

#[test]
fn a_file_that_did_not_change_is_not_sent_again() {
    let asks =
        vec![ask(0, 1, Answer::Whole), ask(0, 1, Answer::Unchanged), ask(0, 1, Answer::Unchanged)];
    let (traffic, served) =
        with_origin("none", 1, |address| Load::new([session(0, 0, asks)]).at(address));
    assert_eq!(traffic.by_status, [(200, 1), (304, 2)].into());
    assert_eq!(served.by_status, traffic.by_status);
    assert_eq!((traffic.bytes, traffic.unexpected, traffic.sent_again), (1021, 0, 0));
}

#[test]
fn a_date_that_is_given_stands_in_for_one_that_was_not_seen() {
    let asks = || vec![ask(0, 1, Answer::Unchanged)];
    let (traffic, _) = with_origin("none", 1, |address| {
        let date_unchanged = Some("Sat, 01 Jan 2000 00:00:00 GMT".to_owned());
        Load { date_unchanged, ..Load::new([session(0, 0, asks())]) }.at(address)
    });
    assert_eq!(traffic.by_status, [(304, 1)].into());
    let (traffic, _) =
        with_origin("none", 1, |address| Load::new([session(0, 0, asks())]).at(address));
    assert_eq!(traffic.by_status, [(200, 1)].into());
    assert_eq!((traffic.sent_again, traffic.unexpected), (1, 0));
}

#[test]
fn a_file_that_is_missing_is_expected_to_be() {
    let asks =
        vec![ask(0, 5, Answer::Missing), ask(0, 5, Answer::Whole), ask(0, 0, Answer::Missing)];
    let (traffic, _) =
        with_origin("none", 1, |address| Load::new([session(0, 0, asks)]).at(address));
    assert_eq!(traffic.by_status, [(200, 1), (404, 2)].into());
    assert_eq!(traffic.unexpected, 2);
    assert_eq!(
        traffic.first_unexpected,
        [
            "GET /mirror/f0/f5: expected status 200, got 404",
            "GET /mirror/f0/f0: expected status 404, got 200"
        ]
    );
}

#[test]
fn sessions_begin_in_order_at_their_times() {
    let starts_ns = [0, 0, 5 * MS, 20 * MS, 20 * MS, 70 * MS];
    let sessions =
        || (0..).zip(starts_ns).map(|(n, at_ns)| session(n, at_ns, vec![ask(0, 1, Answer::Whole)]));
    for threads in [1, 2] {
        let taken = Mutex::new(Vec::new());
        let noted = sessions().inspect(|session| taken.lock().unwrap().push(session.number));
        let (traffic, _) =
            with_origin("none", 1, |address| Load { threads, ..Load::new(noted) }.at(address));
        assert_eq!(*taken.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(traffic.sessions_ended, 6);
        assert!(traffic.elapsed_ns >= 70 * MS);
        let (faster, _) = with_origin("none", 1, |address| {
            let noted = sessions().map(|s| Session { start_ns: s.start_ns * 10, ..s });
            Load { threads, speed: 10.0, ..Load::new(noted) }.at(address)
        });
        assert!((70 * MS..700 * MS).contains(&faster.elapsed_ns), "{}", faster.elapsed_ns);
    }
}

#[test]
fn nothing_begins_after_the_time_is_up() {
    let late =
        [session(0, 0, vec![ask(0, 1, Answer::Whole), ask(3_600_000 * MS, 1, Answer::Whole)])];
    let never = session(1, 3_600_000 * MS, vec![ask(0, 1, Answer::Whole)]);
    let (traffic, _) = with_origin("none", 1, |address| {
        let load = Load::new(late.into_iter().chain([never]));
        Load { duration_ns: Some(30 * MS), spacing: Spacing::Closed, ..load }.at(address)
    });
    assert_eq!((traffic.requests, traffic.sessions_begun, traffic.sessions_ended), (1, 1, 0));
    let (traffic, _) = with_origin("1ms", 1, |address| {
        let endless = (0..).map(|n| session(n, 0, vec![ask(0, 1, Answer::Whole)]));
        Load { users: Some(2), duration_ns: Some(30 * MS), ..Load::new(endless) }.at(address)
    });
    assert_eq!(traffic.sessions_begun, traffic.sessions_ended);
    assert!(traffic.requests >= 2);
}

#[test]
fn a_user_who_pauses_beyond_the_end_begins_no_other_session() {
    let hour_ns = 3_600_000 * MS;
    let asks = vec![ask(0, 0, Answer::Whole), ask(hour_ns, 0, Answer::Whole)];
    let sessions = (0..1000).map(move |number| session(number, 0, asks.clone()));
    let (traffic, _) = with_origin("none", 1, |address| {
        let load = Load {
            users: Some(3),
            spacing: Spacing::Closed,
            duration_ns: Some(200 * MS),
            ..Load::new(sessions)
        };
        load.at(address)
    });
    assert_eq!((traffic.sessions_begun, traffic.requests), (3, 3));
}

#[test]
fn users_begin_their_first_session_at_its_time() {
    let sessions = [0, 100, 200].map(|ms| session(ms, ms * MS, vec![ask(0, 0, Answer::Whole)]));
    let (traffic, _) = with_origin("none", 1, |address| {
        Load { users: Some(3), spacing: Spacing::Closed, ..Load::new(sessions) }.at(address)
    });
    assert_eq!(traffic.requests, 3);
    assert!(traffic.elapsed_ns >= 200 * MS, "{} ns", traffic.elapsed_ns);
}

#[test]
fn an_interrupt_ends_the_load() {
    let interrupt = AtomicBool::new(false);
    let (traffic, _) = with_origin("none", 1, |address| {
        let asks = || (0..1000).map(|_| ask(0, 1, Answer::Whole)).collect();
        let load = Load::new((0..).map(|n| session(n, 0, asks())));
        let mut on_progress = |requests| {
            if requests > 0 {
                interrupt.store(true, Ordering::Relaxed);
            }
        };
        Load { users: Some(2), ..load }.try_until(address, &interrupt, &mut on_progress).unwrap()
    });
    adds_up(&traffic);
    assert!(traffic.requests > 0);
}

#[test]
fn an_interrupt_wakes_who_sleeps_and_leaves_behind_who_hangs() {
    let interrupt = AtomicBool::new(true);
    let (sleeping, served) = with_origin("1h", 1, |address| {
        let asks = vec![ask(0, 1, Answer::Whole)];
        let sessions = [session(0, 0, asks.clone()), session(1, 3_600_000 * MS, asks)];
        let progress = AtomicU64::new(0);
        let mut hangs = |_| {
            // The second look comes when the first request hangs.
            if progress.fetch_add(1, Ordering::Relaxed) > 0 {
                interrupt.store(true, Ordering::Relaxed);
            }
        };
        interrupt.store(false, Ordering::Relaxed);
        Load::new(sessions).try_until(address, &interrupt, &mut hangs).unwrap()
    });
    assert_eq!((sleeping.requests, sleeping.sessions_begun, sleeping.sessions_ended), (0, 1, 0));
    assert_eq!(served.connections, 1);
}

#[test]
fn an_address_without_server_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Load::new(whole(1)).try_at(free).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }));
    let text = error.to_string();
    assert!(text.contains(&format!("http://{free}/mirror/")), "{text}");
    assert!(text.contains("start it, or check host and port"), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn more_sessions_than_may_be_open_are_refused() {
    let (error, _) = with_origin("200ms", 1, |address| {
        Load { connections_max: 3, ..Load::new(whole(4)) }.try_at(address).unwrap_err()
    });
    assert!(matches!(error, Error::TooManySessions { connections_max: 3 }));
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let load = Load { users: Some(4), connections_max: 3, ..Load::new(whole(4)) };
    let error = load.try_at(nowhere).unwrap_err();
    assert!(matches!(error, Error::TooManySessions { connections_max: 3 }));
    let (traffic, _) = with_origin("none", 1, |address| {
        Load { connections_max: 4, ..Load::new(whole(4)) }.at(address)
    });
    assert_eq!(traffic.sessions_ended, 4);
}

/// A server of the tests' own: `answer` is given each connection and its number.
fn with_server<T>(answer: impl Fn(u64, TcpStream) + Sync, body: impl FnOnce(SocketAddr) -> T) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (answer, is_over) = (&answer, &is_over);
        scope.spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                scope.spawn(move || answer(number, stream.unwrap()));
            }
        });
        let value = body(address);
        is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(address));
        value
    })
}

/// Lines of a request's head; none where the client closed.
fn head(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let lines: Vec<String> =
        reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then_some(lines)
}

const ONE_BYTE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";

fn repeated(n_asks: usize, gap_ns: u64) -> Vec<Ask> {
    vec![ask(gap_ns, 0, Answer::Whole); n_asks]
}

#[test]
fn a_server_that_closes_after_each_response_is_connected_to_again() {
    // Both ways: it says so, or it just goes away.
    let polite = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    for response in [&polite[..], ONE_BYTE] {
        let answer = |_, mut stream: TcpStream| {
            if head(&mut BufReader::new(&stream)).is_some() {
                stream.write_all(response).unwrap();
            }
        };
        let traffic =
            with_server(answer, |address| Load::new([session(0, 0, repeated(11, 0))]).at(address));
        assert_eq!((traffic.requests, traffic.failed, traffic.connections), (11, 0, 11));
        assert_eq!((traffic.bytes, traffic.sessions_ended), (11, 1));
    }
}

#[test]
fn a_connection_that_fails_when_new_is_not_tried_again() {
    let answer = |number, mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while head(&mut reader).is_some() && number != 1 {
            stream.write_all(ONE_BYTE).unwrap();
            if number == 0 {
                return;
            }
        }
    };
    let traffic =
        with_server(answer, |address| Load::new([session(0, 0, repeated(5, 0))]).at(address));
    // The first is answered and closed; the second fails on its new connection; the third is kept.
    assert_eq!((traffic.requests, traffic.failed, traffic.connections), (5, 1, 3));
    assert!(traffic.first_unexpected[0].starts_with("GET /mirror/f0/f0: failed, "));
}

#[test]
fn bodies_that_break_off_fail_and_those_of_another_length_are_unexpected() {
    let answer = |number, mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        if head(&mut reader).is_some() {
            let length = if number == 0 { 5 } else { 3 };
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nxxx");
            stream.write_all(text.as_bytes()).unwrap();
        }
    };
    let traffic =
        with_server(answer, |address| Load::new([session(0, 0, repeated(2, 0))]).at(address));
    assert_eq!((traffic.failed, traffic.unexpected, traffic.bytes), (1, 1, 6));
    assert_eq!(traffic.first_unexpected[1], "GET /mirror/f0/f0: expected 1 bytes, got 3");
}

#[test]
fn a_redirect_is_counted_and_not_followed() {
    let elsewhere =
        b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n";
    let answer = |_, mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while head(&mut reader).is_some() {
            stream.write_all(elsewhere).unwrap();
        }
    };
    let traffic =
        with_server(answer, |address| Load::new([session(0, 0, repeated(2, 0))]).at(address));
    assert_eq!((traffic.by_status[&302], traffic.unexpected, traffic.connections), (2, 2, 1));
}

#[test]
fn requests_say_who_asks_for_which_path() {
    let heads = Mutex::new(Vec::new());
    let answer = |_, mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(lines) = head(&mut reader) {
            heads.lock().unwrap().push(lines);
            stream.write_all(ONE_BYTE).unwrap();
        }
    };
    let address = with_server(answer, |address| {
        Load::new([session(17, 0, repeated(1, 0))]).at(address);
        let sessions = (0..3).map(|number| session(number, 0, repeated(1, 0)));
        Load { users: Some(1), ..Load::new(sessions) }.at(address);
        address
    });
    let heads = heads.into_inner().unwrap();
    let agents = heads.iter().map(|lines| lines[2].as_str()).collect::<Vec<_>>();
    assert_eq!(heads[0][0], "GET /mirror/f0/f0 HTTP/1.1");
    assert_eq!(heads[0][1], format!("host: {address}"));
    assert_eq!(heads[0][3], "accept: */*");
    assert_eq!(agents[0], "user-agent: tests user/17");
    assert_eq!(agents[1..], ["user-agent: tests user/0"; 3]);
}

#[test]
fn a_stall_shows_in_the_requests_that_were_due_meanwhile() {
    let (traffic, _) = with_origin("50ms", 1, |address| {
        let load = Load::new([session(0, 0, repeated(10, 10 * MS))]);
        Load { spacing: Spacing::Open, ..load }.at(address)
    });
    // Each is 40 ms later than the one before: the tenth is 360 ms late at least.
    assert!(traffic.late.max_ns() >= 355 * MS, "{}", traffic.late.max_ns());
    assert!(traffic.latency.max_ns() >= 405 * MS);
    assert!(traffic.time.quantile_ns(0.0) >= 49 * MS);
    assert!(traffic.latency.quantile_ns(0.5) > traffic.time.quantile_ns(0.5));
    let (traffic, _) = with_origin("50ms", 1, |address| {
        let load = Load::new([session(0, 0, repeated(10, 10 * MS))]);
        Load { spacing: Spacing::Closed, ..load }.at(address)
    });
    // After the first, whose gap counts from the start, each gap counts from the response before.
    assert!(traffic.elapsed_ns >= 10 * 60 * MS);
}

#[test]
fn the_origin_knows_methods_tags_and_ends_of_paths() {
    let ask = |address, text: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{text}\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let end = response.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
        (String::from_utf8(response[..end].to_vec()).unwrap(), response[end..].to_vec())
    };
    let ((), served) = with_origin("none", 1, |address| {
        let (head, body) = ask(address, "GET /some/where/f0/f2?a=b HTTP/1.1");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("content-length: 65537\r\n"), "{head}");
        assert_eq!(body.len(), 65_537);
        let tag = head.lines().find(|line| line.starts_with("etag: ")).unwrap();
        let tag = tag.trim_start_matches("etag: ");
        let (head, body) = ask(address, "HEAD /f0/f2 HTTP/1.1");
        assert!(head.contains("content-length: 65537\r\n"), "{head}");
        assert!(body.is_empty());
        let (head, body) = ask(address, &format!("GET /f0/f2 HTTP/1.1\r\nIf-None-Match: {tag}"));
        assert!(head.starts_with("HTTP/1.1 304 "), "{head}");
        assert!(body.is_empty());
        assert!(ask(address, "GET /f0/f9 HTTP/1.1").0.starts_with("HTTP/1.1 404 "));
        assert!(ask(address, "POST /f0/f2 HTTP/1.1").0.starts_with("HTTP/1.1 405 "));
        let (_, again) = ask(address, "GET /f0/f2 HTTP/1.1");
        assert!(again.iter().any(|byte| *byte != again[0]), "the bytes are of chance");
    });
    assert_eq!(served.by_status, [(200, 3), (304, 1), (404, 1), (405, 1)].into());
    assert_eq!((served.requests, served.connections), (6, 6));
    assert_eq!(served.bytes, 2 * 65_537);
}

#[test]
fn paths_and_headers_that_cannot_be_sent_are_refused() {
    let server = Server::parse("http://127.0.0.1:1").unwrap();
    let check = |path: &str, agent: &str, expected: &str| {
        let job = Job {
            server: &server,
            paths: &[path.to_owned()],
            sizes: None,
            sessions: Box::new([].into_iter()),
            users: None,
            spacing: Spacing::None,
            speed: 1.0,
            duration_ns: None,
            threads: 1,
            connections_max: 1,
            interrupt: &AtomicBool::new(false),
            watch: Stopwatch::calibrated(),
            agent: agent.to_owned(),
            date_unchanged: None,
        };
        let text =
            drive(job, &mut |_| {}).map_or_else(|error| error.to_string(), |_| String::new());
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
    };
    check("/a%20b?c=d", "me", "");
    check("/a b", "me", "`/a b` cannot be asked for");
    check("a", "me", "`a` cannot be asked for");
    check("/a", "m\ne", "cannot be sent as User-Agent");
}

#[test]
#[should_panic(expected = "asks for a file beyond the 6 known")]
fn a_file_that_nobody_knows_is_the_callers_mistake() {
    let nowhere = "127.0.0.1:1".parse().unwrap();
    // The other loop must not go on for ever.
    let sessions = (0..).map(|number| session(number, 0, vec![ask(0, 6, Answer::Whole)]));
    let _ = Load { threads: 2, ..Load::new(sessions) }.try_at(nowhere);
}
