//! Web sites: found in logs, visited on files and by HTTP.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use ioscape_model::{EndReason, Method, TargetKind};
use rustix::process::Signal;

use crate::running::{Running, wait_ms};
use crate::workdir::{Workdir, record};

/// Sessions of two requests a day, in four months, each with half as many again as the one before.
const SESSIONS: [u32; 4] = [80, 120, 180, 270];
const REQUESTS: u64 = 2 * (80 + 120 + 180 + 270);

/// An imported log of 20 pages and 10 images, and the model of it.
const SITE: [&str; 2] = ["web.trace", "site.json"];

/// A directory with [`SITE`].
fn site() -> Workdir {
    static MADE: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    let work = Workdir::new();
    for (name, content) in SITE.iter().zip(MADE.get_or_init(imported)) {
        std::fs::write(work.path(name), content).unwrap();
    }
    work
}

fn imported() -> [Vec<u8>; 2] {
    let work = Workdir::new();
    let mut text = String::new();
    for (month, count) in ["Jan", "Feb", "Mar", "Apr"].iter().zip(SESSIONS) {
        for (day, session) in
            (0..28).flat_map(|day| (day..count).step_by(28).map(move |at| (day, at)))
        {
            let second = session % 50;
            let mut line = |path: &str, bytes: u32, second: u32| {
                writeln!(
                    text,
                    "192.0.2.{} - - [{:02}/{month}/2026:12:{:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" \
                     200 {bytes} \"-\" \"canary/{session}\"",
                    session % 250,
                    1 + day,
                    session / 28
                )
                .unwrap();
            };
            let page = session % 20;
            line(&format!("/secret{page}/p.html"), 1000 + page, second);
            line(&format!("/secret{}/i.png", page % 10), 5000, second + 2);
        }
    }
    std::fs::write(work.path("access.log"), text).unwrap();
    work.stdout(&["trace", "import", "clf", "access.log", "-o", "web.trace"]);
    let bytes = std::fs::metadata(work.path("web.trace")).unwrap().len();
    assert!(
        bytes < 100 * REQUESTS,
        "{bytes} bytes: visits lie far apart, and still share row groups"
    );
    work.stdout(&["trace", "model", "web.trace", "-o", "site.json"]);
    SITE.map(|name| std::fs::read(work.path(name)).unwrap())
}

/// Where it says that it serves.
fn address(serving: &mut Running) -> String {
    loop {
        let said = serving.stderr();
        if let Some((before, _)) =
            said.split("http://").nth(1).and_then(|rest| rest.split_once('/'))
        {
            return format!("http://{before}/");
        }
        assert!(!serving.has_ended(), "{said}");
        wait_ms(20);
    }
}

#[test]
fn a_log_becomes_the_model_of_a_site_that_names_nobody() {
    let work = site();
    let text = std::fs::read_to_string(work.path("site.json")).unwrap();
    for name in ["192.0", "secret", "canary", ".html"] {
        assert!(!text.contains(name), "{name}");
    }
    let shown = work.json(&["trace", "show", "site.json", "--json"]);
    let found = &shown["site"];
    assert_eq!((&found["requests"], &found["sessions"]), (&REQUESTS.into(), &650.into()));
    let months: Vec<u64> = found["months"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["sessions"].as_u64().unwrap())
        .collect();
    assert_eq!(months, SESSIONS.map(u64::from));
    let shown = work.stdout(&["trace", "show", "site.json"]);
    assert!(shown.contains("20 pages and 10 objects embedded in pages"), "{shown}");
}

#[test]
fn a_site_is_visited_on_files_and_grows() {
    let work = site();
    let visit = ["replay", "site.json", "target", "--speed", "max", "--json"];
    let made = |more: &[&str]| work.json(&[&visit[..], more].concat())["replays"][0].clone();
    let once = made(&["-o", "1.jsonl"]);
    assert_eq!(
        (&once["source"], &once["operations"]["OPEN"]["count"]),
        (&"site".into(), &REQUESTS.into())
    );
    assert!(work.left_behind().is_empty());
    // Months of 80 to 270 sessions, 1.5 times as many from one to the next: two months later 607.5, of
    // 147 in the geometric mean.
    let later = made(&["--project", "2months", "-o", "2.jsonl"]);
    let opens = later["operations"]["OPEN"]["count"].as_u64().unwrap() as f64;
    let expected = REQUESTS as f64 * 1.5_f64.powf(3.5);
    // The log ends on the 28th: April counts as somewhat more than it has.
    assert!((opens / expected - 1.0).abs() < 0.1, "{opens}, expected {expected}");
    let users = made(&["--users", "3", "--files", "60", "-o", "3.jsonl"]);
    assert_eq!(
        (&users["streams"], &users["files"]),
        (&3.into(), &102.into()),
        "60, in 42 directories"
    );
}

