//! Points in time, as users write them.

use std::time::{Duration, SystemTime};

use vmcell_tree::Date;

/// Parses a date in UTC (`2026-01-31`, `"2026-01-31 12:00"`), or an age such as
/// `36h`.
///
/// # Errors
/// The accepted formats, as a message.
pub fn parse(text: &str) -> Result<SystemTime, String> {
    let past = parse_age(text).and_then(|age| SystemTime::now().checked_sub(age));
    past.or_else(|| Date::parse(text)).ok_or_else(|| {
        "expected a date such as 2026-01-31 or 2026-01-31T12:00:59, or an age such as 30m, 36h or 7d"
            .to_owned()
    })
}

fn parse_age(text: &str) -> Option<Duration> {
    let unit = match text.as_bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => 86_400,
        b'w' => 7 * 86_400,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    // `parse` would accept a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    count.checked_mul(unit).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_or_some_time_ago() {
        let timestamp = parse("1w").unwrap();
        let week = SystemTime::now().duration_since(timestamp);
        let days = week.unwrap().as_secs() / 86_400;
        assert_eq!(days, 7);
        assert!(parse("90m").unwrap() < SystemTime::now());
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
        assert_eq!(parse("1970-01-02"), Ok(date));
        for text in [
            "",
            "d",
            "-1d",
            "+1d",
            "1y",
            "tomorrow",
            "5€",
            "99999999999999999999d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
