//! The main job: asks the plan what to measure, measures it, writes it down, and keeps to the
//! budget. Whatever happens on the way, what was measured is in the journal before the next
//! point begins.

mod share;

use std::sync::atomic::Ordering;

use ioscape_engine::{Error, Rig};
use ioscape_model::{
    Code, End, EndReason, Header, LeftOut, Limits, Line, Part, Point, Role, Rules, Warning, Words,
    Workload,
};

pub use crate::course::{Earlier, Event, Journal, JournalError, MeasureVector, Outcome, Run};
use crate::course::{Progress, stood_still};
use crate::measure::{Subject, measure_sparing};
use crate::plan::extent;
use crate::plan::left_out::left_out;
use crate::plan::{Seen, Visit, is_short};
use crate::publish;
use crate::sustain::{SPAN_BYTES, SustainRequest, sustain};
use crate::vector;
use crate::written::{self, StoppedWriting};

/// Seconds between two canaries.
const CANARY_EVERY_S: f64 = 60.0;
/// A first map is published before the visit that may end after this much of the clock.
const FIRST_MAP_S: f64 = 50.0;
/// And later ones whenever this many points have come in.
const MAP_EVERY_POINTS: usize = 100;
/// Points between two maps where the run may end with any of them (`--precision`).
const MAP_EVERY_POINTS_PRECISE: usize = 25;
/// A visit ends with a timed fdatasync only where that takes no longer, seconds.
const FLUSH_MAX_S: f64 = 4.0;
/// Where time is short, a visit of the graphs measures for less time than the rules allow, but for at least
/// this, seconds: three values of every parameter in each region matter more than narrow intervals.
const HURRIED_S: f64 = 0.6;
/// In a short run a visit of the search for borders measures for at most this, seconds: steps at borders
/// are large.
const SEARCH_HURRIED_S: f64 = 1.8;
/// Requests that an open loop's 99th percentile is taken of, and how long they are waited for, seconds.
const RATE_REQUESTS: f64 = 2000.0;
const RATE_LEAST_S: f64 = 2.0;
const RATE_MOST_S: f64 = 5.0;
/// Windows that the time of an open-loop visit is divided into: so few that it lasts its full time. Its
/// throughput is the rate asked for and would soon pass the checks.
const RATE_WINDOWS: u32 = 10;
/// A writing visit longer than this, layout and warm-up apart, was stalled, seconds.
const STALL_S: f64 = 15.0;

/// Why a run ended, and the error if it failed.
type Ending = (EndReason, Option<String>);

/// Runs until the plan is done, the budget is used up, or the run is interrupted. The budget runs on the
/// rig's clock, so time before the first visit counts if that clock was started before.
///
/// # Errors
/// Only when the journal cannot be written; everything else ends the run with a reason.
pub fn explore(mut run: Run<'_>, earlier: Earlier) -> Result<Outcome, JournalError> {
    let mut progress = Progress::after(earlier);
    if let Some(most_bytes) = run.header.limits.written_max_bytes {
        run.rig.limit_written(most_bytes.saturating_sub(progress.spent_before_bytes()));
    }
    show_earlier_points(&mut run, &progress);
    let (reason, failure) = match write_for_long(&mut run, &mut progress)? {
        Some(ending) => ending,
        None => visit_all(&mut run, &mut progress)?,
    };
    if run.vector.is_some() {
        let text = "all of it: the run ended before its turn".to_owned();
        progress.vector_left_out = vec![LeftOut { part: Part::SystemVector, text }];
    }
    let device_bytes = progress.device_written_bytes(run.rig).unwrap_or(0);
    let exceeded = written::exceeded(run.header, device_bytes, progress.written_bytes(run.rig));
    let limited =
        written::limited(run.header, progress.writes_up_to_bytes, progress.lays_out_up_to_bytes);
    let closing = publish::closing_warnings(&run, &progress).into_iter();
    for warning in closing.chain(exceeded).chain(limited) {
        note(&mut run, &mut progress, warning)?;
    }
    let unfinished = matches!(reason, EndReason::Interrupted | EndReason::Failed);
    let models = publish::map(&mut run, &mut progress, unfinished)?;
    let mut end = end_line(&run, &progress, reason);
    end.left_out = left_out(run.header, &run.plan.landscape(&progress.points), &progress.points);
    end.left_out.append(&mut progress.vector_left_out);
    end.left_out.sort_by_key(|left_out| left_out.part);
    (run.journal)(&Line::End(end.clone()))?;
    Ok(Outcome { end, failure, models })
}

