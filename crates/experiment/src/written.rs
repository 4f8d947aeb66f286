//! What a run writes, held against `--max-written`: what the next visit may be expected to write,
//! and what is to be said when no more may be. Within a visit the rig keeps to it by itself.

use ioscape_model::{Code, Header, Point, Severity, Spent, Warning, Words, Workload};

use crate::measure::SPARING_VISIT_S;
use crate::plan::extent::files_bytes;
use crate::plan::is_absorbed;

/// What the visits of this part of a run have written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    /// Points that earlier parts left: their files are gone.
    earlier_points: usize,
    /// By visits whose writes storage had to keep up with, bytes.
    through_bytes: f64,
    /// For how long they wrote; of mixed ones the share of writes counts, seconds.
    through_s: f64,
}

impl Written {
    pub(crate) fn after(earlier_points: usize) -> Self {
        Self { earlier_points, ..Self::default() }
    }

    /// What a visit that is of use will write, layout included, bytes. Before one was made, what goes
    /// through to storage is not known: it is tried then.
    pub(crate) fn expected_bytes(&self, header: &Header, points: &[Point], work: &Workload) -> u64 {
        let writes_bytes = match work.read_frac {
            1.0.. => 0.0,
            _ if is_absorbed(work, dirty_bytes(header)) => work.unique_bytes as f64,
            _ if self.through_s == 0.0 => 0.0,
            read => self.through_bytes / self.through_s * SPARING_VISIT_S * (1.0 - read),
        };
        self.layout_bytes(points, work) + writes_bytes as u64
    }

    /// Learns from a visit in which so much was written, before it is one of the points.
    pub(crate) fn learn(&mut self, header: &Header, points: &[Point], visit: (&Point, u64)) {
        let (point, written_bytes) = visit;
        let work = &point.workload;
        if work.read_frac >= 1.0 || is_absorbed(work, dirty_bytes(header)) {
            return;
        }
        let Spent { settling, measuring, .. } = point.spent_s;
        let layout_bytes = self.layout_bytes(points, work);
        self.through_bytes += written_bytes.saturating_sub(layout_bytes) as f64;
        self.through_s += (settling + measuring) * (1.0 - work.read_frac);
    }

    /// The points whose files this part of the run has laid out; files of earlier parts were removed.
    pub(crate) fn laid_out<'a>(&self, points: &'a [Point]) -> &'a [Point] {
        &points[self.earlier_points..]
    }

    /// What laying out the files of a workload adds, bytes.
    pub(crate) fn layout_bytes(&self, points: &[Point], work: &Workload) -> u64 {
        let known = || self.laid_out(points).iter().map(|point| &point.workload);
        files_bytes(known().chain([work])) - files_bytes(known())
    }
}

/// Requests in flight reach storage so much faster than files are laid out.
const FASTER_THAN_LAYOUT: f64 = 2.0;

/// Bytes that a visit may write so that each visit after it may write as many; layout uses what those
/// leave that only read. No bound where the rate of layout says that storage is too slow for a whole
/// visit to write that much.
pub(crate) fn share_bytes(
    header: &Header,
    work: &Workload,
    (left_bytes, visits_left): (u64, f64),
) -> u64 {
    if is_absorbed(work, absorbed_up_to_bytes(header)) {
        return u64::MAX; // it writes no more, however long it runs
    }
    let share = left_bytes as f64 / visits_left.max(1.0);
    let rate = header.hints.layout_bytes_per_s.unwrap_or(f64::INFINITY);
    let visit_bytes = FASTER_THAN_LAYOUT * rate * header.rules.visit_s() * (1.0 - work.read_frac);
    if visit_bytes <= share { u64::MAX } else { share as u64 }
}

/// The kernel begins to write back once this many bytes are dirty. 0 if the header does not say how many.
fn dirty_bytes(header: &Header) -> u64 {
    header.hints.write_cache_bytes.unwrap_or(0.0) as u64
}

/// The run keeps a 16th of `--max-written` for visits whose writes the page cache takes, but no more than 32 of them
/// write. None of them touches more than an eighth of that 16th. Choices.
const ABSORBED_SHARE: u64 = 16;
const ABSORBED_VISITS_MIN: u64 = 8;
const ABSORBED_VISITS_MAX: u64 = 32;

/// A workload that touches no more than this, bytes, writes to the end of the run: storage gets each of its pages once.
/// 0 where no workload is so small, or where the rig counts every write and not what became dirty.
pub(crate) fn absorbed_up_to_bytes(header: &Header) -> u64 {
    let most_bytes = header.limits.written_max_bytes.unwrap_or(0);
    let bytes = dirty_bytes(header).min(most_bytes / ABSORBED_SHARE / ABSORBED_VISITS_MIN);
    let is_of_use = bytes >= header.ranges.unique_bytes.min && !header.is_quick;
    if is_of_use && header.hints.counters { bytes } else { 0 }
}

