//! fio documents, whole and mangled.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Figures of one direction: so many requests of `bytes` each in two seconds.
fn direction(ops: u64, bytes: u64, mean_ns: f64) -> Value {
    json!({
        "io_bytes": ops * bytes, "total_ios": ops, "runtime": 2000,
        "clat_ns": {
            "min": mean_ns / 4.0, "max": mean_ns * 50.0, "mean": mean_ns, "N": ops,
            "percentile": {
                "50.000000": mean_ns * 0.8, "90.000000": mean_ns * 1.5, "99.000000": mean_ns * 4.0,
                "99.900000": mean_ns * 10.0,
            },
        },
        "lat_ns": { "min": mean_ns / 4.0, "max": mean_ns * 50.0, "mean": mean_ns, "N": ops },
        "bw_mean": (ops * bytes) as f64 / 2048.0, "bw_dev": (ops * bytes) as f64 / 40_960.0,
        "bw_samples": 4,
    })
}

fn none() -> Value {
    json!({ "io_bytes": 0, "total_ios": 0, "runtime": 0 })
}

/// A job that reads, writes, or does both half and half, one request at a time.
fn job(name: &str, group: u64, options: &Value, bytes: u64) -> Value {
    let rw = options["rw"].as_str().unwrap_or("read");
    let (read, write) = match rw {
        _ if rw.ends_with("read") => (direction(100_000, bytes, 19_000.0), none()),
        _ if rw.ends_with("write") => (none(), direction(100_000, bytes, 19_000.0)),
        _ => (direction(50_000, bytes, 19_000.0), direction(50_000, bytes, 19_000.0)),
    };
    json!({
        "jobname": name, "groupid": group, "error": 0, "job options": options,
        "read": read, "write": write, "trim": none(),
        "job_runtime": 2000, "usr_cpu": 10.0, "sys_cpu": 30.0,
    })
}

fn results(global: &Value, jobs: &[Value]) -> Results {
    let document = json!({
        "fio version": "fio-3.33", "timestamp": 1_795_192_740, "global options": global,
        "jobs": jobs, "disk_util": [{ "name": "vda" }],
    });
    read(&document.to_string()).unwrap()
}

/// A lone job with these options, of 16 KiB requests: its workload, or why it is left out.
fn one(options: &Value) -> Result<Measured, String> {
    let results = results(&json!({}), &[job("a", 0, options, 16_384)]);
    match results.measured.into_iter().next() {
        Some(measured) => Ok(measured),
        None => Err(results.left_out[0].clone()),
    }
}

fn with(options: Value, extra: &Value) -> Value {
    let mut all = options;
    all.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    all
}

fn usual(extra: &Value) -> Value {
    with(json!({ "rw": "randread", "bs": "16k", "size": "64m", "pre_read": "1" }), extra)
}

#[test]
fn options_become_a_workload() {
    let read = "unique_bytes=67108864,size_mean=16384,size_dist=fixed,read_frac=1";
    for (options, literal) in [
        (json!({}), format!("{read},seq_frac=0")),
        (json!({ "rw": "read" }), format!("{read},seq_frac=1")),
        (json!({ "percentage_random": "30" }), format!("{read},seq_frac=0.7")),
        (json!({ "percentage_random": "30,80" }), format!("{read},seq_frac=0.7")),
        (json!({ "bs": "16k,4k" }), format!("{read},seq_frac=0")),
        (json!({ "invalidate": "1", "pre_read": "0" }), format!("{read},seq_frac=0,state=cold")),
        (json!({ "direct": "1", "pre_read": "0" }), format!("{read},seq_frac=0,access=direct")),
        (
            json!({ "buffered": "0", "ioengine": "libaio", "iodepth": "8" }),
            format!("{read},seq_frac=0,access=direct,depth=8"),
        ),
        (
            json!({ "rw": "randwrite", "fdatasync": "32" }),
            "unique_bytes=67108864,size_mean=16384,size_dist=fixed,read_frac=0,seq_frac=0,\
             fsync_every=32"
                .to_owned(),
        ),
        (json!({ "fdatasync": "32" }), format!("{read},seq_frac=0")),
        (
            json!({ "rw": "randrw", "percentage_random": "25", "fsync": "0" }),
            "unique_bytes=67108864,size_mean=16384,size_dist=fixed,read_frac=0.5,seq_frac=0.75,\
             seq_scope=direction"
                .to_owned(),
        ),
        (
            json!({ "bssplit": "4k/25:16k/50:28k/25", "blockalign": "4k" }),
            "unique_bytes=67108864,size_mean=16384,size_dist=normal,read_frac=1,seq_frac=0"
                .to_owned(),
        ),
    ] {
        let expected = Workload::parse(&literal).unwrap();
        let measured = one(&usual(&options)).unwrap_or_else(|why| panic!("{options}: {why}"));
        assert_eq!(measured.work, expected, "{options}");
    }
}

