//! What a run will cost before it begins: points, time and bytes written, for the method chosen
//! and for the plans it is an answer to (Chen and Patterson 1994, section 6: why nobody measures
//! the full grid). Arithmetic on settings; nothing is measured here.

use ioscape_model::units::show_rate;
use ioscape_model::{Header, Method, Range, Ranges, Rules};
use serde::Serialize;

use crate::plan::PaperPlan;
use crate::plan::paper::planned_points;

/// Regions that a plan is expected to meet: a cache and what is behind it.
const REGIONS: u64 = 2;
/// Times that the global 75 % point's five graphs are usually taken: three rounds of the search,
/// and once more around the vector found.
const GLOBAL75_ROUNDS: u64 = 4;
/// Three values of four parameters and two of the fifth (section 9, footnote 7).
const ORTHOGONAL_POINTS: u64 = 3 * 3 * 3 * 3 * 2;
/// Six values of five parameters (section 6).
const FULL_GRID_POINTS: u64 = 6 * 6 * 6 * 6 * 6;
/// Points that the default plan spends on a border of one curve, and the curves it follows.
const BORDER_POINTS: u64 = 11 * 2;
/// Points of the default plan's family of one region, `process_num` apart.
const BLEND_FAMILY_POINTS: u64 = 15;
/// Where laying out was not tried: a disk of its own, not a fast one.
pub(crate) const LAYOUT_BYTES_PER_S: f64 = 100e6;
/// Half of the requests write, on average over any of the plans.
const WRITE_SHARE: f64 = 0.5;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostQuestion {
    /// The method chosen.
    pub method: Method,
    /// Where the map extends.
    pub ranges: Ranges,
    /// How a visit is measured.
    pub rules: Rules,
    /// The budget, seconds.
    pub budget_s: f64,
    /// The most that may be written.
    pub written_max_bytes: Option<u64>,
    /// How fast test files are laid out, where that was tried.
    pub layout_bytes_per_s: Option<f64>,
    /// What the data sheet and the device layer lie over, bytes.
    pub span_bytes: u64,
    /// Where the data sheet is all that was asked for: the share of its lines that write.
    pub sheet_write_share: Option<f64>,
    /// Whether nothing is to be written: files are there already.
    pub is_read_only: bool,
}

impl From<&Header> for CostQuestion {
    fn from(header: &Header) -> Self {
        Self {
            method: header.method,
            ranges: header.ranges,
            rules: header.rules,
            budget_s: header.budget_s,
            written_max_bytes: header.limits.written_max_bytes,
            layout_bytes_per_s: header.hints.layout_bytes_per_s,
            span_bytes: span_bytes(header),
            sheet_write_share: header.is_quick.then(|| sheet_write_share(header)),
            is_read_only: header.is_read_only,
        }
    }
}

fn span_bytes(header: &Header) -> u64 {
    header.datasheet.iter().map(|line| line.workload.unique_bytes).max().unwrap_or(0)
}

fn sheet_write_share(header: &Header) -> f64 {
    let writing = header.datasheet.iter().filter(|line| line.workload.read_frac < 1.0);
    writing.count() as f64 / header.datasheet.len().max(1) as f64
}

/// What one plan costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForecastRow {
    /// `blend`, `paper`, `global75`, `orthogonal`, `full grid`.
    pub plan: &'static str,
    /// Visits.
    pub points: u64,
    /// Seconds, laying out included.
    pub elapsed_s: f64,
    /// Bytes that reach the storage, laying out included.
    pub written_bytes: u64,
    /// Where the number of points comes from, and what was assumed.
    pub note: String,
}

