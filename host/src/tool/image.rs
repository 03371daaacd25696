use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

/// An image that requests can name. It has an environment or a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolImage {
    /// The name of an environment, which the application knows how to find:
    /// [`ToolBuilder::environments`](super::ToolBuilder::environments).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The path of an ext4 image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The memory of its VMs, in place of that of the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// The virtual processors of its VMs; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<u32>,
    /// The user that commands run as; root by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// A language that requests can name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolLanguage {
    /// The name of the image.
    pub image: String,
    /// What to run in place of programs, such as `python3` for `python`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
}

impl ToolImage {
    /// Returns an image that is a file.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            ..Self::default()
        }
    }

    /// Returns the image of an environment.
    pub fn environment(name: impl Into<String>) -> Self {
        Self {
            environment: Some(name.into()),
            ..Self::default()
        }
    }
}
