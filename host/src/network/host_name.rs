use std::fmt;

use super::PolicyError;

/// The name of a host, as DNS writes it: small letters, without a dot at its end.
///
/// No text is a name that some program would read as an address: the last part of a
/// name is not a number, in whatever notation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// The longest name in bytes: RFC 1035, without the dot at its end.
const MAX_NAME: usize = 253;

/// The longest part of a name.
const MAX_LABEL: usize = 63;

impl HostName {
    /// Reads a name. Letters may be large, and a dot may end it.
    ///
    /// # Errors
    /// [`PolicyError::Name`] if it is not a name in ASCII, or too long.
    pub fn new(name: &str) -> Result<Self, PolicyError> {
        let bad = |reason| PolicyError::Name {
            name: name.to_owned(),
            reason,
        };
        let text = name.strip_suffix('.').unwrap_or(name);
        if !text.is_ascii() {
            return Err(bad("write it in ASCII, as DNS does: xn--…"));
        }
        if text.len() > MAX_NAME {
            return Err(bad("a name has 253 bytes at most"));
        }
        let text = text.to_ascii_lowercase();
        let is_label = |label: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(allowed)
        };
        if !text.split('.').all(is_label) {
            return Err(bad(
                "a name has parts of letters, digits and hyphens, with a dot between two",
            ));
        }
        let last = text.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return Err(bad("it is not a name, but may be read as an address"));
        }
        Ok(Self(text))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is below another name: `a.example.org` is below `example.org`.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        let rest = self.0.strip_suffix(other.as_str());
        rest.is_some_and(|rest| rest.ends_with('.'))
    }
}

/// Returns whether a part of a name is a number for inet_aton(3), in decimal, octal or
/// hexadecimal digits.
fn is_number(label: &str) -> bool {
    let digits = label.strip_prefix("0x").unwrap_or(label);
    match digits.len() == label.len() {
        true => label.bytes().all(|byte| byte.is_ascii_digit()),
        false => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_write_a_name_are_one_name() {
        for name in ["Example.ORG", "example.org.", "EXAMPLE.org"] {
            assert_eq!(HostName::new(name).unwrap().as_str(), "example.org");
        }
        let longest = format!("{}.org", ["a"; 125].join("."));
        assert_eq!(longest.len(), 253);
        assert!(HostName::new(&longest).is_ok());
        assert!(HostName::new("_dmarc.a-b.xn--bcher-kva.example").is_ok());
    }

    #[test]
    fn what_is_not_a_name_is_refused() {
        let long_label = format!("{}.org", "a".repeat(64));
        let long_name = format!("a{}.org", ".a".repeat(125));
        for name in [
            "",
            ".",
            "a..b",
            ".a",
            "a b",
            "a/b",
            "a:1",
            "a\0b",
            "bücher.example",
            "еxample.org",
            "127.0.0.1",
            "0x7f.1",
            "0x7f000001",
            "2130706433",
            "0177.0.0.01",
            "a.0x",
            "1.",
            "example.org..",
            &long_label,
            &long_name,
        ] {
            assert!(HostName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_name_is_below_another_at_a_dot_only() {
        let name = |text| HostName::new(text).unwrap();
        let above = name("example.org");
        assert!(name("a.example.org").is_below(&above));
        assert!(name("b.a.example.org").is_below(&above));
        assert!(!name("example.org").is_below(&above));
        assert!(!name("badexample.org").is_below(&above));
        assert!(!name("example.org.evil.com").is_below(&above));
    }
}