/// The chosen method first, cut to its budget; then the other plans in full, for comparison.
pub fn forecast(question: &CostQuestion) -> Vec<ForecastRow> {
    let costs = Costs::from_question(question);
    let process_values = PaperPlan::new(question.ranges).process_values();
    let blend = costs.within_budget("blend", u64::MAX, blend_note());
    let paper = planned_points(REGIONS, process_values);
    let paper_note = format!("for {REGIONS} regions, {process_values} values of process_num each");
    let global75 = GLOBAL75_ROUNDS * planned_points(1, process_values);
    let global75_note = format!("all five graphs in {GLOBAL75_ROUNDS} rounds, or in up to 11");
    let orthogonal_note = "3 values of four parameters, 2 of process_num".to_owned();
    let full_grid_note = "6 values of each of the five parameters".to_owned();

    let chosen = match question.method {
        Method::Paper => Some(costs.within_budget("paper", paper, paper_note.clone())),
        Method::Global75 => Some(costs.within_budget("global75", global75, global75_note.clone())),
        Method::Orthogonal => {
            Some(costs.within_budget("orthogonal", ORTHOGONAL_POINTS, orthogonal_note.clone()))
        }
        Method::Blend => Some(blend.clone()),
        Method::Measure
        | Method::Validate
        | Method::Suite
        | Method::Compare
        | Method::Vector
        | Method::Replay => None,
    };
    let others = [
        blend,
        costs.row("paper", paper, paper_note),
        costs.row("global75", global75, global75_note),
        costs.row("orthogonal", ORTHOGONAL_POINTS, orthogonal_note),
        costs.row("full grid", FULL_GRID_POINTS, full_grid_note),
    ];
    let chosen_plan = chosen.as_ref().map(|row| row.plan);
    // Other plans write, which they must not where files are only read.
    let is_shown = |row: &ForecastRow| !question.is_read_only && Some(row.plan) != chosen_plan;
    let others = others.into_iter().filter(is_shown);
    chosen.into_iter().chain(others).collect()
}

fn blend_note() -> String {
    format!(
        "as many as the budget allows: about {BORDER_POINTS} for the borders, at least \
         {BLEND_FAMILY_POINTS} for each region, then all of these again, and random combinations \
         of parameters"
    )
}

/// What laying out and a visit cost.
#[derive(Clone, Copy, Debug)]
struct Costs {
    budget_s: f64,
    written_max_bytes: Option<u64>,
    layout_bytes: f64,
    layout_s: f64,
    visit_s: f64,
    visit_written_bytes: f64,
    /// What was assumed for want of a measurement, bytes per second.
    assumed_bytes_per_s: Option<f64>,
}

impl Costs {
    fn from_question(question: &CostQuestion) -> Self {
        let CostQuestion { ranges, rules, .. } = question;
        let measured = question.layout_bytes_per_s.filter(|rate| *rate > 0.0);
        let bytes_per_s = measured.unwrap_or(LAYOUT_BYTES_PER_S);
        // The files of several processes come on top of the one file of a single process.
        let files = if ranges.process_num.max > 1 { 2.0 } else { 1.0 };
        let is_mapped = question.sheet_write_share.is_none();
        let mapped_bytes = if is_mapped { ranges.unique_bytes.max } else { 0 };
        let first_bytes = mapped_bytes.max(question.span_bytes);
        let layout_bytes = first_bytes as f64 + (files - 1.0) * mapped_bytes as f64;
        let running_s = visit_s(rules);
        if question.is_read_only {
            return Self {
                budget_s: question.budget_s,
                written_max_bytes: None,
                layout_bytes: 0.0,
                layout_s: 0.0,
                visit_s: running_s,
                visit_written_bytes: 0.0,
                assumed_bytes_per_s: None,
            };
        }
        // Before each visit what it touches is read in, at the speed it was written with.
        let warm_up_s = mean_of_log_uniform(ranges.unique_bytes) / bytes_per_s;
        // Writes go on at the speed of the storage, whatever a cache absorbs in between.
        let write_share = question.sheet_write_share.unwrap_or(WRITE_SHARE);
        let visit_written_bytes = write_share * running_s * bytes_per_s;
        Self {
            budget_s: question.budget_s,
            written_max_bytes: question.written_max_bytes,
            layout_bytes,
            layout_s: layout_bytes / bytes_per_s,
            visit_s: running_s + warm_up_s,
            visit_written_bytes,
            assumed_bytes_per_s: measured.is_none().then_some(bytes_per_s),
        }
    }

