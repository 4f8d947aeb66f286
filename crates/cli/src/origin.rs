//! What every record says of this program and this moment. Wall time is read here only.

use ioscape_engine::RunId;
use ioscape_model::{Origin, Tool};

const TIME: &str = "%Y-%m-%dT%H:%M:%SZ";

/// The origin of a record that begins now; the seed is drawn where none was given.
pub(crate) fn origin(run: &RunId, seed: Option<u64>) -> Origin {
    Origin {
        tool: tool(),
        command_line: command_line(),
        start_time: now_text(),
        run_id: run.as_str().to_owned(),
        seed: seed.unwrap_or_else(drawn_seed),
    }
}

/// The program, as records name it.
pub(crate) fn tool() -> Tool {
    Tool {
        name: "ioscape".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}

/// What was typed.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Wall-clock time, UTC.
pub(crate) fn now_text() -> String {
    jiff::Timestamp::now().strftime(TIME).to_string()
}

/// A time in seconds since 1970, UTC.
pub(crate) fn time_text(seconds: i64) -> Option<String> {
    Some(jiff::Timestamp::from_second(seconds).ok()?.strftime(TIME).to_string())
}

/// A seed nobody chose. 53 bits survive every JSON reader.
pub(crate) fn drawn_seed() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64 & ((1 << 53) - 1)
}
