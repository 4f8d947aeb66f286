//! A whole run: the header and its forecast, the plan, the visits, the revisions of the map and the
//! end, for whoever brings a target and takes the lines of the record.
//!
//! ```
//! use std::sync::Arc;
//!
//! use ioscape_engine::SimSpec;
//! use ioscape_experiment::{Bench, Exploration, Settings, Watch};
//! use ioscape_model::{Line, Origin, Region};
//!
//! let origin = Origin { run_id: "example".to_owned(), seed: 7, ..Origin::default() };
//! let bench = Bench::simulated("sim:hdd", SimSpec::preset("hdd")?, origin.seed);
//! let settings = Settings { budget_s: 120.0, ..Settings::default() };
//! let mut lines: Vec<Line> = Vec::new();
//! let outcome = Exploration::new(bench, origin, settings)?.run(Watch {
//!     interrupt: &Arc::default(),
//!     journal: &mut |line| Ok(lines.push(line.clone())),
//!     on_event: &mut |_| {},
//! })?;
//! let predictor = outcome.models.expect("two minutes are enough for a model");
//! assert!(predictor.is_in_range(&ioscape_model::Workload::default()));
//! assert!(matches!(lines[..], [Line::Header(_), .., Line::End(_)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ioscape_engine::{Clock, Error, RunId, target};
use ioscape_model::units::show_bytes;
use ioscape_model::{
    Access, Header, Hints, Hosts, Limits, Line, Method, Origin, Point, Range, Ranges, Record,
    TargetKind, Workload,
};
use ioscape_model::{Forecast, line::Resumed};

use crate::bench::Bench;
use crate::explore::{self, Earlier, Event, Journal, JournalError, MeasureVector, Outcome};
use crate::forecast::{self, CostQuestion, ForecastRow};
use crate::plan::extent::{self, files_bytes};
use crate::plan::{self, BlendPlan, BlendSettings, Plan};
use crate::validate::{self, Space, ValidationPlan};
use crate::vector;

mod layers;

/// Shorter maps have no time for a system vector, seconds.
const VECTOR_BUDGET_MIN_S: f64 = 180.0;
/// A map of less data is none, bytes.
const UNIQUE_BYTES_LEAST: u64 = 4 << 20;

/// What a map is to be made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How the points are chosen.
    pub method: Method,
    /// One layer only: requests through the page cache, or past it. Both where nothing is said.
    pub access: Option<Access>,
    /// Only the data sheet.
    pub is_quick: bool,
    /// How long the run may take, seconds.
    pub budget_s: f64,
    /// The relative half-width of the typical prediction's interval at which the run may end early.
    pub precision: Option<f64>,
    /// Most bytes that reach storage, layout included.
    pub written_max_bytes: Option<u64>,
    /// Most data that a workload may touch, bytes.
    pub unique_max_bytes: Option<u64>,
    /// What the device layer lies over, bytes; what time and room allow where nothing is said.
    pub span_bytes: Option<u64>,
    /// Ranges of parameters in place of the usual ones.
    pub ranges: AskedRanges,
    /// How long to write before the map, to see whether writes stay as fast, seconds.
    pub sustain_s: Option<f64>,
    /// How often to write all data of the map over before it.
    pub precondition_times: Option<u32>,
}

/// Ranges of parameters that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedRanges {
    /// Data touched, bytes, in the layer of `Header::ranges` (buffered unless `access` says otherwise).
    pub unique_bytes: Option<Range>,
    /// Mean request size, bytes.
    pub size_mean: Option<Range>,
    /// Workers.
    pub process_num: Option<Range>,
    /// Requests in flight per process.
    pub depth: Option<Range>,
}

impl AskedRanges {
    /// The ranges, with the ones that were asked for in their places.
    fn over(&self, ranges: Ranges) -> Ranges {
        Ranges {
            unique_bytes: self.unique_bytes.unwrap_or(ranges.unique_bytes),
            size_mean: self.size_mean.unwrap_or(ranges.size_mean),
            process_num: self.process_num.unwrap_or(ranges.process_num),
            depth: self.depth.unwrap_or(ranges.depth),
            ..ranges
        }
    }
}

