//! The page of an application: what a trace or a model says, one file that loads nothing.

mod caches;

use askama::Template;
use ioscape_model::Interval;
use ioscape_model::app::{App, Behaviour, Loop, SizeLaw};
use ioscape_model::units::{show_bytes, show_percent, show_seconds, three_digits};

use crate::chart::{Axis, Chart, Drawn, Ink, Mark, Scale, Series, Table, Unit};
use crate::page::{Figure, PLOT, PLOT_LICENSES, SCRIPT, STYLE, script_json};

/// Tells such a page from those of records.
const MARK: &str = "<meta name=\"ioscape-application\" content=\"1\">";
/// Rows of a table.
const ROWS_MAX: usize = 16;

/// Renders the page.
pub fn application_html(app: &App) -> String {
    let parts = parts(app);
    let charts: Vec<&Chart> =
        parts.iter().flat_map(|part| part.figures.iter().map(|figure| &figure.chart)).collect();
    let data = script_json(&charts);
    let whole = &app.whole;
    let page = Page {
        mark: MARK,
        style: STYLE,
        script: SCRIPT,
        plot: PLOT,
        plot_licenses: PLOT_LICENSES,
        data,
        title: "What the application does",
        extent: extent(app),
        sentences: sentences(whole),
        workload: &whole.workload,
        doubts: app.warnings.iter().map(|doubt| doubt.text.as_str()).collect(),
        parts,
    };
    page.render().expect("the template writes into a string")
}

#[derive(Template)]
#[template(path = "application.html")]
struct Page<'a> {
    mark: &'static str,
    style: &'static str,
    script: &'static str,
    plot: &'static str,
    plot_licenses: &'static str,
    data: String,
    title: &'static str,
    extent: String,
    sentences: Vec<String>,
    workload: &'a str,
    doubts: Vec<&'a str>,
    parts: Vec<Part>,
}

/// A heading with what stands below it.
struct Part {
    title: &'static str,
    figures: Vec<Figure>,
    tables: Vec<Table>,
    note: String,
}

impl Part {
    fn new(title: &'static str, charts: Vec<Chart>, tables: Vec<Table>) -> Self {
        let figures = charts.into_iter().map(|chart| Figure::new(chart, "landscape")).collect();
        Self { title, figures, tables, note: String::new() }
    }

    fn is_empty(&self) -> bool {
        self.figures.is_empty() && self.tables.iter().all(|table| table.rows.is_empty())
    }
}

fn parts(app: &App) -> Vec<Part> {
    let whole = &app.whole;
    let sizes =
        [("reads", &whole.sizes.read, Ink::Read), ("writes", &whole.sizes.write, Ink::Write)];
    let sizes = sizes.into_iter().filter_map(|(name, law, ink)| size_series(name, law, ink));
    let sizes: Vec<Series> = sizes.collect();
    let mut parts = vec![Part::new("The five parameters", Vec::new(), vec![five(app)])];
    if !sizes.is_empty() {
        parts.push(Part::new("Sizes of requests", vec![size_chart(sizes)], Vec::new()));
    }
    parts.extend(app.caches.as_ref().map(caches::part));
    parts.push(Part::new("Durability", Vec::new(), vec![syncs(whole)]));
    parts.push(Part::new("Calls", Vec::new(), vec![calls(whole)]));
    parts.push(Part::new("Files by class", Vec::new(), vec![classes(whole)]));
    parts.push(Part::new("Streams", Vec::new(), vec![streams(whole)]));
    parts.retain(|part| !part.is_empty());
    parts
}

fn extent(app: &App) -> String {
    let whole = &app.whole;
    let seen =
        if app.recorder.is_empty() { String::new() } else { format!(", seen by {}", app.recorder) };
    format!(
        "{} read and {} written in {} requests; {} calls in {}{seen}.",
        show_bytes(whole.bytes_read as f64),
        show_bytes(whole.bytes_written as f64),
        whole.requests,
        whole.calls,
        show_seconds(whole.elapsed_s)
    )
}

fn sentences(whole: &Behaviour) -> Vec<String> {
    let mut said = Vec::new();
    said.push(match whole.arrivals {
        Loop::Closed => "A request waits for the one before: a closed loop.".to_owned(),
        Loop::Open => format!(
            "Requests come whatever became of those before: an open loop of {} per second.",
            three_digits(whole.arriving.rate_per_s)
        ),
    });
    if whole.syncs.count > 0 {
        let each = match whole.syncs.every {
            0 => String::new(),
            1 => ", one after each write".to_owned(),
            every => format!(", one after every {every} writes"),
        };
        said.push(format!("{} syncs{each}.", whole.syncs.count));
    }
    if let Some(transaction) = &whole.order.transaction {
        said.push(format!(
            "A sequence of {} calls comes again and again ({} alike): {}.",
            transaction.calls,
            show_percent(transaction.likeness),
            transaction.steps.join(", ")
        ));
    }
    said
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table {
        head: head.iter().map(|&word| word.to_owned()).collect(),
        rows: rows.take(ROWS_MAX).collect(),
    }
}

