//! Headers of records.

use ioscape_model::line::FORMAT_VERSION;
use ioscape_model::{Header, Hints, Host, Limits, Method, Ranges, Rules, Target, Tool};

/// The header of a ten-minute map of nowhere by nobody, for tests to change what they are about.
pub fn header(seed: u64, ranges: Ranges) -> Header {
    Header {
        format_version: FORMAT_VERSION,
        tool: Tool::default(),
        run_id: "0123456789ab".to_owned(),
        command_line: vec![],
        seed,
        start_time: String::new(),
        host: Host::default(),
        hosts: None,
        target: Target::default(),
        method: Method::Blend,
        rules: Rules::brief(),
        ranges,
        budget_s: 600.0,
        limits: Limits::default(),
        hints: Hints::default(),
        asked: vec![],
        forecast: None,
        datasheet: vec![],
        device: None,
        is_quick: false,
        is_read_only: false,
    }
}