/// Writes for long and preconditions, where that was asked for: before the map and once. Says why the
/// run ends there, if it does.
fn write_for_long(
    run: &mut Run<'_>,
    progress: &mut Progress,
) -> Result<Option<Ending>, JournalError> {
    let done = progress.sustained.len();
    for request in sustain_requests(run.header).into_iter().skip(done) {
        let on_event = &mut *run.on_event;
        match sustain(&request, run.rig, &mut |event| on_event(Event::Sustaining(event))) {
            Ok(sustained) => {
                (run.journal)(&Line::Sustained(sustained.clone()))?;
                progress.sustained.push(sustained);
            }
            Err(Error::MaxWritten) => return Ok(Some((EndReason::Written, None))),
            Err(Error::Interrupted) => return Ok(Some((EndReason::Interrupted, None))),
            Err(error) => return Ok(Some((EndReason::Failed, Some(error.to_string())))),
        }
    }
    Ok(None)
}

/// What is written before the map, in order: for `--sustain` first, while the device is rested, then for
/// `--precondition`.
fn sustain_requests(header: &Header) -> Vec<SustainRequest> {
    let Limits { sustain_s, precondition_times, .. } = header.limits;
    let most_bytes = header.ranges.unique_bytes.max;
    let seed = header.seed;
    let sustained = sustain_s.map(|length_s| SustainRequest {
        length_s,
        span_bytes: SPAN_BYTES.min(most_bytes),
        enough_bytes: None,
        seed,
    });
    let preconditioned = precondition_times.map(|times| SustainRequest {
        length_s: header.budget_s / 2.0 - sustain_s.unwrap_or(0.0),
        span_bytes: most_bytes,
        enough_bytes: Some(u64::from(times) * most_bytes),
        seed,
    });
    sustained.into_iter().chain(preconditioned).collect()
}

/// A plan may keep in mind what it decided: it is shown the earlier points one by one.
fn show_earlier_points(run: &mut Run<'_>, progress: &Progress) {
    for known in 0..progress.points.len() {
        run.plan.next(&seen(run.header, &progress.points[..known]));
    }
}

/// What a plan is shown: nothing that the record does not hold.
fn seen<'a>(header: &Header, points: &'a [Point]) -> Seen<'a> {
    let elapsed_s = points.last().map_or(0.0, |point| point.started_s + point.elapsed_s);
    Seen::writing_freely(points, elapsed_s, header.budget_s)
}