#[test]
fn what_cannot_be_told_exactly_is_left_out_with_the_reason() {
    for (options, part) in [
        (json!({ "rate": "10m" }), "held to a rate"),
        (json!({ "thinktime": "100" }), "pauses"),
        (json!({ "random_distribution": "zipf:1.2" }), "not uniform"),
        (json!({ "rw": "randrw", "fdatasync": "1" }), "after reads as well"),
        (json!({ "rw": "randrw", "fsync": "4294967295", "fdatasync": "1" }), "after reads as well"),
        (
            json!({ "rw": "randwrite", "fdatasync": "16", "ioengine": "io_uring", "iodepth": "8" }),
            "more often than asked",
        ),
        (json!({ "rw": "randtrim" }), "no pattern"),
        (json!({ "rw": "randread:8" }), "no pattern"),
        (json!({ "ioengine": "null" }), "ioengine=null"),
        (json!({ "verify": "crc32c" }), "verifies"),
        (json!({ "zonemode": "zbd" }), "zones"),
        (json!({ "size": "50%" }), "not a plain size"),
        (json!({ "io_size": "1m" }), "below size"),
        (json!({ "rw": "randrw", "bs": "4k,16k" }), "reads and writes differ"),
        (json!({ "bs": "4k" }), "had 16384 bytes"),
        (json!({ "rw": "randrw", "rwmixread": "90" }), "50 % of its requests were reads"),
        (json!({ "rwmixread": "200", "rw": "randrw" }), "no percentage"),
        (json!({ "direct": "maybe" }), "neither 0 nor 1"),
        (json!({ "sync": "1" }), "every write waits"),
        (json!({ "size": "32k" }), "8 mean requests"),
        (json!({ "size": "0" }), "not a plain size"),
        (json!({ "numjobs": "-1" }), "no number"),
    ] {
        let why = one(&usual(&options)).expect_err("must be left out");
        assert!(why.contains(part) && why.starts_with("job `a`"), "{options}: {why}");
        assert!(!why.contains('\n'));
    }
    let why = one(&json!({ "rw": "randread", "bs": "16k" })).unwrap_err();
    assert!(why.contains("no size="), "{why}");
}

