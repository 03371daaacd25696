//! Sizes in bytes, as users write them.

/// Parses a number of bytes, optionally with a suffix: k, m and g are powers of
/// 1024.
pub fn parse(text: &str) -> Result<u64, String> {
    let shift = match text.as_bytes().last() {
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        _ => 0,
    };
    let digits = if shift == 0 {
        text
    } else {
        &text[..text.len() - 1]
    };
    // `parse` would accept a sign.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("expected a number of bytes, such as 1000, 100k, 64m or 2g".to_owned());
    }
    let count: Option<u64> = digits.parse().ok();
    count
        .and_then(|count| count.checked_mul(1 << shift))
        .ok_or_else(|| "the number is too large".to_owned())
}

/// Parses a size for limits where 0 would mean no limit.
pub fn parse_positive(text: &str) -> Result<u64, String> {
    match parse(text)? {
        0 => Err("must be greater than 0".to_owned()),
        size => Ok(size),
    }
}

/// Parses memory: a number of MiB, or a size with a suffix.
pub fn parse_mib(text: &str) -> Result<u32, String> {
    let bytes = match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => parse(&format!("{text}m"))?,
        false => parse(text)?,
    };
    match u32::try_from(bytes >> 20) {
        Ok(0) => Err("expected at least 1 MiB, such as 512, 512m or 2g".to_owned()),
        Ok(mib) => Ok(mib),
        Err(_) => Err("the number is too large".to_owned()),
    }
}

/// Formats a size like `du -h`: `1.5M`. Rounds up, so that only 0 is shown as
/// 0.
pub fn human_readable(bytes: u64) -> String {
    let mut unit: u64 = 1 << 10;
    if bytes < unit {
        return bytes.to_string();
    }
    let letters = "KMGTP".chars();
    for letter in letters {
        let tenths = (bytes / unit) * 10 + ((bytes % unit) * 10).div_ceil(unit);
        if tenths < 100 {
            return format!("{}.{}{letter}", tenths / 10, tenths % 10);
        }
        let whole = bytes.div_ceil(unit);
        if whole < 1 << 10 {
            return format!("{whole}{letter}");
        }
        unit <<= 10;
    }
    format!("{}E", bytes.div_ceil(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        for (text, size) in [
            ("0", 0),
            ("1000", 1000),
            ("3k", 3072),
            ("64M", 64 << 20),
            ("2g", 2 << 30),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(size), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "k",
            "-1",
            "+1",
            "1.5m",
            "1kb",
            "1 k",
            "0x10",
            "ten",
            "5€",
            "18446744073709551616",
            "17179869184g",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse_positive("0k").is_err());
    }

    #[test]
    fn memory_is_in_mib_without_a_suffix() {
        for (text, mib) in [("512", 512), ("512m", 512), ("2g", 2048), ("2048k", 2)] {
            assert_eq!(parse_mib(text), Ok(mib), "{text}");
        }
        for text in ["", "0", "1k", "-1", "4194304g", "half"] {
            assert!(parse_mib(text).is_err(), "{text}");
        }
    }

    #[test]
    fn few_digits_are_those_of_du() {
        for (bytes, text) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1025, "1.1K"),
            (10_000, "9.8K"),
            ((10 << 10) - 1, "10K"),
            (10 << 10, "10K"),
            ((10 << 10) + 1, "11K"),
            ((1 << 20) - 1, "1.0M"),
            (3 << 29, "1.5G"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(human_readable(bytes), text);
        }
    }
}
