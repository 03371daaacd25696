use std::io;

use super::{Damage, Limit};
use vmcell_tree::printable_name;

/// Why something of a file system could not be read. Texts and paths in it are
/// safe to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image could not be read.
    #[error("cannot read the image at byte {offset}: check the file, and that nothing changes it")]
    Read {
        /// Where.
        offset: u64,
        /// What the operating system said.
        source: io::Error,
    },

    /// There is no such file system.
    #[error("there is no ext2, ext3 or ext4 file system: check the image, and the partition")]
    Foreign,

    /// The file system uses something that cannot be read here.
    #[error("the file system uses {feature}, which cannot be read without the kernel: mount it")]
    Unsupported {
        /// The name of it, as `mke2fs` and `dumpe2fs` call it.
        feature: String,
    },

    /// The file system is damaged, at one place.
    #[error(transparent)]
    Damaged(#[from] Damage),

    /// The contents are encrypted, and the key is not here.
    #[error("inode {inode} is encrypted: its contents can only be read with the key, in a mount")]
    Encrypted {
        /// What is encrypted.
        inode: u32,
    },

    /// There is nothing with this name.
    #[error("there is nothing at {path}: check the path")]
    Missing {
        /// Where it was to be.
        path: String,
    },

    /// A path leads through something that is no directory.
    #[error("{path} is no directory: check the path")]
    NotDirectory {
        /// What is none.
        path: String,
    },

    /// A path leads through a symlink, and links are not to be followed.
    #[error("{path} is a symlink: follow links, or give the path that it leads to")]
    Link {
        /// What is one.
        path: String,
    },

    /// Symlinks lead to symlinks, and so on.
    #[error("{path} leads through too many symlinks: they probably lead to each other")]
    TooManyLinks {
        /// The path as it was given.
        path: String,
    },

    /// Something was asked of the wrong kind of inode.
    #[error("inode {inode} is no {wanted}: ask for what it is")]
    WrongKind {
        /// What was asked.
        inode: u32,
        /// What it would have to be.
        wanted: &'static str,
    },

    /// There is more than may be read.
    #[error(
        "inode {inode} goes beyond the limit of {limit} {what}: raise it if the image is yours"
    )]
    Limit {
        /// What there is too much of.
        what: Limit,
        /// How much is allowed.
        limit: u64,
        /// Of what.
        inode: u32,
    },
}

/// A path as people may see it, on one line.
pub(super) fn shown(path: &[u8]) -> String {
    if path.is_empty() {
        return "the directory itself".to_owned();
    }
    printable_name(path).into_owned()
}