impl Default for Settings {
    /// Ten minutes of the default plan over both layers, and no limits.
    fn default() -> Self {
        Self {
            method: Method::Blend,
            access: None,
            is_quick: false,
            budget_s: 600.0,
            precision: None,
            written_max_bytes: None,
            unique_max_bytes: None,
            span_bytes: None,
            ranges: AskedRanges::default(),
            sustain_s: None,
            precondition_times: None,
        }
    }
}

/// Why a map cannot visit a workload.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotVisited {
    /// The plan visits its own points.
    #[error("only --method blend can measure workloads given by -w")]
    Method,
    /// No map varies this key.
    #[error("a map visits no other {0} than the default; measure it with `ioscape measure`")]
    Key(&'static str),
    /// It uses direct I/O and the map does not, or the other way round.
    #[error("this map does not measure that access; make a map with the other --access for it")]
    Access,
    /// It touches more data than the map does.
    #[error(
        "{} of data are more than this map reaches with {process_num} processes; give it more \
         free space, budget or --max-written, or measure it with `ioscape measure`",
        show_bytes(*unique_bytes as f64)
    )]
    Reach {
        /// Data touched, bytes.
        unique_bytes: u64,
        /// Processes.
        process_num: u32,
    },
}

/// Who watches a run, keeps its record, and may end it.
pub struct Watch<'a> {
    /// Raised to end the run: what was measured is kept.
    pub interrupt: &'a Arc<AtomicBool>,
    /// Takes each line of the record, in order.
    pub journal: &'a mut Journal<'a>,
    /// Is told what happens.
    pub on_event: &'a mut dyn FnMut(Event<'_>),
}

/// A run that is about to begin, or to go on.
pub struct Exploration {
    bench: Bench,
    header: Header,
    plan: Option<Box<dyn Plan>>,
    budget_s: f64,
    earlier: Earlier,
    resumed: Option<Resumed>,
    /// Whether the system vector is to be measured.
    has_vector: bool,
}

impl Exploration {
    /// A new map. Its ranges follow from what is known about the target, the limits and the budget.
    ///
    /// # Errors
    /// When the target is only read and more than its data sheet is asked for, or has no room for a map.
    pub fn new(bench: Bench, origin: Origin, settings: Settings) -> Result<Self, Error> {
        if !settings.is_quick {
            bench.refuse_read_only()?;
        }
        let mut bench = bench;
        let header = header(&mut bench, origin, settings)?;
        let most_bytes = header.ranges.unique_bytes.max;
        if most_bytes < UNIQUE_BYTES_LEAST {
            return Err(Error::Refused(format!(
                "{}: only {} of test data fit (half of the free space, a quarter of \
                 --max-written, and --unique-max bound it); {} are needed",
                header.target.path,
                show_bytes(most_bytes as f64),
                show_bytes(UNIQUE_BYTES_LEAST as f64)
            )));
        }
        Ok(Self::from_header(bench, header, None))
    }

    /// A run that ended early, from its record; `now` says when and by which command it goes on. The
    /// bench should draw its chance from [`resumed_seed`].
    ///
    /// # Errors
    /// When the target is only read, and the run wrote.
    pub fn resume(
        bench: Bench,
        record: &Record,
        now: Origin,
        budget_s: f64,
    ) -> Result<Self, Error> {
        if !record.header.is_read_only {
            bench.refuse_read_only()?;
        }
        let earlier = Earlier::recorded(record);
        let resumed = Resumed {
            time: now.start_time,
            elapsed_before_s: earlier.elapsed_s,
            budget_s: Some(budget_s),
            command_line: now.command_line,
        };
        let header = record.header.clone();
        let has_vector = wants_vector(&header) && record.elements.is_empty();
        let resumed = Some(resumed);
        Ok(Self { bench, header, plan: None, budget_s, earlier, resumed, has_vector })
    }

    /// Visits to workloads that were drawn from the map of a record, each twice.
    pub fn validation(
        bench: Bench,
        origin: Origin,
        record: &Record,
        (space, works): (&Space, &[Workload]),
    ) -> Self {
        let writes_max_bytes = record.header.limits.writes_max_bytes;
        let plan = ValidationPlan::new(works, origin.seed);
        let header = Header {
            ranges: space.ranges(),
            limits: Limits { writes_max_bytes, ..Limits::default() },
            hints: bench.rig.hints(),
            forecast: Some(validate::forecast(record, works)),
            hosts: bench.hosts.clone(),
            ..Header::new(origin, Method::Validate, bench.host.clone(), bench.target.clone())
        };
        // Half of a validation is none: it ends when all is measured, or is interrupted.
        Self { budget_s: f64::INFINITY, ..Self::from_header(bench, header, Some(Box::new(plan))) }
    }