/// Of the whole and of each phase.
fn five(app: &App) -> Table {
    let head =
        ["", "lasts", "unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num", "syncs"];
    let row = |name: String, behaviour: &Behaviour| {
        let five = &behaviour.five;
        vec![
            name,
            show_seconds(behaviour.elapsed_s),
            show_bytes(five.unique_bytes as f64),
            show_bytes(five.size_mean),
            format!("{:.3}", five.read_frac),
            format!("{:.3}", five.seq_frac),
            five.process_num.to_string(),
            behaviour.syncs.count.to_string(),
        ]
    };
    let phases = (1..).zip(&app.phases).map(|(number, phase)| {
        row(format!("phase {number}, from {}", show_seconds(phase.from_s)), &phase.behaviour)
    });
    table(&head, std::iter::once(row("all of it".to_owned(), &app.whole)).chain(phases))
}

fn size_series(name: &str, law: &SizeLaw, ink: Ink) -> Option<Series> {
    let total: u64 = law.histogram.iter().map(|size| size.count).sum();
    let mark = |size: &ioscape_model::app::SizeCount| Mark {
        x: size.bytes.max(1) as f64,
        y: Interval::exact(size.count as f64 / total as f64),
        note: format!("{} requests", size.count),
    };
    let marks: Vec<Mark> = law.histogram.iter().map(mark).collect();
    (total > 0).then(|| Series { name: name.to_owned(), ink, drawn: Drawn::Joined, marks })
}

fn size_chart(series: Vec<Series>) -> Chart {
    Chart {
        id: "sizes".to_owned(),
        title: "Share of requests by size".to_owned(),
        caption: "Eight steps to a doubling; each mark stands where its step begins.".to_owned(),
        x: Axis::new("size of a request", Scale::Log2, Unit::Bytes),
        y: Axis::new("share of reads or writes", Scale::Linear, Unit::Percent),
        series,
        bands: Vec::new(),
        rules: Vec::new(),
    }
}

fn syncs(whole: &Behaviour) -> Table {
    let rows = whole.syncs.by_kind.iter().map(|(kind, of_kind)| {
        vec![
            kind.clone(),
            of_kind.count.to_string(),
            three_digits(of_kind.pages_mean),
            three_digits(of_kind.extents_mean),
            of_kind.mean_s.map_or(String::new(), show_seconds),
        ]
    });
    table(&["kind of file", "syncs", "dirty pages", "in pieces", "took"], rows)
}

fn calls(whole: &Behaviour) -> Table {
    let mut all: Vec<(&String, &u64)> = whole.operations.iter().collect();
    all.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
    let rows = all.into_iter().map(|(name, count)| vec![name.clone(), count.to_string()]);
    table(&["call", "how often"], rows)
}

fn classes(whole: &Behaviour) -> Table {
    let rows = whole.files.iter().map(|class| {
        vec![
            class.class.clone(),
            class.files.to_string(),
            show_bytes(class.bytes_read as f64),
            show_bytes(class.bytes_written as f64),
        ]
    });
    table(&["class", "files", "read", "written"], rows)
}

fn streams(whole: &Behaviour) -> Table {
    let rows = (1..).zip(&whole.streams).map(|(number, stream): (u32, _)| {
        vec![
            number.to_string(),
            stream.requests.to_string(),
            show_bytes(stream.bytes_read as f64),
            show_bytes(stream.bytes_written as f64),
            stream.syncs.to_string(),
            show_seconds(stream.busy_s),
        ]
    });
    table(&["stream", "requests", "read", "written", "syncs", "in calls"], rows)
}

#[cfg(test)]
mod tests {
    use ioscape_model::app::{CacheMisses, Caches, PageCacheUse, SizeCount};

    use super::*;

    fn app() -> App {
        let text = r#"{"elapsed_s": 60, "five": {"unique_bytes": 1048576, "size_mean": 8192,
            "read_frac": 0.7, "seq_frac": 0.1, "process_num": 4}}"#;
        App::parse(text).expect("it is a model")
    }

    #[test]
    fn a_model_typed_by_hand_has_a_page_without_what_it_does_not_say() {
        let page = application_html(&app());
        assert!(page.contains("The five parameters") && page.contains("1.00 MiB"), "{page}");
        for absent in ["Durability", "Sizes of requests", "Memory", "NaN"] {
            assert!(!page.contains(&format!("<h2>{absent}")), "{absent}");
        }
    }

    #[test]
    fn what_caches_make_of_it_is_drawn_and_listed() {
        let mut app = app();
        app.whole.sizes.read.histogram = vec![SizeCount { bytes: 8192, count: 5 }];
        let point = |pages, reads| CacheMisses { pages, reads, writes: 0 };
        app.caches = Some(Caches {
            pages: 256,
            reads: 1000,
            curve: vec![point(0, 1000), point(256, 256)],
            page_cache: vec![PageCacheUse { pages: 256, read: 256, ..PageCacheUse::default() }],
            ..Caches::default()
        });
        let page = application_html(&app);
        assert!(page.contains("<h2>Memory") && page.contains("data-chart=\"misses\""));
        assert!(page.contains("data-chart=\"sizes\""));
    }
}
