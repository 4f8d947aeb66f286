//! The columns of the two tables: one row per estimate, or one row per visit. `docs/formats.md`
//! lists them; a test holds the two together.

use ioscape_model::{
    ClassTotals, Estimate, Interval, Point, Record, ResponseTime, Warning, Workload, word,
};

use super::region;
use super::table::{Builder, Table};

/// One row per workload, pooled over its visits: intervals are 95 % from the variance between
/// visits.
pub fn estimates(record: &Record) -> Table {
    let mut table = Builder::new(&record.estimates);
    workload(&mut table, record, |estimate| &estimate.workload);
    table.integer("visits", |estimate| Some(estimate.visits.into()));
    interval(&mut table, "throughput", "bytes_per_s", |estimate| &estimate.throughput_bytes_per_s);
    table.real("durable_bytes_per_s", |estimate| estimate.durable_bytes_per_s);
    interval(&mut table, "ops", "per_s", |estimate| &estimate.ops_per_s);
    times(&mut table, "response_time", |estimate| Some(&estimate.response_time_s));
    table.real("hit_fraction", |estimate| estimate.hit_fraction);
    table.truth("steady", |estimate| Some(estimate.steady));
    warnings(&mut table, |estimate: &Estimate| &estimate.warnings);
    table.finish()
}

/// One row per visit: intervals are 95 % within the visit, and no error bars.
pub fn visits(record: &Record) -> Table {
    let mut table = Builder::new(&record.points);
    workload(&mut table, record, |point| &point.workload);
    table.text("role", |point| Some(word(point.role)));
    table.integer("round", |point| Some(point.round.into()));
    table.text("engine", |point| Some(point.engine.clone()));
    table.real("started_s", |point| Some(point.started_s));
    interval(&mut table, "throughput", "bytes_per_s", |point| &point.throughput_bytes_per_s);
    table.real("durable_bytes_per_s", |point| point.durable_bytes_per_s);
    table.real("ops_per_s", |point| Some(point.ops_per_s));
    times(&mut table, "response_time", |point| Some(&point.response_time_s));
    times(&mut table, "latency", |point| point.latency_s.as_ref());
    class(&mut table, "read_seq", |point| &point.classes.read_seq);
    class(&mut table, "read_rand", |point| &point.classes.read_rand);
    class(&mut table, "write_seq", |point| &point.classes.write_seq);
    class(&mut table, "write_rand", |point| &point.classes.write_rand);
    table.real("hit_fraction", |point| point.hit_fraction);
    table.integer("resident_bytes", |point| point.resident_bytes);
    table.real("read_amplification", |point| point.read_amplification);
    table.real("write_absorbed_fraction", |point| point.write_absorbed_fraction);
    table.integer("dirty_bytes", |point| point.dirty_bytes);
    table.integer("writeback_bytes", |point| point.writeback_bytes);
    table.real("cpu_s_per_op", |point| point.cpu_s_per_op);
    table.truth("steady", |point| Some(point.steady));
    table.integer("windows", |point| Some(point.windows.into()));
    table.integer("windows_cut", |point| Some(point.windows_cut.into()));
    table.real("elapsed_s", |point| Some(point.elapsed_s));
    table.real("spent_layout_s", |point| Some(point.spent_s.layout));
    table.real("spent_quiesce_s", |point| Some(point.spent_s.quiesce));
    table.real("spent_warm_up_s", |point| Some(point.spent_s.warm_up));
    table.real("spent_settling_s", |point| Some(point.spent_s.settling));
    table.real("spent_measuring_s", |point| Some(point.spent_s.measuring));
    table.real("spent_sync_s", |point| Some(point.spent_s.sync));
    warnings(&mut table, |point: &Point| &point.warnings);
    table.real("io_time_fraction", |point| point.io_time_fraction);
    table.finish()
}

/// Which run, which region, and all keys of the workload.
fn workload<T>(table: &mut Builder<'_, T>, record: &Record, of: impl Fn(&T) -> &Workload) {
    table.text("run_id", |_| Some(record.header.run_id.clone()));
    table.text("region", |item| region(record, of(item)).map(String::from));
    table.integer("unique_bytes", |item| Some(of(item).unique_bytes));
    table.integer("size_mean_bytes", |item| Some(of(item).size_mean));
    table.text("size_dist", |item| Some(word(of(item).size_dist)));
    table.real("read_frac", |item| Some(of(item).read_frac));
    table.real("seq_frac", |item| Some(of(item).seq_frac));
    table.text("seq_scope", |item| Some(word(of(item).seq_scope)));
    table.integer("process_num", |item| Some(of(item).process_num.into()));
    table.text("layout", |item| Some(word(of(item).layout)));
    table.integer("align_bytes", |item| Some(of(item).align));
    table.integer("depth", |item| Some(of(item).depth.into()));
    table.text("access", |item| Some(word(of(item).access)));
    table.integer("fsync_every_writes", |item| Some(of(item).fsync_every.into()));
    table.real("rate_ops_per_s", |item| Some(of(item).rate));
    table.text("arrivals", |item| (of(item).rate > 0.0).then(|| word(of(item).arrivals)));
    table.text("state", |item| Some(word(of(item).state)));
}

fn interval<T>(
    table: &mut Builder<'_, T>,
    name: &str,
    unit: &str,
    of: impl Fn(&T) -> &Interval + Copy,
) {
    table.real(&format!("{name}_mean_{unit}"), |item| Some(of(item).mean));
    table.real(&format!("{name}_low_{unit}"), |item| Some(of(item).low));
    table.real(&format!("{name}_high_{unit}"), |item| Some(of(item).high));
}

/// The name of a part, and where it stands.
type TimePart = (&'static str, fn(&ResponseTime) -> f64);

fn times<T>(
    table: &mut Builder<'_, T>,
    name: &str,
    of: impl Fn(&T) -> Option<&ResponseTime> + Copy,
) {
    let parts: [TimePart; 6] = [
        ("mean", |time| time.mean),
        ("p50", |time| time.p50),
        ("p90", |time| time.p90),
        ("p99", |time| time.p99),
        ("p999", |time| time.p999),
        ("max", |time| time.max),
    ];
    for (part, get) in parts {
        table.real(&format!("{name}_{part}_s"), |item| of(item).map(get).and_then(known_time_s));
    }
}

fn class(table: &mut Builder<'_, Point>, name: &str, of: fn(&Point) -> &ClassTotals) {
    table.integer(&format!("{name}_ops"), |point| Some(of(point).ops));
    table.integer(&format!("{name}_bytes"), |point| Some(of(point).bytes));
    table.real(&format!("{name}_mean_s"), |point| known_time_s(of(point).mean_s));
    table.real(&format!("{name}_p50_s"), |point| known_time_s(of(point).p50_s));
    table.real(&format!("{name}_p99_s"), |point| known_time_s(of(point).p99_s));
}

/// No request takes no time: zero stands where there was none, or where nobody looked.
fn known_time_s(time_s: f64) -> Option<f64> {
    (time_s > 0.0).then_some(time_s)
}

fn warnings<T>(table: &mut Builder<'_, T>, of: impl Fn(&T) -> &Vec<Warning>) {
    table.text("warnings", |item| {
        let codes: Vec<String> = of(item).iter().map(|warning| word(warning.code)).collect();
        (!codes.is_empty()).then(|| codes.join(";"))
    });
}