#[test]
fn what_is_doubtful_is_noted_and_nothing_is_dropped_in_silence() {
    let noted = |options: &Value| {
        let notes = one(&usual(options)).unwrap().notes;
        notes.iter().map(Words::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(noted(&json!({})), "");
    assert_eq!(noted(&json!({ "runtime": "5", "time_based": "1", "directory": "/x" })), "");
    assert!(noted(&json!({ "frobnicate": "1" })).contains("not understood"));
    assert!(noted(&json!({ "iodepth": "16" })).contains("iodepth=16 means nothing to psync"));
    assert!(noted(&json!({ "invalidate": "0", "pre_read": "0" })).contains("page cache held"));
    assert!(noted(&json!({ "nrfiles": "4" })).contains("each process went round 4 files"));
    assert!(noted(&json!({ "bsrange": "4k-28k" })).contains("law of their own"));
    assert!(noted(&json!({ "size": "2g" })).contains("less than twice"));
}

#[test]
fn processes_are_listed_one_by_one_or_as_a_group() {
    let options = usual(&json!({ "numjobs": "4" }));
    let each: Vec<Value> = (0..4).map(|_| job("a", 0, &options, 16_384)).collect();
    let apart = results(&json!({}), &each);
    assert_eq!(apart.measured.len(), 1, "{apart:?}");
    let work = &apart.measured[0].work;
    assert_eq!((work.process_num, work.unique_bytes), (4, 256 << 20));
    assert_eq!(apart.measured[0].figures.ops, 400_000);

    // Reported as a group: four times the requests in the same time.
    let mut group = job("a", 0, &options, 16_384);
    group["read"] = direction(400_000, 16_384, 19_000.0);
    let grouped = results(&json!({}), &[group]);
    assert_eq!(grouped.measured[0].work, *work);
    let rate = |results: &Results| results.measured[0].figures.throughput_bytes_per_s.mean;
    assert!((rate(&grouped) / rate(&apart) - 1.0).abs() < 1e-9);

    let why = &results(&json!({}), &each[..3]).left_out[0];
    assert!(why.contains("listed 3 times, where numjobs says 4"), "{why}");
}

#[test]
fn jobs_that_ran_together_are_one_workload_or_none() {
    let file = |name: &str, extra: &Value| {
        let options = with(usual(&json!({ "filename": name })), extra);
        job(name, 0, &options, 16_384)
    };
    let same = results(&json!({}), &[file("x", &json!({})), file("y", &json!({}))]);
    let work = &same.measured[0].work;
    assert_eq!((work.process_num, work.unique_bytes >> 20), (2, 128));
    let mixed = results(&json!({}), &[file("x", &json!({})), file("y", &json!({ "rw": "write" }))]);
    assert!(mixed.left_out[0].contains("did something else"), "{mixed:?}");

    // Two that were added up by fio, of which one is shown: more requests under way than it can have.
    let mut hidden = file("x", &json!({}));
    hidden["read"] = direction(200_000, 16_384, 19_000.0);
    let hidden = results(&json!({}), &[hidden]);
    assert!(hidden.left_out[0].contains("several jobs were reported as one"), "{hidden:?}");

    let shared = json!({ "filename": "x", "numjobs": "2", "offset_increment": "64m" });
    let each: Vec<Value> = (0..2).map(|_| job("a", 0, &usual(&shared), 16_384)).collect();
    let work = results(&json!({}), &each).measured[0].work.clone();
    assert_eq!((work.layout, work.unique_bytes >> 20), (Layout::Shared, 128));
    let over = json!({ "filename": "x", "numjobs": "2" });
    let each: Vec<Value> = (0..2).map(|_| job("a", 0, &usual(&over), 16_384)).collect();
    let measured = results(&json!({}), &each).measured[0].clone();
    assert_eq!(measured.work.unique_bytes >> 20, 64, "both touch the same data");
    assert!(measured.notes[0].to_string().contains("shared the same data"));
}

#[test]
fn options_of_a_job_go_before_those_of_all() {
    let global = json!({ "rw": "read", "bs": "16k", "size": "64m", "pre_read": "1" });
    let own = job("a", 0, &json!({ "rw": "randread" }), 16_384);
    let results = results(&global, &[own, job("b", 1, &json!({}), 16_384)]);
    let fractions: Vec<f64> = results.measured.iter().map(|one| one.work.seq_frac).collect();
    assert_eq!(fractions, [0.0, 1.0]);
}

#[test]
fn reads_and_writes_that_fio_reports_as_one_are_taken_as_one() {
    let options = usual(&json!({ "rw": "randrw", "unified_rw_reporting": "1" }));
    let mut unified = job("a", 0, &options, 16_384);
    unified["mixed"] = direction(100_000, 16_384, 19_000.0);
    unified.as_object_mut().unwrap().retain(|key, _| key != "read" && key != "write");
    let measured = results(&json!({}), &[unified]).measured[0].clone();
    assert_eq!(measured.figures.ops, 100_000);
    assert_eq!(measured.classes, ioscape_model::Classes::default(), "they are not told apart");
}

#[test]
fn a_document_is_found_among_what_fio_says_and_others_are_refused() {
    let good = json!({
        "fio version": "fio-3.33", "jobs": [job("a", 0, &usual(&json!({})), 16_384)],
    });
    let noisy = format!("fio: this is deprecated\n{good}\nfio: bye\n");
    let results = read(&noisy).unwrap();
    assert!(results.notes[0].contains("deprecated"));
    assert_eq!((results.measured.len(), results.timestamp_s), (1, None));
    let deep = format!("{{\"jobs\":{}", "[".repeat(100_000));
    for (text, part) in [
        (String::new(), "no JSON of fio"),
        ("not JSON at all".to_owned(), "no JSON of fio"),
        ("{\"jobs\": [".to_owned(), "no JSON of fio"),
        (deep, "recursion limit"),
        ("{}".to_owned(), "no `fio version`"),
        ("{\"fio version\": \"fio-2.21\", \"jobs\": []}".to_owned(), "fio 3.0 or later"),
        ("{\"fio version\": \"fio-3.33\"}".to_owned(), "no list of `jobs`"),
        ("{\"fio version\": \"fio-3.33\", \"jobs\": []}".to_owned(), "0 jobs"),
        ("{\"fio version\": \"fio-3.33\", \"client_stats\": []}".to_owned(), "several hosts"),
        (format!("{good}\n{good}\n"), "several documents"),
    ] {
        let why = read(&text).expect_err("must be refused");
        assert!(why.contains(part) && !why.contains('\n'), "{why}");
    }
    let failed = with(job("a", 0, &usual(&json!({})), 16_384), &json!({ "error": 5 }));
    let document = json!({ "fio version": "fio-3.33", "jobs": [failed] });
    let left_out = read(&document.to_string()).unwrap().left_out;
    assert!(left_out[0].contains("error 5"), "{left_out:?}");
}

/// A value put in the place of another, anywhere in the document.
fn mangle(value: &mut Value, left: &mut Option<usize>, with: &Value) {
    match left {
        None => return,
        Some(0) => {
            *value = with.clone();
            *left = None;
            return;
        }
        Some(count) => *count -= 1,
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| mangle(item, left, with)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mangle(field, left, with)),
        _ => {}
    }
}

fn strange() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        Just(json!("")),
        Just(json!("99999999999999999999g")),
        Just(json!("4k/100:")),
        Just(json!(",,,")),
        Just(json!(-1)),
        Just(json!(u64::MAX)),
        Just(json!(1e308)),
        Just(json!(5e-324)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(|text| json!(text)),
    ]
}

