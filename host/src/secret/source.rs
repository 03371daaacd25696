use std::fmt;

use serde::{Deserialize, Serialize};

/// Where the value of a secret comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SecretSource {
    /// The caller has named it.
    Literal,
    /// A file.
    File,
    /// An environment variable.
    Environment,
    /// A [provider](super::SecretProvider).
    Provider,
}

impl SecretSource {
    const ALL: [Self; 4] = [Self::Literal, Self::File, Self::Environment, Self::Provider];

    /// Returns its name, as it is displayed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Provider => "provider",
        }
    }

    /// Returns the source with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
