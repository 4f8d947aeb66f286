//! The measurements of Ousterhout 1990 as data, and his arithmetic: MIPS-relative speed and its
//! geometric means.

use std::collections::BTreeMap;

const CSV: &str = include_str!("../data/ousterhout-1990.csv");
/// What all others are held against.
const REFERENCE: &str = "MVAX2";
/// Our figures, and whose they are held against. Andrew is not among them: his compiler and his
/// sources are lost, and ours do another amount of work.
pub const COMPARED: [(&str, &str); 7] = [
    ("getpid", "getpid"),
    ("cswitch", "cswitch"),
    ("select 10 full", "select-10-full"),
    ("read", "read"),
    ("open-close foo", "open-close"),
    ("create-delete no data", "create-delete-0"),
    (COPY, "bcopy-uncached"),
];
/// The one that has no operating system in it.
pub const COPY: &str = "bcopy out of cache";

/// The benchmarks of [`COMPARED`] that call the operating system: all but [`COPY`].
pub fn calls() -> impl Iterator<Item = (&'static str, &'static str)> {
    COMPARED.into_iter().filter(|(name, _)| *name != COPY)
}

/// One figure of the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Of which table.
    pub table: u32,
    /// Short name of the machine.
    pub machine: &'static str,
    /// Operating system.
    pub system: &'static str,
    /// `local`, or how its files are remote: `NFS`, `AFS`, `diskless`.
    pub place: &'static str,
    /// What was measured.
    pub measure: &'static str,
    /// As printed, in the unit of [`unit_of`].
    pub value: f64,
    /// Text of that value: its digits say how far it was rounded.
    pub value_printed: &'static str,
    /// The relative figure as printed, where there is one.
    pub relative_printed: Option<&'static str>,
}

/// The tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Machine and rating, fastest first.
    pub mips: Vec<(&'static str, f64)>,
    /// All figures.
    pub rows: Vec<Row>,
}

/// A row held against what follows from the other figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The row.
    pub row: Row,
    /// MIPS-relative speed (of the copy: Mbytes per second over MIPS) as it follows.
    pub relative: f64,
    /// Whether what is printed can come about by rounding.
    pub agrees: bool,
}

/// Geometric means of a machine's relative speeds.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineMeans {
    /// Short name.
    pub machine: &'static str,
    /// Its rating.
    pub mips: f64,
    /// Over everything but the copy.
    pub without_copy: f64,
    /// Over everything.
    pub with_copy: f64,
}

/// Seconds, or bytes per second, of one unit of the tables.
pub fn unit_of(measure: &str) -> (f64, &'static str) {
    match measure {
        "getpid" => (1e-6, "s"),
        name if name.starts_with("select") => (1e-6, "s"),
        "read" => (1e6, "bytes/s"),
        name if name.starts_with("bcopy") => (1e6, "bytes/s"),
        name if name.starts_with("andrew") => (1.0, "s"),
        _ => (1e-3, "s"),
    }
}

