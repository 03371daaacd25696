//! Numbers of bytes, as people write them.

/// Bytes, or with a suffix: k, m and g are 1024, 1024 k and 1024 m.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
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
    // Rust would take a sign.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("write a number of bytes, or as in 100k, 64m, 2g".to_owned());
    }
    let count: Option<u64> = digits.parse().ok();
    count
        .and_then(|count| count.checked_mul(1 << shift))
        .ok_or_else(|| "it is too large".to_owned())
}

/// The same, for limits to which nothing means no limit.
pub(crate) fn parse_positive(text: &str) -> Result<u64, String> {
    match parse(text)? {
        0 => Err("choose more than 0".to_owned()),
        size => Ok(size),
    }
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
}
