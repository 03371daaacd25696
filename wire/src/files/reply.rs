use serde::{Deserialize, Serialize};

use super::time::Time;
use crate::{failure::Failure, limits::MAX_PATH};

/// A reply to a file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FileReply<'a> {
    /// An entry.
    #[serde(borrow)]
    Entry(FileEntry<'a>),
    /// An entry that could not be read. The operation continues without it.
    Problem {
        /// Its path, as in [`FileEntry::path`].
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The reason.
        #[serde(borrow)]
        failure: Failure<'a>,
    },
    /// The disk usage of a tree.
    Usage(Usage),
    /// A change of a watched file or directory.
    #[serde(borrow)]
    Change(Change<'a>),
    /// A tree was received.
    Received {
        /// The number of entries that were created or replaced.
        entries: u64,
        /// The total length of their files.
        bytes: u64,
    },
}

impl FileReply<'_> {
    /// Returns whether all texts and paths are within their limits.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Entry(entry) => entry.is_valid(),
            Self::Problem { path, failure } => path.len() <= MAX_PATH && failure.is_valid(),
            Self::Change(change) => change.path.len() <= MAX_PATH,
            Self::Usage(_) | Self::Received { .. } => true,
        }
    }
}

/// A directory entry: a file, directory, link or other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry<'a> {
    /// Its path relative to the top of the walk. Empty for the top itself, and
    /// in a reply about a single entry.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// Its type.
    pub kind: FileKind,
    /// Permissions: the lowest twelve bits of a mode.
    pub mode: u16,
    /// Its length in bytes.
    pub size: u64,
    /// How many bytes it takes on disk.
    pub allocated: u64,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The owner's name, if it was requested and the guest knows it; else empty.
    pub owner: &'a str,
    /// The group's name, likewise.
    pub group: &'a str,
    /// Its modification time.
    pub modified: Time,
    /// Its number of hard links.
    pub links: u32,
    /// Its inode number.
    pub inode: u64,
    /// The target of a symbolic link.
    #[serde(with = "serde_bytes")]
    pub target: &'a [u8],
    /// The SHA-256 of a file's contents, if it was requested.
    pub digest: Option<[u8; 32]>,
}

impl FileEntry<'_> {
    fn is_valid(&self) -> bool {
        self.path.len() <= MAX_PATH
            && self.target.len() <= MAX_PATH
            && self.owner.len() <= MAX_OWNER
            && self.group.len() <= MAX_OWNER
            && self.mode <= 0o7777
            && self.modified.nanoseconds < 1_000_000_000
    }
}

/// The longest name of an owner or group, in bytes.
const MAX_OWNER: usize = 256;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

/// The disk usage of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The number of entries, including the top.
    pub entries: u64,
    /// The number of directories among them.
    pub directories: u64,
    /// The total length of its files. A file with several hard links counts once.
    pub bytes: u64,
    /// How many bytes it takes on disk.
    pub allocated: u64,
    /// The number of entries that could not be read.
    pub problems: u64,
}

/// A change of a watched file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<'a> {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The path relative to the watched entry; empty for that entry itself.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// Its contents changed.
    Modified,
    /// Its owner, permissions or times changed.
    Metadata,
    /// It was removed.
    Removed,
    /// Some changes were lost because there were too many. The receiver must
    /// read everything again.
    Overflow,
}
