//! Limits of memory and dirty data around what a command measures outside of a bench, and the machine
//! under them.

use ioscape_engine::dirty_limit::DirtyLimit;
use ioscape_engine::memory_limit::MemoryLimit;
use ioscape_engine::{Clock, RunId, host};
use ioscape_model::Host;

use crate::args::Common;

/// In force for as long as it lives.
#[derive(Debug)]
pub(crate) struct LimitsInForce {
    _memory: Option<MemoryLimit>,
    _dirty: Option<DirtyLimit>,
}

/// Puts the limits that were asked for in force, and describes the machine as a file on `filesystem`
/// sees it then.
pub(crate) fn enter(
    common: &Common,
    run: &RunId,
    (clock, filesystem): (&Clock, &str),
) -> anyhow::Result<(LimitsInForce, Host)> {
    let dirty = common.dirty_limit.map(DirtyLimit::set).transpose()?;
    let enter = |bytes| MemoryLimit::enter(bytes, run);
    let memory = common.memory_limit.map(enter).transpose()?;
    let mut host = host::describe(clock);
    host.memory_limit_set_bytes = common.memory_limit;
    host.dirty_limit_set_bytes = common.dirty_limit;
    host::scale_dirty_limits(&mut host, filesystem);
    Ok((LimitsInForce { _memory: memory, _dirty: dirty }, host))
}
