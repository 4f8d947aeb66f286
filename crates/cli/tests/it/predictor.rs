//! The predictor in the page says what `ioscape predict` says: its module of WebAssembly is run from
//! the page, by an interpreter; and where there is a browser, its form is used.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Command;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::read::GzDecoder;
use ioscape_model::units::{GIB, KIB, MIB, show_rate, show_seconds};
use ioscape_model::{Access, Workload};
use serde_json::{Value, json};
use wasmi::{Engine, Instance, Linker, Memory, Module, Store};

use crate::maps::{self, HDD, NVME, VOLUME};
use crate::workdir::Workdir;

/// Both run the same code. What differs is the last digit of exponentials and powers, and what
/// differences of such make of it.
const TOLERANCE: f64 = 1e-9;
const ASKED: usize = 50;

/// The text of a script element of the page, unpacked.
fn unpacked(page: &str, id: &str) -> Vec<u8> {
    let open = format!("id=\"{id}\">");
    let from = page.find(&open).unwrap() + open.len();
    let text = &page[from..from + page[from..].find('<').unwrap()];
    let packed = BASE64_STANDARD.decode(text).unwrap();
    let mut plain = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
    plain
}

/// The page's module, run by an interpreter as the page's script runs it.
struct Page {
    store: Store<()>,
    instance: Instance,
    memory: Memory,
}

impl Page {
    /// With its model loaded.
    fn open(html: &str) -> Self {
        let engine = Engine::default();
        let module = Module::new(&engine, unpacked(html, "predictor-module")).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate_and_start(&mut store, &module).unwrap();
        let memory = instance.get_memory(&store, "memory").unwrap();
        let mut page = Self { store, instance, memory };
        assert_eq!(page.ask("ioscape_load", &unpacked(html, "predictor-model")), "");
        page
    }

    fn ask(&mut self, what: &str, input: &[u8]) -> String {
        let store = &mut self.store;
        let room = self.instance.get_typed_func::<u32, u32>(&*store, "ioscape_input").unwrap();
        let at = room.call(&mut *store, input.len() as u32).unwrap();
        self.memory.write(&mut *store, at as usize, input).unwrap();
        let mut call = |name: &str| {
            let export = self.instance.get_typed_func::<(), u32>(&*store, name).unwrap();
            export.call(&mut *store, ()).unwrap() as usize
        };
        let mut output = vec![0; call(what)];
        let at = call("ioscape_output");
        self.memory.read(&*store, at, &mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    /// What it says of `key=value` lines.
    fn predict(&mut self, typed: &str) -> Value {
        serde_json::from_str(&self.ask("ioscape_predict", typed.as_bytes())).unwrap()
    }
}

/// Numbers from 0 to 1 that look like chance (Knuth's MMIX generator).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        (from as f64 * (to as f64 / from as f64).powf(self.next())) as u64
    }

    /// The ends are likelier than chance would have it: there the law has its corners.
    fn fraction(&mut self) -> f64 {
        (self.next() * 1.4 - 0.2).clamp(0.0, 1.0)
    }
}

/// Workloads in the box that was measured, and some beyond it.
fn workloads() -> Vec<Workload> {
    let mut chance = Chance(19_940_701);
    let mut works = Vec::new();
    while works.len() < ASKED {
        let work = Workload {
            unique_bytes: chance.between(6 * MIB, 3 * GIB),
            size_mean: chance.between(4 * KIB, MIB),
            read_frac: chance.fraction(),
            seq_frac: chance.fraction(),
            process_num: chance.between(1, 6) as u32,
            ..Workload::default()
        };
        if work.check().is_ok() {
            works.push(work);
        }
    }
    works
}

/// How far apart two documents are at most, as a part. But for figures they are the same.
#[track_caller]
fn apart(ours: &Value, theirs: &Value, work: &Workload) -> f64 {
    match (ours, theirs) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() / other.abs().max(f64::MIN_POSITIVE)
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter().zip(other).map(|(one, other)| apart(one, other, work)).fold(0.0, f64::max)
        }
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            one.iter().map(|(key, one)| apart(one, &other[key], work)).fold(0.0, f64::max)
        }
        _ => {
            assert_eq!(ours, theirs, "{work}");
            0.0
        }
    }
}

