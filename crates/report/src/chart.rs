//! A graph as data. The page's script draws it (`assets/report.js` reads exactly these fields),
//! [`Chart::table`] lists it for whoever cannot see it, and `text::plot` draws it in characters.

use ioscape_model::units::{show_rate, show_seconds};
use ioscape_model::{Interval, ModelName};
use serde::{Serialize, Serializer};

use crate::figures;

/// A graph.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    /// Names it within the page.
    pub(crate) id: String,
    /// What it shows, in a few words.
    #[serde(skip)]
    pub(crate) title: String,
    /// What it shows, in sentences.
    #[serde(skip)]
    pub(crate) caption: String,
    /// Horizontal axis.
    pub(crate) x: Axis,
    /// Vertical axis.
    pub(crate) y: Axis,
    /// What is plotted.
    pub(crate) series: Vec<Series>,
    /// Shaded stretches of the horizontal axis.
    pub(crate) bands: Vec<Band>,
    /// Lines across.
    pub(crate) rules: Vec<Rule>,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Axis {
    /// What is along it.
    pub(crate) label: String,
    /// How it is divided.
    pub(crate) scale: Scale,
    /// How its figures are written.
    pub(crate) unit: Unit,
    /// Where it has to end at least, so that graphs can be compared with each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reach: Option<f64>,
    /// Where a logarithmic axis has to begin at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) foot: Option<f64>,
    /// What stands at 1, 2, … in place of figures; empty where figures do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<String>,
}

impl Axis {
    /// An axis of figures, as long as what is plotted.
    pub(crate) fn new(label: &str, scale: Scale, unit: Unit) -> Self {
        Self { label: label.to_owned(), scale, unit, reach: None, foot: None, names: vec![] }
    }

    /// An axis of names.
    pub(crate) fn of_names(label: &str, names: Vec<String>) -> Self {
        Self { names, ..Self::new(label, Scale::Linear, Unit::Count) }
    }

    fn show(&self, value: f64) -> String {
        let place = (value.round() as usize).checked_sub(1);
        let name = place.and_then(|place| self.names.get(place));
        name.map_or_else(|| self.unit.show(value), Clone::clone)
    }
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scale {
    /// Evenly, from zero where nothing is below it.
    Linear,
    /// By powers of two.
    Log2,
    /// By powers of ten.
    Log10,
}

impl Scale {
    /// Position of a value along the axis, up to an offset and a factor.
    pub(crate) fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log2 => value.log2(),
            Self::Log10 => value.log10(),
        }
    }

    /// The value at a position.
    pub(crate) fn value(self, position: f64) -> f64 {
        match self {
            Self::Linear => position,
            Self::Log2 => position.exp2(),
            Self::Log10 => 10f64.powf(position),
        }
    }
}

/// How figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Sizes in binary units.
    Bytes,
    /// Bytes per second.
    Rate,
    /// Plain fractions of one.
    Fraction,
    /// Differences from one, in percent with a sign.
    Deviation,
    /// Shares and errors, in percent.
    Percent,
    /// Things counted.
    Count,
    /// Durations.
    Seconds,
    /// MB/s per MiB.
    Slope,
    /// One figure over another.
    Ratio,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Bytes => figures::size(value),
            Self::Rate => show_rate(value),
            Self::Fraction => format!("{value}"),
            Self::Deviation => format!("{:+.1} %", value * 100.0),
            Self::Percent => figures::percent(value),
            Self::Count => format!("{value:.0}"),
            Self::Seconds => show_seconds(value),
            Self::Slope => format!("{value:+.2} MB/s per MiB"),
            Self::Ratio => figures::ratio(&Interval::exact(value)),
        }
    }

    fn show_mark(self, mark: &Mark) -> String {
        match self {
            Self::Rate => figures::rate(&mark.y),
            Self::Ratio => figures::ratio(&mark.y),
            Self::Seconds => figures::seconds(&mark.y),
            _ => self.show(mark.y.mean),
        }
    }
}

/// A row of marks that belong together.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    /// What it is called in the key.
    pub(crate) name: String,
    /// Its colour and shape.
    pub(crate) ink: Ink,
    /// How the marks are drawn.
    pub(crate) drawn: Drawn,
    /// The marks, from left to right.
    pub(crate) marks: Vec<Mark>,
}

/// How marks are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Drawn {
    /// Each by itself.
    Dots,
    /// Each, and a line through them.
    Joined,
    /// Each, a line through them, and the intervals as a band along it.
    Ribbon,
    /// The line alone: what was computed, not measured.
    Line,
    /// A line with the band of its intervals: what was computed, many points a graph.
    Curve,
    /// A dashed line with the band of its intervals: where nothing was measured.
    Dashed,
}

