//! Metrics in text, for a textfile collector or a gateway: gauges with their units, one series per
//! workload, without timestamps. The dashboard's clock is not the record's. Every line means the same
//! to a reader of `OpenMetrics` and to one of the older Prometheus format, which knows no type `info`
//! (`node_exporter` drops a whole file that has one) and takes `# UNIT` and `# EOF` for comments.

use std::fmt::Write as _;

use ioscape_model::{Border, Estimate, Record, Region, Severity, word};

use super::region;

/// The estimates and what the map says, as gauges.
pub fn openmetrics(record: &Record) -> String {
    let mut text = String::new();
    about(&mut text, record);
    estimates(&mut text, record);
    borders(&mut text, record);
    regions(&mut text, record);
    warnings(&mut text, record);
    text.push_str("# EOF\n");
    text
}

/// A metric family: all of its samples stand together.
pub(crate) struct MetricFamily<'a> {
    text: &'a mut String,
    name: String,
}

impl<'a> MetricFamily<'a> {
    /// `unit` becomes the end of the name, as the format asks; empty where there is none.
    pub(crate) fn gauge(text: &'a mut String, name: &str, unit: &str, help: &str) -> Self {
        let name = if unit.is_empty() {
            format!("ioscape_{name}")
        } else {
            format!("ioscape_{name}_{unit}")
        };
        let _ = writeln!(text, "# TYPE {name} gauge"); // a String takes everything
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {help}");
        Self { text, name }
    }

    pub(crate) fn sample(&mut self, labels: &[(&str, &str)], value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let labels = labelled(labels);
        let _ = writeln!(self.text, "{}{labels} {value:?}", self.name);
    }
}

fn labelled(labels: &[(&str, &str)]) -> String {
    let one = |(name, value): &(&str, &str)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    let all: Vec<String> = labels.iter().map(one).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

fn about(text: &mut String, record: &Record) {
    let header = &record.header;
    text.push_str("# TYPE ioscape_record_info gauge\n");
    text.push_str("# HELP ioscape_record_info Which record these figures are from.\n");
    let labels = labelled(&[
        ("run_id", &header.run_id),
        ("started", &header.start_time),
        ("target", &header.target.path),
        ("filesystem", &header.target.filesystem),
        ("method", &word(header.method)),
        ("version", &header.tool.version),
    ]);
    let _ = writeln!(text, "ioscape_record_info{labels} 1");
}

/// Name, unit, help, and where the figure stands.
type Figure = (&'static str, &'static str, &'static str, fn(&Estimate) -> Option<f64>);
/// Name, help, and where the bytes stand.
type Bytes<T> = (&'static str, &'static str, fn(&T) -> f64);

const FIGURES: [Figure; 16] = [
    ("throughput", "bytes_per_second", "Absorbed throughput, mean over the visits.", |e| {
        Some(e.throughput_bytes_per_s.mean)
    }),
    ("throughput_low", "bytes_per_second", "Lower end of its 95 % interval.", |e| {
        Some(e.throughput_bytes_per_s.low)
    }),
    ("throughput_high", "bytes_per_second", "Upper end of its 95 % interval.", |e| {
        Some(e.throughput_bytes_per_s.high)
    }),
    ("durable_throughput", "bytes_per_second", "Throughput, the final fdatasync included.", |e| {
        e.durable_bytes_per_s
    }),
    ("requests", "per_second", "Requests per second.", |e| Some(e.ops_per_s.mean)),
    ("requests_low", "per_second", "Lower end of its 95 % interval.", |e| Some(e.ops_per_s.low)),
    ("requests_high", "per_second", "Upper end of its 95 % interval.", |e| Some(e.ops_per_s.high)),
    ("response_time", "seconds", "Response time of a request, mean.", |e| {
        time_s(e.response_time_s.mean)
    }),
    ("response_time_p50", "seconds", "Response time, median.", |e| time_s(e.response_time_s.p50)),
    ("response_time_p90", "seconds", "Response time, 90th percentile.", |e| {
        time_s(e.response_time_s.p90)
    }),
    ("response_time_p99", "seconds", "Response time, 99th percentile.", |e| {
        time_s(e.response_time_s.p99)
    }),
    ("response_time_p999", "seconds", "Response time, 99.9th percentile.", |e| {
        time_s(e.response_time_s.p999)
    }),
    ("response_time_max", "seconds", "The longest response time.", |e| {
        time_s(e.response_time_s.max)
    }),
    ("hit", "ratio", "Share of the requested pages found resident.", |e| e.hit_fraction),
    ("visits", "", "Visits that the figures rest on.", |e| Some(f64::from(e.visits))),
    ("steady", "", "1 where every visit was steady, 0 where one was not.", |e| {
        Some(f64::from(u8::from(e.steady)))
    }),
];

/// No request takes no time: zero stands where nobody looked.
fn time_s(time_s: f64) -> Option<f64> {
    (time_s > 0.0).then_some(time_s)
}

fn estimates(text: &mut String, record: &Record) {
    for (name, unit, help, figure) in FIGURES {
        let mut family = MetricFamily::gauge(text, name, unit, help);
        for estimate in &record.estimates {
            let region = region(record, &estimate.workload).map_or_else(String::new, String::from);
            let workload = estimate.workload.literal();
            family.sample(&[("workload", &workload), ("region", &region)], figure(estimate));
        }
    }
}

fn borders(text: &mut String, record: &Record) {
    let parts: [Bytes<Border>; 4] = [
        ("onset", "Where time per request is 10 % over the plateau.", |b| b.unique_bytes.onset),
        ("capacity", "The size of the cache behind the border.", |b| b.unique_bytes.capacity),
        ("capacity_low", "Lower end of its 95 % interval.", |b| b.unique_bytes.low),
        ("capacity_high", "Upper end of its 95 % interval.", |b| b.unique_bytes.high),
    ];
    for (part, help, figure) in parts {
        let mut family = MetricFamily::gauge(text, &format!("border_{part}"), "bytes", help);
        for (index, border) in record.borders.iter().enumerate() {
            let labels = [("border", (index + 1).to_string()), ("curve", word(border.curve))];
            let labels = labels.each_ref().map(|(name, value)| (*name, value.as_str()));
            family.sample(&labels, Some(figure(border)));
        }
    }
}

fn regions(text: &mut String, record: &Record) {
    let parts: [Bytes<Region>; 2] = [
        ("from", "Data touched from which on the region lies.", |r| r.unique_bytes.from),
        ("to", "Data touched up to which the region lies.", |r| r.unique_bytes.to),
    ];
    for (part, help, figure) in parts {
        let mut family = MetricFamily::gauge(text, &format!("region_{part}"), "bytes", help);
        for (index, region) in record.regions.iter().enumerate() {
            let number = (index + 1).to_string();
            let name = region.name.to_string();
            let labels = [("number", number.as_str()), ("region", &name)];
            family.sample(&labels, Some(figure(region)));
        }
    }
}

/// How many doubts there are about the run as a whole.
fn warnings(text: &mut String, record: &Record) {
    let help = "Warnings about the run as a whole.";
    let mut family = MetricFamily::gauge(text, "warnings", "", help);
    for severity in [Severity::Note, Severity::Warning, Severity::Serious] {
        let count = record.warnings.iter().filter(|warning| warning.severity == severity).count();
        family.sample(&[("severity", &word(severity))], Some(count as f64));
    }
}