/// What the command line says of workloads.
fn predicted(work: &Workdir, asked: &[Workload]) -> Vec<Value> {
    let literals: Vec<String> = asked.iter().map(Workload::literal).collect();
    let flags = literals.iter().flat_map(|literal| ["-w", literal.as_str()]);
    let predict: Vec<&str> = ["predict", "r.jsonl", "--json"].into_iter().chain(flags).collect();
    work.json(&predict)["predictions"].as_array().unwrap().clone()
}

/// The page of `r.jsonl`.
fn page(work: &Workdir) -> String {
    work.stdout(&["report", "r.jsonl"]);
    fs::read_to_string(work.path("r.html")).unwrap()
}

fn check(map: &[u8]) {
    let work = maps::beside(map);
    let asked = workloads();
    let html = page(&work);
    let mut page = Page::open(&html);
    let mut worst = 0.0_f64;
    for (asked, theirs) in asked.iter().zip(predicted(&work, &asked)) {
        let ours = page.predict(&asked.literal().replace(',', "\n"));
        let apart = apart(&ours["prediction"], &theirs, asked);
        assert!(apart < TOLERANCE, "{asked}: {apart:e} apart: {ours}, elsewhere {theirs}");
        worst = worst.max(apart);
    }
    let bytes = html.len();
    writeln!(std::io::stderr(), "at most {worst:.1e} apart in a page of {bytes} bytes").ok();
}

#[test]
fn the_page_predicts_what_the_command_line_does_on_a_device_without_borders() {
    check(&NVME);
}

#[test]
fn the_page_predicts_what_the_command_line_does_on_a_disk_with_borders() {
    check(&HDD);
}

#[test]
fn the_page_predicts_what_the_command_line_does_on_a_volume_with_limits() {
    check(&VOLUME);
}

#[test]
fn the_page_predicts_what_the_command_line_does_under_a_kernel() {
    // One that reads ahead, and whose cache keeps what was used last.
    let map = String::from_utf8(VOLUME.clone()).unwrap();
    let (header, rest) = map.split_once('\n').unwrap();
    let (unchecked, _) = header.rsplit_once(r#","check":"#).unwrap();
    let kernel = unchecked.replace(r#""kernel":"""#, r#""kernel":"6.18""#);
    assert_ne!(kernel, unchecked);
    check(format!("{kernel}}}\n{rest}").as_bytes());
}

#[test]
fn the_page_takes_and_refuses_what_the_command_line_does() {
    let work = maps::beside(&NVME);
    let mut page = Page::open(&page(&work));
    let given = page.predict("unique_bytes= 1.5 GiB\nsize_mean=64kB");
    assert_eq!(given["prediction"]["workload"]["unique_bytes"], 3 * GIB / 2);
    assert_eq!(given["prediction"]["workload"]["size_mean"], 64_000);
    let extras = Workload { depth: 4, fsync_every: 8, read_frac: 0.25, ..Workload::default() };
    // Of the device layer.
    let direct = Workload { access: Access::Direct, depth: 4, ..Workload::default() };
    for asked in [extras, direct] {
        let ours = page.predict(&asked.literal().replace(',', "\n"));
        let theirs = &predicted(&work, std::slice::from_ref(&asked))[0];
        assert!(apart(&ours["prediction"], theirs, &asked) < TOLERANCE, "{ours}, not {theirs}");
    }
    for (key, value) in [
        ("read_frac", ""),
        ("read_frac", "1.5"),
        ("size_mean", "1GiB"),
        ("process_num", "two"),
        ("unique_bytes", "64MiB,depth=2"),
        ("access", "none"),
        ("depth", "0"),
    ] {
        let wrong = page.predict(&format!("{key}={value}"));
        let flag = format!("--{}={value}", key.replace('_', "-"));
        let theirs = work.refusal(&["predict", "r.jsonl", &flag]);
        assert!(theirs.contains(wrong["wrong"].as_str().unwrap()), "{wrong}: {theirs}");
    }
    assert!(page.ask("ioscape_load", b"").starts_with("the fitted model: "));
}

/// Appended to the page: uses the form, and leaves what it said as an attribute that the dump shows.
const PROBE: &str = r#"<script>addEventListener("load", async () => {
  const asked = ASKED;
  const section = document.getElementById("predictor");
  const part = (name) => section.querySelector(`[data-part="${name}"]`);
  const enter = (input, value) => {
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const said = await window.ioscapePredict(asked[0]);
  const typed = asked.map((work) => {
    for (const [key, value] of Object.entries(work)) enter(part(`box ${key}`), String(value));
    const words = ["throughput", "response", "region", "command"];
    return { hidden: part("answer").hidden, warned: !part("warnings").hidden,
      words: words.map((name) => part(name).textContent) };
  });
  enter(part("box size_mean"), "1 GiB");
  const wrong = part("wrong").textContent;
  enter(part("box size_mean"), "16KiB");
  const slider = part("slider read_frac");
  enter(slider, 25);
  const slid = [part("box read_frac").value, slider.getAttribute("aria-valuetext")];
  enter(part("box read_frac"), "0.75");
  document.body.dataset.said = JSON.stringify({ said, typed, wrong, slid: [...slid, slider.value],
    spans: ["unique_bytes", "process_num"].map((key) => part(`slider ${key}`).max),
    labels: [...section.querySelectorAll("label")].map((label) => label.control?.dataset.part),
  });
});</script>"#;

/// The module is compiled at once: compiled beside the page's thread it may take longer than the
/// browser, whose virtual time does not wait for that, stays open.
const AT_ONCE: &str = "<head><script>WebAssembly.instantiate = async (bytes) => {
  const module = new WebAssembly.Module(bytes);
  return { module, instance: new WebAssembly.Instance(module) };
};</script>";

