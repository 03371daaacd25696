use std::fmt;

use crate::{Environment, Error};

/// The longest name.
const MAX: usize = 64;

/// The name of an environment that was imported: letters in lower case, digits, and `.`, `_` and
/// `-` between them.
///
/// ```
/// use vmcell_rootfs::catalog::EnvironmentName;
///
/// assert!(EnvironmentName::parse("alpine-3.20").is_some());
/// // That of a recipe, and a path.
/// assert!(EnvironmentName::parse("debian").is_none());
/// assert!(EnvironmentName::parse("../alpine").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EnvironmentName(String);

impl EnvironmentName {
    /// Returns the name, if it is one that can be given.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends_are_plain = bytes.first().is_some_and(|&byte| is_plain(byte))
            && bytes.last().is_some_and(|&byte| is_plain(byte));
        let is_name = |&byte: &u8| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-');
        let is_good = ends_are_plain
            && bytes.len() <= MAX
            && bytes.iter().all(is_name)
            && Environment::from_name(text).is_none();
        is_good.then(|| Self(text.to_owned()))
    }

    pub(super) fn check(text: &str) -> Result<Self, Error> {
        Self::parse(text).ok_or_else(|| Error::EnvironmentName {
            name: text.to_owned(),
        })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnvironmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
