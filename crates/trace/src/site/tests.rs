use std::collections::{BTreeMap, HashMap};

use ioscape_model::app::{App, Counted, FileGroup, PageKind, Profile};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal, Pareto, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::{Op, Sink};

const MS: u64 = 1_000_000;
const FILES: u32 = 3000;

/// A request of a log that was made without any of the code that is tested: when, whose, for which file.
type Request = (u64, u32, u32);

/// A site of 3000 files, a third of them images, asked for by visitors with pauses of their own.
fn log(seed: u64, sessions: u32) -> (Vec<FileEntry>, Vec<Request>) {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let sizes = LogNormal::new(9.357, 1.318).unwrap();
    let file = |id: u32, chance: &mut Xoshiro256PlusPlus| FileEntry {
        id,
        class: if id.is_multiple_of(3) { "image" } else { "markup" }.to_owned(),
        first_bytes: sizes.sample(chance) as u64,
        ..FileEntry::default()
    };
    let files = (1..=FILES).map(|id| file(id, &mut chance)).collect();
    let zipf = Zipf::new(f64::from(FILES), 0.9).unwrap();
    let lengths = Pareto::new(1.0, 1.3).unwrap();
    let pauses = LogNormal::new(2.0, 1.5).unwrap();
    let mut requests = Vec::new();
    for stream in 1..=sessions {
        let mut at_ns = chance.random_range(0..3_600_000) * MS;
        let length = (lengths.sample(&mut chance) as u64).clamp(1, 500);
        for _ in 0..length {
            let file = zipf.sample(&mut chance) as u32;
            requests.push((at_ns, stream, file));
            let pause_ms = (pauses.sample(&mut chance) * 1000.0) as u64;
            at_ns += if file.is_multiple_of(3) { 20 } else { pause_ms.min(1_700_000) } * MS;
        }
    }
    requests.sort_unstable();
    (files, requests)
}

fn found(files: &[FileEntry], requests: &[Request], started_unix_s: Option<f64>) -> Site {
    let end_ns = requests.last().map_or(0, |request| request.0);
    let elapsed_s = end_ns as f64 / 1e9;
    let info = TraceInfo { elapsed_s, started_unix_s, ..TraceInfo::default() };
    let mut finder = Finder::new(&info);
    for file in files {
        finder.file(file.clone()).unwrap();
    }
    for (at_ns, stream, file) in requests {
        let mut event = Event::new(*at_ns, Op::Open);
        (event.stream, event.file, event.handle) = (*stream, *file, 1);
        finder.event(&event).unwrap();
    }
    finder.site()
}

/// The requests of a load, as a log would have them.
fn generated(load: &SiteLoad) -> Vec<Request> {
    let mut requests = Vec::new();
    for session in load.sessions() {
        let mut at_ns = session.start_ns;
        for ask in session.asks {
            at_ns += ask.gap_ns;
            requests.push((at_ns, session.number as u32 + 1, ask.file));
        }
    }
    requests.sort_unstable();
    requests
}

/// Largest distance of two distributions (Kolmogorov and Smirnov).
fn ks(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let below = |list: &[f64], value: f64| {
        list.partition_point(|each| *each <= value) as f64 / list.len() as f64
    };
    a.iter()
        .chain(&b)
        .map(|value| (below(&a, *value) - below(&b, *value)).abs())
        .fold(0.0, f64::max)
}

/// Of each request: rank of its file, size of its file; of each two in a row: time between them; of each
/// session: its requests.
fn distributions(files: &[FileEntry], requests: &[Request]) -> [Vec<f64>; 4] {
    let size: HashMap<u32, u64> = files.iter().map(|file| (file.id, file.first_bytes)).collect();
    let mut counts: HashMap<u32, u64> = HashMap::new();
    let mut lengths: BTreeMap<u32, f64> = BTreeMap::new();
    for (_, stream, file) in requests {
        *counts.entry(*file).or_default() += 1;
        *lengths.entry(*stream).or_default() += 1.0;
    }
    let mut by_count: Vec<(u32, u64)> = counts.into_iter().collect();
    by_count.sort_by_key(|(file, count)| (std::cmp::Reverse(*count), *file));
    let ranks: HashMap<u32, f64> =
        by_count.iter().enumerate().map(|(rank, (file, _))| (*file, rank as f64)).collect();
    [
        requests.iter().map(|request| ranks[&request.2]).collect(),
        requests.iter().map(|request| size[&request.2] as f64).collect(),
        requests.windows(2).map(|two| (two[1].0 - two[0].0) as f64).collect(),
        lengths.into_values().collect(),
    ]
}

