use std::{fmt, ops::RangeInclusive, str::FromStr};

use super::PolicyError;

/// TCP ports: all, or those in some ranges, written `443` or `80,443,8000-8999`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortRanges(Vec<RangeInclusive<u16>>);

impl PortRanges {
    /// All ports.
    pub const ALL: Self = Self(Vec::new());

    /// Returns whether a port is one of them.
    pub fn contains(&self, port: u16) -> bool {
        self.is_all() || self.0.iter().any(|range| range.contains(&port))
    }

    /// Returns whether they are all ports.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<u16> for PortRanges {
    fn from(port: u16) -> Self {
        Self(vec![port..=port])
    }
}

impl FromStr for PortRanges {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let bad = || PolicyError::Ports {
            text: text.to_owned(),
        };
        let port = |text: &str| match text.parse() {
            Ok(port) if port > 0 && !text.starts_with('+') => Ok(port),
            _ => Err(bad()),
        };
        let ranges = text.split(',').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let range = port(first)?..=port(last)?;
            match range.is_empty() {
                true => Err(bad()),
                false => Ok(range),
            }
        });
        Ok(Self(ranges.collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for PortRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, range) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            match range.start() == range.end() {
                true => write!(f, "{comma}{}", range.start())?,
                false => write!(f, "{comma}{}-{}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_single_ones_and_ranges() {
        let ports: PortRanges = "80,443,8000-8999".parse().unwrap();
        assert_eq!(ports.to_string(), "80,443,8000-8999");
        for (port, expected) in [
            (80, true),
            (81, false),
            (8000, true),
            (8999, true),
            (9000, false),
        ] {
            assert_eq!(ports.contains(port), expected, "{port}");
        }
        assert!(PortRanges::ALL.contains(1) && PortRanges::ALL.contains(65_535));
        for text in [
            "", "0", "80-", "-80", "9-8", "65536", "80,", "+80", "http", "1-2-3",
        ] {
            assert!(text.parse::<PortRanges>().is_err(), "{text}");
        }
    }
}
