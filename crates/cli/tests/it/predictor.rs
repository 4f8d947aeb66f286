//! The predictor in the page, where there is a browser: it says what `ioscape predict` says.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use ioscape_model::Workload;
use ioscape_model::units::{GIB, KIB, MIB};
use serde_json::Value;

use crate::maps::{self, HDD, NVME, VOLUME};
use crate::workdir::Workdir;

const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Three digits.
const TOLERANCE: f64 = 1e-3;
const ASKED: usize = 50;

/// Appended to the page: asks the predictor through its seam, then through its form, and leaves
/// what it said as an attribute that the dump shows.
const PROBE: &str = r#"<script>addEventListener("load", () => {
  const asked = ASKED;
  const section = document.getElementById("predictor");
  const part = (name) => section.querySelector(`[data-part="${name}"]`);
  const enter = (input, value) => {
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const typed = asked.map((work) => {
    for (const [key, value] of Object.entries(work)) enter(part(`box ${key}`), String(value));
    const words = ["throughput", "throughput interval", "response", "product", "region", "command"];
    return { region: part("region").textContent, hidden: part("answer").hidden, warned: !part("warnings").hidden,
      words: words.map((name) => part(name).textContent) };
  });
  enter(part("box size_mean"), "1 GiB");
  const wrong = part("wrong").textContent;
  enter(part("box size_mean"), "16KiB");
  const slider = part("slider read_frac");
  enter(slider, 25);
  document.body.dataset.said = JSON.stringify({
    said: asked.map((work) => window.ioscapePredict(work)), typed, wrong,
    slid: [part("box read_frac").value, slider.getAttribute("aria-valuetext")],
    labels: [...section.querySelectorAll("label")].map((label) => label.control?.dataset.part),
  });
});</script>"#;

fn browser() -> Option<&'static str> {
    let answers = |name: &&str| {
        let asked = Command::new(name).arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    };
    let found = BROWSERS.into_iter().find(|name| answers(name));
    if found.is_none() {
        writeln!(std::io::stderr(), "\nSKIPPED the page's predictor: no chromium here").ok();
    }
    found
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

/// What the page of `r.jsonl` says of workloads, in a browser.
fn in_the_page(browser: &str, work: &Workdir, asked: &[Workload]) -> Value {
    work.stdout(&["report", "r.jsonl"]);
    let five = |work: &Workload| {
        serde_json::json!({
            "unique_bytes": work.unique_bytes, "size_mean": work.size_mean,
            "read_frac": work.read_frac, "seq_frac": work.seq_frac,
            "process_num": work.process_num,
        })
    };
    let asked: Vec<Value> = asked.iter().map(five).collect();
    let probe = PROBE.replace("ASKED", &serde_json::to_string(&asked).unwrap());
    let page = fs::read_to_string(work.path("r.html")).unwrap();
    fs::write(work.path("probed.html"), page.replace("</body>", &format!("{probe}</body>")))
        .unwrap();
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

/// How far apart the page and the command line are at most, as a part.
fn hold(ours: &Value, theirs: &Value, work: &Workload) -> f64 {
    let mut worst = 0.0_f64;
    let mut near = |ours: &Value, theirs: &Value, what: &str| {
        let (ours, theirs) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
        let apart = (ours / theirs - 1.0).abs();
        assert!(apart < TOLERANCE, "{work}: {what} is {ours} in the page, {theirs} elsewhere");
        worst = worst.max(apart);
    };
    for key in ["throughput_bytes_per_s", "response_time_s"] {
        for end in ["value", "low", "high"] {
            near(&ours[key][end], &theirs[key][end], &format!("{key} {end}"));
        }
    }
    let product = "product_throughput_bytes_per_s";
    near(&ours[product], &theirs[product], product);
    assert_eq!(ours["region"], theirs["region"], "{work}");
    assert_eq!(ours["in_range"], theirs["in_range"], "{work}");
    let texts = theirs["warnings"].as_array().unwrap().iter().map(|warning| &warning["text"]);
    assert!(ours["warnings"].as_array().unwrap().iter().eq(texts), "{work}: {ours}");
    worst
}

fn check(map: &[u8]) {
    let Some(browser) = browser() else { return };
    let work = maps::beside(map);
    let asked = workloads();
    let literals: Vec<String> = asked.iter().map(Workload::literal).collect();
    let flags = literals.iter().flat_map(|literal| ["-w", literal.as_str()]);
    let predict: Vec<&str> = ["predict", "r.jsonl", "--json"].into_iter().chain(flags).collect();
    let expected = work.json(&predict);
    let page = in_the_page(browser, &work, &asked);
    let mut worst = 0.0_f64;
    for (index, work) in asked.iter().enumerate() {
        let theirs = &expected["predictions"][index];
        worst = worst.max(hold(&page["said"][index], theirs, work));
        let typed = &page["typed"][index];
        assert_eq!(typed["hidden"], false, "{work}");
        assert_eq!(typed["region"], theirs["region"], "{work}");
        assert_eq!(typed["warned"] == true, theirs["in_range"] == false, "{work}");
    }
    assert!(page["wrong"].as_str().unwrap().contains("8 mean requests"), "{}", page["wrong"]);
    assert_eq!(page["slid"], serde_json::json!(["0.25", "0.25"]));
    assert_eq!(page["labels"].as_array().unwrap().len(), 5, "{}", page["labels"]);
    commands_say_the_same(&work, &page, &expected);
    writeln!(std::io::stderr(), "the page and the command line: at most {worst:.1e} apart").ok();
}

/// The command that the page offers gives what the page shows.
fn commands_say_the_same(work: &Workdir, page: &Value, expected: &Value) {
    for index in [0, ASKED / 2] {
        let words = &page["typed"][index]["words"];
        let command = words[5].as_str().unwrap();
        let arguments = command.strip_prefix("ioscape ").unwrap();
        let mut arguments: Vec<&str> = arguments.split(' ').collect();
        arguments.push("--json");
        let again = work.json(&arguments);
        let prediction = &expected["predictions"][index];
        let key = "throughput_bytes_per_s";
        assert_eq!(again["predictions"][0][key], prediction[key], "{command}");
        let shown = ioscape_model::units::show_rate(prediction[key]["value"].as_f64().unwrap());
        assert_eq!(words[0], shown.as_str(), "{command}");
        let response = prediction["response_time_s"]["value"].as_f64().unwrap();
        assert_eq!(words[2], ioscape_model::units::show_seconds(response).as_str(), "{command}");
    }
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
