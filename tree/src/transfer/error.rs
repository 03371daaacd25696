use std::{io, path::Path};

use super::budget::TreeLimit;
use crate::printable_name;

/// Why a tree could not be sent or received. Paths in it are safe to print.
///
/// Entries that were complete before the error stay. A file that was incomplete
/// does not appear under its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The source does not exist.
    #[error("there is nothing at {path}: check the path")]
    Missing {
        /// The path of the source.
        path: String,
    },

    /// A file of the host could not be read.
    #[error("cannot read {path}: check its permissions, and that nothing changes it meanwhile")]
    Read {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },

    /// A file could not be written on the host.
    #[error("cannot write {path}: check the permissions there")]
    Write {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The host's file system is full.
    #[error("no space left for {path}: free some, or choose another place")]
    Full {
        /// The path of the file that did not fit.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },

    /// A directory exists where a file or a symbolic link should be created.
    #[error("a directory is in the way of {path}: remove it, or choose another destination")]
    DirectoryInTheWay {
        /// The path of the directory.
        path: String,
    },

    /// The destination, or a directory above it, is a symbolic link. The link
    /// may have come from a guest, which would then choose what is written. So
    /// no link in the path of a destination is followed, except those in `/`
    /// itself.
    #[error(
        "cannot write through the symbolic link {path}: if it is yours, name the path that it \
         leads to (`realpath` prints it), otherwise remove it"
    )]
    ThroughSymlink {
        /// The link.
        path: String,
    },

    /// Something else exists where a directory should be.
    #[error("{path} is not a directory: remove it, or choose another destination")]
    NotADirectory {
        /// The path.
        path: String,
    },

    /// The tree is a single symbolic link, and
    /// [`TopSymlink`](super::TopSymlink) rejects it. It would be among the
    /// caller's own files and lead wherever the guest wants.
    #[error(
        "cannot write {path}: what comes is a symbolic link, to {target}. Copy what it leads to, \
         or ask for the link itself (`--allow-symlink`, `allow_symlink()`)"
    )]
    IsSymlink {
        /// The destination.
        path: String,
        /// The target of the link, which the guest chose.
        target: String,
    },

    /// The tree is a single entry, and that cannot be transferred.
    #[error("{path} cannot be transferred: {reason}")]
    NotTransferable {
        /// The path of the entry.
        path: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The tree exceeds a limit.
    #[error("{path} goes beyond the limit of {limit} {what}: raise it if the tree can be trusted")]
    Limit {
        /// Which limit.
        what: TreeLimit,
        /// The value of the limit.
        limit: u64,
        /// The path at which it was exceeded.
        path: String,
    },

    /// The archive is malformed, hostile, or not an archive.
    #[cfg(feature = "archive")]
    #[error("bad archive, at {entry}: {problem}")]
    Archive {
        /// The name of the entry, or of the archive.
        entry: String,
        /// What is wrong with it.
        problem: super::ArchiveProblem,
    },

    /// The stream from the guest is not a valid tree. Do not trust the guest
    /// any more.
    #[error("the guest sent a malformed tree, at {path}: {reason}")]
    Malformed {
        /// What is wrong.
        reason: &'static str,
        /// The path at which it was noticed.
        path: String,
    },

    /// The other side has ended the transfer.
    #[error("the other side ended the transfer")]
    Aborted,
}

impl TreeError {
    pub(super) fn read(path: String, source: impl Into<io::Error>) -> Self {
        Self::Read {
            path,
            source: source.into(),
        }
    }

    /// Converts a failed write to the variant that names the remedy.
    pub(super) fn write(path: String, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { path, source },
            io::ErrorKind::IsADirectory | io::ErrorKind::DirectoryNotEmpty => {
                Self::DirectoryInTheWay { path }
            }
            _ => Self::Write { path, source },
        }
    }
}

/// Formats a path of a tree for messages, on one line.
pub(super) fn display_path(path: &[u8]) -> String {
    if path.is_empty() {
        return "the top of the tree".to_owned();
    }
    printable_name(path).into_owned()
}

/// Formats a path of the host joined with a path of a tree.
pub(super) fn display_path_below(base: &Path, path: &[u8]) -> String {
    use std::os::unix::ffi::OsStrExt as _;

    let mut joined = base.as_os_str().as_bytes().to_vec();
    if !path.is_empty() {
        if !joined.ends_with(b"/") {
            joined.push(b'/');
        }
        joined.extend_from_slice(path);
    }
    display_path(&joined)
}
