use serde::{Deserialize, Serialize};

use super::{answer::FileKind, work::Time, xattrs::Xattrs};
use crate::{
    failure::Failure,
    limits::{MAX_INLINE, MAX_PATH},
};

/// A tree on its way, part by part, in either direction.
///
/// ```text
///  Enter ""  ┬ File "a", whole
///            ├ File "b", in parts ── bytes, Hole, bytes ── EndOfFile
///            ├ Enter "c" ┬ Symlink "d"
///            │           └ HardLink "e" to "a"
///            ├ Leave
///  Leave
/// ```
///
/// Names are single ones, so no path can lead anywhere: whoever takes a tree
/// is always in the directory that it entered last. The first record has the
/// empty name, and the tree is what it begins: a directory up to its `Leave`,
/// or that one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TreeRecord<'a> {
    /// A directory. What follows is in it.
    Enter {
        /// Its name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// Set when it is left. None: made if it is not there, and else left
        /// as it is.
        #[serde(borrow)]
        meta: Option<Meta<'a>>,
    },
    /// The directory that was entered last is complete.
    Leave,
    /// A file.
    File {
        /// Its name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// What else there is to it.
        #[serde(borrow)]
        meta: Meta<'a>,
        /// Its bytes.
        #[serde(borrow)]
        content: Content<'a>,
    },
    /// So many bytes of a file in parts are zero and take no room.
    Hole {
        /// How many.
        bytes: u64,
    },
    /// A file in parts is complete.
    EndOfFile,
    /// A symbolic link.
    Symlink {
        /// Its name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// What else there is to it.
        #[serde(borrow)]
        meta: Meta<'a>,
        /// What it points to.
        #[serde(with = "serde_bytes")]
        target: &'a [u8],
    },
    /// Another name for a file that came before.
    HardLink {
        /// The name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// The path of the file, from the top of the tree.
        #[serde(with = "serde_bytes")]
        to: &'a [u8],
    },
    /// Something was left out: it is no file, directory or link, or it could
    /// not be read.
    Skipped {
        /// Its name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// What it is, if that is known.
        kind: Option<FileKind>,
        /// Why, if it could not be read.
        #[serde(borrow)]
        failure: Option<Failure<'a>>,
    },
}

/// What there is to an entry beside its name and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta<'a> {
    /// Permissions: the lowest twelve bits of a mode.
    pub mode: u16,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// When it was last changed.
    pub modified: Time,
    /// Extended attributes `user.*`.
    #[serde(borrow)]
    pub xattrs: Xattrs<'a>,
}

/// How the bytes of a file come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content<'a> {
    /// Here: at most [`MAX_INLINE`].
    Whole(&'a [u8]),
    /// After the record, as raw bytes and [holes](TreeRecord::Hole).
    Parts {
        /// How long it is about to be.
        size: u64,
    },
}

impl TreeRecord<'_> {
    /// Whether names are names, and everything keeps its limits.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Enter { name, meta } => {
                is_name_or_empty(name) && meta.is_none_or(|meta| meta.is_valid())
            }
            Self::File {
                name,
                meta,
                content,
            } => is_name_or_empty(name) && meta.is_valid() && content.is_valid(),
            Self::Symlink { name, meta, target } => {
                is_name_or_empty(name) && meta.is_valid() && is_target(target)
            }
            Self::HardLink { name, to } => is_name_or_empty(name) && is_tree_path(to),
            Self::Skipped { name, failure, .. } => {
                is_name_or_empty(name) && failure.is_none_or(|failure| failure.is_valid())
            }
            Self::Leave | Self::Hole { .. } | Self::EndOfFile => true,
        }
    }
}

impl Meta<'_> {
    fn is_valid(&self) -> bool {
        self.mode <= 0o7777 && self.modified.nanoseconds < 1_000_000_000
    }
}

impl Content<'_> {
    fn is_valid(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.len() <= MAX_INLINE,
            Self::Parts { .. } => true,
        }
    }
}

/// The name of the first record, or one that an entry can have.
fn is_name_or_empty(name: &[u8]) -> bool {
    name.is_empty() || is_name(name)
}

fn is_name(name: &[u8]) -> bool {
    (1..=255).contains(&name.len())
        && name != b"."
        && name != b".."
        && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

fn is_target(target: &[u8]) -> bool {
    (1..MAX_PATH).contains(&target.len()) && !target.contains(&0)
}

fn is_tree_path(path: &[u8]) -> bool {
    path.len() < MAX_PATH && path.split(|byte| *byte == b'/').all(is_name)
}
