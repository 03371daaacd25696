use serde::{Deserialize, Serialize};

use super::work::Expect;
use crate::limits::MAX_PATH;

/// One of the changes that are made together or not at all. They are made
/// when the channel ends.
///
/// Paths are relative and hold no `..`; no symbolic link on the way is
/// followed. Each path is named once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EditRecord<'a> {
    /// A file is to have these bytes; raw bytes follow.
    Put {
        /// Which one. Missing directories are made.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// What must be there before.
        expect: Expect,
        /// Its permissions. By default they stay as they are, or are 0644.
        mode: Option<u16>,
        /// How many bytes follow.
        length: u64,
    },
    /// A symbolic link is to be there.
    PutLink {
        /// Which one.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// What must be there before; the digest is that of a link's target.
        expect: Expect,
        /// What it points to.
        #[serde(with = "serde_bytes")]
        target: &'a [u8],
    },
    /// A file's permissions are to be these.
    SetMode {
        /// Which one.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// What must be there before.
        expect: Expect,
        /// The permissions.
        mode: u16,
    },
    /// A file or link is to be gone, and directories that this empties.
    Remove {
        /// Which one.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// What must be there before.
        expect: Expect,
    },
}

impl EditRecord<'_> {
    /// Whether everything keeps its limits.
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
