//! The memory that an application needs: the curve of an LRU cache and the simulated page cache.

use std::fmt::Write as _;

use ioscape_model::app::{CachePart, Caches, PageCacheUse};
use ioscape_model::units::{show_percent, show_size};
use ioscape_model::{Interval, ModelName};

use super::{Part, table};
use crate::chart::{Axis, Chart, Drawn, Ink, Mark, Scale, Series, Table, Unit};

/// Bytes of a page.
const PAGE: f64 = 4096.0;

/// The part of the page.
pub(super) fn part(caches: &Caches) -> Part {
    let touches = (caches.reads + caches.writes) as f64;
    if touches == 0.0 {
        return Part::new("Memory", Vec::new(), Vec::new());
    }
    let tables = vec![page_cache(&caches.page_cache), parts(caches)];
    let mut part = Part::new("Memory", vec![curve(caches, touches)], tables);
    part.note = format!(
        "An LRU cache of whole pages without read-ahead; the page cache is Linux' own, simulated with \
         its lists and read-ahead from a cold start. The curve is within {:.3} of the exact miss ratio.",
        caches.curve_error
    );
    if let Some(names) = &caches.names {
        let _ = write!(
            part.note,
            " {} distinct files and directories are looked up {} times.",
            names.first_touches, names.touches
        );
    }
    part
}

fn curve(caches: &Caches, touches: f64) -> Chart {
    let mark = |pages: u64, share: f64, note: String| Mark {
        x: pages as f64 * PAGE,
        y: Interval::exact(share),
        note,
    };
    let points = caches.curve.iter().filter(|point| point.pages > 0);
    let points = points.map(|point| {
        let misses = point.reads + point.writes;
        mark(point.pages, misses as f64 / touches, format!("{misses} pages missed"))
    });
    let mut series = vec![Series {
        name: "misses of LRU".to_owned(),
        ink: Ink::Model(ModelName::Blend),
        drawn: Drawn::Line,
        marks: points.collect(),
    }];
    let simulated = caches.page_cache.iter().filter(|_| caches.reads > 0).map(|one| {
        let share = one.read as f64 / caches.reads as f64;
        mark(one.pages, share, format!("{} pages read from storage", one.read))
    });
    let simulated: Vec<Mark> = simulated.collect();
    if !simulated.is_empty() {
        series.push(Series {
            name: "read from storage by the page cache, read-ahead included".to_owned(),
            ink: Ink::Read,
            drawn: Drawn::Joined,
            marks: simulated,
        });
    }
    Chart {
        id: "misses".to_owned(),
        title: "Misses by memory for files".to_owned(),
        caption: format!(
            "It touches {} of files, {} in all.",
            show_size(caches.pages as f64 * PAGE),
            show_size(touches * PAGE)
        ),
        x: Axis::new("memory for files", Scale::Log2, Unit::Bytes),
        y: Axis::new("share of the pages touched", Scale::Linear, Unit::Percent),
        series,
        bands: Vec::new(),
        rules: Vec::new(),
    }
}

fn page_cache(simulated: &[PageCacheUse]) -> Table {
    let share = |hits: u64, misses: u64| match hits + misses {
        0 => String::new(),
        all => show_percent(hits as f64 / all as f64),
    };
    let rows = simulated.iter().map(|one| {
        vec![
            show_size(one.pages as f64 * PAGE),
            show_size(one.read as f64 * PAGE),
            show_size(one.written_back as f64 * PAGE),
            share(one.sequential_hits, one.sequential_misses),
            share(one.random_hits, one.random_misses),
        ]
    });
    let head = ["memory", "read from storage", "written back", "sequential hits", "random hits"];
    Table { rows: rows.collect(), ..table(&head, std::iter::empty()) }
}

/// Classes of files and phases in caches of an eighth, a quarter, half and all of the data.
fn parts(caches: &Caches) -> Table {
    let sizes = [8, 4, 2, 1].map(|part| (caches.pages / part).max(1));
    let mut head = vec!["misses of LRU with".to_owned(), "touched".to_owned()];
    head.extend(sizes.iter().map(|pages| show_size(*pages as f64 * PAGE)));
    let row = |part: &CachePart| {
        let mut row = vec![part.part.clone(), show_size(part.touches as f64 * PAGE)];
        let ratio = |pages: &u64| part.misses_with(*pages) / part.touches.max(1) as f64;
        row.extend(sizes.iter().map(|pages| show_percent(ratio(pages))));
        row
    };
    Table { head, rows: caches.parts.iter().map(row).collect() }
}