fn visit_all(run: &mut Run<'_>, progress: &mut Progress) -> Result<Ending, JournalError> {
    progress.may_write_at_start_bytes = run.rig.may_write_bytes();
    progress.laid_out_before_bytes = files_bytes(progress);
    loop {
        if run.interrupt.load(Ordering::Relaxed) {
            return Ok((EndReason::Interrupted, None));
        }
        let elapsed_s = progress.elapsed_s(run.rig);
        if elapsed_s + progress.visit_s() > run.budget_s {
            return Ok((EndReason::Budget, None));
        }
        let next = next_visit(run, progress, elapsed_s);
        if vector_is_due(run, progress, (next.as_ref(), elapsed_s)) {
            if let Some(ending) = measure_vector(run, progress, elapsed_s)? {
                return Ok(ending);
            }
            continue;
        }
        let Some(visit) = next else { return Ok((EndReason::Complete, None)) };
        if map_is_due(run, progress, elapsed_s + progress.next_visit_s(run.header, &visit)) {
            let models = publish::map(run, progress, true)?;
            progress.points_at_map = progress.points.len();
            if models.is_some_and(|fitted| publish::is_precise(&fitted, run, &progress.points)) {
                return Ok((EndReason::Precision, None));
            }
        }
        // Fitting models takes its time, too.
        let elapsed_s = progress.elapsed_s(run.rig);
        let Some(visit) = visit_that_fits(run, progress, visit, elapsed_s) else {
            return Ok((EndReason::Budget, None));
        };
        let left_bytes = run.rig.may_write_bytes();
        let expected_bytes =
            progress.written.expected_bytes(run.header, &progress.points, &visit.workload);
        let kept_bytes = share::kept_bytes(run, progress, &visit.workload);
        if expected_bytes > left_bytes.saturating_sub(kept_bytes) {
            if share::make_way(run, progress, &visit.workload) {
                continue;
            }
            // What the vector does not use of its part is for the visits.
            let for_others_bytes = written::kept_for_absorbed_bytes(run.header, &visit.workload);
            if expected_bytes + for_others_bytes <= left_bytes && run.vector.is_some() {
                if let Some(ending) = measure_vector(run, progress, elapsed_s)? {
                    return Ok(ending);
                }
                continue;
            }
            if goes_on_without(run, progress, &visit, Some(expected_bytes))? {
                continue;
            }
            return Ok((EndReason::Written, None));
        }
        (run.on_event)(Event::Visit { visit: &visit, points: progress.points.len(), elapsed_s });
        match make(run, progress, &visit) {
            Ok(point) => {
                let spent_bytes = left_bytes.saturating_sub(run.rig.may_write_bytes());
                progress.written.learn(run.header, &progress.points, (&point, spent_bytes));
                keep(run, progress, point)?;
            }
            Err(Error::MaxWritten) => {
                if !goes_on_without(run, progress, &visit, None)? {
                    return Ok((EndReason::Written, None));
                }
            }
            Err(Error::Interrupted) => return Ok((EndReason::Interrupted, None)),
            Err(error) => return Ok((EndReason::Failed, Some(error.to_string()))),
        }
    }
}

/// The system vector follows the graphs of both layers; where they take all of the time it comes so
/// many visits before there would be none left for it (for half of it, while graphs are missing), and where the
/// next visit needs bytes that are kept for it, before that visit.
const VISITS_AFTER_VECTOR: f64 = 2.0;
/// A device whose wear is bounded is spared the vector where less than this may be written, bytes: a
/// round writes some 200 MiB at most.
const VECTOR_WRITES_BYTES: u64 = 256 << 20;

/// The vector writes at most a 16th of `--max-written`. Its twelve rounds, for which a minute is enough, write 3 GiB, and
/// visits need these more. A choice.
const VECTOR_SHARE: u64 = 16;

fn vector_is_due(
    run: &Run<'_>,
    progress: &Progress,
    (next, elapsed_s): (Option<&Visit>, f64),
) -> bool {
    if run.vector.is_none() {
        return false;
    }
    let is_late =
        |visit: &Visit| matches!(visit.role, Role::Refinement | Role::Extra | Role::OpenLoop);
    let usual_s = vector::budget_s(run.header.budget_s);
    let kept_s = if has_open_graphs(run, progress) { usual_s / 2.0 } else { usual_s };
    let is_last_moment =
        elapsed_s + kept_s + VISITS_AFTER_VECTOR * progress.visit_s() >= run.budget_s;
    is_last_moment || next.is_none_or(is_late)
}

fn has_open_graphs(run: &Run<'_>, progress: &Progress) -> bool {
    !run.plan.owed(&seen_now(run.header, run.rig, progress)).is_empty()
}