    fn row(&self, plan: &'static str, points: u64, note: String) -> ForecastRow {
        let elapsed_s = self.layout_s + points as f64 * self.visit_s;
        let written = self.layout_bytes + points as f64 * self.visit_written_bytes;
        let note = match self.assumed_bytes_per_s {
            Some(rate) => format!("{note}; assuming a storage of {}", show_rate(rate)),
            None => note,
        };
        ForecastRow { plan, points, elapsed_s, written_bytes: written as u64, note }
    }

    /// As many of the points as the budget allows; one, however short it is.
    fn within_budget(&self, plan: &'static str, points: u64, note: String) -> ForecastRow {
        let affordable = ((self.budget_s - self.layout_s) / self.visit_s).max(1.0) as u64;
        let note = match points {
            u64::MAX => note,
            _ if points <= affordable => note,
            _ => format!("{note}, {points} in all: the budget is too short for them"),
        };
        let mut row = self.row(plan, points.min(affordable), note);
        if let Some(most) = self.written_max_bytes.filter(|most| *most < row.written_bytes) {
            // Caches take more of the writes than is known beforehand: how many visits it allows is not.
            row.written_bytes = most;
            row.note += "; --max-written may end it sooner";
        }
        row
    }
}

/// How long the workload of a visit runs, seconds: as short as the rules allow or as long, and mostly
/// between.
pub(crate) fn visit_s(rules: &Rules) -> f64 {
    let shortest_s = rules.ramp_s + f64::from(rules.windows_min) * rules.window_s;
    let longest_s = rules.ramp_max_s + rules.measure_max_s;
    (shortest_s * longest_s).sqrt()
}

/// `(b − a) / ln(b/a)`: the mean of a quantity whose logarithm is uniform from `a` to `b`.
fn mean_of_log_uniform(range: Range) -> f64 {
    let (min, max) = (range.min.max(1) as f64, range.max.max(1) as f64);
    if max > min { (max - min) / (max / min).ln() } else { max }
}

#[cfg(test)]
mod tests {
    use ioscape_model::units::{GIB, MIB};

    use super::*;

    fn question(method: Method) -> CostQuestion {
        CostQuestion {
            method,
            ranges: Ranges::usual(2),
            rules: Rules::brief(),
            budget_s: 600.0,
            written_max_bytes: None,
            layout_bytes_per_s: Some(1e9),
            span_bytes: 0,
            sheet_write_share: None,
            is_read_only: false,
        }
    }

    fn row(question: &CostQuestion, plan: &str) -> ForecastRow {
        forecast(question).into_iter().find(|row| row.plan == plan).unwrap()
    }

    #[test]
    fn no_more_is_forecast_than_may_be_written() {
        let limited = CostQuestion { written_max_bytes: Some(GIB), ..question(Method::Blend) };
        let (free, held) = (row(&question(Method::Blend), "blend"), row(&limited, "blend"));
        assert!(free.written_bytes > GIB);
        assert_eq!((held.written_bytes, held.points), (GIB, free.points));
        assert!(held.note.ends_with("--max-written may end it sooner"), "{}", held.note);
        assert_eq!(row(&limited, "paper"), row(&question(Method::Blend), "paper"));
    }

    #[test]
    fn a_data_sheet_alone_writes_its_files_and_what_its_lines_do() {
        let written = |sheet_write_share| {
            let sheet =
                CostQuestion { sheet_write_share, span_bytes: GIB, ..question(Method::Blend) };
            row(&sheet, "blend").written_bytes
        };
        assert_eq!(written(Some(0.0)), GIB, "a memory filesystem has a cached line");
        assert!(GIB < written(Some(0.1)) && written(Some(0.1)) < written(Some(0.2)));
        assert!(written(Some(0.2)) < written(None), "half of a map's visits write");
    }