#[test]
fn a_load_is_like_the_log_it_is_made_after() {
    for seed in 1..=3 {
        let (files, requests) = log(seed, 8000);
        let site = found(&files, &requests, None);
        assert_eq!(site.requests, requests.len() as u64);
        assert_eq!(site.sessions, 8000);
        let load = SiteLoad::new(site, Scaled::default(), seed).unwrap();
        let made = generated(&load);
        let ratio = made.len() as f64 / requests.len() as f64;
        assert!(
            (ratio - 1.0).abs() < 0.01,
            "{ratio}: each length is dealt once, long ones by bucket"
        );
        let (before, after) =
            (distributions(&files, &requests), distributions(load.files(), &made));
        for (what, (before, after)) in ["popularity", "size", "inter-arrival", "session"]
            .iter()
            .zip(before.into_iter().zip(after))
        {
            let distance = ks(before, after);
            assert!(distance < 0.02, "seed {seed}, {what}: {distance}");
        }
    }
}

#[test]
fn twice_the_sessions_are_twice_the_requests_and_like_before() {
    let (files, requests) = log(7, 4000);
    let site = found(&files, &requests, None);
    let made = |sessions| {
        let load =
            SiteLoad::new(site.clone(), Scaled { sessions, ..Scaled::default() }, 3).unwrap();
        let made = generated(&load);
        (made.len() as f64, distributions(load.files(), &made))
    };
    let ((once, before), (twice, after)) = (made(1.0), made(2.0));
    assert!((twice / once - 2.0).abs() < 0.02, "{once} and {twice}");
    for part in [0, 1, 3] {
        let distance = ks(before[part].clone(), after[part].clone());
        assert!(distance < 0.02, "{part}: {distance}");
    }
}

#[test]
fn more_files_keep_the_shape_of_the_site() {
    let (files, requests) = log(8, 4000);
    let site = found(&files, &requests, None);
    let scaled = Scaled { files: 3.0, ..Scaled::default() };
    let load = SiteLoad::new(site.clone(), scaled, 3).unwrap();
    let regular = |list: &[FileEntry]| {
        list.iter().filter(|file| file.kind == crate::FileKind::Regular).count() as f64
    };
    let asked: u64 = site.files.iter().map(|group| group.files).sum();
    assert!((regular(load.files()) / asked as f64 - 3.0).abs() < 0.01);
    let made = distributions(load.files(), &generated(&load));
    let before = distributions(&files, &requests);
    let distance = ks(before[1].clone(), made[1].clone());
    assert!(distance < 0.02, "sizes: {distance}");
}

#[test]
fn fewer_files_share_all_requests() {
    let (files, requests) = log(9, 4000);
    let site = found(&files, &requests, None);
    for (factor, files) in [(0.1, 300.0), (0.01, 30.0)] {
        let scaled = Scaled { files: factor, ..Scaled::default() };
        let load = SiteLoad::new(site.clone(), scaled, 3).unwrap();
        let asked: u64 = site.files.iter().map(|group| group.files).sum();
        let count = load.present().count() as f64;
        assert!((count - asked as f64 * factor).abs() <= 3.0, "{count} files for {files}");
        let made = generated(&load);
        assert!((made.len() as f64 / requests.len() as f64 - 1.0).abs() < 0.01);
        // The tenth of the files that is asked for most keeps its share.
        let share = |of: &[Request], files: f64| {
            let ranks = distributions(load.files(), of)[0].clone();
            ranks.iter().filter(|rank| **rank < files / 10.0).count() as f64 / of.len() as f64
        };
        let before = distributions(&log(9, 4000).0, &requests)[0].clone();
        let before = before.iter().filter(|rank| **rank < asked as f64 / 10.0).count() as f64
            / requests.len() as f64;
        let after = share(&made, count);
        assert!((before - after).abs() < 0.1, "{before} and {after}");
    }
}

fn small() -> Site {
    let one = |value, count| Counted { from: value, to: value, count };
    Site {
        elapsed_s: 1000.0,
        requests: 3000,
        sessions: 1000,
        sessions_mean: 20.0,
        directories: 2,
        files: vec![
            FileGroup {
                files: 10,
                requests: 2900,
                bytes_min: 100,
                bytes_max: 100_000,
                ..FileGroup::default()
            },
            FileGroup { kind: PageKind::Missing, files: 1, requests: 100, ..FileGroup::default() },
        ],
        profiles: vec![Profile {
            lengths: vec![one(3, 1000)],
            first: [1000, 0],
            after_page: [2000, 0],
            page_gaps_ms: vec![one(10_000, 2000)],
            ..Profile::default()
        }],
        starts: vec![10, 10, 10, 10, 910, 10, 10, 10, 10, 10],
        stretch_s: 0.0,
        months: Vec::new(),
    }
}

#[test]
fn a_short_load_is_the_busiest_time_of_the_log() {
    let scaled = Scaled { for_s: Some(50.0), ..Scaled::default() };
    let load = SiteLoad::new(small(), scaled, 1).unwrap();
    let starts: Vec<u64> = load.sessions().map(|session| session.start_ns).collect();
    assert!(starts.is_sorted());
    let within = starts.iter().filter(|start| **start < 50_000_000_000).count();
    // Half of 910, and the few that came before; ten standard deviations.
    assert!((350..=570).contains(&within), "{within} sessions");
}