impl Published {
    /// Tables 1 to 10.
    pub fn of_1990() -> Self {
        let (mut mips, mut rows) = (Vec::new(), Vec::new());
        for line in CSV.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&'static str> = line.split(',').collect();
            match fields.as_slice() {
                ["machine", name, _, rating] => mips.push((*name, number(rating))),
                ["value", table, machine, system, place, measure, value, relative] => {
                    rows.push(Row {
                        table: number(table) as u32,
                        machine,
                        system,
                        place,
                        measure,
                        value: number(value),
                        value_printed: value,
                        relative_printed: (*relative != "-").then_some(*relative),
                    });
                }
                _ => unreachable!("the table that is built in holds `{line}`"),
            }
        }
        Self { mips, rows }
    }

    fn mips_of(&self, machine: &str) -> f64 {
        self.mips.iter().find(|(name, _)| *name == machine).map_or(f64::NAN, |(_, mips)| *mips)
    }

    /// The reference's row for the same measure: local for local ones, NFS for all others.
    fn reference(&self, row: &Row) -> Option<&Row> {
        self.rows.iter().find(|other| {
            other.machine == REFERENCE
                && other.measure == row.measure
                && (other.place == "local") == (row.place == "local")
        })
    }

    /// All rows with a relative figure, held against it; the copy's (Table 5) are last.
    pub fn checks(&self) -> Vec<Check> {
        let mut checks: Vec<Check> = self.rows.iter().filter_map(|row| self.check(row)).collect();
        checks.sort_by_key(|check| check.row.table == 5);
        checks
    }

    fn check(&self, row: &Row) -> Option<Check> {
        let printed = row.relative_printed?;
        let mips = self.mips_of(row.machine);
        let (relative, low, high) = if row.table == 5 {
            let half = half_digit(row.value_printed);
            (row.value / mips, (row.value - half) / mips, (row.value + half) / mips)
        } else {
            let reference = self.reference(row)?;
            let is_rate = unit_of(row.measure).1 != "s";
            let speed = |value: f64, of: f64| {
                let ratio = if is_rate { value / of } else { of / value };
                ratio / (mips / self.mips_of(REFERENCE))
            };
            let (half, half_of) =
                (half_digit(row.value_printed), half_digit(reference.value_printed));
            // The reference itself is one by definition.
            if row == reference {
                (1.0, 1.0, 1.0)
            } else {
                let ends = [
                    speed(row.value - half, reference.value + half_of),
                    speed(row.value + half, reference.value - half_of),
                ];
                let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
                (speed(row.value, reference.value), low, high)
            }
        };
        let slack = half_digit(printed) * (1.0 + 1e-9);
        let printed = number(printed);
        let agrees = printed >= low - slack && printed <= high + slack;
        Some(Check { row: row.clone(), relative, agrees })
    }

    /// Fig. 1: a point for each machine, fastest first.
    pub fn means(&self) -> Vec<MachineMeans> {
        let checks = self.checks();
        let copy_of_reference = checks
            .iter()
            .find(|check| check.row.table == 5 && check.row.machine == REFERENCE)
            .map_or(f64::NAN, |check| check.relative);
        let mut by_machine: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
        for check in &checks {
            let [without, with] = by_machine.entry(check.row.machine).or_default();
            if check.row.table == 5 {
                with.push(check.relative / copy_of_reference);
            } else {
                without.push(check.relative);
                with.push(check.relative);
            }
        }
        self.mips
            .iter()
            .map(|(machine, mips)| {
                let of = by_machine.get(machine).cloned().unwrap_or_default();
                let [without_copy, with_copy] = of.map(geometric_mean);
                MachineMeans { machine, mips: *mips, without_copy, with_copy }
            })
            .collect()
    }
}

/// MIPS-relative speed of a figure of ours (with its unit) against the reference of 1990; none
/// where it has another unit.
pub fn relative_to_1990(
    published: &Published,
    measure: &str,
    ours: (f64, &str),
    mips: f64,
) -> Option<f64> {
    let row = published
        .rows
        .iter()
        .find(|r| r.machine == REFERENCE && r.measure == measure && r.place == "local")?;
    let (factor, unit) = unit_of(measure);
    let (value, theirs) = (ours.0, row.value * factor);
    if ours.1 != unit || value <= 0.0 {
        return None;
    }
    let ratio = if unit == "s" { theirs / value } else { value / theirs };
    Some(ratio / (mips / published.mips_of(REFERENCE)))
}

/// The mean of ratios.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.into_iter().map(f64::ln).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

fn number(text: &str) -> f64 {
    text.parse().expect("the table that is built in holds numbers")
}