    fn from_header(bench: Bench, header: Header, plan: Option<Box<dyn Plan>>) -> Self {
        let earlier = Earlier { warnings: bench.warnings.clone(), ..Earlier::default() };
        let (budget_s, has_vector) = (header.budget_s, wants_vector(&header));
        Self { budget_s, bench, header, plan, earlier, resumed: None, has_vector }
    }

    /// The first line of the record.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Seconds of the budget that earlier parts of the run used.
    pub fn elapsed_before_s(&self) -> f64 {
        self.earlier.elapsed_s
    }

    /// What the run will cost, and for comparison what others of the same ranges would.
    pub fn forecast(&self) -> Vec<ForecastRow> {
        forecast::forecast(&CostQuestion::from(&self.header))
    }

    /// Has the map visit a workload besides its own.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn visit_also(&mut self, work: Workload) -> Result<(), NotVisited> {
        let ranges = &self.header.ranges;
        if self.header.method != Method::Blend {
            return Err(NotVisited::Method);
        }
        if let Some(key) = work.unpredicted_keys().next() {
            return Err(NotVisited::Key(key));
        }
        let settings = if work.access == ranges.access {
            BlendSettings::from_header(&self.header)
        } else {
            BlendSettings::of_device(&self.header).ok_or(NotVisited::Access)?
        };
        if !BlendPlan::new(settings).reaches(&work) {
            let Workload { unique_bytes, process_num, .. } = work;
            return Err(NotVisited::Reach { unique_bytes, process_num });
        }
        self.header.asked.push(work);
        Ok(())
    }

    /// Runs to the end of the plan or the budget, or until it is interrupted, and closes the target.
    ///
    /// # Errors
    /// Only when the record cannot be written; everything else ends the run with a reason.
    pub fn run(mut self, watch: Watch<'_>) -> Result<Outcome, JournalError> {
        let Watch { interrupt, journal, on_event } = watch;
        if let Some(resumed) = self.resumed.take() {
            journal(&Line::Resumed(resumed))?;
        } else {
            journal(&Line::Header(self.header.clone()))?;
            let warnings = self.bench.warnings.iter().cloned();
            warnings.map(Line::Warning).try_for_each(|line| journal(&line))?;
        }
        let mut plan = self.plan.unwrap_or_else(|| plan::decided_by(&self.header));
        let vector = self.has_vector.then(|| vector_of(&self.header, interrupt)).flatten();
        let run = explore::Run {
            vector,
            rig: &mut *self.bench.rig,
            plan: &mut *plan,
            header: &self.header,
            budget_s: self.budget_s,
            interrupt,
            journal,
            on_event,
        };
        explore::explore(run, self.earlier)
    }
}

fn header(bench: &mut Bench, origin: Origin, settings: Settings) -> Result<Header, Error> {
    let Settings { method, budget_s, .. } = settings;
    let access = settings.access.unwrap_or_default();
    let found = bench.rig.hints();
    let mut hints = found.clone();
    if access == Access::Direct {
        // What goes past the page cache finds no border of it.
        (hints.read_cache_bytes, hints.write_cache_bytes) = (None, None);
    }
    // Most of what may be written is for the workloads.
    hints.room_bytes = extent::room_bytes(hints.room_bytes, settings.written_max_bytes);
    let range_max = settings.ranges.unique_bytes.map(|range| range.max);
    let limits = Limits {
        precision: settings.precision,
        written_max_bytes: settings.written_max_bytes,
        unique_max_bytes: settings.unique_max_bytes.into_iter().chain(range_max).min(),
        writes_max_bytes: bench.writes_max_bytes,
        sustain_s: settings.sustain_s,
        precondition_times: settings.precondition_times,
    };
    let on_directory = || {
        let cpus = bench.hosts.as_ref().map_or(bench.host.cpus, Hosts::cpus);
        let ranges = extent::ranges(cpus, &hints, &limits, budget_s);
        match method {
            Method::Blend => ranges.with_sweeps(),
            _ => extent::ranges_for_all(ranges, &hints, &limits),
        }
    };
    let mut ranges = bench.sim_ranges.unwrap_or_else(on_directory);
    let unique = &mut ranges.unique_bytes;
    unique.max = unique.max.min(settings.unique_max_bytes.unwrap_or(u64::MAX));
    unique.min = unique.min.min(unique.max);
    ranges.access = access;
    if method != Method::Blend {
        (ranges.depth, ranges.fsync_every) = (Range::one(), Range::none());
    }
    if settings.ranges != AskedRanges::default() {
        let most_bytes = most_reached(&found, &hints, ranges.unique_bytes);
        ranges = settings.ranges.over(ranges);
        ranges.unique_bytes.max = ranges.unique_bytes.max.min(most_bytes);
        ranges.check().map_err(|error| Error::Refused(format!("--range: {error}")))?;
    }
    let (host, target) = (bench.host.clone(), bench.target.clone());
    let hosts = bench.hosts.clone();
    let usual = Header::new(origin, method, host, target);
    let mut header = Header { ranges, budget_s, limits, hints, hosts, ..usual };
    layers::add(&mut header, bench, &settings)?;
    let rows = forecast::forecast(&CostQuestion::from(&header));
    header.forecast = rows.first().map(|row| Forecast {
        points: row.points,
        elapsed_s: row.elapsed_s,
        written_bytes: row.written_bytes,
    });
    Ok(header)
}

