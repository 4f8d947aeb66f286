//! `ioscape clean`: removes what killed runs left.

use ioscape_engine::{dirty_limit, files, memory_limit, target};
use ioscape_model::units::show_bytes;

use crate::args::CleanArgs;
use crate::exit::Exit;
use crate::output::answer;
use crate::output::one_line;

/// Removes leftovers from a directory, empty groups, and limits of runs that are gone.
pub(crate) fn clean(args: &CleanArgs) -> anyhow::Result<Exit> {
    let directory = target::open_directory(&args.directory)?;
    let left = files::leftovers(&directory)?;
    for leftover in &left {
        let state = if leftover.live { "in use by a run" } else { "left behind" };
        let path = one_line(&leftover.path.to_string_lossy());
        answer(&format!("{path}  {}  {state}", show_bytes(leftover.bytes as f64)))?;
    }
    if args.dry_run {
        return Ok(Exit::Fine);
    }
    let removed = files::remove_leftovers(&directory, None)?;
    match dirty_limit::restore_leftover() {
        Ok(true) => answer("restored the dirty limits that a killed run had set")?,
        Ok(false) => {}
        Err(error) => answer(&format!("dirty limits that a killed run set were left: {error}"))?,
    }
    let groups = memory_limit::remove_leftover_groups();
    answer(&format!(
        "removed {} files ({}) and {} memory groups",
        removed.files,
        show_bytes(removed.bytes as f64),
        groups
    ))?;
    Ok(Exit::Fine)
}
