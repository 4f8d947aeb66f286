//! What a map has beside the ranges of its first layer: the data sheet and the device layer, as far
//! as the target, the budget and the room allow.

use ioscape_engine::Error;
use ioscape_model::units::{MIB, show_bytes};
use ioscape_model::{
    Access, Code, DeviceLayer, Header, Layer, Limits, Method, Range, Ranges, Severity, SheetLine,
    TargetKind, Warning, datasheet,
};

use super::Settings;
use crate::bench::Bench;
use crate::plan::extent;
use crate::plan::left_out::{DEVICE_BUDGET_MIN_S, SHEET_BUDGET_MIN_S};

/// A smaller span is no device layer, bytes.
const SPAN_MIN_BYTES: u64 = 64 * MIB;
/// Files of several processes may add this part of the span to it.
const OTHER_FILES_SHARE: f64 = 0.25;

/// Adds them to a header that has everything else.
pub(super) fn add(
    header: &mut Header,
    bench: &mut Bench,
    settings: &Settings,
) -> Result<(), Error> {
    let is_asked = settings.is_quick || settings.span_bytes.is_some();
    if header.method != Method::Blend {
        return if is_asked { Err(only_blend()) } else { Ok(()) };
    }
    header.is_quick = settings.is_quick;
    if !is_asked && header.budget_s < SHEET_BUDGET_MIN_S {
        return Ok(());
    }
    let wants = |access: Access| settings.access.is_none_or(|asked| asked == access);
    let refusal = bench.rig.refuses_direct().filter(|_| wants(Access::Direct));
    if let Some(why) = &refusal {
        if settings.access == Some(Access::Direct) || settings.span_bytes.is_some() {
            return Err(Error::Refused(format!(
                "there is no device layer here: {why}; leave --access and --span out, or name \
                 another directory"
            )));
        }
        bench.warnings.push(no_device_layer(why));
    }
    let span_bytes = span_bytes(header, bench, settings)?;
    let has_device = wants(Access::Direct) && refusal.is_none() && span_bytes >= SPAN_MIN_BYTES;
    let room_bytes = header.hints.room_bytes;
    header.datasheet = datasheet::lines(span_bytes);
    header.datasheet.retain(|line| match line.workload.access {
        Access::Buffered => wants(Access::Buffered) && line.workload.unique_bytes <= room_bytes,
        Access::Direct => has_device,
    });
    header.is_read_only = bench.read_only;
    if bench.read_only {
        let is_in_use = header.target.kind == TargetKind::File;
        header.datasheet.retain(|SheetLine { workload, .. }| {
            workload.read_frac >= 1.0 && (workload.access == Access::Direct || !is_in_use)
        });
    }
    let has_time = header.budget_s >= DEVICE_BUDGET_MIN_S || settings.span_bytes.is_some();
    let has_room = has_device && has_time;
    if settings.access.is_none() && !settings.is_quick && has_room {
        let room_bytes = bench.rig.hints().room_bytes;
        header.device = Some(device_layer(header, span_bytes, room_bytes));
    }
    if settings.is_quick && header.datasheet.is_empty() {
        return Err(Error::Refused(
            "there is no room for a data sheet: 64 MiB of test data are needed, and twice that \
             free"
                .to_owned(),
        ));
    }
    Ok(())
}

fn only_blend() -> Error {
    Error::Refused("the data sheet and the device layer go with --method blend".to_owned())
}

/// The device layer over a span, with the ranges of the other layer.
fn device_layer(header: &Header, span_bytes: u64, room_bytes: u64) -> DeviceLayer {
    let least = header.ranges.unique_bytes.min.min(span_bytes);
    let ranges = Ranges {
        unique_bytes: Range { min: least, max: span_bytes },
        access: Access::Direct,
        ..header.ranges
    };
    let others_bytes = extent::other_files_bytes(&header.ranges, header.hints.room_bytes)
        .max(span_bytes as f64 * OTHER_FILES_SHARE)
        .min(span_bytes as f64 / 2.0);
    let room_bytes = room_bytes.min(span_bytes + others_bytes as u64);
    DeviceLayer { ranges, room_bytes }
}

/// The span that was asked for, or what there is time and room for.
fn span_bytes(header: &Header, bench: &Bench, settings: &Settings) -> Result<u64, Error> {
    let found = bench.rig.hints();
    let others_bytes =
        if settings.is_quick || Layer::of_access(header.ranges.access) == Layer::Device {
            0.0
        } else {
            extent::other_files_bytes(&header.ranges, header.hints.room_bytes)
        };
    // `--range unique_bytes=…` does not bound the span.
    let limits = Limits { unique_max_bytes: settings.unique_max_bytes, ..header.limits };
    let layout_s = extent::span_layout_s(header.budget_s, settings.is_quick);
    let by_default = extent::span_bytes(&found, &limits, (layout_s, others_bytes));
    let of_simulated = bench.sim_ranges.map_or(u64::MAX, |ranges| ranges.unique_bytes.max);
    let Some(asked_bytes) = settings.span_bytes else { return Ok(by_default.min(of_simulated)) };
    let room_bytes = (found.room_bytes as f64 - others_bytes).max(0.0) as u64;
    if asked_bytes > room_bytes {
        return Err(Error::Refused(format!(
            "--span {}: only {} of test data fit beside the other files (half of the free space \
             bounds them all)",
            show_bytes(asked_bytes as f64),
            show_bytes(room_bytes as f64)
        )));
    }
    if asked_bytes < SPAN_MIN_BYTES {
        return Err(Error::Refused(format!(
            "--span {}: a device layer needs {} or more",
            show_bytes(asked_bytes as f64),
            show_bytes(SPAN_MIN_BYTES as f64)
        )));
    }
    Ok(asked_bytes / MIB * MIB)
}

fn no_device_layer(why: &str) -> Warning {
    let text =
        format!("the map has no device layer, and its data sheet has only the cached line: {why}");
    let remedy = "name a directory on a disk whose filesystem has direct access";
    Warning::new(Code::DirectNotDirect, text, remedy).with_severity(Severity::Note)
}