/// By how much a printed figure may be off: half of its last digit.
fn half_digit(printed: &str) -> f64 {
    let digits = printed.split_once('.').map_or("", |(_, digits)| digits);
    digits.chars().fold(0.5, |half, _| half / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_143_rows_reproduce_but_those_where_the_papers_arithmetic_slips() {
        let checks = Published::of_1990().checks();
        let (copies, others): (Vec<&Check>, Vec<&Check>) =
            checks.iter().partition(|check| check.row.table == 5);
        assert_eq!((others.len(), copies.len()), (143, 15));
        let slips = |of: &[&Check]| -> Vec<(u32, &str, &str)> {
            let wrong = of.iter().filter(|check| !check.agrees);
            wrong.map(|check| (check.row.table, check.row.machine, check.row.system)).collect()
        };
        let expected = [
            (3, "SS1", "SunOS 4.0.3"),
            (7, "Sun3", "SunOS 3.5"),
            (10, "M2000", "RISC/os 4.0"),
            (10, "DS5000", "Ultrix 3.1D"),
        ];
        assert_eq!(slips(&others), expected);
        // Table 5 was worked out with other ratings: 13 MIPS for the DS3100, 9 for the Sun4.
        assert!(slips(&copies).iter().all(|(_, machine, _)| ["DS3100", "Sun4"].contains(machine)));
        assert_eq!(slips(&copies).len(), 6);
    }

    #[test]
    fn geometric_means_are_those_of_figure_1() {
        let means = Published::of_1990().means();
        let found: Vec<(&str, String, String)> = means
            .iter()
            .map(|of| {
                let show = |value: f64| format!("{value:.2}");
                (of.machine, show(of.without_copy), show(of.with_copy))
            })
            .collect();
        let expected = [
            ("M2000", "0.44", "0.42"),
            ("DS5000", "0.46", "0.42"),
            ("HP835", "0.24", "0.22"),
            ("DS3100", "0.47", "0.42"),
            ("SS1", "0.44", "0.39"),
            ("Sun4", "0.59", "0.52"),
            ("8800", "0.76", "0.75"),
            ("RT-APC", "0.91", "0.88"),
            ("Sun3", "1.06", "1.05"),
            ("MVAX2", "1.00", "1.00"),
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!((found.0, found.1.as_str(), found.2.as_str()), expected);
        }
        assert_eq!(found.len(), expected.len());
    }

    #[test]
    fn the_papers_example_comes_out() {
        // A DS5000's getpid takes 11 µs at 18 MIPS: (207/11)/(18/0.9) = 0.94.
        let published = Published::of_1990();
        let relative = relative_to_1990(&published, "getpid", (11e-6, "s"), 18.0).unwrap();
        assert!((relative - 0.941).abs() < 1e-3);
        // A rate: 6.1 of 2.3 Mbytes per second.
        let read = relative_to_1990(&published, "read", (6.1e6, "bytes/s"), 18.0).unwrap();
        assert!((read - 0.1326).abs() < 1e-3);
        assert_eq!(relative_to_1990(&published, "read", (1.0, "s"), 18.0), None);
    }

    #[test]
    fn remote_penalties_are_those_of_table_8() {
        let published = Published::of_1990();
        let total = |machine: &str, system: &str, local: bool| {
            let is = |row: &&Row| {
                row.measure == "andrew"
                    && (row.machine, row.system) == (machine, system)
                    && (row.place == "local") == local
            };
            published.rows.iter().find(is).unwrap().value
        };
        for (machine, system, percent) in [
            ("Sun3", "Sprite", 3.0),
            ("DS3100", "Sprite", 6.0),
            ("Sun4", "Sprite", 7.0),
            ("MVAX2", "Ultrix 3.0", 21.0),
            ("RT-APC", "Mach 2.5", 21.0),
            ("DS3100", "Ultrix 3.1", 26.0),
            ("SS1", "SunOS 4.0.3", 26.0),
            ("Sun3", "SunOS 3.5", 34.0),
            ("DS3100", "Mach 2.5", 50.0),
            ("DS5000", "Ultrix 3.1D", 50.0),
            ("Sun4", "SunOS 4.0.3", 63.0),
        ] {
            let (local, remote) = (total(machine, system, true), total(machine, system, false));
            let penalty: f64 = (remote / local - 1.0) * 100.0;
            assert!((penalty - percent).abs() < 1.0, "{machine} {system}: {penalty}");
        }
    }
}