/// How long the system vector may take, seconds: its usual time or what is left, where graphs are still missing
/// less the time of the visits after it, but at least half of the usual.
fn vector_s(run: &Run<'_>, progress: &Progress, left_s: f64) -> f64 {
    let usual_s = vector::budget_s(run.header.budget_s);
    let visits = if has_open_graphs(run, progress) { VISITS_AFTER_VECTOR } else { 0.0 };
    (left_s - visits * progress.visit_s()).clamp(usual_s / 2.0, usual_s)
}

/// Measures it and writes its lines. What there is no time or room for is left out, and said.
fn measure_vector(
    run: &mut Run<'_>,
    progress: &mut Progress,
    elapsed_s: f64,
) -> Result<Option<Ending>, JournalError> {
    let Some(mut measure) = run.vector.take() else { return Ok(None) };
    let left_s = run.budget_s - elapsed_s;
    let budget_s = vector_s(run, progress, left_s);
    let left_out =
        |text: &str| vec![LeftOut { part: Part::SystemVector, text: format!("all of it: {text}") }];
    if budget_s > left_s {
        progress.vector_left_out = left_out("there was no time left");
        return Ok(None);
    }
    let left_bytes = run.rig.may_write_bytes();
    let most_bytes = run.header.limits.written_max_bytes.unwrap_or(u64::MAX);
    let share_bytes = (most_bytes / VECTOR_SHARE).max(VECTOR_WRITES_BYTES);
    let written_max_bytes = share_bytes.min(left_bytes / 2);
    if written_max_bytes < VECTOR_WRITES_BYTES {
        progress.vector_left_out = left_out("--max-written leaves too little for it");
        return Ok(None);
    }
    let on_event = &mut *run.on_event;
    match measure((budget_s, written_max_bytes), &mut |step| on_event(Event::Vector(step))) {
        Ok(vector) => {
            for element in &vector.elements {
                (run.journal)(&Line::Element(element.clone()))?;
            }
            progress.note_written(vector.written_bytes);
            progress.vector_left_out = vector::left_out(&vector);
        }
        Err(Error::Interrupted) => return Ok(Some((EndReason::Interrupted, None))),
        Err(error) => progress.vector_left_out = left_out(&error.to_string()),
    }
    Ok(None)
}

/// Goes on without a visit that `--max-written` has no room for, and without those like it: with fewer new files, or with
/// fewer writes, which is noted. False if the run has to end.
fn goes_on_without(
    run: &mut Run<'_>,
    progress: &mut Progress,
    visit: &Visit,
    expected_bytes: Option<u64>,
) -> Result<bool, JournalError> {
    let work = &visit.workload;
    if expected_bytes.is_some_and(|bytes| share::limit_new_files(progress, work, bytes)) {
        return Ok(true);
    }
    let elapsed_s = progress.elapsed_s(run.rig);
    let left_s = run.budget_s - elapsed_s;
    let at = StoppedWriting {
        elapsed_s,
        budget_s: run.budget_s,
        left_bytes: run.rig.may_write_bytes(),
        expected_bytes,
        visits: (left_s / progress.visit_s()) as u64,
    };
    let warning = written::left_out(run.header, work, &at);
    note(run, progress, warning)?;
    Ok(progress.write_less(run.header))
}

fn next_visit(run: &mut Run<'_>, progress: &mut Progress, elapsed_s: f64) -> Option<Visit> {
    if !run.header.is_quick && elapsed_s - progress.last_canary_s >= CANARY_EVERY_S {
        progress.last_canary_s = elapsed_s;
        let ranges = &run.header.ranges;
        let workload = Workload {
            unique_bytes: ranges.unique_bytes.min,
            size_mean: Workload::default().size_mean.max(ranges.size_mean.min),
            read_frac: 1.0,
            seq_frac: 0.0,
            access: ranges.access,
            ..Workload::default()
        };
        if workload.check().is_ok() {
            return Some(Visit { workload, role: Role::Canary, round: 0 });
        }
    }
    run.plan.next(&seen_now(run.header, run.rig, progress))
}

