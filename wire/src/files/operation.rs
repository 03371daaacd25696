use serde::{Deserialize, Serialize};

use super::time::Time;

/// A request for a file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRequest<'a> {
    /// The directory to which the operation is confined: an absolute path
    /// without symbolic links.
    #[serde(with = "serde_bytes")]
    pub root: &'a [u8],
    /// The operation.
    #[serde(borrow)]
    pub operation: FileOperation<'a>,
}

/// A file operation. Paths are relative to the root; the empty path is the root
/// itself.
///
/// A path that leads out of the root, through `..` or a symbolic link, is
/// [rejected](crate::FailureKind::Denied). If the root is `/`, symbolic links
/// are resolved as for any process. Everywhere, a symbolic link that is owned
/// neither by root nor by the owner of its target is rejected in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FileOperation<'a> {
    /// Reads a file.
    Read {
        /// The file; links are followed.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The offset of the first byte.
        offset: u64,
        /// The maximum number of bytes.
        length: u64,
    },
    /// Writes a file. Follows links and creates missing directories.
    #[serde(borrow)]
    Write(Write<'a>),
    /// Returns the metadata of one entry.
    Stat {
        /// The entry.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whether a link at the end of the path is followed.
        follow: bool,
        /// Whether to compute the digest of a file.
        digest: bool,
    },
    /// Lists the entries of a tree.
    #[serde(borrow)]
    Walk(Walk<'a>),
    /// Creates a directory and its missing parents.
    MakeDirectory {
        /// The directory. It may exist already.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Its permissions; 0755 by default.
        mode: Option<u16>,
        /// The owner of all directories that are created.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
    /// Removes an entry. Does not follow a link.
    Remove {
        /// The entry.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whether a directory is removed recursively. Otherwise it must be
        /// empty.
        tree: bool,
    },
    /// Renames an entry.
    Rename {
        /// The entry.
        #[serde(with = "serde_bytes")]
        from: &'a [u8],
        /// The new path.
        #[serde(with = "serde_bytes")]
        to: &'a [u8],
        /// Whether an existing entry at the new path may be replaced.
        replace: bool,
    },
    /// Copies a file, a link, or a directory recursively.
    Copy {
        /// The entry.
        #[serde(with = "serde_bytes")]
        from: &'a [u8],
        /// The path of the copy.
        #[serde(with = "serde_bytes")]
        to: &'a [u8],
        /// The owner of the copy.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
    /// Sets permissions. Follows links, but not within a tree.
    SetMode {
        /// The entry.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The permissions.
        mode: u16,
        /// Whether to apply it recursively.
        tree: bool,
    },
    /// Sets the owner. Does not follow links.
    SetOwner {
        /// The entry.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The owner.
        #[serde(borrow)]
        owner: Owner<'a>,
        /// Whether to apply it recursively.
        tree: bool,
    },
    /// Creates a symbolic link.
    Symlink {
        /// The path of the link.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The target, any bytes.
        #[serde(with = "serde_bytes")]
        target: &'a [u8],
        /// The owner of the link.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
    /// Sets the modification time. Creates an empty file if there is none.
    Touch {
        /// The entry; links are followed.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The time; `None` is now.
        modified: Option<Time>,
        /// The owner of a file that is created.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
    /// Computes the disk usage of a tree: [`FileReply::Usage`](super::FileReply::Usage).
    Usage {
        /// The top of the tree.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
    },
    /// Flushes written data to disk: of a file, or of the whole file system of
    /// a directory.
    Sync {
        /// The file or directory.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
    },
    /// Reports changes until the stream is cancelled. The first answer is the
    /// entry itself; all changes after it are reported.
    Watch {
        /// A file or directory.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whether to include the directories below.
        recursive: bool,
        /// Changes of one path within this time are reported once.
        debounce_ms: u32,
    },
    /// Receives a tree from the host.
    #[serde(borrow)]
    Receive(Receive<'a>),
    /// Sends a tree to the host.
    #[serde(borrow)]
    Send(Send<'a>),
    /// Changes many files: all, or none.
    Edit {
        /// The directory that the paths of the records are relative to.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The owner of new files.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
}

/// The parameters of writing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write<'a> {
    /// The file.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// Where in the file the bytes go.
    pub write_mode: WriteMode,
    /// The precondition.
    pub precondition: Precondition,
    /// Its permissions. By default those of the old file, or 0644.
    pub mode: Option<u16>,
    /// Its owner.
    #[serde(borrow)]
    pub owner: Owner<'a>,
    /// The expected number of bytes, if known, for preallocation.
    pub size: Option<u64>,
    /// Whether it must be flushed to disk before the answer.
    pub sync: bool,
}

/// Where in a file written bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteMode {
    /// They replace the whole file atomically: readers see either the old or
    /// the new contents.
    Replace,
    /// At its end.
    Append,
    /// At this offset; bytes that are there are overwritten.
    At(u64),
}

/// The precondition of a change. If it is not met, the change fails with a
/// [conflict](crate::FailureKind::Conflict).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precondition {
    /// No precondition.
    Anything,
    /// The file does not exist.
    Absent,
    /// The file's contents have this SHA-256.
    Digest([u8; 32]),
}

/// The owner of an entry that is created or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner<'a> {
    /// The owner of the directory in which the entry is created. An entry that
    /// is replaced keeps its owner.
    OfDirectory,
    /// `USER[:GROUP]`, names or numbers.
    User(&'a str),
    /// The ids in the entry's record; root for entries without a record.
    OfRecord,
}

/// The parameters of listing a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk<'a> {
    /// The top of the tree: a directory, or any other entry, which is then the
    /// only one. A link at the end of the path is followed.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// The number of levels below the top; 0 is the top alone.
    pub depth: u32,
    /// Whether to include the top itself, with an empty path.
    pub top: bool,
    /// Selects paths that match this [glob](crate::pattern); all if empty.
    #[serde(with = "serde_bytes")]
    pub glob: &'a [u8],
    /// Selects paths that these rules match; all if empty.
    #[serde(with = "serde_bytes")]
    pub include: &'a [u8],
    /// Skips paths that these rules exclude.
    #[serde(with = "serde_bytes")]
    pub exclude: &'a [u8],
    /// Whether the names of each directory are sorted.
    pub sorted: bool,
    /// Whether to compute the digests of files.
    pub digest: bool,
    /// Whether to include the names of owners and groups.
    pub names: bool,
}

/// The parameters of receiving a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receive<'a> {
    /// The path of the top of the tree. Missing parents are created.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// The owner of its entries.
    #[serde(borrow)]
    pub owner: Owner<'a>,
    /// Whether it must be flushed to disk before the answer.
    pub sync: bool,
}

/// The parameters of sending a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send<'a> {
    /// The top of the tree; a link is sent as a link.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// Selects paths that these rules match; all if empty.
    #[serde(with = "serde_bytes")]
    pub include: &'a [u8],
    /// Skips paths that these rules exclude.
    #[serde(with = "serde_bytes")]
    pub exclude: &'a [u8],
}
