use std::path::Path;

use vmcell_wire::{Failure, FailureKind};

use super::path::display_path;
use crate::printable;

/// Why an operation on a guest's file failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {text}{}", errno_text(*errno))]
#[non_exhaustive]
pub struct FileFailure {
    /// The path of the request, safe to print.
    pub path: String,
    /// The kind of failure.
    pub kind: FileFailureKind,
    /// The error number of the guest's kernel, if a system call failed.
    pub errno: Option<i32>,
    /// The agent's message: what it tried, and in a tree on which entry.
    pub text: String,
}

/// The kind of a [`FileFailure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFailureKind {
    /// The request is invalid for this entry.
    Invalid,
    /// It does not exist.
    NotFound,
    /// The path leaves the root, or the guest does not permit it.
    Denied,
    /// The guest has no room for it: the disk is full, or a limit is reached.
    Limit,
    /// The agent or the guest's kernel cannot do it.
    Unsupported,
    /// The path exists already, or the entry is not as expected.
    Conflict,
    /// Anything else.
    Other,
}

impl FileFailure {
    pub(crate) fn from_wire(failed: &Failure<'_>, path: &Path) -> Self {
        Self {
            path: match display_path(path) {
                path if path.is_empty() => ".".to_owned(),
                path => path,
            },
            kind: match failed.kind {
                FailureKind::Invalid => FileFailureKind::Invalid,
                FailureKind::NotFound => FileFailureKind::NotFound,
                FailureKind::Denied => FileFailureKind::Denied,
                FailureKind::Limit => FileFailureKind::Limit,
                FailureKind::Unsupported => FileFailureKind::Unsupported,
                FailureKind::Conflict => FileFailureKind::Conflict,
                _ => FileFailureKind::Other,
            },
            errno: (failed.errno != 0).then_some(failed.errno.into()),
            text: printable(failed.text.as_bytes()).replace(['\n', '\t'], "\u{fffd}"),
        }
    }

    /// Creates a failure for a file that is larger than the caller's limit.
    pub(super) fn too_large(path: &Path, limit: u64) -> Self {
        Self {
            path: display_path(path),
            kind: FileFailureKind::Limit,
            errno: None,
            text: format!("it has more than {limit} bytes: read a part, or raise the limit"),
        }
    }

    /// Returns whether the guest's disk is full.
    pub fn is_disk_full(&self) -> bool {
        const ENOSPC: i32 = 28;
        const EDQUOT: i32 = 122;
        matches!(self.errno, Some(ENOSPC | EDQUOT))
    }
}

fn errno_text(errno: Option<i32>) -> String {
    errno.map_or_else(String::new, |errno| {
        format!(": {}", std::io::Error::from_raw_os_error(errno))
    })
}
