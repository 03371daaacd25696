use std::{fmt, io, path::PathBuf};

use super::{
    DiskLimit,
    budget::exceeded,
    ext4,
    image::{ImageError, partition::PartitionError},
    path::{shown, to_path},
};
use vmcell_tree::transfer::TreeError;

/// An error from opening or reading a disk. Messages contain no control
/// characters and are safe to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The image cannot be opened: it does not exist, is in use, has an
    /// unsupported format or is damaged.
    #[error(transparent)]
    Image(#[from] ImageError),

    /// The disk has no ext file system, or several and none was chosen.
    #[error(transparent)]
    Partition(#[from] PartitionError),

    /// The file system cannot be opened.
    #[error("cannot open the file system")]
    FileSystem(#[source] ext4::Error),

    /// The path does not exist.
    #[error("there is nothing at {path}: check the path")]
    NotFound {
        /// The path.
        path: String,
    },

    /// The path is a symlink whose target does not exist.
    #[error("{path} is a symlink to {target}, which does not exist")]
    DanglingLink {
        /// The path.
        path: String,
        /// The target of the symlink, as stored.
        target: String,
    },

    /// The path is a directory, and the operation needs a file.
    #[error("{path} is a directory: choose a file in it")]
    IsDirectory {
        /// The path.
        path: String,
    },

    /// The path exists but is not of the required type.
    #[error("{path} is not a {wanted}: check the path")]
    WrongKind {
        /// The path.
        path: String,
        /// The required type, for example "directory".
        wanted: &'static str,
    },

    /// The path leads through more than 40 symlinks, which is the kernel's
    /// limit.
    #[error("{path} leads through too many symlinks: they probably form a loop")]
    TooManySymlinks {
        /// The path as it was given.
        path: String,
    },

    /// A part of the file system is damaged. The rest can still be read.
    #[error("{path} is damaged: other parts of the disk can still be read")]
    Damaged {
        /// The path that cannot be read because of it.
        path: String,
        /// The damaged structure.
        source: ext4::Damage,
    },

    /// It is encrypted. This crate has no support for keys.
    #[error("{path} is encrypted: mount the file system with its key to read it")]
    Encrypted {
        /// The path.
        path: String,
    },

    /// The image, or a file on the host, could not be read.
    #[error("cannot read {path}: check the file, and that no other process changes it")]
    Read {
        /// The file or path that was read.
        path: String,
        /// The error from the operating system.
        source: io::Error,
    },

    /// A limit was exceeded: see [`DiskLimits`](crate::DiskLimits).
    #[error("{path} exceeds the limit of {limit} {what}: raise it if the disk can be trusted")]
    Limit {
        /// Which limit.
        what: DiskLimit,
        /// The value of the limit.
        limit: u64,
        /// The path at which it was exceeded.
        path: String,
    },

    /// An argument is invalid, for example a pattern or a path.
    #[error("{0}")]
    Invalid(String),

    /// An export failed: the host could not be written to, or the image could
    /// not be read in the middle of a file.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl DiskError {
    /// Returns a stable identifier of the kind of error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Image(ImageError::InUse { .. }) => "disk-in-use",
            Self::Image(_) => "disk-image",
            Self::Partition(_) => "disk-partition",
            Self::FileSystem(_) => "disk-file-system",
            Self::NotFound { .. } | Self::DanglingLink { .. } => "not-found",
            Self::WrongKind { .. } | Self::IsDirectory { .. } => "wrong-kind",
            Self::TooManySymlinks { .. } => "too-many-links",
            Self::Damaged { .. } => "damaged",
            Self::Encrypted { .. } => "encrypted",
            Self::Read { .. } => "read",
            Self::Limit { .. } => "limit",
            Self::Invalid(_) => "invalid",
            Self::Tree(_) => "tree",
        }
    }

    /// Adds a path to an error of the ext4 reader.
    pub(super) fn at(path: &[u8], error: ext4::Error) -> Self {
        let text = shown(path);
        match error {
            ext4::Error::Damaged(source) => Self::Damaged { path: text, source },
            ext4::Error::Encrypted { .. } => Self::Encrypted { path: text },
            ext4::Error::Read { source, .. } => Self::Read { path: text, source },
            ext4::Error::NotFound { .. } => Self::NotFound { path: text },
            ext4::Error::TooManySymlinks { .. } => Self::TooManySymlinks { path: text },
            ext4::Error::NotDirectory { .. } | ext4::Error::IsSymlink { .. } => Self::WrongKind {
                path: text,
                wanted: "directory",
            },
            ext4::Error::WrongKind { wanted, .. } => Self::WrongKind { path: text, wanted },
            ext4::Error::Limit { what, limit, .. } => exceeded(what.into(), limit, path),
            error => Self::FileSystem(error),
        }
    }

    /// Returns whether the error affects one entry only, so that the operation
    /// can continue with the others.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Limit { what, .. } => !matches!(
                what,
                DiskLimit::Entries | DiskLimit::Time | DiskLimit::Memory
            ),
            Self::Tree(_) | Self::Invalid(_) => false,
            _ => true,
        }
    }
}

impl From<ext4::Limit> for DiskLimit {
    fn from(limit: ext4::Limit) -> Self {
        match limit {
            ext4::Limit::Directory => Self::Directory,
            ext4::Limit::Attributes => Self::Attributes,
            ext4::Limit::Journal => Self::Journal,
            ext4::Limit::Entries => Self::Entries,
            ext4::Limit::Depth => Self::Depth,
            ext4::Limit::Symlink => Self::Symlink,
            ext4::Limit::Time => Self::Time,
        }
    }
}

/// An entry that could not be read and is missing from a result.
#[derive(Debug)]
#[non_exhaustive]
pub struct DiskProblem {
    /// The path of the entry, or of the directory that contains it, relative to
    /// the root. It can contain any bytes: print it with
    /// [`printable`](crate::printable).
    pub path: PathBuf,
    /// Why it could not be read. After an error that ends the whole operation
    /// (a limit on entries, time or memory) no more items follow.
    pub error: DiskError,
}

impl DiskProblem {
    pub(super) fn new(path: &[u8], error: DiskError) -> Self {
        Self {
            path: to_path(path),
            error,
        }
    }
}

impl fmt::Display for DiskProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for DiskProblem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}
