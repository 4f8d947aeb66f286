//! The page in a browser, where there is one: every graph is drawn, nothing is said on the
//! console, nothing is asked for, nothing is wider than the screen, and five hundred workloads take
//! hardly longer than few.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use ioscape_model::{Interval, Record, Workload};
use ioscape_report::{ReportPage, html};

use crate::{comparison, fixture};

/// A page of five hundred workloads opens in so many times the time of a usual one, at most.
const SLOWER_MAX: f64 = 5.0;
/// Times that either page is opened, in turn. The quickest counts: whatever else runs only adds.
const OPENINGS: usize = 2;

/// Around each page: a browser's window cannot be as narrow as a telephone, a frame can. One browser shows several.
const FRAME: &str =
    r#"<iframe style="border:0;width:WIDTHpx;height:1000px" srcdoc="PAGE"></iframe>"#;

/// Each page is used a little; what there is to see then becomes an attribute, which the dump shows.
const USE: &str = r##"<script>addEventListener("load", async () => {
  const probes = Array.from(frames, ({ document: page, KeyboardEvent, innerWidth, getComputedStyle }) =>
    new Promise((done) => {
      const plots = [...page.querySelectorAll("figure[data-chart] .plot")];
      plots[0].focus();
      for (const key of ["ArrowRight", "ArrowRight", "ArrowDown"])
        plots[0].dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const rows = page.querySelector("#reproduce details");
      rows.open = true;
      const button = rows.querySelector("button");
      button.click();
      const job = button.closest("tr").nextElementSibling;
      // The job comes when it is unpacked.
      new MutationObserver(() => done({
        plots: plots.length,
        drawn: plots.filter((plot) => plot.querySelector("svg")).length,
        width: innerWidth,
        needed: page.documentElement.scrollWidth,
        background: getComputedStyle(page.body).backgroundColor,
        spoken: page.querySelector(".spoken").textContent,
        job: job.textContent,
      })).observe(job, { childList: true, subtree: true });
    }));
  document.body.dataset.probe = JSON.stringify(await Promise.all(probes));
});</script>"##;

/// Appended to the page where the time counts. All is drawn before a page is said to be loaded.
const TIME: &str = r#"<script>addEventListener("load", () => {
  document.body.dataset.probe = JSON.stringify({
    plots: document.querySelectorAll("figure[data-chart] .plot").length,
    drawn: document.querySelectorAll("figure[data-chart] .plot svg").length,
    opened_ms: performance.timing.loadEventStart - performance.timing.navigationStart,
  });
});</script>"#;

/// An A4 sheet between the margins that a browser leaves, in its pixels.
const SHEET_WIDTH: u32 = 715;

/// Collects from each sheet the tables that are cut off, the width that is needed in pixels, and the labels of the time axis.
const LOOK: &str = r#"<script>addEventListener("load", () => {
  document.body.dataset.probe = JSON.stringify(Array.from(frames, ({ document: page }) => {
    const ticks = [...page.querySelectorAll("figure[data-chart=order] [aria-label='x-axis tick label'] text")];
    return {
      cut: [...page.querySelectorAll(".scroll")].filter((table) => table.scrollWidth > table.clientWidth).map((table) => table.innerText.slice(0, 40)),
      tables: page.querySelectorAll(".scroll").length,
      needed: page.documentElement.scrollWidth,
      ticks: ticks.map((tick) => tick.textContent),
    };
  }));
});</script>"#;

/// A browser with a folder of its own.
struct Browser {
    name: &'static str,
    folder: PathBuf,
}