/// This visit, or where there is no time for it one that was asked for and is quicker.
fn visit_that_fits(
    run: &mut Run<'_>,
    progress: &Progress,
    visit: Visit,
    elapsed_s: f64,
) -> Option<Visit> {
    let (header, budget_s) = (run.header, run.budget_s);
    let fits = |visit: &Visit| elapsed_s + progress.next_visit_s(header, visit) <= budget_s;
    if fits(&visit) || header.asked.is_empty() {
        return Some(visit).filter(fits);
    }
    let late = Seen { elapsed_s: budget_s, ..seen_now(header, run.rig, progress) };
    let asked = run.plan.next(&late);
    asked.filter(|visit| header.asked.contains(&visit.workload) && fits(visit))
}

fn files_bytes(progress: &Progress) -> u64 {
    extent::files_bytes(progress.points.iter().map(|point| &point.workload))
}

/// The plan's view in the course of a run.
fn seen_now<'a>(header: &Header, rig: &dyn Rig, progress: &'a Progress) -> Seen<'a> {
    // Layout is no choice: a third of what it leaves is for the search.
    let laid_out_bytes = files_bytes(progress).saturating_sub(progress.laid_out_before_bytes);
    let free_bytes = progress.may_write_at_start_bytes.saturating_sub(laid_out_bytes);
    let is_limited = header.limits.written_max_bytes.is_some();
    let spares_writes = is_limited && rig.may_write_bytes() < free_bytes / 3 * 2;
    let Progress { reads_only, absorbed_up_to_bytes, writes_up_to_bytes, .. } = *progress;
    let Progress { lays_out_up_to_bytes, device_is_due, .. } = *progress;
    Seen {
        laid_out: progress.written.laid_out(&progress.points),
        reads_only,
        absorbed_up_to_bytes,
        writes_up_to_bytes,
        lays_out_up_to_bytes,
        device_is_due,
        spares_writes,
        ..seen(header, &progress.points)
    }
}

/// How long a visit of the graphs may measure, so that there is time for those to come, seconds.
fn share_of_graphs_s(run: &Run<'_>, progress: &Progress, elapsed_s: f64) -> f64 {
    let owed = run.plan.owed(&seen_now(run.header, run.rig, progress)).len().max(1) as f64;
    let visit_s = progress.visit_s();
    // Visits are hurried before the vector is shortened.
    let for_vector_s = vector::budget_s(run.header.budget_s) + VISITS_AFTER_VECTOR * visit_s;
    let kept_s = if run.vector.is_some() { for_vector_s } else { visit_s };
    (run.budget_s - elapsed_s - kept_s) / owed - progress.beside_measuring_s()
}

/// The rules of a visit that may measure no longer than this, seconds. Writers run in for as long as the
/// rules allow: until the amount of dirty data is level, memory takes the writes.
fn hurried(rules: Rules, work: &Workload, measure_s: f64) -> Rules {
    if measure_s >= rules.measure_max_s {
        return rules;
    }
    let measure_max_s = measure_s.max(HURRIED_S).min(rules.measure_max_s);
    let windows = (measure_max_s / rules.window_s).floor().max(1.0) as u32;
    Rules {
        measure_max_s,
        windows_min: rules.windows_min.min(windows),
        ramp_s: rules.ramp_s.min(measure_max_s / 2.0),
        ramp_max_s: if work.read_frac < 1.0 {
            rules.ramp_max_s
        } else {
            rules.ramp_max_s.min(2.0 * measure_max_s)
        },
        ..rules
    }
}