/// Bytes that this visit leaves to those.
pub(crate) fn kept_for_absorbed_bytes(header: &Header, work: &Workload) -> u64 {
    let up_to_bytes = absorbed_up_to_bytes(header);
    let is_one = work.read_frac < 1.0 && is_absorbed(work, up_to_bytes);
    let most_bytes = header.limits.written_max_bytes.unwrap_or(0);
    let kept_bytes = (most_bytes / ABSORBED_SHARE).min(ABSORBED_VISITS_MAX * up_to_bytes);
    if is_one { 0 } else { kept_bytes }
}

/// Says that a run writes no more before its time, and with which visit.
pub(crate) fn left_out(header: &Header, work: &Workload, at: &StoppedWriting) -> Warning {
    let most_bytes = header.limits.written_max_bytes.unwrap_or(u64::MAX);
    let absorbed_bytes = absorbed_up_to_bytes(header);
    let what = match absorbed_bytes {
        0 => "nothing more was written",
        _ => "only buffered workloads of up to {absorbed_up_to_bytes} still wrote",
    };
    let next = match at.expected_bytes {
        None => "took more than that",
        Some(_) => "was expected to write {expected_bytes}",
    };
    let mut text = Words::new(format!(
        "{what} after {{elapsed_s}} of {{budget_s}} because of --max-written {{max_written_bytes}}: \
         {{left_bytes}} of it were left, and the next visit ({{workload}}) {next}; that visit and \
         later ones that write were left out (there was time for about {{visits}} more visits)"
    ))
    .figure("elapsed_s", at.elapsed_s)
    .figure("budget_s", at.budget_s)
    .figure("max_written_bytes", most_bytes as f64)
    .figure("left_bytes", at.left_bytes as f64)
    .figure("visits", at.visits.max(1) as f64)
    .name("workload", work);
    if absorbed_bytes > 0 {
        text = text.figure("absorbed_up_to_bytes", absorbed_bytes as f64);
    }
    if let Some(bytes) = at.expected_bytes {
        text = text.figure("expected_bytes", bytes as f64);
    }
    let remedy = "allow more by --max-written, or lower --unique-max: smaller files cost less";
    Warning::new(Code::MaxWritten, text, remedy).with_severity(Severity::Note)
}

/// Where a run stood when no more was to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoppedWriting {
    pub(crate) elapsed_s: f64,
    pub(crate) budget_s: f64,
    /// What could still be written.
    pub(crate) left_bytes: u64,
    /// What the visit would have written; it was begun where that was not known.
    pub(crate) expected_bytes: Option<u64>,
    /// How many the budget still had time for.
    pub(crate) visits: u64,
}

/// Says that `--max-written` kept workloads to less data, or to fewer new files, bytes.
pub(crate) fn limited(
    header: &Header,
    writes_up_to_bytes: u64,
    lays_out_up_to_bytes: u64,
) -> Option<Warning> {
    let most_bytes = header.limits.written_max_bytes?;
    let (writes, files) = (writes_up_to_bytes < u64::MAX, lays_out_up_to_bytes < u64::MAX);
    let what = match (writes, files) {
        (false, false) => return None,
        (true, false) => "write to more than {writes_up_to_bytes}",
        (false, true) => "need new files of more than {lays_out_up_to_bytes}",
        (true, true) => {
            "write to more than {writes_up_to_bytes} and workloads that need new files of more than \
             {lays_out_up_to_bytes}"
        }
    };
    let graphs = if writes { ": larger regions have graphs of reads" } else { "" };
    let mut text = Words::new(format!(
        "workloads that {what} were left out, because of --max-written {{max_written_bytes}}{graphs}"
    ))
    .figure("max_written_bytes", most_bytes as f64);
    if writes {
        text = text.figure("writes_up_to_bytes", writes_up_to_bytes as f64);
    }
    if files {
        text = text.figure("lays_out_up_to_bytes", lays_out_up_to_bytes as f64);
    }
    let remedy = "allow more by --max-written";
    Some(Warning::new(Code::MaxWritten, text, remedy).with_severity(Severity::Note))
}

