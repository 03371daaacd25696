//! Recognises the timestamp of a file that does not exist.

/// Returns whether this is the start of 1970, which `diff -N` writes for a file
/// that does not exist: `1970-01-01 01:00:00.000000000 +0100`.
pub(super) fn is_epoch(timestamp: &[u8]) -> bool {
    parse(timestamp).is_some_and(|minutes| minutes == 0)
}

/// Returns the minutes since the start of 1970, or `None` unless the timestamp
/// is within a day of it.
fn parse(timestamp: &[u8]) -> Option<i32> {
    let mut parts = str::from_utf8(timestamp).ok()?.split_ascii_whitespace();
    let day = match parts.next()? {
        "1970-01-01" => 0,
        "1969-12-31" => -1,
        _ => return None,
    };
    let (hours, rest) = parts.next()?.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    if !seconds.trim_matches('0').trim_matches('.').is_empty() {
        return None;
    }
    let zone = parts.next()?;
    let (sign, digits) = match zone.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, zone.strip_prefix('+')?),
    };
    let (zone_hours, zone_minutes) = digits.split_at_checked(2)?;
    let zone = minutes_of(zone_hours, zone_minutes.trim_start_matches(':'))?;
    Some(day * 24 * 60 + minutes_of(hours, minutes)? - sign * zone)
}

fn minutes_of(hours: &str, minutes: &str) -> Option<i32> {
    let number = |text: &str| text.parse::<u8>().ok().map(i32::from);
    Some(number(hours)? * 60 + number(minutes)?)
}