/// The rules of an open loop: its throughput is soon known, its 99th percentile takes so many requests.
fn at_a_rate(rules: Rules, rate_per_s: f64) -> Rules {
    let measure_max_s = (RATE_REQUESTS / rate_per_s).clamp(RATE_LEAST_S, RATE_MOST_S);
    let window_s = measure_max_s / f64::from(RATE_WINDOWS);
    Rules { window_s, windows_min: RATE_WINDOWS, measure_max_s, ..rules }
}

fn make(run: &mut Run<'_>, progress: &Progress, visit: &Visit) -> Result<Point, Error> {
    let elapsed_s = progress.elapsed_s(run.rig);
    let left_s = run.budget_s - elapsed_s;
    let rules = match visit.role {
        Role::Canary => canary_rules(),
        Role::ReadBorder | Role::WriteBorder if is_short(run.header) => {
            hurried(run.header.rules, &visit.workload, SEARCH_HURRIED_S)
        }
        Role::Family => {
            let measure_s = share_of_graphs_s(run, progress, elapsed_s);
            hurried(run.header.rules, &visit.workload, measure_s)
        }
        Role::OpenLoop => at_a_rate(run.header.rules, visit.workload.rate),
        _ => run.header.rules,
    };
    let rules = Rules {
        measure_max_s: rules.measure_max_s.min(left_s.max(1.0)),
        sync_at_end: rules.sync_at_end && flush_s(run.header, &visit.workload) <= FLUSH_MAX_S,
        ..rules
    };
    let subject = Subject {
        work: &visit.workload,
        role: visit.role,
        round: visit.round,
        seed: visit_seed(run.header.seed, progress.points.len()),
    };
    let visits_left = left_s / progress.visit_s();
    let kept_bytes = share::kept_bytes(run, progress, &visit.workload);
    let left_bytes = run.rig.may_write_bytes().saturating_sub(kept_bytes);
    let share_bytes = written::share_bytes(run.header, &visit.workload, (left_bytes, visits_left));
    let on_event = &mut *run.on_event;
    let mut on_event = |event| on_event(Event::Measuring(event));
    let mut point = measure_sparing(&subject, &rules, (run.rig, share_bytes), &mut on_event)?;
    point.started_s = elapsed_s;
    Ok(point)
}

/// What flushing all that a workload can leave dirty takes at the speed of layout, seconds.
fn flush_s(header: &Header, work: &Workload) -> f64 {
    let dirty_bytes = header.host.dirty_limit_bytes.min(work.unique_bytes) as f64;
    header.hints.layout_bytes_per_s.map_or(0.0, |rate| dirty_bytes / rate)
}

