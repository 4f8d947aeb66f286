//! A graph in characters, with both axes logarithmic. Drawn here and not with a terminal plotting
//! library: those join points with dots of one shape that only colour tells apart, and have no
//! logarithmic axis with ticks at round values. Each curve has its letter here, so that the
//! picture survives a pipe, a printer and `NO_COLOR`.

use ioscape_model::units::show_rate;

use super::letter;
use super::paint::{Paint, Style};
use crate::chart::{BandKind, Chart, Ink, RuleKind};
use crate::figures;

const HEIGHT: usize = 15;
/// Room for the labels of the vertical axis.
const GUTTER: usize = 10;
/// Where several curves meet.
const MEETING: char = '*';

/// A cell of the picture.
#[derive(Clone, Copy, PartialEq)]
struct Cell {
    character: char,
    ink: Option<Ink>,
}

const EMPTY: Cell = Cell { character: ' ', ink: None };

/// Where a value falls among `cells` cells, on a logarithmic axis.
struct LogAxis {
    low: f64,
    high: f64,
    cells: usize,
}

impl LogAxis {
    fn over(values: impl Iterator<Item = f64>, cells: usize) -> Option<Self> {
        let usable = values.filter(|value| *value > 0.0 && value.is_finite());
        let (low, high) = usable
            .fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        // A level curve needs an axis too.
        let level = high < low * 2.0;
        let (low, high) = if level { (low / 1.5, high * 1.5) } else { (low, high) };
        (high > 0.0).then_some(Self { low, high, cells })
    }

    fn cell(&self, value: f64) -> Option<usize> {
        let place = (value / self.low).ln() / (self.high / self.low).ln();
        let inside = (-1e-9..=1.0 + 1e-9).contains(&place);
        inside.then(|| (place * (self.cells - 1) as f64).round() as usize)
    }

    /// The value in the middle of a cell.
    fn value(&self, cell: usize) -> f64 {
        self.low * (self.high / self.low).powf(cell as f64 / (self.cells - 1) as f64)
    }
}

/// Draws a chart.
pub(super) fn plot(chart: &Chart, width: usize, paint: Paint) -> Vec<String> {
    let marks = || chart.series.iter().flat_map(|series| &series.marks);
    let edges = chart.bands.iter().filter(|band| band.kind == BandKind::Region);
    let xs = marks().map(|mark| mark.x).chain(edges.flat_map(|band| [band.from, band.to]));
    let Some(x) = LogAxis::over(xs, width - GUTTER - 2) else { return Vec::new() };
    let Some(y) = LogAxis::over(marks().map(|mark| mark.y.mean), HEIGHT) else { return Vec::new() };
    let mut grid = vec![vec![EMPTY; x.cells]; y.cells];
    borders(&mut grid, chart, &x);
    curves(&mut grid, chart, &x, &y);

    let mut lines = key(chart, width, paint);
    lines.push(region_names(chart, &x));
    let labels = rate_labels(&y);
    for row in (0..y.cells).rev() {
        let label = labels.iter().find(|(at, _)| *at == row).map_or("", |(_, text)| text);
        let tick = if label.is_empty() { '│' } else { '┤' };
        lines.push(format!("{label:>GUTTER$} {tick}{}", painted(&grid[row], paint)));
    }
    lines.extend(size_axis(&x));
    lines
}

fn borders(grid: &mut [Vec<Cell>], chart: &Chart, x: &LogAxis) {
    for rule in &chart.rules {
        let character = match rule.kind {
            RuleKind::Capacity => '┊',
            RuleKind::Onset => '.',
            RuleKind::Focal | RuleKind::Level | RuleKind::Diagonal => continue,
        };
        let Some(column) = x.cell(rule.at) else { continue };
        for row in grid.iter_mut() {
            row[column] = Cell { character, ink: Some(rule.ink) };
        }
    }
}

fn curves(grid: &mut [Vec<Cell>], chart: &Chart, x: &LogAxis, y: &LogAxis) {
    for series in &chart.series {
        for pair in series.marks.windows(2) {
            let ends = [&pair[0], &pair[1]].map(|mark| (x.cell(mark.x), mark.y.mean));
            let [(Some(from), a), (Some(to), b)] = ends else { continue };
            let between = (from + 1..to).filter_map(|column| {
                let share = (column - from) as f64 / (to - from) as f64;
                Some((y.cell(a * (b / a).powf(share))?, column))
            });
            for (row, column) in between {
                if !grid[row][column].character.is_alphabetic() {
                    grid[row][column] = Cell { character: '·', ink: Some(series.ink) };
                }
            }
        }
    }
    // Measured points lie on top of all lines.
    for series in &chart.series {
        for mark in &series.marks {
            let (Some(column), Some(row)) = (x.cell(mark.x), y.cell(mark.y.mean)) else { continue };
            let own = letter(series.ink);
            let there = grid[row][column].character;
            let taken = there.is_alphabetic() && there != own;
            grid[row][column] = if taken || there == MEETING {
                Cell { character: MEETING, ink: None }
            } else {
                Cell { character: own, ink: Some(series.ink) }
            };
        }
    }
}