/// What the form in the page says of workloads, in a browser.
fn in_a_browser(browser: &str, work: &Workdir, asked: &[Workload]) -> Value {
    let typed = |work: &Workload| {
        json!({
            "unique_bytes": work.unique_bytes, "size_mean": work.size_mean,
            "read_frac": work.read_frac, "seq_frac": work.seq_frac,
            "process_num": work.process_num,
        })
    };
    let asked: Vec<Value> = asked.iter().map(typed).collect();
    let probe = PROBE.replace("ASKED", &serde_json::to_string(&asked).unwrap());
    let probed = page(work).replace("</body>", &format!("{probe}</body>"));
    let probed = probed.replacen("<head>", AT_ONCE, 1);
    assert!(probed.contains(AT_ONCE));
    fs::write(work.path("probed.html"), probed).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=10000"])
        .arg(format!("--user-data-dir={}", work.path("profile").display()))
        .arg(format!("file://{}", work.path("probed.html").display()))
        .output()
        .unwrap();
    let console = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = console.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
    let dom = String::from_utf8_lossy(&output.stdout);
    let open = "data-said=\"";
    let from = dom.find(open).expect("the page's scripts ran to their end") + open.len();
    let text = &dom[from..from + dom[from..].find('"').unwrap()];
    let text = text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
    serde_json::from_str(&text.replace("&nbsp;", " ").replace("&amp;", "&")).unwrap()
}

#[test]
fn the_sliders_and_boxes_of_the_page_show_what_the_command_line_says() {
    let Some(browser) = ioscape_test_support::browser() else { return };
    let work = maps::beside(&HDD);
    let asked = &workloads()[..8];
    let expected = predicted(&work, asked);
    let page = in_a_browser(browser, &work, asked);
    assert!(apart(&page["said"]["prediction"], &expected[0], &asked[0]) < TOLERANCE);
    for ((asked, theirs), said) in
        asked.iter().zip(&expected).zip(page["typed"].as_array().unwrap())
    {
        let rate = theirs["throughput_bytes_per_s"]["value"].as_f64().unwrap();
        let response = theirs["response_time_s"]["value"].as_f64().unwrap();
        let (rate, response) = (show_rate(rate), show_seconds(response));
        assert_eq!(said["hidden"], false, "{asked}");
        assert_eq!(said["warned"], !theirs["in_range"].as_bool().unwrap(), "{asked}");
        assert_eq!(said["words"][0], rate, "{asked}");
        assert_eq!(said["words"][1], response, "{asked}");
        assert_eq!(said["words"][2], theirs["region"], "{asked}");
    }
    let command = page["typed"][0]["words"][3].as_str().unwrap();
    let arguments = command.strip_prefix("ioscape ").unwrap();
    let again = work.json(&[&arguments.split(' ').collect::<Vec<_>>()[..], &["--json"]].concat());
    let key = "throughput_bytes_per_s";
    assert_eq!(again["predictions"][0][key], expected[0][key], "{command}");
    assert!(page["wrong"].as_str().unwrap().contains("8 mean requests"), "{}", page["wrong"]);
    assert_eq!(page["slid"], json!(["0.25", "0.25", "75"]));
    assert!(page["spans"].as_array().unwrap().iter().all(|max| max != "100"), "{}", page["spans"]);
    assert_eq!(page["labels"].as_array().unwrap().len(), 5, "{}", page["labels"]);
}