proptest! {
    #[test]
    fn no_mangled_document_makes_the_reader_panic(
        place in 0_usize..120, with in strange(), again in 0_usize..120, other in strange(),
    ) {
        let options = usual(&json!({ "rw": "randrw", "numjobs": "2", "bssplit": "8k/50:24k/50" }));
        let each: Vec<Value> = (0..2).map(|_| job("a", 0, &options, 16_384)).collect();
        let mut document = json!({
            "fio version": "fio-3.33", "timestamp": 1_795_192_740, "jobs": each,
            "global options": { "ramp_time": "2s", "iodepth": "4" },
        });
        mangle(&mut document, &mut Some(place), &with);
        mangle(&mut document, &mut Some(again), &other);
        if let Ok(results) = read(&document.to_string()) {
            for measured in &results.measured {
                measured.work.check().unwrap();
                let figures = &measured.figures;
                prop_assert!(figures.throughput_bytes_per_s.mean > 0.0);
                prop_assert!(figures.throughput_bytes_per_s.high.is_finite());
                prop_assert!(figures.ops_per_s.is_finite() && figures.runtime_s > 0.0);
            }
            // And none of it makes a record that cannot be opened again: it is refused before.
            let maker = ioscape_model::Origin::default();
            let lines = crate::lines(&[results], maker, |_| None);
            if lines.iter().all(|line| line.check().is_ok()) {
                let text = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n");
                let text: String = text.collect();
                ioscape_model::Record::read(text.as_bytes()).unwrap();
            }
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn no_torn_document_makes_the_reader_panic(cut in 0.0_f64..1.0) {
        let document = json!({
            "fio version": "fio-3.33", "jobs": [job("a", 0, &usual(&json!({})), 16_384)],
        });
        let text = document.to_string();
        prop_assert!(read(&text[..(text.len() as f64 * cut) as usize]).is_err());
    }
}
