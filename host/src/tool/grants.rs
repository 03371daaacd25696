use std::{collections::BTreeSet, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::Retention;

/// Hosts that a command can be allowed to reach, under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkGrant {
    /// The hosts and ports, as in [`Rule`](crate::network::Rule): `pypi.org:443`.
    pub hosts: Vec<String>,
}

/// Where the value of a secret comes from. Exactly one of the fields is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretGrant {
    /// A variable of the environment of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// A file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The application itself: [`ToolBuilder::secret`](super::ToolBuilder::secret) and
    /// [`secret_provider`](super::ToolBuilder::secret_provider).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub application: bool,
}

/// What a caller may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallerGrants {
    /// The names of images; all if it is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<BTreeSet<String>>,
    /// The names of network grants.
    pub network: BTreeSet<String>,
    /// The names of secrets.
    pub secrets: BTreeSet<String>,
}

/// What may be kept, and how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StatePolicy {
    /// What may become of sandboxes.
    pub retention: BTreeSet<Retention>,
    /// How long anything may be kept.
    pub max_ttl_seconds: u64,
    /// Whether a sandbox may be kept that had secrets, which may be in its memory and on its
    /// disk.
    pub with_secrets: bool,
}

impl Default for StatePolicy {
    fn default() -> Self {
        Self {
            retention: BTreeSet::from([Retention::Destroy]),
            max_ttl_seconds: 24 * 3600,
            with_secrets: false,
        }
    }
}

impl SecretGrant {
    /// Returns a secret of the environment of the application.
    pub fn env(variable: impl Into<String>) -> Self {
        Self {
            env: Some(variable.into()),
            ..Self::default()
        }
    }

    /// Returns a secret in a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(path.into()),
            ..Self::default()
        }
    }

    /// Returns a secret that the application has.
    pub fn application() -> Self {
        Self {
            application: true,
            ..Self::default()
        }
    }

    /// Returns how many sources it has.
    pub(super) fn source_count(&self) -> usize {
        let sources = [self.env.is_some(), self.file.is_some(), self.application];
        sources.into_iter().filter(|is_set| *is_set).count()
    }
}

impl CallerGrants {
    /// Allows it a network grant of the policy.
    #[must_use]
    pub fn network(mut self, name: impl Into<String>) -> Self {
        self.network.insert(name.into());
        self
    }

    /// Allows it a secret of the policy.
    #[must_use]
    pub fn secret(mut self, name: impl Into<String>) -> Self {
        self.secrets.insert(name.into());
        self
    }
}