/// Every visit draws requests of its own: the same addresses again would find their pages cached.
fn visit_seed(seed: u64, visits: usize) -> u64 {
    // The constant of SplitMix64: neighbouring visits get seeds that have nothing in common.
    seed.wrapping_add((visits as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn canary_rules() -> Rules {
    Rules {
        windows_min: 5,
        precision: 0.5,
        ramp_s: 0.1,
        measure_max_s: 0.5,
        sync_at_end: false,
        ..Rules::brief()
    }
}

fn keep(run: &mut Run<'_>, progress: &mut Progress, point: Point) -> Result<(), JournalError> {
    (run.journal)(&Line::Point(point.clone()))?;
    (run.on_event)(Event::Point(&point));
    if let Some(warning) = stalled(&point) {
        note(run, progress, warning)?;
    }
    progress.points.push(point);
    Ok(())
}

/// Whether writers seem to have been held up, and not we.
fn stalled(point: &Point) -> Option<Warning> {
    let running_s = point.spent_s.settling + point.spent_s.measuring + point.spent_s.sync;
    if running_s <= STALL_S || point.workload.read_frac >= 1.0 || stood_still(point) {
        return None;
    }
    let text = Words::new(
        "a visit that writes took {running_s:.0} s where a few were planned: {workload}",
    )
    .figure("running_s", running_s)
    .name("workload", &point.workload);
    let remedy =
        "if writers stall in reclaim, set dirty limits that suit the memory limit (--dirty-limit)";
    Some(Warning::new(Code::WriteStall, text, remedy))
}

/// Enters a doubt about the run, once for each code.
fn note(run: &mut Run<'_>, progress: &mut Progress, warning: Warning) -> Result<(), JournalError> {
    let known = |known: &Warning| known.code == warning.code && known.severity >= warning.severity;
    if !progress.warnings.iter().any(known) {
        (run.journal)(&Line::Warning(warning.clone()))?;
        progress.warnings.push(warning);
    }
    Ok(())
}

/// Whether a map is due before a visit that may end at `end_s`: the first one must not wait for a
/// visit that could take too long.
fn map_is_due(run: &Run<'_>, progress: &Progress, end_s: f64) -> bool {
    if progress.revision == 0 {
        return end_s >= FIRST_MAP_S.min(run.budget_s / 3.0) && !progress.points.is_empty();
    }
    let may_end = run.header.limits.precision.is_some();
    let every = if may_end { MAP_EVERY_POINTS_PRECISE } else { MAP_EVERY_POINTS };
    progress.points.len() >= progress.points_at_map + every
}

fn end_line(run: &Run<'_>, progress: &Progress, reason: EndReason) -> End {
    End {
        written_bytes: progress.written_bytes(run.rig),
        device_written_bytes: progress.device_written_bytes(run.rig),
        forecast: run.header.forecast,
        ..End::after(reason, &progress.points, progress.elapsed_s(run.rig))
    }
}

#[cfg(test)]
mod tests {
    use ioscape_engine::{SimRig, SimSpec};
    use ioscape_model::datasheet;

    use super::*;
    use crate::plan::formula;

    #[test]
    fn an_open_loop_is_measured_as_long_as_its_99th_percentile_takes() {
        let line = datasheet::named(datasheet::RATE_LINE).unwrap();
        for (rate, wanted_s) in [(10_000.0, RATE_LEAST_S), (500.0, RATE_REQUESTS / 500.0)] {
            let work = datasheet::at_rate(&line, rate);
            let subject = Subject { work: &work, role: Role::OpenLoop, round: 0, seed: 1 };
            let rules = at_a_rate(Rules::brief(), rate);
            let mut rig = SimRig::new(SimSpec::preset("nvme").unwrap(), 1);
            let point =
                measure_sparing(&subject, &rules, (&mut rig, u64::MAX), &mut |_| {}).unwrap();
            assert!(point.spent_s.measuring > 0.95 * wanted_s, "{rate}: {:?}", point.spent_s);
        }
    }

    #[test]
    fn a_visit_in_which_we_stood_still_is_no_stall_of_the_writers_and_foretells_nothing() {
        let workload = Workload { read_frac: 0.0, ..Workload::default() };
        let visit = Visit { workload, role: Role::Family, round: 0 };
        let mut point = formula::point(&visit, 1e9);
        point.spent_s.settling = 24.0;
        point.elapsed_s = 25.0;
        let next_s = |point: &Point| {
            Progress::after(Earlier { points: vec![point.clone()], ..Earlier::default() }).visit_s()
        };
        let warning = stalled(&point).unwrap();
        assert_eq!(warning.code, Code::WriteStall);
        let running_s = 24.0 + point.spent_s.measuring + point.spent_s.sync;
        assert!((warning.figures["running_s"] - running_s).abs() < 1e-9, "{:?}", warning.figures);
        let shown = format!("took {running_s:.0} s where a few were planned: {}", point.workload);
        assert!(warning.text.ends_with(&shown), "{}", warning.text);
        assert!(next_s(&point) > 24.0);
        point.warnings.push(Warning::new(Code::ClockJump, "stopped".to_owned(), "measure again"));
        assert_eq!(stalled(&point), None);
        assert!(next_s(&point) < 3.0);
    }
}
