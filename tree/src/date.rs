use std::time::{Duration, SystemTime};

/// A point in time in UTC, for people and for JSON.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use vmcell_tree::Date;
///
/// let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_859);
/// assert_eq!(Date::of(time).short(), "2026-01-31 12:00:59");
/// assert_eq!(Date::of(time).rfc3339(), "2026-01-31T12:00:59.000000000Z");
/// assert_eq!(Date::parse("2026-01-31T12:00:59Z"), Some(time));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Date {
    year: i64,
    month: i64,
    day: i64,
    second_of_day: i64,
    nanosecond: u32,
}

impl Date {
    /// Returns the date of a time.
    pub fn of(time: SystemTime) -> Self {
        let (seconds, nanosecond) = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => (whole_seconds(after), after.subsec_nanos()),
            Err(error) => match (error.duration(), error.duration().subsec_nanos()) {
                (before, 0) => (-whole_seconds(before), 0),
                (before, rest) => (-whole_seconds(before) - 1, 1_000_000_000 - rest),
            },
        };
        let (year, month, day) = civil_from_days(seconds.div_euclid(DAY));
        Self {
            year,
            month,
            day,
            second_of_day: seconds.rem_euclid(DAY),
            nanosecond,
        }
    }

    /// Formats it for tables: `2026-01-31 12:00:59`.
    pub fn short(&self) -> String {
        format!("{} {}", self.day(), self.time())
    }

    /// Formats it by RFC 3339, with nanoseconds.
    pub fn rfc3339(&self) -> String {
        format!("{}T{}.{:09}Z", self.day(), self.time(), self.nanosecond)
    }

    /// Parses `2026-01-31`, optionally followed by a space or `T` and a time,
    /// `12:00`, `12:00:59` or `12:00:59.5`, and by `Z`.
    pub fn parse(text: &str) -> Option<SystemTime> {
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (text, nanoseconds) = match text.split_once('.') {
            Some((text, fraction)) => (text, nanoseconds(fraction)?),
            None => (text, 0),
        };
        let (day, time) = match text.split_once([' ', 'T']) {
            Some((day, time)) => (day, numbers(time, ':')?),
            None => (text, vec![0, 0]),
        };
        let [year, month, day] = *numbers(day, '-')?.as_slice() else {
            return None;
        };
        let (hour, minute, second) = match *time.as_slice() {
            [hour, minute] => (hour, minute, 0),
            [hour, minute, second] => (hour, minute, second),
            _ => return None,
        };
        let days = days_from_civil(year, month, day);
        let is_valid =
            civil_from_days(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
        let seconds = days * DAY + hour * 3600 + minute * 60 + second;
        let distance = Duration::from_secs(seconds.unsigned_abs());
        let time = match seconds {
            0.. => SystemTime::UNIX_EPOCH.checked_add(distance),
            _ => SystemTime::UNIX_EPOCH.checked_sub(distance),
        };
        let time = time?.checked_add(Duration::from_nanos(nanoseconds))?;
        is_valid.then_some(time)
    }

    fn day(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    fn time(&self) -> String {
        let (minutes, second) = (self.second_of_day / 60, self.second_of_day % 60);
        format!("{:02}:{:02}:{second:02}", minutes / 60, minutes % 60)
    }
}

const DAY: i64 = 86_400;
const DAYS_FROM_MARCH_OF_YEAR_0: i64 = 719_468;

/// Times of the system fit.
fn whole_seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// Returns year, month and day of a number of days since 1970.
///
/// The Gregorian calendar repeats every 400 years (an era). Years start in
/// March here, so that the leap day is the last day of a year.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let days = days + DAYS_FROM_MARCH_OF_YEAR_0;
    let era = days.div_euclid(DAYS_IN_400_YEARS);
    let day_of_era = days.rem_euclid(DAYS_IN_400_YEARS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let first_day = year_of_era * 365 + year_of_era / 4 - year_of_era / 100;
    let day_of_year = day_of_era - first_day;
    // Five months from March or August on have 153 days: 31, 30, 31, 30 and 31.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    match month_from_march {
        0..=9 => (year, month_from_march + 3, day),
        _ => (year + 1, month_from_march - 9, day),
    }
}

/// Returns the days since 1970 of year, month and day.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month_from_march) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + leap_days + day_of_year - DAYS_FROM_MARCH_OF_YEAR_0
}

/// Parses the digits of a fraction of a second.
fn nanoseconds(fraction: &str) -> Option<u64> {
    let is_valid =
        (1..=9).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit());
    let digits = is_valid.then(|| format!("{fraction:0<9}"))?;
    digits.parse().ok()
}

/// Parses numbers of one to four digits.
fn numbers(text: &str, separator: char) -> Option<Vec<i64>> {
    let number = |part: &str| {
        let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    };
    text.split(separator).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_709_251_199, "2024-02-29 23:59:59"),
            (1_798_761_599, "2026-12-31 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(Date::of(time).short(), text);
        }
    }

    #[test]
    fn moments_before_1970_and_parts_of_a_second_are_told() {
        let time = SystemTime::UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(Date::of(time).rfc3339(), "1969-12-31T23:59:59.999999999Z");
        let time = SystemTime::UNIX_EPOCH + Duration::new(1, 5);
        assert_eq!(Date::of(time).rfc3339(), "1970-01-01T00:00:01.000000005Z");
    }

    #[test]
    fn the_days_of_a_thousand_years_follow_each_other() {
        let mut before = civil_from_days(-365_000);
        for days in -364_999..365_000 {
            let (year, month, day) = civil_from_days(days);
            let follows = match before {
                (y, m, d) if (y, m, d + 1) == (year, month, day) => true,
                (y, 12, 31) => (y + 1, 1, 1) == (year, month, day),
                (y, m, 28..=31) => (y, m + 1, 1) == (year, month, day),
                _ => false,
            };
            assert!(follows, "{before:?} {year} {month} {day}");
            assert_eq!(super::days_from_civil(year, month, day), days);
            before = (year, month, day);
        }
    }

    #[test]
    fn dates_are_read_as_they_are_written() {
        for text in [
            "1970-01-01 00:00:00",
            "1969-12-31 23:59:59",
            "2024-02-29 12:34:56",
        ] {
            let time = Date::parse(text).unwrap();
            assert_eq!(Date::of(time).short(), text);
            assert_eq!(Date::parse(&text.replace(' ', "T")), Some(time));
        }
        for time in [
            SystemTime::UNIX_EPOCH - Duration::from_nanos(1),
            SystemTime::UNIX_EPOCH + Duration::new(1, 5),
        ] {
            assert_eq!(Date::parse(&Date::of(time).rfc3339()), Some(time));
        }
        let midnight = Date::parse("2024-02-29").unwrap();
        assert_eq!(Date::of(midnight).short(), "2024-02-29 00:00:00");
        assert_eq!(Date::parse("2024-02-29T00:00Z"), Some(midnight));
        for text in [
            "",
            "2024",
            "2024-02",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-02-29 24:00",
            "2024-02-29 1",
            "2024-02-29 12:00:60",
            "-024-02-01",
            "2024-02-+1",
            "2024-02-29 12:00:59.",
            "2024-02-29 12:00:59.0000000000",
            "2024-02-29 12:00:59.+1",
            "99999-01-01",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
    }
}
