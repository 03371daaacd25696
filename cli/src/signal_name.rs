//! Parses how the user names a signal.

/// Parses a number, or a name with or without `SIG`. The numbers are those of
/// Linux on x86-64: see signal(7).
pub(crate) fn parse(text: &str) -> Result<u8, String> {
    const LAST: u8 = 64;
    if let Ok(number) = text.parse() {
        return match number {
            0..=LAST => Ok(number),
            _ => Err(format!("expected 0 to {LAST}")),
        };
    }
    let upper = text.to_ascii_uppercase();
    let wanted = upper.strip_prefix("SIG").unwrap_or(&upper);
    let found = NAMES.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, number)| *number).ok_or_else(|| {
        "unknown signal: use a name or number such as TERM, SIGTERM or 15".to_owned()
    })
}

const NAMES: [(&str, u8); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, number) in [
            ("TERM", 15),
            ("SIGTERM", 15),
            ("sigusr1", 10),
            ("int", 2),
            ("0", 0),
            ("64", 64),
        ] {
            assert_eq!(parse(text), Ok(number), "{text}");
        }
        for text in ["", "SIG", "-1", "65", "256", "TERMINATE"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