#[test]
fn sessions_that_began_before_the_load_go_on_in_it() {
    let site = Site { starts: vec![500, 510], ..small() };
    let scaled = Scaled { for_s: Some(500.0), ..Scaled::default() };
    let load = SiteLoad::new(site, scaled, 1).unwrap();
    let sessions: Vec<Session> = load.sessions().collect();
    let short = sessions.iter().filter(|session| session.asks.len() < 3).count();
    // One session a second, of 20 s: some 20 are under way.
    assert!((8..=40).contains(&short), "{short} of {}", sessions.len());
    assert!(sessions.iter().filter(|s| s.asks.len() < 3).all(|s| s.start_ns <= 10_000_000_000));
}

#[test]
fn a_server_makes_the_calls_of_each_request_and_users_take_turns() {
    let scaled = Scaled { users: Some(5), for_s: Some(100.0), ..Scaled::default() };
    let load = SiteLoad::new(small(), scaled, 1).unwrap();
    assert_eq!(load.streams().len(), 5);
    let events: Vec<Event> = load.events().collect();
    assert!(events.windows(2).all(|two| two[0].start_ns <= two[1].start_ns + MS));
    let count = |op: Op| events.iter().filter(|event| event.op == op).count();
    assert_eq!(count(Op::Open), count(Op::Close));
    assert_eq!(count(Op::Stat), count(Op::Open));
    // Sessions of three requests and 20 s follow each other without a pause.
    let requests = count(Op::Open) + count(Op::LookupNeg);
    assert!((60..=80).contains(&requests), "{requests} requests of 5 users in 100 s");
    let sent: u64 = events.iter().map(|event| event.length).sum();
    let asked = events.iter().filter(|event| event.op == Op::Open);
    let sizes: u64 = asked.map(|event| load.files()[event.file as usize - 1].first_bytes).sum();
    assert_eq!(sent, sizes);
}

#[test]
fn a_site_that_says_too_little_is_refused() {
    let made =
        |site| SiteLoad::new(site, Scaled::default(), 1).map(|_| ()).unwrap_err().to_string();
    assert!(made(Site::default()).contains("files"));
    assert!(made(Site { profiles: Vec::new(), ..small() }).contains("sessions"));
    let scaled = Scaled { files: 1e7, ..Scaled::default() };
    assert!(SiteLoad::new(small(), scaled, 1).is_err());
}

#[test]
fn a_site_fits_into_a_model_and_reads_back() {
    let (files, requests) = log(9, 20_000);
    let site = found(&files, &requests, Some(1.7e9));
    let app = App { app_version: 1, site: Some(site.clone()), ..App::default() };
    let text = serde_json::to_string(&app).unwrap();
    assert!(text.len() < 40 << 10, "{} bytes", text.len());
    assert_eq!(App::parse(&text).unwrap().site, Some(site));
}

/// Sites that somebody typed, with numbers at the ends of what is allowed.
#[test]
fn odd_sites_make_load_or_are_refused() {
    let files = r#""files":[{"files":2,"requests":1125899906842,"bytes_max":1099511627776}]"#;
    let profile = r#""profiles":[{"lengths":[[1,900,7]],"first":[0,1],"after_object":[1,1],
        "page_gaps_ms":[[0,31622400000,3]],"object_gaps_ms":[[31622400000,31622400000,1]]}]"#;
    let mut made = 0;
    for times in [
        r#""elapsed_s":0.001,"starts":[3]"#,
        r#""elapsed_s":10000000000,"starts":[0,0,5]"#,
        r#""elapsed_s":1,"stretch_s":10000000000,"starts":[2,0,1]"#,
        r#""elapsed_s":5,"starts":[]"#,
        r#""elapsed_s":5,"starts":[0]"#,
        r#""elapsed_s":0,"starts":[1]"#,
        r#""elapsed_s":5,"starts":[1000000000000]"#,
    ] {
        for rest in [files.to_owned(), format!("{files},{profile}")] {
            let text = format!(r#"{{"site":{{{times},{rest}}}}}"#);
            let site = App::parse(&text).unwrap().site.unwrap();
            for (users, for_s) in
                [(None, None), (None, Some(1e-3)), (Some(3), None), (Some(3), Some(1e9))]
            {
                let scaled = Scaled { users, for_s, rate: 0.001, ..Scaled::default() };
                let Ok(load) = SiteLoad::new(site.clone(), scaled, 1) else { continue };
                made += load.sessions().take(20).count();
                load.events().take(1000).for_each(drop);
            }
        }
    }
    assert!(made > 0);
}
