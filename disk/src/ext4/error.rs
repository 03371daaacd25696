use std::io;

use super::{Damage, Limit};
use vmcell_tree::printable_name;

/// An error from opening or reading a file system. Messages contain no control
/// characters and are safe to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image could not be read.
    #[error("cannot read the image at byte {offset}: check the file, which must not change")]
    Read {
        /// The offset in bytes.
        offset: u64,
        /// The error from the operating system.
        source: io::Error,
    },

    /// There is no ext2, ext3 or ext4 superblock.
    #[error("there is no ext2, ext3 or ext4 file system: check the image and the partition")]
    NoExtFileSystem,

    /// The file system uses an unsupported feature.
    #[error("the file system uses {feature}, which is not supported: mount it instead")]
    Unsupported {
        /// The name of the feature, as in `mke2fs` and `dumpe2fs`.
        feature: String,
    },

    /// The journal has to be replayed and uses an unsupported feature. Without
    /// the journal, the file system can be read: see
    /// [`Replay::Never`](super::Replay::Never).
    #[error("the journal has to be replayed, but {feature} is not supported")]
    UnsupportedJournal {
        /// What is not supported.
        feature: String,
    },

    /// The file system is damaged at one place.
    #[error(transparent)]
    Damaged(#[from] Damage),

    /// The contents are encrypted. This crate has no support for keys.
    #[error("inode {inode} is encrypted: mount the file system with its key to read it")]
    Encrypted {
        /// The inode.
        inode: u32,
    },

    /// The path does not exist.
    #[error("there is nothing at {path}: check the path")]
    NotFound {
        /// The path.
        path: String,
    },

    /// A part of the path is not a directory.
    #[error("a part of {path} is not a directory: check the path")]
    NotDirectory {
        /// The path.
        path: String,
    },

    /// The path leads through a symlink, but
    /// [`SymlinkPolicy::Never`](super::SymlinkPolicy::Never) was given.
    #[error("{path} leads through a symlink: follow symlinks, or use a path without them")]
    IsSymlink {
        /// The path.
        path: String,
    },

    /// The path leads through more than 40 symlinks, which is the kernel's
    /// limit.
    #[error("{path} leads through too many symlinks: they probably form a loop")]
    TooManySymlinks {
        /// The path as it was given.
        path: String,
    },

    /// The inode has the wrong type for the operation.
    #[error("inode {inode} is not a {wanted}")]
    WrongKind {
        /// The inode.
        inode: u32,
        /// The required type, for example "directory".
        wanted: &'static str,
    },

    /// A limit was exceeded: see [`Limits`](super::Limits).
    #[error(
        "inode {inode} exceeds the limit of {limit} {what}: raise it if the image can be trusted"
    )]
    Limit {
        /// Which limit.
        what: Limit,
        /// The value of the limit.
        limit: u64,
        /// The inode.
        inode: u32,
    },
}

/// Returns a path in a printable form, on one line.
pub(super) fn shown(path: &[u8]) -> String {
    if path.is_empty() {
        return "the directory itself".to_owned();
    }
    printable_name(path).into_owned()
}
