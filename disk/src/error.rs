use std::{fmt, io, path::PathBuf};

use super::{
    DiskLimit,
    budget::exceeded,
    ext4,
    image::{ImageError, partition::PartitionError},
    path::{shown, to_path},
};
use vmcell_tree::transfer::TreeError;

/// Why a disk, or something on it, could not be read. Texts and paths in it are
/// safe to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The image cannot be opened: it is not there, in use, of no known format
    /// or damaged.
    #[error(transparent)]
    Image(#[from] ImageError),

    /// It cannot be told which part of the disk has the file system.
    #[error(transparent)]
    Partition(#[from] PartitionError),

    /// The file system cannot be read at all.
    #[error("cannot open the file system")]
    FileSystem(#[source] ext4::Error),

    /// There is nothing at a path.
    #[error("there is nothing at {path}: check the path")]
    NotFound {
        /// Where it was to be.
        path: String,
    },

    /// Something else is there than what was asked for.
    #[error("{path} is no {wanted}: ask for what it is")]
    WrongKind {
        /// What it is about.
        path: String,
        /// What it would have to be.
        wanted: &'static str,
    },

    /// Symlinks lead to symlinks, and so on.
    #[error("{path} leads through too many symlinks: they probably lead to each other")]
    TooManyLinks {
        /// The path as it was given.
        path: String,
    },

    /// A place of the disk is damaged. What is elsewhere can still be read.
    #[error("{path} is damaged: what is elsewhere can still be read")]
    Damaged {
        /// What cannot be read for that.
        path: String,
        /// What is wrong.
        source: ext4::Damage,
    },

    /// It is encrypted, and the key is not here.
    #[error("{path} is encrypted: only a mount with its key shows what is in it")]
    Encrypted {
        /// What is encrypted.
        path: String,
    },

    /// The image, or a file of the host, could not be read.
    #[error("cannot read {path}: check the file, and that nothing changes it")]
    Read {
        /// What was to be read.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// There is more than may be.
    #[error("{path} goes beyond the limit of {limit} {what}: raise it if the disk can be trusted")]
    Limit {
        /// What there was too much of.
        what: DiskLimit,
        /// How much is allowed.
        limit: u64,
        /// Where it was noticed.
        path: String,
    },

    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),

    /// A tree could not be exported.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl DiskError {
    /// A name for the kind of error that never changes, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Image(ImageError::InUse { .. }) => "disk-in-use",
            Self::Image(_) => "disk-image",
            Self::Partition(_) => "disk-partition",
            Self::FileSystem(_) => "disk-file-system",
            Self::NotFound { .. } => "not-found",
            Self::WrongKind { .. } => "wrong-kind",
            Self::TooManyLinks { .. } => "too-many-links",
            Self::Damaged { .. } => "damaged",
            Self::Encrypted { .. } => "encrypted",
            Self::Read { .. } => "read",
            Self::Limit { .. } => "limit",
            Self::Invalid(_) => "invalid",
            Self::Tree(_) => "tree",
        }
    }

    /// What the file system's reader says of something at a path.
    pub(super) fn at(path: &[u8], error: ext4::Error) -> Self {
        let text = shown(path);
        match error {
            ext4::Error::Damaged(source) => Self::Damaged { path: text, source },
            ext4::Error::Encrypted { .. } => Self::Encrypted { path: text },
            ext4::Error::Read { source, .. } => Self::Read { path: text, source },
            ext4::Error::Missing { .. } => Self::NotFound { path: text },
            ext4::Error::TooManyLinks { .. } => Self::TooManyLinks { path: text },
            ext4::Error::NotDirectory { .. } | ext4::Error::Link { .. } => Self::WrongKind {
                path: text,
                wanted: "directory",
            },
            ext4::Error::WrongKind { wanted, .. } => Self::WrongKind { path: text, wanted },
            ext4::Error::Limit { what, limit, .. } => exceeded(what.into(), limit, path),
            error => Self::FileSystem(error),
        }
    }

    /// Whether it is about one entry, so that its neighbours can still be looked
    /// at.
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
            ext4::Limit::Link => Self::Link,
            ext4::Limit::Time => Self::Time,
        }
    }
}

/// Something that could not be looked at, and is missing from a result.
#[derive(Debug)]
#[non_exhaustive]
pub struct DiskProblem {
    /// Which entry, or the directory that it is in, relative to the root. It
    /// may hold any bytes: see [`printable`](crate::printable).
    pub path: PathBuf,
    /// Why. If it is a limit of the whole operation, nothing comes after it.
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
