use serde::{Deserialize, Serialize};

use super::operation::Precondition;
use crate::limits::MAX_PATH;

/// One of the changes of an edit, which are applied all or none when the channel
/// ends.
///
/// Paths are relative and contain no `..`. Each path occurs once. Symbolic links
/// to directories are followed, but not out of the directory of the edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EditRecord<'a> {
    /// Creates or replaces a file; its contents follow as raw bytes.
    Put {
        /// The file. Missing directories are created.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The precondition.
        precondition: Precondition,
        /// Its permissions. By default those of the old file, or 0644.
        mode: Option<u16>,
        /// The number of bytes that follow.
        length: u64,
    },
    /// Creates or replaces a symbolic link.
    PutLink {
        /// The link.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The precondition; the digest is that of a link's target.
        precondition: Precondition,
        /// The target.
        #[serde(with = "serde_bytes")]
        target: &'a [u8],
    },
    /// Sets a file's permissions.
    SetMode {
        /// The file.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The precondition.
        precondition: Precondition,
        /// The permissions.
        mode: u16,
    },
    /// Removes a file or link, and directories that become empty by this.
    Remove {
        /// The file or link.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The precondition.
        precondition: Precondition,
    },
}

impl EditRecord<'_> {
    /// Returns whether all fields are within their limits.
    pub fn is_valid(&self) -> bool {
        let (path, rest) = match self {
            Self::Put { path, mode, .. } => (path, mode.is_none_or(|mode| mode <= 0o7777)),
            Self::PutLink { path, target, .. } => (path, target.len() < MAX_PATH),
            Self::SetMode { path, mode, .. } => (path, *mode <= 0o7777),
            Self::Remove { path, .. } => (path, true),
        };
        rest && path.len() < MAX_PATH
    }
}
