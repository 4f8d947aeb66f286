//! What is doubtful in a description, in words.

use ioscape_model::app::{App, Doubt, DoubtCode};
use ioscape_model::units::{show_bytes, show_percent, show_seconds};

use crate::{Layer, TraceInfo};

/// A trace shorter than this says little, seconds.
const SHORT_S: f64 = 2.0;
/// Fewer requests than this say little.
const REQUESTS_MIN: u64 = 200;
/// Above this share the checksum does not hold.
const UNEXPLAINED_MAX: f64 = 0.01;
/// Above this share of the data touched, mappings matter.
const MAPPED_MAX: f64 = 0.1;

/// What else is known when doubts are told.
pub(super) struct DoubtContext<'a> {
    pub(super) info: &'a TraceInfo,
    pub(super) has_durations: bool,
    pub(super) arrivals_are_guessed: bool,
    pub(super) is_bounded: bool,
}

/// The doubts, those that matter most first.
pub(super) fn doubts(app: &App, ground: &DoubtContext<'_>) -> Vec<Doubt> {
    let DoubtContext { info, .. } = *ground;
    let whole = &app.whole;
    let mapped = whole.unique.mapped_bytes as f64 / whole.five.unique_bytes.max(1) as f64;
    let calls = (whole.calls + info.lost).max(1) as f64;
    let all = [
        (info.lost > 0).then(|| {
            let share = show_percent(info.lost as f64 / calls);
            (
                DoubtCode::Lost,
                format!("{} events were lost ({share}): counts are too low", info.lost),
            )
        }),
        (app.unexplained_fraction > UNEXPLAINED_MAX).then(|| {
            let share = show_percent(app.unexplained_fraction);
            let text = format!("{share} of what the kernel counted is explained by no event");
            (DoubtCode::Unexplained, text)
        }),
        (whole.requests < REQUESTS_MIN).then(|| {
            let text = format!(
                "only {} reads and writes: fractions are coarse; record for longer",
                whole.requests
            );
            (DoubtCode::FewRequests, text)
        }),
        (whole.elapsed_s < SHORT_S).then(|| {
            let time = show_seconds(whole.elapsed_s);
            let text = format!("the trace lasts {time}: start-up is much of it; record for longer");
            (DoubtCode::Short, text)
        }),
        (mapped > MAPPED_MAX).then(|| {
            let bytes = show_bytes(whole.unique.mapped_bytes as f64);
            let text = format!(
                "{bytes} were touched through mappings: only first touches are seen, so requests \
                 and sequence say little of them"
            );
            (DoubtCode::Mapped, text)
        }),
        (!ground.has_durations).then(|| {
            let text = "there are no durations: process_num is the number of streams";
            (DoubtCode::Clock, text.to_owned())
        }),
        (ground.arrivals_are_guessed && whole.requests >= REQUESTS_MIN).then(|| {
            let text = "whether requests wait for each other cannot be told: they are short beside \
                        the time between them";
            (DoubtCode::Arrivals, text.to_owned())
        }),
        (info.malformed > 0).then(|| {
            let text = format!("{} lines of the trace could not be read", info.malformed);
            (DoubtCode::Malformed, text)
        }),
        ground.is_bounded.then(|| {
            let text = "some file had more dirty pieces than are counted: pages at its syncs are a \
                        lower bound";
            (DoubtCode::Bounded, text.to_owned())
        }),
        of_layer(info.layer).map(|text| (DoubtCode::Layer, text.to_owned())),
    ];
    let limits = info.limits.iter().map(|text| (DoubtCode::Limit, text.clone()));
    let told = all.into_iter().flatten().chain(limits);
    told.map(|(code, text)| Doubt { code, text }).collect()
}

/// What a layer does not show.
fn of_layer(layer: Layer) -> Option<&'static str> {
    match layer {
        Layer::Block => Some(
            "block requests are what the page cache missed: the numbers are the device's, not the \
             application's",
        ),
        Layer::Http => Some("requests to a server are not its I/O"),
        Layer::KeyValue => Some("keys and values have no places: sequence is unknown"),
        Layer::File | Layer::Library => {
            Some("calls below the library or replay format are not seen: names and syncs may lack")
        }
        Layer::Syscall => None,
    }
}
