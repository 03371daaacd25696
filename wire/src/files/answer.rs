use serde::{Deserialize, Serialize};

use super::work::Time;
use crate::{failure::Failure, limits::MAX_PATH};

/// What work on files tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Answer<'a> {
    /// An entry.
    #[serde(borrow)]
    Entry(FileEntry<'a>),
    /// An entry that could not be looked at. The work goes on without it.
    Problem {
        /// Which one, as in [`FileEntry::path`].
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Why.
        #[serde(borrow)]
        failure: Failure<'a>,
    },
    /// What a tree takes up.
    Usage(Usage),
    /// Something has changed.
    #[serde(borrow)]
    Change(Change<'a>),
    /// A tree was taken.
    Received {
        /// How many entries were made or replaced.
        entries: u64,
        /// How many bytes their files have.
        bytes: u64,
    },
}

impl Answer<'_> {
    /// Whether texts and paths keep their limits.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Entry(entry) => entry.is_valid(),
            Self::Problem { path, failure } => path.len() <= MAX_PATH && failure.is_valid(),
            Self::Change(change) => change.path.len() <= MAX_PATH,
            Self::Usage(_) | Self::Received { .. } => true,
        }
    }
}

/// A file, directory, link or anything else that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry<'a> {
    /// Its path below the top of the walk; empty: the top, or the one entry
    /// that was asked for.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// What it is.
    pub kind: FileKind,
    /// Permissions: the lowest twelve bits of a mode.
    pub mode: u16,
    /// Its length in bytes.
    pub size: u64,
    /// How many bytes of the disk it takes up.
    pub allocated: u64,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The owner's name, if the guest has one and it was asked for.
    pub owner: &'a str,
    /// The group's name.
    pub group: &'a str,
    /// When it was last changed.
    pub modified: Time,
    /// How many names it has.
    pub links: u32,
    /// The number of its inode.
    pub inode: u64,
    /// What a symbolic link points to.
    #[serde(with = "serde_bytes")]
    pub target: &'a [u8],
    /// The SHA-256 of a file's bytes, if it was asked for.
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

/// What an entry is.
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

/// What a tree takes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// How many entries it has, its top included.
    pub entries: u64,
    /// How many of them are directories.
    pub directories: u64,
    /// The lengths of its files, together. A file of many names counts once.
    pub bytes: u64,
    /// How many bytes of the disk it takes up.
    pub allocated: u64,
    /// How many entries could not be looked at.
    pub problems: u64,
}

/// Something that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<'a> {
    /// What happened.
    pub kind: ChangeKind,
    /// Its path below what is watched; empty: that itself.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It is there now, and was not.
    Created,
    /// Its contents changed.
    Modified,
    /// Its owner, permissions or times changed.
    Metadata,
    /// It is gone.
    Removed,
    /// So much happened that some of it was not told. Look at everything again.
    Overflow,
}
