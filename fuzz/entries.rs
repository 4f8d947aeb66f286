//! What is done with bytes of unknown origin: each entry reads them, and whatever is accepted is
//! used as the tool would use it. Nothing may panic, hang or take much memory.
//!
//! Used twice: by the fuzz targets beside it, and by a test of the binary crate, which replays the
//! corpora and mutates them.

use ioscape_analysis::compare::{self, System};
use ioscape_analysis::model::Training;
use ioscape_analysis::predict::Predictor;
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_engine::{Error, Rig};
use ioscape_model::{Record, Workload};
use ioscape_trace::import::{self, Columns, Format, Input, Preset};
use ioscape_trace::store::Store;
use ioscape_trace::{Event, FileEntry, Sink, StreamEntry, TraceInfo, character};

/// Records are cut off here: what counts is the reader, not how long a megabyte takes.
const BYTES_MAX: usize = 256 << 10;
/// Fitting takes long where points are many.
const POINTS_MAX: usize = 200;

pub(crate) type Entry = fn(&[u8]);

pub(crate) const ENTRIES: [(&str, Entry); 7] = [
    ("record", record),
    ("workload", workload),
    ("workload_file", workload_file),
    ("sim_spec", sim_spec),
    ("fio", fio),
    ("trace", trace),
    ("trace_import", trace_import),
];

/// A record, and all that is shown of it.
pub(crate) fn record(bytes: &[u8]) {
    let Ok(record) = Record::read(&bytes[..bytes.len().min(BYTES_MAX)]) else { return };
    let conclusion = ioscape_analysis::conclusion::conclude(&record);
    let (conclusion, file) = (conclusion.as_ref(), "a file");
    let summary = ioscape_report::Summary { record: &record, conclusion, file };
    let text = ioscape_report::text(&summary, 80, false);
    assert!(!text.contains('\u{1b}'), "control characters of a record reach the terminal");
    let page = ioscape_report::html(&ioscape_report::ReportPage::from_record(&record));
    assert!(!page.contains("<script>alert"), "a record's text is markup");
    let _ = ioscape_report::export::json(&record);
    let _ = ioscape_report::export::openmetrics(&record);
    let _ = ioscape_report::export::visits(&record).csv();
    let _ = ioscape_report::export::estimates(&record).csv();
    for estimate in &record.estimates {
        let work = &estimate.workload;
        let _ = ioscape_report::export::fio::job(&record.header, work, Some(estimate));
    }
    let training = Training::from_record(&record);
    let samples = training.samples.clone();
    if record.points.len() <= POINTS_MAX
        && let Ok(predictor) = Predictor::fit(training)
    {
        let _ = predictor.guess(&Workload::default());
        let system = System::new(&record, &samples, &predictor);
        let _ = compare::compare(&system, &system, &[Workload::default()]);
    }
}

/// `key=value` pairs.
pub(crate) fn workload(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(work) = Workload::parse(text) {
        work.check().expect("what is accepted can be");
        let again = Workload::parse(&work.literal()).expect("what is written can be read");
        assert_eq!(again, work, "a literal says all of it");
    }
}

/// A file of workloads.
pub(crate) fn workload_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let flags = crate::args::WorkloadArgs::none();
    if let Ok(all) = crate::workload_arg::all_of(text, &flags) {
        for asked in all {
            asked.work.check().expect("what is accepted can be");
        }
    }
}

/// A description of a simulated device, and a visit to it.
pub(crate) fn sim_spec(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(spec) = SimSpec::from_toml(text) else { return };
    let again = SimSpec::from_toml(&spec.to_toml()).expect("what is written can be read");
    assert_eq!(again.to_toml(), spec.to_toml());
    let mut rig = SimRig::new(spec, 1);
    for rate in [0.0, 1000.0] {
        let work = Workload { unique_bytes: 8 << 20, rate, ..Workload::default() };
        let _ = visit(&mut rig, &work);
    }
}

fn visit(rig: &mut SimRig, work: &Workload) -> Result<(), Error> {
    rig.prepare(work)?;
    rig.start(work, 1)?;
    for _ in 0..3 {
        let window = rig.window(0.1)?;
        assert!(window.length_s > 0.0, "time passes");
    }
    rig.finish(true)?;
    Ok(())
}

/// fio's results.
pub(crate) fn fio(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(results) = ioscape_import::fio::read(text) else { return };
    for work in results.workloads() {
        work.check().expect("what is taken over can be");
    }
}

/// A trace of ioscape's own format, whole or cut.
pub(crate) fn trace(bytes: &[u8]) {
    let Ok(store) = Store::open(bytes::Bytes::copy_from_slice(bytes)) else { return };
    if store.pour(&mut Taken(0)).is_ok() {
        let _ = character::characterise(&store, &mut |_| {});
    }
}

/// Events that are taken of one input: counters may promise any number of calls.
const EVENTS_MAX: u32 = 100_000;

/// Traces of other tools: the first byte says in which format the rest is.
pub(crate) fn trace_import(bytes: &[u8]) {
    let Some((&chosen, bytes)) = bytes.split_first() else { return };
    let columns = Columns::parse("op=1,off=2B,len=3sec,t=4ms,dur=5s,stream=6,vol=7");
    let formats = [
        Format::Strace,
        Format::PerfSyscalls,
        Format::PerfBlock,
        Format::Blktrace,
        Format::Blkparse,
        Format::Iolog,
        Format::Darshan,
        Format::Dxt,
        Format::Vscsi,
        Format::Oracle,
        Format::Csv(columns.expect("it names columns")),
        Format::Preset(Preset::Systor),
        Format::Preset(Preset::Fiu),
        Format::Clf,
    ];
    let format = &formats[usize::from(chosen) % formats.len()];
    // Two files, so that they are merged.
    let files = [("one", bytes), ("two", &bytes[bytes.len() / 2..])];
    let inputs = files.map(|(name, bytes)| Input { name: name.to_owned(), bytes: Box::new(bytes) });
    let _ = import::import(format, inputs.into(), &mut Taken(0));
}

/// Takes so many events, and looks whether they can be.
struct Taken(u32);

impl Sink for Taken {
    fn event(&mut self, event: &Event) -> std::io::Result<()> {
        assert!(event.offset.checked_add(event.length).is_some(), "{event:?}");
        self.0 += 1;
        if self.0 > EVENTS_MAX { Err(std::io::Error::other("enough")) } else { Ok(()) }
    }

    fn file(&mut self, _: FileEntry) -> std::io::Result<()> {
        Ok(())
    }

    fn stream(&mut self, _: StreamEntry) -> std::io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &TraceInfo) -> std::io::Result<()> {
        Ok(())
    }
}
