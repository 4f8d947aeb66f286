//! Writing for long, before anything else is measured: a target that was at rest shows how fast it is at
//! first, for how long, and how fast then. Preconditioning is writing, too: over all the data that a
//! map will touch, so that a drive is measured as it is once it has been in use (SNIA's Performance
//! Test Specification writes a drive over twice).
//!
//! Sequential requests of 1 MiB, eight in flight, past the page cache: what large and lasting writes
//! look like, and what an SLC cache and burst credit are used up by soonest. Where direct access is
//! not to be had, they go through the page cache with an fdatasync after every sixteenth.

use ioscape_engine::{Class, Error, Rig, Window};
use ioscape_model::units::{GIB, MIB};
use ioscape_model::{
    Access, Code, Severity, SizeDist, Sustained, Warning, Words, Workload, WrittenPiece,
};

/// Data that is written over and over: more than a drive's own memory.
pub const SPAN_BYTES: u64 = GIB;
/// Of what may be written, what this may take: a map has to write, too.
const WRITTEN_SHARE: u64 = 2;
/// Laid out and written once, or it is not worth beginning.
const WRITTEN_MIN: u64 = 2;
/// Most pieces that a course is recorded in, and their least length, seconds: a fast part may be over
/// in two of them.
const PIECES: f64 = 3000.0;
const PIECE_MIN_S: f64 = 0.1;
const DEPTH: u32 = 8;
const SYNC_EVERY: u32 = 16;

/// How long, how much, and over which data.
#[derive(Clone, Copy, Debug)]
pub struct SustainRequest {
    /// How long to write at most, seconds.
    pub length_s: f64,
    /// Data to write over and over, where there is room, bytes.
    pub span_bytes: u64,
    /// End when so much is written.
    pub enough_bytes: Option<u64>,
    /// Of the requests.
    pub seed: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sustaining {
    /// Seconds of writing so far.
    pub elapsed_s: f64,
    /// Seconds that it may last.
    pub length_s: f64,
    /// Bytes written so far.
    pub written_bytes: u64,
    /// Throughput of the latest piece.
    pub throughput_bytes_per_s: f64,
}

/// Writes for as long as asked, or until half of what may be written is.
///
/// # Errors
/// Those of the rig; [`Error::MaxWritten`] where too little may be written to begin.
pub fn sustain(
    request: &SustainRequest,
    rig: &mut dyn Rig,
    on_event: &mut dyn FnMut(Sustaining),
) -> Result<Sustained, Error> {
    let SustainRequest { length_s, enough_bytes, seed, .. } = *request;
    let most_bytes = rig.may_write_bytes() / WRITTEN_SHARE;
    let span_bytes = request.span_bytes.min(most_bytes / WRITTEN_MIN) / MIB * MIB;
    let began_s = rig.now_s();
    let written_before_bytes = rig.written_bytes();
    let mut work = workload(span_bytes);
    if work.check().is_err() {
        return Err(Error::MaxWritten);
    }
    on_event(Sustaining { length_s, ..Sustaining::default() });
    let prepared = match rig.prepare(&work) {
        Err(Error::Refused(_)) => {
            work = Workload { access: Access::Buffered, depth: 1, fsync_every: SYNC_EVERY, ..work };
            rig.prepare(&work)?
        }
        prepared => prepared?,
    };
    let laid_out_bytes = rig.written_bytes().saturating_sub(written_before_bytes);
    let mut sustained = Sustained {
        workload: work,
        engine: rig.engine().to_owned(),
        started_s: began_s,
        before: WrittenPiece { length_s: prepared.spent_s.layout, bytes: laid_out_bytes },
        asked_s: length_s,
        asked_bytes: enough_bytes,
        pieces: Vec::new(),
        is_cut_short: false,
        warnings: prepared.warnings,
    };
    rig.start(&sustained.workload, seed)?;
    let budget_bytes = most_bytes.saturating_sub(laid_out_bytes);
    write(&mut sustained, budget_bytes, rig, on_event)?;
    sustained.warnings.extend(rig.finish(false)?.warnings);
    sustained.warnings.extend(sustained.is_cut_short.then(|| cut_short(&sustained)));
    Ok(sustained)
}

fn workload(span_bytes: u64) -> Workload {
    Workload {
        unique_bytes: span_bytes,
        size_mean: MIB,
        size_dist: SizeDist::Fixed,
        read_frac: 0.0,
        seq_frac: 1.0,
        access: Access::Direct,
        depth: DEPTH,
        ..Workload::default()
    }
}

/// Takes pieces until the time is over or no more is to be written.
fn write(
    sustained: &mut Sustained,
    budget_bytes: u64,
    rig: &mut dyn Rig,
    on_event: &mut dyn FnMut(Sustaining),
) -> Result<(), Error> {
    let length_s = sustained.asked_s;
    let enough_bytes = sustained.asked_bytes.unwrap_or(u64::MAX);
    let piece_s = (length_s / PIECES).max(PIECE_MIN_S);
    let (mut elapsed_s, mut written_bytes, mut longest_bytes) = (0.0, 0, 0);
    while elapsed_s + piece_s / 2.0 < length_s && written_bytes < enough_bytes {
        // The next piece may be as large as the largest so far.
        if written_bytes + longest_bytes > budget_bytes {
            sustained.is_cut_short = true;
            break;
        }
        let window = match rig.window(piece_s) {
            Err(Error::MaxWritten) => {
                sustained.is_cut_short = true;
                break;
            }
            window => window?,
        };
        let piece = WrittenPiece { length_s: window.length_s, bytes: written(&window) };
        elapsed_s += piece.length_s;
        written_bytes += piece.bytes;
        longest_bytes = longest_bytes.max(piece.bytes);
        sustained.pieces.push(piece);
        let throughput_bytes_per_s = piece.bytes as f64 / piece.length_s.max(f64::MIN_POSITIVE);
        on_event(Sustaining { elapsed_s, length_s, written_bytes, throughput_bytes_per_s });
    }
    sustained.is_cut_short |= written_bytes < sustained.asked_bytes.unwrap_or(0);
    Ok(())
}

fn written(window: &Window) -> u64 {
    [Class::WriteSeq, Class::WriteRand]
        .map(|class| window.classes[class as usize].bytes)
        .iter()
        .sum()
}

fn cut_short(sustained: &Sustained) -> Warning {
    let length_s: f64 = sustained.pieces.iter().map(|piece| piece.length_s).sum();
    let bytes: u64 = sustained.pieces.iter().map(|piece| piece.bytes).sum();
    let text = match sustained.asked_bytes {
        Some(asked_bytes) => Words::new(
            "preconditioning ended after {written_s} and {written_bytes} of the {asked_bytes} that \
             it takes: half of the budget, and of what may be written, is the map's",
        )
        .figure("asked_bytes", asked_bytes as f64),
        None => Words::new(
            "writing for long ended after {written_s} and {written_bytes} of the {asked_s} asked \
             for: half of what may be written is the map's",
        )
        .figure("asked_s", sustained.asked_s),
    };
    let text = text.figure("written_s", length_s).figure("written_bytes", bytes as f64);
    let remedy =
        "allow more by --max-written, if the device can bear it, or give a longer --budget";
    Warning::new(Code::MaxWritten, text, remedy).with_severity(Severity::Note)
}