    #[test]
    fn the_published_numbers_of_points_come_out() {
        let mut asked = question(Method::Blend);
        asked.ranges.process_num = Range { min: 1, max: 2 };
        for (plan, points) in [("paper", 84), ("orthogonal", 162), ("full grid", 7776)] {
            assert_eq!(row(&asked, plan).points, points, "{plan}");
        }
    }

    #[test]
    fn the_chosen_method_comes_first_and_each_plan_once() {
        for (method, first) in [
            (Method::Blend, "blend"),
            (Method::Paper, "paper"),
            (Method::Global75, "global75"),
            (Method::Orthogonal, "orthogonal"),
        ] {
            let mut plans: Vec<_> =
                forecast(&question(method)).iter().map(|row| row.plan).collect();
            assert_eq!(plans[0], first);
            plans.sort_unstable();
            assert_eq!(plans, ["blend", "full grid", "global75", "orthogonal", "paper"]);
        }
    }

    #[test]
    fn a_chosen_plan_keeps_its_budget_and_says_what_that_cuts() {
        let chosen = |method, budget_s| {
            let row = forecast(&CostQuestion { budget_s, ..question(method) }).remove(0);
            assert!(row.elapsed_s <= budget_s && row.points >= 1, "{row:?}");
            row
        };
        let in_full = row(&question(Method::Blend), "paper");
        for (budget_s, cut) in [(30.0, true), (120.0, true), (3600.0, false)] {
            let row = chosen(Method::Paper, budget_s);
            assert_eq!(row.points < in_full.points, cut, "{row:?}");
            assert_eq!(row.note.contains("too short"), cut, "{row:?}");
            chosen(Method::Global75, budget_s);
            assert!(
                chosen(Method::Blend, budget_s).elapsed_s > budget_s - 5.0,
                "it fills its budget"
            );
        }
    }

    #[test]
    fn time_and_bytes_grow_with_the_points_and_the_files() {
        let plans = forecast(&question(Method::Blend));
        for pair in ["paper", "orthogonal", "full grid"].windows(2) {
            let of = |plan: &str| plans.iter().find(|row| row.plan == plan).unwrap();
            let (fewer, more) = (of(pair[0]), of(pair[1]));
            assert!(fewer.points < more.points && fewer.elapsed_s < more.elapsed_s);
            assert!(fewer.written_bytes < more.written_bytes);
        }
        let mut larger = question(Method::Blend);
        larger.ranges.unique_bytes.max = 16 * GIB;
        let added = row(&larger, "paper").written_bytes
            - row(&question(Method::Blend), "paper").written_bytes;
        assert_eq!(added, 2 * 15 * GIB, "two sets of files, laid out once");
    }

    #[test]
    fn a_slow_storage_takes_longer_and_an_unknown_one_is_called_so() {
        let slow = CostQuestion { layout_bytes_per_s: Some(1e8), ..question(Method::Paper) };
        let unknown = CostQuestion { layout_bytes_per_s: None, ..question(Method::Paper) };
        assert!(
            row(&slow, "full grid").elapsed_s
                > row(&question(Method::Paper), "full grid").elapsed_s
        );
        assert_eq!(row(&unknown, "paper").written_bytes, row(&slow, "paper").written_bytes);
        assert!(row(&unknown, "full grid").note.contains("assuming a storage of 100 MB/s"));
        assert!(!row(&slow, "full grid").note.contains("assuming"));
    }

    #[test]
    fn the_mean_amount_of_data_lies_between_the_ends() {
        let mean = mean_of_log_uniform(Range { min: 8 * MIB, max: GIB });
        assert!((mean / MIB as f64 - 209.4).abs() < 0.1, "{mean}");
        let one_value = mean_of_log_uniform(Range { min: MIB, max: MIB });
        assert!((one_value - MIB as f64).abs() < 1e-9, "{one_value}");
    }
}