#[test]
fn visitors_ask_an_origin_server_by_http() {
    let work = site();
    let serve = ["serve", "site.json", "127.0.0.1:0", "--response-time", "1ms"];
    let mut serving = Running::start(&work, &serve);
    let url = address(&mut serving);
    let visit =
        ["replay", "site.json", &url, "--users", "8", "--speed", "max", "--json", "-o", "r.jsonl"];
    let made = work.json(&visit)["replays"][0].clone();
    assert_eq!(
        (&made["errors"]["only_here"], &made["web"]["sessions_max"]),
        (&0.into(), &8.into()),
        "{made}"
    );
    let calls = made["calls"].as_u64().unwrap();
    // Of the first session of each user a random part is left out.
    assert!((REQUESTS - 8..=REQUESTS).contains(&calls), "{calls}");
    assert_eq!(made["web"]["statuses"]["200"], calls);
    assert!(made["latency_s"]["p50"].as_f64().unwrap() >= 0.001);
    let kept = record(&work.path("r.jsonl"));
    assert_eq!((kept.header.method, kept.header.target.kind), (Method::Replay, TargetKind::Server));
    assert_eq!(kept.end.unwrap().reason, EndReason::Complete);
    let text = work.stdout(&["report", "r.jsonl", "--format", "text"]);
    assert!(text.contains("650 sessions over 650 connections, up to 8 at a time"), "{text}");
    // One more: before anything was prepared, somebody looked whether it answers.
    serving.signal(Signal::INT);
    assert_eq!(serving.ended().code(), Some(130));
    assert!(
        serving.stderr().contains(&format!("{calls} requests over 651 connections")),
        "{}",
        serving.stderr()
    );
}

/// A server of files below a directory: a thread for each connection, and what it saw of the files.
struct FileServer {
    url: String,
    served: Arc<AtomicU32>,
    modes: Arc<Mutex<Vec<u32>>>,
}

impl FileServer {
    fn start(root: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (served, modes) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, seen) = (Arc::clone(&served), Arc::clone(&modes));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, count, seen) = (root.clone(), Arc::clone(&count), Arc::clone(&seen));
                std::thread::spawn(move || answer(&stream, &root, &count, &seen));
            }
        });
        Self { url, served, modes }
    }
}

fn answer(mut stream: &TcpStream, root: &Path, count: &AtomicU32, modes: &Mutex<Vec<u32>>) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(first)) = lines.next() {
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let path = root.join(first.split(' ').nth(1).unwrap_or("/").trim_start_matches('/'));
        let body = std::fs::read(&path).ok();
        if let Ok(found) = std::fs::metadata(&path) {
            modes.lock().unwrap().push(found.permissions().mode() & 0o777);
        }
        let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
        let body = body.unwrap_or_default();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn files_are_made_for_a_server_and_removed() {
    let work = site();
    let server = FileServer::start(work.target());
    let visit = ["replay", "site.json", &server.url, "--docroot", "target", "--speed", "max"];
    let made = work.json(&[&visit[..], &["--users", "4", "--json", "-o", "r.jsonl"]].concat());
    let made = &made["replays"][0];
    assert_eq!(made["errors"]["only_here"], 0, "each answer as long as its file: {made}");
    assert_eq!(made["calls"], server.served.load(Ordering::Relaxed));
    assert!(server.modes.lock().unwrap().iter().all(|mode| *mode == 0o644));
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    // What a killed run left is known by its mode.
    let left = work.target().join(".ioscape-00112233aabb-0");
    std::fs::create_dir(&left).unwrap();
    std::fs::set_permissions(&left, PermissionsExt::from_mode(0o711)).unwrap();
    work.stdout(&["clean", "target"]);
    assert!(!left.exists());
    // The server's own files, by a list.
    std::fs::write(work.target().join("own"), "hello").unwrap();
    std::fs::write(work.path("urls"), "/own\n/own?2\n/own\n").unwrap();
    let visit = ["replay", "site.json", &server.url, "--urls", "urls", "--speed", "max", "--json"];
    let made = work.json(&[&visit[..], &["--users", "4", "-o", "u.jsonl"]].concat());
    assert_eq!(made["replays"][0]["files"], 3);
}

#[test]
fn what_cannot_be_visited_is_refused_in_one_line() {
    let work = site();
    std::fs::write(work.path("empty"), "").unwrap();
    let server = "http://127.0.0.1:9/";
    for (arguments, part) in [
        (&["site.json", "https://127.0.0.1/"][..], "TLS"),
        (&["site.json", "http://"], "no address of a server"),
        (&["sqlite-wal", server], "model of a program"),
        (&["web.trace", server], "trace model"),
        (&["site.json", server, "--start", "cold"], "--start"),
        (&["site.json", server, "--memory-limit", "1GiB"], "limits"),
        (&["site.json", server, "--urls", "empty"], "it is empty"),
        (&["site.json", server], "--for 5m"),
        (&["site.json", "target"], "--for 5m"),
        (&["site.json", "target", "--docroot", "target"], "are for a server"),
        (&["site.json", "target", "--speed", "max", "--scale", "read=0.5"], "only read"),
        (&["site.json", "target", "--speed", "max", "--project", "20months"], "--project: "),
        (&["site.json", server, "--speed", "max"], "--users 64"),
        (&["site.json", "target", "--threads", "2", "--speed", "max"], "for a server"),
        (&["specweb96", "target", "--users", "3", "--for", "5s"], "never pause"),
        (&["sqlite-wal", "target", "--users", "3"], "for web sites"),
        (&["web.trace", "target", "--users", "3"], "for models"),
    ] {
        let refusal = work.refusal(&[&["replay", "-o", "r.jsonl"], arguments].concat());
        assert!(refusal.contains(part) && refusal.lines().count() == 1, "{arguments:?}: {refusal}");
    }
    assert!(
        work.refusal(&["serve", "sqlite-wal", "127.0.0.1:0"]).contains("no model of a web site")
    );
    assert!(work.refusal(&["serve", "site.json", "nowhere"]).contains("127.0.0.1:8081"));
    // Nobody listens at a port that was just given back.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = work.output(&[
        "replay",
        "site.json",
        &format!("http://{free}/"),
        "--for",
        "1s",
        "-o",
        "r.jsonl",
    ]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("no server answers") && !work.path("r.jsonl").exists(), "{said}");
}
