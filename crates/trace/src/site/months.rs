//! Requests of a log by months of the calendar.

use std::collections::HashMap;

use ioscape_model::app::Month;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

const DAY_NS: f64 = 86_400e9;

/// The months of a log.
#[derive(Debug)]
pub(super) struct Calendar {
    /// Its first day, and how far into it the log begins, ns; `None` where the log has no date.
    first: Option<(Date, f64)>,
    months: Vec<Month>,
    /// When the last of the months ends, since the log began, ns.
    end_ns: f64,
    /// The last month in which each file was asked for.
    last_asked: HashMap<u32, u32>,
}

impl Calendar {
    /// For a log that began so long after 1970.
    pub(super) fn new(started_unix_s: Option<f64>) -> Self {
        let first = started_unix_s.and_then(|at_s| {
            let at = Timestamp::from_second(at_s as i64).ok()?.to_zoned(TimeZone::UTC);
            let midnight = at.start_of_day().ok()?.timestamp().as_second();
            Some((at.date(), (at_s - midnight as f64) * 1e9))
        });
        Self { first, months: Vec::new(), end_ns: 0.0, last_asked: HashMap::new() }
    }

    /// A request; events come in the order of their times.
    pub(super) fn add(&mut self, at_ns: u64, file: u32, is_new_session: bool) {
        let Some((first, into_ns)) = self.first else { return };
        while self.months.is_empty() || at_ns as f64 >= self.end_ns {
            let number = u32::try_from(self.months.len()).unwrap_or(u32::MAX);
            let Ok(next) = first.first_of_month().checked_add((i64::from(number) + 1).months())
            else {
                return;
            };
            self.months.push(Month { number, ..Month::default() });
            let days = first.until(next).map_or(0, |span| span.get_days());
            self.end_ns = f64::from(days) * DAY_NS - into_ns;
        }
        let Some(month) = self.months.last_mut() else { return };
        month.requests += 1;
        month.sessions += u64::from(is_new_session);
        if self.last_asked.insert(file, month.number) != Some(month.number) {
            month.files += 1;
        }
    }

    /// The months, each with the share of it that a log of this length covers.
    pub(super) fn list(mut self, elapsed_s: f64) -> Vec<Month> {
        let Some((first, into_ns)) = self.first else { return Vec::new() };
        let mut from_ns = f64::from(1 - i16::from(first.day())) * DAY_NS - into_ns;
        for month in &mut self.months {
            let start = first.first_of_month().saturating_add(i64::from(month.number).months());
            let to_ns = from_ns + f64::from(start.days_in_month()) * DAY_NS;
            let covered_ns = to_ns.min(elapsed_s * 1e9) - from_ns.max(0.0);
            month.covered_frac = (covered_ns / (to_ns - from_ns)).clamp(0.0, 1.0);
            from_ns = to_ns;
        }
        self.months
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fall_into_the_months_of_the_calendar() {
        // 2024-01-16 12:00, for two months: a leap year's February.
        let mut calendar = Calendar::new(Some(1_705_406_400.0));
        let day_ns = DAY_NS as u64;
        for (day, file, is_new) in [
            (0, 1, true),
            (15, 1, false),
            (16, 1, true),
            (44, 2, false),
            (44, 2, false),
            (45, 1, true),
            (60, 1, false),
        ] {
            calendar.add(day * day_ns, file, is_new);
        }
        let months = calendar.list(60.0 * 86_400.0);
        let counts: Vec<_> =
            months.iter().map(|month| (month.requests, month.sessions, month.files)).collect();
        assert_eq!(counts, [(2, 1, 1), (3, 1, 2), (2, 1, 1)]);
        let covered: Vec<i32> =
            months.iter().map(|month| (month.covered_frac * 1000.0).round() as i32).collect();
        assert_eq!(covered, [500, 1000, 500], "15.5 of 31 days, 29 of 29, 15.5 of 31");
    }

    #[test]
    fn a_log_without_a_date_has_no_months() {
        let mut calendar = Calendar::new(None);
        calendar.add(0, 1, true);
        assert!(calendar.list(1.0).is_empty());
    }
}
