use std::{io, path::Path};

use super::budget::TreeLimit;
use crate::printable_name;

/// Why a tree could not be sent or received. Paths in it are safe to print.
///
/// What was complete before stays; nothing is half-written under its final
/// name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// There is nothing to send.
    #[error("there is nothing at {path}: check the path")]
    Missing {
        /// Where it was to be.
        path: String,
    },

    /// Something of the host could not be read.
    #[error("cannot read {path}: check its permissions, and that nothing changes it meanwhile")]
    Read {
        /// What could not be read.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// Something could not be written on the host.
    #[error("cannot write {path}: check the permissions there")]
    Write {
        /// What could not be written.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// The host's file system has no room.
    #[error("no space left for {path}: free some, or choose another place")]
    Full {
        /// What did not fit.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// A directory has the name that a file or link is to have.
    #[error("a directory is in the way of {path}: remove it, or choose another destination")]
    InTheWay {
        /// The name.
        path: String,
    },

    /// The destination, or a directory above it, is a symbolic link. It may have
    /// come out of a guest, which would then choose what is written. So no link
    /// in the path of a destination is followed, but for those in `/` itself.
    #[error(
        "cannot write through the symbolic link {path}: if it is yours, name the path that it \
         leads to (`realpath` prints it), otherwise remove it"
    )]
    ThroughSymlink {
        /// The link.
        path: String,
    },

    /// Something that is not a directory has the name of one.
    #[error("{path} is not a directory: remove it, or choose another destination")]
    NotADirectory {
        /// What is in the way.
        path: String,
    },

    /// What comes is not a file or a directory, but a symbolic link, and nobody
    /// asked for that. It would stand among the caller's own files and lead
    /// wherever the guest wants.
    #[error(
        "cannot write {path}: what comes is a symbolic link, to {target}. Copy what it leads to, \
         or ask for the link itself (`--allow-symlink`, `allow_symlink()`)"
    )]
    IsSymlink {
        /// The destination.
        path: String,
        /// Where the link leads, as the guest says.
        target: String,
    },

    /// All there was to transfer is something that cannot be.
    #[error("{path} cannot be transferred: {reason}")]
    LeftOut {
        /// What was to be transferred.
        path: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The tree is larger than it may be.
    #[error("{path} goes beyond the limit of {limit} {what}: raise it if the tree can be trusted")]
    Limit {
        /// What there was too much of.
        what: TreeLimit,
        /// How much was allowed.
        limit: u64,
        /// Where it was noticed.
        path: String,
    },

    /// An archive holds what no archive should, or is not one.
    #[cfg(feature = "archive")]
    #[error("bad archive, at {entry}: {problem}")]
    Archive {
        /// The entry that is wrong.
        entry: String,
        /// What is wrong with it.
        problem: super::ArchiveProblem,
    },

    /// The guest sent something that is no tree. Do not trust it any more.
    #[error("the guest sent no proper tree, at {path}: {reason}")]
    Malformed {
        /// What was noticed.
        reason: &'static str,
        /// Where.
        path: String,
    },

    /// Whoever takes the tree has ended the transfer.
    #[error("the transfer was ended by the other side")]
    Gone,
}

impl TreeError {
    pub(super) fn read(path: String, source: impl Into<io::Error>) -> Self {
        Self::Read {
            path,
            source: source.into(),
        }
    }

    /// A failed write, by what can be done about it.
    pub(super) fn write(path: String, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { path, source },
            io::ErrorKind::IsADirectory | io::ErrorKind::DirectoryNotEmpty => {
                Self::InTheWay { path }
            }
            _ => Self::Write { path, source },
        }
    }
}

/// A path of a tree as people may see it, on one line.
pub(super) fn shown(path: &[u8]) -> String {
    if path.is_empty() {
        return "the top of the tree".to_owned();
    }
    printable_name(path).into_owned()
}

/// The same for a path of the host, and one below it.
pub(super) fn shown_below(base: &Path, path: &[u8]) -> String {
    use std::os::unix::ffi::OsStrExt as _;

    let mut joined = base.as_os_str().as_bytes().to_vec();
    if !path.is_empty() {
        if !joined.ends_with(b"/") {
            joined.push(b'/');
        }
        joined.extend_from_slice(path);
    }
    shown(&joined)
}