fn painted(row: &[Cell], paint: Paint) -> String {
    let end = row.iter().rposition(|cell| *cell != EMPTY).map_or(0, |last| last + 1);
    let runs = row[..end].chunk_by(|a, b| a.ink == b.ink);
    runs.map(|run| {
        let text: String = run.iter().map(|cell| cell.character).collect();
        run[0].ink.map_or(text.clone(), |ink| paint.styled(&text, Style::Curve(ink)))
    })
    .collect()
}

/// What the letters mean, on as many lines as it takes.
fn key(chart: &Chart, width: usize, paint: Paint) -> Vec<String> {
    let letters = chart.series.iter().map(|series| {
        (format!("{} {}", letter(series.ink), series.name), Style::Curve(series.ink))
    });
    let mut entries: Vec<(String, Style)> = letters.collect();
    if chart.series.len() > 1 {
        entries.push((format!("{MEETING} several"), Style::Plain));
    }
    if chart.rules.iter().any(|rule| rule.kind == RuleKind::Capacity) {
        entries.push((". begins to fall".to_owned(), Style::Plain));
        entries.push(("┊ cache ends".to_owned(), Style::Plain));
    }
    let indent = " ".repeat(GUTTER + 2);
    let mut lines = Vec::new();
    let mut used = width;
    for (text, style) in entries {
        let length = text.chars().count() + 3;
        if used + length > width {
            lines.push(indent.clone());
            used = indent.len();
        }
        used += length;
        let line = lines.last_mut().expect("a line was just begun");
        line.push_str(&paint.styled(&text, style));
        line.push_str("   ");
    }
    lines
}

/// Each region's name in the middle of its stretch, where it fits.
fn region_names(chart: &Chart, x: &LogAxis) -> String {
    let mut row: Vec<char> = vec![' '; x.cells];
    for band in chart.bands.iter().filter(|band| band.kind == BandKind::Region) {
        let (Some(from), Some(to)) = (x.cell(band.from), x.cell(band.to)) else { continue };
        let name: Vec<char> = band.name.chars().filter(|c| !c.is_control()).collect();
        if to < from || name.len() + 2 > to - from {
            continue;
        }
        let start = from + (to - from - name.len()) / 2 + 1;
        let end = (start + name.len()).min(row.len());
        row[start..end].copy_from_slice(&name[..end - start]);
    }
    format!("{:GUTTER$}  {}", "", row.iter().collect::<String>())
}

/// Rows and labels at 1, 2 and 5 of each decade, thinned until no two are neighbours.
fn rate_labels(y: &LogAxis) -> Vec<(usize, String)> {
    let steps: &[&[f64]] = &[&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let first = y.low.log10().floor() as i32;
    let last = y.high.log10().ceil() as i32;
    let at = |digits: &[f64]| -> Vec<(usize, String)> {
        let values = (first..=last)
            .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
        values.filter_map(|v| Some((y.cell(v)?, whole(&show_rate(v))))).collect()
    };
    let roomy = |labels: &Vec<(usize, String)>| labels.windows(2).all(|w| w[1].0 >= w[0].0 + 2);
    let fitting = steps.iter().map(|digits| at(digits)).find(roomy);
    fitting.filter(|labels| !labels.is_empty()).unwrap_or_else(|| {
        // Less than a factor of two and no round value inside: name both ends.
        [0, y.cells - 1].map(|cell| (cell, show_rate(y.value(cell)))).to_vec()
    })
}

/// `1 GB/s` for `1.00 GB/s`.
fn whole(figure: &str) -> String {
    match figure.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => figure.to_owned(),
    }
}

/// The line under the picture, and powers of two below it as far as there is room.
fn size_axis(x: &LogAxis) -> [String; 2] {
    let mut line: Vec<char> = vec!['─'; x.cells];
    let mut labels = vec![' '; GUTTER + 2 + x.cells];
    let mut free_from = GUTTER;
    for power in 0..63 {
        let Some(column) = x.cell(2f64.powi(power)) else { continue };
        let text: Vec<char> = figures::size(2f64.powi(power)).chars().collect();
        let start = (GUTTER + 2 + column).saturating_sub(text.len() / 2);
        if start < free_from || start + text.len() > labels.len() {
            continue;
        }
        labels[start..start + text.len()].copy_from_slice(&text);
        line[column] = '┬';
        free_from = start + text.len() + 2;
    }
    [
        format!("{:GUTTER$} └{}", "", line.iter().collect::<String>()),
        labels.iter().collect::<String>(),
    ]
}