impl Drawn {
    /// Its name, which is a class of the style sheet.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dots => "dots",
            Self::Joined => "joined",
            Self::Ribbon => "ribbon",
            Self::Line => "line",
            Self::Curve => "curve",
            Self::Dashed => "dashed",
        }
    }
}

/// A colour and a shape, by what they stand for. The page and the terminal choose the shades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ink {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes.
    Mixed,
    /// Points that model what lies between.
    Fill,
    /// Canaries.
    Canary,
    /// Everything else.
    Plain,
    /// What a model predicts.
    #[serde(untagged)]
    Model(ModelName),
}

impl Ink {
    /// Its name, which is a class of the style sheet.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mixed => "mixed",
            Self::Fill => "fill",
            Self::Canary => "canary",
            Self::Plain => "plain",
            Self::Model(model) => model.as_str(),
        }
    }
}

/// One measured figure.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// Where.
    pub(crate) x: f64,
    /// How much; an interval without width is not drawn.
    pub(crate) y: Interval,
    /// What else there is to say.
    pub(crate) note: String,
}

impl Serialize for Mark {
    /// `[x, mean, low, high, note]`, with four digits: more than anybody sees, half the size. An
    /// interval without width is left out.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Interval { mean, low, high } = self.y;
        let ends = (high > low).then_some([low, high]);
        let end = |which: usize| ends.map_or(Short::Unknown, |ends| Short::new(ends[which]));
        (Short::new(self.x), Short::new(mean), end(0), end(1), &self.note).serialize(serializer)
    }
}

/// A figure for the page's script, in as few characters as it takes.
#[derive(Serialize)]
#[serde(untagged)]
enum Short {
    /// Null: it is no number.
    Unknown,
    Whole(i64),
    Broken(f64),
}

impl Short {
    fn new(value: f64) -> Self {
        match format!("{value:.3e}").parse::<f64>() {
            Ok(short) if !short.is_finite() => Self::Unknown,
            Ok(short) if short.fract() == 0.0 && short.abs() < 1e15 => Self::Whole(short as i64),
            Ok(short) => Self::Broken(short),
            Err(_) => Self::Unknown,
        }
    }
}

/// A shaded stretch.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Band {
    /// From here.
    pub(crate) from: f64,
    /// To here.
    pub(crate) to: f64,
    /// What it is called; may be empty.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: BandKind,
}

/// What a band is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BandKind {
    /// A region.
    Region,
    /// Where 75 % of the maximum is reached.
    Good,
    /// The interval of a border's capacity.
    Doubt,
}

/// A line across the graph.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rule {
    /// Where.
    pub(crate) at: f64,
    /// What it is called; may be empty.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: RuleKind,
    /// Its colour.
    pub(crate) ink: Ink,
}

/// What a line is. All stand upright but `Level` and `Diagonal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleKind {
    /// Where a border starts to hurt.
    Onset,
    /// The size of the cache behind a border.
    Capacity,
    /// The focal point.
    Focal,
    /// A height.
    Level,
    /// Where both axes say the same, whatever it is at; they reach equally far then.
    Diagonal,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Names of the columns.
    pub(crate) head: Vec<String>,
    /// Cells, row by row.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Chart {
    /// Every mark in words. Curves are left out beside measured figures, which say in their notes
    /// how high the curve is there.
    pub(crate) fn table(&self) -> Table {
        let is_measured = |series: &&Series| !matches!(series.drawn, Drawn::Curve | Drawn::Dashed);
        let any_measured = self.series.iter().any(|series| is_measured(&series));
        let listed = || self.series.iter().filter(move |s| !any_measured || is_measured(s));
        let named = listed().count() > 1;
        let noted = listed().flat_map(|s| &s.marks).any(|mark| !mark.note.is_empty());
        let mut head = vec![self.x.label.clone(), self.y.label.clone()];
        if named {
            head.insert(0, "curve".to_owned());
        }
        if noted {
            head.push("more".to_owned());
        }
        let mut rows = Vec::new();
        for series in listed() {
            for mark in &series.marks {
                let mut row = vec![self.x.show(mark.x), self.y.unit.show_mark(mark)];
                if named {
                    row.insert(0, series.name.clone());
                }
                if noted {
                    row.push(mark.note.clone());
                }
                rows.push(row);
            }
        }
        Table { head, rows }
    }

    /// Whether there is anything to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.marks.is_empty())
    }
}

/// The axis that most graphs share.
pub(crate) fn throughput_axis(scale: Scale) -> Axis {
    Axis::new("throughput", scale, Unit::Rate)
}

/// The axis of the landscape.
pub(crate) fn unique_bytes_axis() -> Axis {
    Axis::new("data touched (working set)", Scale::Log2, Unit::Bytes)
}

/// `8 MiB to 190 MiB`.
pub(crate) fn stretch(from_bytes: f64, to_bytes: f64) -> String {
    format!("{} to {}", figures::size(from_bytes), figures::size(to_bytes))
}
