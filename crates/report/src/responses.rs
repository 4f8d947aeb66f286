//! How response times are distributed: percentiles of reads, of writes and at the focal vector,
//! region by region.

use ioscape_model::{Estimate, Record};

use crate::chart::{Axis, Chart, Drawn, Ink, Mark, Scale, Series, Unit};
use crate::costs::share_axis;
use crate::family::Family;
use crate::figures;
use crate::sample::Samples;
use crate::summary;

/// Colours of regions, in their order.
const INKS: [Ink; 6] = [Ink::Read, Ink::Write, Ink::Mixed, Ink::Fill, Ink::Canary, Ink::Plain];
const PERCENTILES: [&str; 5] = ["50 %", "90 %", "99 %", "99.9 %", "longest"];

/// Three graphs, those without anything to draw left out.
pub(crate) fn charts(record: &Record, samples: &Samples<'_>) -> Vec<Chart> {
    let families: Vec<Family<'_>> =
        record.regions.iter().map(|region| Family::new(region, samples)).collect();
    let chart = |id: &str, title: &str, pick: &dyn Fn(&Family<'_>) -> Option<Estimate>| {
        let picked = || families.iter().filter_map(|family| Some((family, pick(family)?)));
        let series = picked().enumerate().map(|(index, (family, estimate))| Series {
            name: family.region.name.to_string(),
            ink: INKS[index % INKS.len()],
            drawn: Drawn::Joined,
            marks: marks(&estimate),
        });
        let about = picked().map(|(family, estimate)| {
            let work = figures::workload(&estimate.workload);
            format!("{}: {work}", family.region.name)
        });
        Chart {
            id: format!("responses-{id}"),
            title: title.to_owned(),
            caption: format!("{}.", about.collect::<Vec<_>>().join("; ")),
            x: Axis::of_names("requests within", PERCENTILES.map(str::to_owned).to_vec()),
            y: Axis::new("response time", Scale::Log10, Unit::Seconds),
            series: series.filter(|series| !series.marks.is_empty()).collect(),
            bands: vec![],
            rules: vec![],
        }
    };
    let end = |ink| move |family: &Family<'_>| summary::end_of(family, samples, ink).cloned();
    let mut charts = vec![
        chart("reads", "reads only", &end(Ink::Read)),
        chart("writes", "writes only", &end(Ink::Write)),
        chart("focal", "focal vector", &|family| family.focal().cloned()),
    ];
    charts.retain(|chart| !chart.is_empty());
    share_axis(&mut charts);
    charts
}

fn marks(estimate: &Estimate) -> Vec<Mark> {
    let times = &estimate.response_time_s;
    let mark = |(index, seconds): (usize, f64)| Mark {
        x: index as f64 + 1.0,
        y: ioscape_model::Interval::exact(seconds),
        note: String::new(),
    };
    let all = [times.p50, times.p90, times.p99, times.p999, times.max];
    all.into_iter().enumerate().filter(|(_, seconds)| *seconds > 0.0).map(mark).collect()
}