impl Browser {
    fn find() -> Option<Self> {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let name = ioscape_test_support::browser()?;
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("browser-{}-{call}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Some(Self { name, folder })
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    /// Opens a file of the folder; gives its document back when it is loaded.
    fn open(&self, name: &str, arguments: &[&str]) -> Output {
        let folder = self.folder.display();
        let output = Command::new(self.name)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"])
            .args(["--disable-background-networking", "--disable-component-update"])
            // What the browser wants to tell its maker stays here.
            .args(["--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND"])
            // The clock of the page runs on until nothing is left to do.
            .arg("--virtual-time-budget=10000")
            .args(["--hide-scrollbars", "--enable-logging=stderr", "--window-size=1500,900"])
            .arg(format!("--user-data-dir={folder}/profile"))
            .arg(format!("--log-net-log={folder}/net.json"))
            .args(arguments)
            .arg(format!("file://{folder}/{name}"))
            .output();
        output.unwrap()
    }

    /// Addresses that were asked for on behalf of a page; what a browser asks for itself is not
    /// part of a file.
    fn requests(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.join("net.json")).unwrap();
        let of_page = log.lines().filter(|line| {
            line.contains("\"initiator\":") && line.contains("\"network_isolation_key\":\"file:")
        });
        let url = |line: &str| {
            let (_, rest) = line.rsplit_once("\"url\":\"").unwrap();
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        of_page.map(url).filter(|url| !url.starts_with("file:")).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// What the console was told.
fn console(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect()
}

fn probe(output: &Output) -> serde_json::Value {
    let dom = String::from_utf8_lossy(&output.stdout);
    let open = "data-probe=\"";
    let from = dom.find(open).expect("the page's scripts ran to their end") + open.len();
    let to = from + dom[from..].find('"').unwrap();
    let text = dom[from..to].replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
    serde_json::from_str(&text.replace("&nbsp;", " ").replace("&amp;", "&")).unwrap()
}

/// A document that shows pages in frames of these widths, and what it does with them.
fn framed(pages: &[(u32, &str)], script: &str) -> String {
    let frame = |(width, page): &(u32, &str)| {
        let quoted = page.replace('&', "&amp;").replace('"', "&quot;");
        FRAME.replace("WIDTH", &width.to_string()).replace("PAGE", &quoted)
    };
    let frames: String = pages.iter().map(frame).collect();
    let head = "<!doctype html><meta name=\"color-scheme\" content=\"light dark\">";
    format!("{head}<body style=\"margin:0\">{frames}{script}")
}

/// On a screen and on a telephone.
fn look(is_dark: bool) {
    const WIDTHS: [u32; 2] = [1400, 390];
    let Some(browser) = Browser::find() else { return };
    let page = html(&ReportPage::from_record(&fixture::full()));
    browser.write("frames.html", &framed(&WIDTHS.map(|width| (width, &*page)), USE));
    let dark = is_dark.then_some("--blink-settings=preferredColorScheme=0");
    let output = browser.open("frames.html", dark.as_slice());
    assert_eq!(console(&output), [""; 0]);
    assert_eq!(browser.requests(), [""; 0]);
    let probes = probe(&output);
    assert_eq!(probes.as_array().unwrap().len(), WIDTHS.len());
    for (probe, width) in probes.as_array().unwrap().iter().zip(WIDTHS) {
        assert!(probe["plots"].as_u64().unwrap() > 10, "{probe}");
        assert_eq!(probe["plots"], probe["drawn"], "{width}: all graphs are drawn");
        assert_eq!(probe["width"], width);
        assert!(probe["needed"].as_u64() <= probe["width"].as_u64(), "{width} scrolls: {probe}");
        let background = if is_dark { "rgb(18, 21, 24)" } else { "rgb(255, 255, 255)" };
        assert_eq!(probe["background"], background, "{width}");
        // The second mark of the first curve, then down to the second curve.
        assert!(probe["spoken"].as_str().unwrap().starts_with("writes only"), "{probe}");
        assert!(probe["job"].as_str().unwrap().contains("[ioscape]"), "{probe}");
    }
}

#[test]
fn the_page_is_drawn_silently_asks_for_nothing_and_fits_a_telephone() {
    look(false);
}

#[test]
fn the_page_is_drawn_in_the_dark() {
    look(true);
}

/// Opens two pages as sheets of paper and returns what `LOOK` collects from each; `None` where there is no browser.
fn on_paper(pages: [String; 2]) -> Option<Vec<serde_json::Value>> {
    let browser = Browser::find()?;
    // A browser without a head has no sheet to lay out before it prints: it gets the same rules.
    let pages = pages.map(|page| page.replace("@media print", "@media all"));
    let sheets = pages.each_ref().map(|page| (SHEET_WIDTH, &**page));
    browser.write("sheets.html", &framed(&sheets, LOOK));
    let probes = probe(&browser.open("sheets.html", &[])).as_array().unwrap().clone();
    assert_eq!(probes.len(), pages.len());
    Some(probes)
}

#[test]
fn paper_cuts_no_table() {
    let report = html(&ReportPage::from_record(&fixture::full()));
    let comparison = comparison::with_page(ioscape_report::comparison_html);
    for probe in on_paper([report, comparison]).unwrap_or_default() {
        assert!(probe["tables"].as_u64().unwrap() > 1, "{probe}");
        assert_eq!(probe["cut"], serde_json::json!([]), "{probe}");
        assert!(probe["needed"].as_u64().unwrap() <= u64::from(SHEET_WIDTH), "{probe}");
    }
}

#[test]
fn a_run_that_was_stopped_at_once_has_times_along_its_axis() {
    let pages = [0.05, 1.5].map(|seconds| {
        let mut record = fixture::full();
        record.points.truncate(4);
        record.end = None;
        for (point, part) in record.points.iter_mut().zip([0.0, 0.3, 0.7, 1.0]) {
            point.started_s = part * seconds;
        }
        html(&ReportPage::from_record(&record))
    });
    for probe in on_paper(pages).unwrap_or_default() {
        assert!(probe["ticks"].as_array().unwrap().len() >= 3, "{probe}");
    }
}

#[test]
fn a_page_that_asks_or_speaks_would_be_noticed() {
    let Some(browser) = Browser::find() else { return };
    let page = "<!doctype html><body><img src=\"http://127.0.0.1:9/x.png\">\
                <script>console.log(\"a word\");</script>";
    browser.write("page.html", page);
    let output = browser.open("page.html", &["--virtual-time-budget=30000"]);
    assert!(console(&output).iter().any(|line| line.contains("a word")), "{output:?}");
    assert_eq!(browser.requests().first().map(String::as_str), Some("http://127.0.0.1:9/x.png"));
}

#[test]
fn a_page_of_five_hundred_points_takes_hardly_longer_to_open_than_a_usual_one() {
    let Some(browser) = Browser::find() else { return };
    let mut quickest_ms = [f64::MAX; 2];
    for (name, record) in ["0.html", "1.html"].iter().zip([fixture::full(), five_hundred()]) {
        let page = html(&ReportPage::from_record(&record));
        browser.write(name, &page.replace("</body>", &format!("{TIME}</body>")));
    }
    for _ in 0..OPENINGS {
        for (quickest_ms, name) in quickest_ms.iter_mut().zip(["0.html", "1.html"]) {
            let probe = probe(&browser.open(name, &[]));
            assert_eq!(probe["plots"], probe["drawn"], "all graphs are drawn");
            *quickest_ms = quickest_ms.min(probe["opened_ms"].as_f64().unwrap());
        }
    }
    let [usual_ms, large_ms] = quickest_ms;
    assert!(large_ms < SLOWER_MAX * usual_ms, "{usual_ms} ms and {large_ms} ms");
}

/// A whole run with five hundred workloads and as many visits.
pub(crate) fn five_hundred() -> Record {
    let mut record = fixture::full();
    let template = record.estimates[0].clone();
    for i in record.estimates.len()..500 {
        let mut estimate = template.clone();
        estimate.workload = Workload { size_mean: 4096 * (i as u64 + 1), ..Workload::default() };
        estimate.throughput_bytes_per_s =
            Interval { mean: 1.234_567_89e9, low: 1.2e9, high: 1.3e9 };
        record.estimates.push(estimate);
    }
    let points = record.points.clone();
    record.points = points.into_iter().cycle().take(500).collect();
    record
}
