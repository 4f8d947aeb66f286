//! What of a map there was no time or room for, from the points it has.

use ioscape_model::graph::Axis;
use ioscape_model::units::show_seconds;
use ioscape_model::{Access, Header, LeftOut, Method, Part, Point, Region, Role, datasheet};

use super::{Landscape, is_short};

/// Budgets below this have no room for a data sheet, seconds: its nine visits take some 30 s, and a
/// map that can predict needs a minute and a half.
pub(crate) const SHEET_BUDGET_MIN_S: f64 = 120.0;
/// And below this none for a device layer beside the cache layer, seconds.
pub(crate) const DEVICE_BUDGET_MIN_S: f64 = 180.0;
/// Fewer values make no graph.
const GRAPH_VALUES_MIN: usize = 3;
const AXES: [Axis; 4] = [Axis::SizeMean, Axis::ReadFrac, Axis::SeqFrac, Axis::ProcessNum];

/// The parts that are missing, in the order in which they are measured.
pub(crate) fn left_out(header: &Header, landscape: &Landscape, points: &[Point]) -> Vec<LeftOut> {
    if header.method != Method::Blend {
        return Vec::new();
    }
    let parts = [
        (Part::DataSheet, sheet(header, points)),
        (Part::CacheLayer, families(landscape, points, Access::Buffered)),
        (Part::DeviceLayer, device(header, landscape, points)),
        (Part::Named, named(header, points)),
        (Part::Repeats, repeats(header, points)),
        (Part::RateLatency, rates(header, points)),
    ];
    let left_out = parts.into_iter();
    left_out.filter_map(|(part, text)| Some(LeftOut { part, text: text? })).collect()
}

fn visits(points: &[Point], line: &ioscape_model::SheetLine) -> usize {
    points.iter().filter(|point| point.workload == line.workload).count()
}

fn sheet(header: &Header, points: &[Point]) -> Option<String> {
    if header.datasheet.is_empty() {
        return (header.budget_s < SHEET_BUDGET_MIN_S).then(|| {
            format!("all of it: it needs a budget of {} or more", show_seconds(SHEET_BUDGET_MIN_S))
        });
    }
    let missing: Vec<&str> = header
        .datasheet
        .iter()
        .filter(|line| visits(points, line) == 0)
        .map(|line| line.name.as_str())
        .collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

fn device(header: &Header, landscape: &Landscape, points: &[Point]) -> Option<String> {
    if header.is_quick || header.ranges.access == Access::Direct {
        return None;
    }
    let has_begun = || landscape.regions.iter().any(|region| region.focal.access == Access::Direct);
    match header.device {
        Some(_) if has_begun() => families(landscape, points, Access::Direct),
        Some(_) => Some("all of it".to_owned()),
        None if header.budget_s < DEVICE_BUDGET_MIN_S => Some(format!(
            "all of it: it needs a budget of {} or more",
            show_seconds(DEVICE_BUDGET_MIN_S)
        )),
        None => None,
    }
}

/// Graphs of a layer's regions that have too few values.
fn families(landscape: &Landscape, points: &[Point], access: Access) -> Option<String> {
    let regions = landscape.regions.iter().filter(|region| region.focal.access == access);
    let missing = |region: &Region| {
        let thin = |axis: &&Axis| {
            let on_graph = points.iter().map(|point| &point.workload);
            let on_graph = on_graph.filter(|work| axis.is_on_graph(work, &region.focal));
            let mut values: Vec<u64> = on_graph.map(|work| axis.value(work).to_bits()).collect();
            values.sort_unstable();
            values.dedup();
            values.len() < GRAPH_VALUES_MIN
        };
        let thin: Vec<&str> = AXES.iter().filter(thin).map(|axis| axis.name()).collect();
        (!thin.is_empty()).then(|| format!("{} of the {}", thin.join(", "), region.noun()))
    };
    let all: Vec<String> = regions.filter_map(missing).collect();
    (!all.is_empty()).then(|| format!("graphs over {}", all.join("; ")))
}

fn named(header: &Header, points: &[Point]) -> Option<String> {
    let is_missing =
        |work: &&ioscape_model::Workload| !points.iter().any(|point| point.workload == **work);
    let missing: Vec<String> =
        header.asked.iter().filter(is_missing).map(ioscape_model::Workload::literal).collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// Lines of the data sheet whose intervals rest on one visit.
fn repeats(header: &Header, points: &[Point]) -> Option<String> {
    let once: Vec<&str> = header
        .datasheet
        .iter()
        .filter(|line| visits(points, line) == 1)
        .map(|line| line.name.as_str())
        .collect();
    (!once.is_empty()).then(|| format!("second visits to {}", once.join(", ")))
}

/// Latency at rates, which comes when all graphs are there.
fn rates(header: &Header, points: &[Point]) -> Option<String> {
    let is_wanted = !header.is_quick && !is_short(header) && header.hosts.is_none();
    let has_line = header.datasheet.iter().any(|line| line.name == datasheet::RATE_LINE);
    let is_missing = !points.iter().any(|point| point.role == Role::OpenLoop);
    (is_wanted && has_line && is_missing)
        .then(|| format!("latency of {} at rates", datasheet::RATE_LINE))
}
