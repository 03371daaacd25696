use std::{fmt, str::FromStr};

use super::PortError;

/// A port of the guest to publish, and the port of this machine to publish it
/// on.
///
/// ```
/// use vmcell::port::PortMapping;
///
/// let anywhere: PortMapping = "8080".parse().unwrap();
/// assert_eq!(anywhere, PortMapping::from(8080));
/// let there: PortMapping = "18080:8080".parse().unwrap();
/// assert_eq!(there, PortMapping::from((18080, 8080)));
/// assert!("localhost:8080".parse::<PortMapping>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PortMapping {
    /// The port of this machine; `None` for any free one.
    pub host: Option<u16>,
    /// The port of the guest.
    pub guest: u16,
}

impl PortMapping {
    /// Rejects port zero.
    pub(crate) fn check(self) -> Result<Self, PortError> {
        if self.guest == 0 || self.host == Some(0) {
            let text = self.to_string();
            return Err(PortError::BadMapping { text });
        }
        Ok(self)
    }
}

impl From<u16> for PortMapping {
    fn from(guest: u16) -> Self {
        Self { host: None, guest }
    }
}

impl From<(u16, u16)> for PortMapping {
    /// Takes the port of this machine first.
    fn from((host, guest): (u16, u16)) -> Self {
        Self {
            host: Some(host),
            guest,
        }
    }
}

impl FromStr for PortMapping {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let mapping = match text.split_once(':') {
            Some((host, guest)) => number(host).zip(number(guest)).map(Self::from),
            None => number(text).map(Self::from),
        };
        mapping.map_or_else(
            || {
                let text = text.chars().take(MAX_SHOWN_CHARS).collect();
                Err(PortError::BadMapping { text })
            },
            Self::check,
        )
    }
}

impl fmt::Display for PortMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(host) = self.host {
            write!(f, "{host}:")?;
        }
        write!(f, "{}", self.guest)
    }
}

/// How much of an invalid text an error repeats.
const MAX_SHOWN_CHARS: usize = 40;

/// Parses digits only: no sign, no space.
fn number(text: &str) -> Option<u16> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
