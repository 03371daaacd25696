use serde::{Deserialize, Serialize};

use super::{reply::FileKind, time::Time, xattrs::Xattrs};
use crate::{
    failure::Failure,
    limits::{MAX_INLINE, MAX_PATH},
};

/// A record of a tree transfer, in either direction.
///
/// ```text
///  Enter ""  ┬ File "a", Inline
///            ├ File "b", Chunked ── bytes, Hole, bytes ── EndOfFile
///            ├ Enter "c" ┬ Symlink "d"
///            │           └ HardLink "e" to "a"
///            ├ Leave
///  Leave
/// ```
///
/// Each record has a single file name and not a path, so that entries cannot
/// escape the tree: the receiver creates them in the directory that it entered
/// last. The first record has the empty name. It is the top of the tree: a
/// directory up to its `Leave`, or a single entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TreeRecord<'a> {
    /// Begins a directory, which contains the following entries.
    Enter {
        /// Its name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// Metadata, applied at its `Leave`. `None` creates the directory if it
        /// is missing, and else leaves its metadata unchanged.
        #[serde(borrow)]
        meta: Option<Metadata<'a>>,
    },
    /// Ends the directory that was entered last.
    Leave,
    /// A file.
    File {
        /// Its name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// What else there is to it.
        #[serde(borrow)]
        meta: Metadata<'a>,
        /// Its bytes.
        #[serde(borrow)]
        content: Content<'a>,
    },
    /// A hole in a file that is sent in parts.
    Hole {
        /// Its length.
        bytes: u64,
    },
    /// Ends a file that is sent in parts.
    EndOfFile,
    /// A symbolic link.
    Symlink {
        /// Its name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// What else there is to it.
        #[serde(borrow)]
        meta: Metadata<'a>,
        /// Its target.
        #[serde(with = "serde_bytes")]
        target: &'a [u8],
    },
    /// A hard link to an earlier file.
    HardLink {
        /// The name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// The path of the file, relative to the top of the tree.
        #[serde(with = "serde_bytes")]
        to: &'a [u8],
    },
    /// An entry that was skipped: it is not a file, directory or link, or it
    /// could not be read.
    Skipped {
        /// Its name.
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        /// Its type, if known.
        kind: Option<FileKind>,
        /// The reason, if it could not be read.
        #[serde(borrow)]
        failure: Option<Failure<'a>>,
    },
}

/// The metadata of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata<'a> {
    /// Permissions: the lowest twelve bits of a mode.
    pub mode: u16,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its modification time.
    pub modified: Time,
    /// Its extended attributes `user.*`.
    #[serde(borrow)]
    pub xattrs: Xattrs<'a>,
}

/// How the contents of a file are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content<'a> {
    /// Inside the record: at most [`MAX_INLINE`] bytes.
    Inline(&'a [u8]),
    /// After the record, as raw bytes and [holes](TreeRecord::Hole).
    Chunked {
        /// The expected length.
        size: u64,
    },
}

impl TreeRecord<'_> {
    /// Returns whether names are valid and all fields are within their limits.
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

impl Metadata<'_> {
    fn is_valid(&self) -> bool {
        self.mode <= 0o7777 && self.modified.nanoseconds < 1_000_000_000
    }
}

impl Content<'_> {
    fn is_valid(&self) -> bool {
        match self {
            Self::Inline(bytes) => bytes.len() <= MAX_INLINE,
            Self::Chunked { .. } => true,
        }
    }
}

/// Accepts valid file names, and the empty name of the first record.
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