/// Maps of directories have a system vector where there is time for one beside them.
fn wants_vector(header: &Header) -> bool {
    header.method == Method::Blend
        && !header.is_quick
        && header.budget_s >= VECTOR_BUDGET_MIN_S
        && header.target.kind == TargetKind::Directory
}

/// Measures the vector of a target; `None` where it cannot be opened once more.
fn vector_of(header: &Header, interrupt: &Arc<AtomicBool>) -> Option<Box<MeasureVector>> {
    let directory = Arc::new(target::open_directory(&header.target.path).ok()?);
    let run = RunId::parse(&header.run_id)?;
    let (interrupt, seed, clock) = (Arc::clone(interrupt), header.seed, Clock::start());
    Some(Box::new(move |(budget_s, written_max_bytes), on_step| {
        let request = vector::Request {
            directory: Arc::clone(&directory),
            run: &run,
            budget: Duration::from_secs_f64(budget_s),
            written_max_bytes,
            seed,
            clock,
            interrupt: Arc::clone(&interrupt),
        };
        vector::measure(&request, on_step)
    }))
}

/// A range that was asked for may go further than the usual one, as far as there is room.
fn most_reached(found: &Hints, hints: &Hints, usual: Range) -> u64 {
    let room_bytes = found.room_bytes.min(hints.room_bytes);
    (extent::first_file_bytes(room_bytes) as u64).max(usual.max)
}

/// The seed of a simulated device on which a run goes on: its noise must not repeat what the record
/// holds already.
pub fn resumed_seed(record: &Record) -> u64 {
    record.header.seed.wrapping_add(record.points.len() as u64)
}

impl Earlier {
    /// What the run of a record did until it ended.
    pub fn recorded(record: &Record) -> Self {
        Self {
            points: record.points.clone(),
            elapsed_s: record.elapsed_s(),
            revision: record.revision_max,
            written_bytes: written_bytes(record),
            device_written_bytes: device_written_bytes(record),
            warnings: record.warnings.clone(),
            sustained: record.sustained.clone(),
        }
    }
}

fn written_bytes(record: &Record) -> u64 {
    if let Some(end) = &record.end {
        return end.written_bytes;
    }
    // What was dirty already when it was written cost storage nothing more.
    let written = |point: &Point| {
        let bytes = point.classes.write_seq.bytes + point.classes.write_rand.bytes;
        (bytes as f64 * (1.0 - point.write_absorbed_fraction.unwrap_or(0.0))) as u64
    };
    // Each part of the run made its files anew.
    let parts = record.resumed.len() as u64 + 1;
    let files_bytes = files_bytes(record.points.iter().map(|point| &point.workload));
    let written = record.points.iter().map(written).fold(0, u64::saturating_add);
    parts.saturating_mul(files_bytes).saturating_add(written)
}

/// What the device counted; where nobody wrote that down, at least what was written.
fn device_written_bytes(record: &Record) -> u64 {
    let counted = record.end.as_ref().and_then(|end| end.device_written_bytes);
    counted.unwrap_or_else(|| written_bytes(record))
}