/// More has arrived than was allowed.
pub(crate) fn exceeded(header: &Header, device_bytes: u64, own_bytes: u64) -> Option<Warning> {
    let most_bytes = header.limits.written_max_bytes.filter(|most| device_bytes > *most)?;
    let text = Words::new(
        "the device counted {device_bytes} written although --max-written allows \
         {max_written_bytes}: this run wrote {own_bytes} of that; the filesystem itself or other \
         programs wrote the rest",
    )
    .figure("device_bytes", device_bytes as f64)
    .figure("max_written_bytes", most_bytes as f64)
    .figure("own_bytes", own_bytes as f64);
    let remedy = "run where nothing else writes, or allow that much less";
    Some(Warning::new(Code::MaxWritten, text, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::{Earlier, Progress};
    use ioscape_model::{Hints, Rules};

    /// Names of the figures that a warning carries.
    fn names(warning: &Warning) -> Vec<&str> {
        warning.figures.keys().map(String::as_str).collect()
    }

    #[test]
    fn what_max_written_left_out_is_said_with_figures() {
        let mut header = ioscape_test_support::header(
            1,
            ioscape_engine::SimSpec::preset("nvme").unwrap().ranges(),
        );
        header.limits.written_max_bytes = Some(1 << 30);
        header.hints.counters = false;
        let work = Workload::default();
        let at = StoppedWriting {
            elapsed_s: 30.0,
            budget_s: 60.0,
            left_bytes: 4 << 20,
            expected_bytes: Some(8 << 20),
            visits: 0,
        };
        let warning = left_out(&header, &work, &at);
        let shown = format!(
            "nothing more was written after 30.0 s of 60.0 s because of --max-written 1.00 GiB: \
             4.00 MiB of it were left, and the next visit ({work}) was expected to write 8.00 MiB; \
             that visit and later ones that write were left out (there was time for about 1 more \
             visits)"
        );
        assert_eq!(warning.text, shown);
        let wanted = [
            "budget_s",
            "elapsed_s",
            "expected_bytes",
            "left_bytes",
            "max_written_bytes",
            "visits",
        ];
        assert_eq!(names(&warning), wanted);
        let unknown = StoppedWriting { expected_bytes: None, ..at };
        let warning = left_out(&header, &work, &unknown);
        assert!(warning.text.contains(") took more than that; that visit"), "{}", warning.text);
        assert!(!warning.figures.contains_key("expected_bytes"), "{:?}", warning.figures);

        let said = |writes, files| limited(&header, writes, files).map(|warning| warning.text);
        assert_eq!(said(u64::MAX, u64::MAX), None);
        assert_eq!(
            said(1 << 20, 2 << 20).unwrap(),
            "workloads that write to more than 1.00 MiB and workloads that need new files of more \
             than 2.00 MiB were left out, because of --max-written 1.00 GiB: larger regions have \
             graphs of reads"
        );
        assert_eq!(
            said(u64::MAX, 2 << 20).unwrap(),
            "workloads that need new files of more than 2.00 MiB were left out, because of \
             --max-written 1.00 GiB"
        );
        let more = exceeded(&header, 3 << 30, 1 << 30).unwrap();
        assert_eq!(names(&more), ["device_bytes", "max_written_bytes", "own_bytes"]);
        let rest = "1.00 GiB of that; the filesystem itself or other programs wrote the rest";
        assert!(more.text.ends_with(rest), "{}", more.text);
    }

    #[test]
    fn only_where_storage_is_fast_a_visit_has_a_share() {
        let mut header = ioscape_test_support::header(
            1,
            ioscape_engine::SimSpec::preset("nvme").unwrap().ranges(),
        );
        header.rules = Rules::brief();
        let writes = Workload { read_frac: 0.0, ..Workload::default() };
        let share = |header: &Header, visits| share_bytes(header, &writes, (16 << 30, visits));
        header.hints.layout_bytes_per_s = Some(10e6);
        assert_eq!(share(&header, 64.0), u64::MAX);
        header.hints.layout_bytes_per_s = Some(1e9);
        assert_eq!(share(&header, 64.0), 256 << 20);
        assert_eq!(share(&header, 0.5), u64::MAX, "the last one may write all of it");
        header.hints.layout_bytes_per_s = None;
        assert_eq!(share(&header, 0.5), 16 << 30);
    }

    #[test]
    fn some_is_kept_for_visits_that_the_page_cache_takes() {
        let mut header = ioscape_test_support::header(
            1,
            ioscape_engine::SimSpec::preset("nvme").unwrap().ranges(),
        );
        header.limits.written_max_bytes = Some(16 << 30);
        let work = |unique_bytes: u64| Workload { unique_bytes, ..Workload::default() };
        let kept = |header: &Header| {
            [32 << 20, 256 << 20].map(|bytes| kept_for_absorbed_bytes(header, &work(bytes)))
        };
        header.hints.counters = true;
        header.hints.write_cache_bytes = None;
        assert_eq!(kept(&header), [0, 0]);
        header.hints.write_cache_bytes = Some(f64::from(32 << 20));
        assert_eq!((absorbed_up_to_bytes(&header), kept(&header)), (32 << 20, [0, 1 << 30]));
        header.hints.write_cache_bytes = Some(3e9);
        assert_eq!((absorbed_up_to_bytes(&header), kept(&header)), (128 << 20, [0, 1 << 30]));
        assert_eq!(share_bytes(&header, &work(32 << 20), (1, 100.0)), u64::MAX);
        let mut progress = Progress::after(Earlier::default());
        let up_to_mib: Vec<u64> = std::iter::from_fn(|| {
            progress.write_less(&header).then_some(progress.absorbed_up_to_bytes >> 20)
        })
        .collect();
        assert_eq!(up_to_mib, [128, 64, 32, 16, 8, 0]);
        let small = header.ranges.unique_bytes.min - 1;
        let of_no_use = [
            Header { hints: Hints { counters: false, ..header.hints.clone() }, ..header.clone() },
            Header { is_quick: true, ..header.clone() },
            Header {
                hints: Hints { write_cache_bytes: Some(small as f64), ..header.hints.clone() },
                ..header.clone()
            },
        ];
        for header in of_no_use {
            assert_eq!(kept(&header), [0, 0]);
        }
    }
}
