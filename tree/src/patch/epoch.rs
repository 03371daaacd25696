//! Recognises the timestamp of a file that does not exist.

/// Returns whether this is the start of 1970, which `diff -N` writes for a file
/// that does not exist:
///
/// ```text
/// 1970-01-01 01:00:00.000000000 +0100     GNU diff
/// 1970-01-01 01:00:00                     without a time zone
/// Thu Jan  1 01:00:00 1970                context diffs of POSIX
/// Thu Jan 01 00:00:00 1970 +0000          Mercurial
/// ```
///
/// Without a time zone the time is local to an unknown place, so any time
/// within a day of it may be the one.
pub(super) fn is_epoch(timestamp: &[u8]) -> bool {
    let text = str::from_utf8(timestamp).unwrap_or_default();
    let words: Vec<&str> = text.split_ascii_whitespace().take(7).collect();
    let (day, time, zone) = match words[..] {
        ["1970-01-01", time] => (0, time, None),
        ["1969-12-31", time] => (-1, time, None),
        ["1970-01-01", time, zone] => (0, time, Some(zone)),
        ["1969-12-31", time, zone] => (-1, time, Some(zone)),
        [_, "Jan", "1" | "01", time, "1970"] => (0, time, None),
        [_, "Dec", "31", time, "1969"] => (-1, time, None),
        [_, "Jan", "1" | "01", time, "1970", zone] => (0, time, Some(zone)),
        [_, "Dec", "31", time, "1969", zone] => (-1, time, Some(zone)),
        _ => return false,
    };
    match (minutes_of_time(time), zone) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(minutes), Some(zone)) => {
            minutes_of_zone(zone).is_some_and(|zone| day * 24 * 60 + minutes == zone)
        }
    }
}

/// Returns the minutes of a time like `01:00:00.000` without seconds.
fn minutes_of_time(time: &str) -> Option<i32> {
    let (hours, rest) = time.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let is_zero = seconds.trim_matches('0').trim_matches('.').is_empty();
    minutes_of(hours, minutes).filter(|_| is_zero)
}

/// Returns the minutes of a zone like `+0100` or `-04:30`.
fn minutes_of_zone(zone: &str) -> Option<i32> {
    let (sign, digits) = match zone.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, zone.strip_prefix('+')?),
    };
    let (hours, minutes) = digits.split_at_checked(2)?;
    Some(sign * minutes_of(hours, minutes.trim_start_matches(':'))?)
}

fn minutes_of(hours: &str, minutes: &str) -> Option<i32> {
    let number = |text: &str| text.parse::<u8>().ok().map(i32::from);
    Some(number(hours)? * 60 + number(minutes)?)
}
