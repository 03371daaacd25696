use serde::{Deserialize, Serialize};

/// Something to be done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files<'a> {
    /// The directory that no path of the work can leave: absolute, and no part
    /// of it a symbolic link.
    #[serde(with = "serde_bytes")]
    pub root: &'a [u8],
    /// What is to be done.
    #[serde(borrow)]
    pub work: Work<'a>,
}

/// What is to be done. Paths are relative to the root; the empty path is the
/// root itself.
///
/// A path that leads out of the root, through `..` or through a symbolic link,
/// is [refused](crate::FailureKind::Denied). Where the root is `/`, symbolic
/// links mean what they mean to any process. Anywhere, a symbolic link that
/// belongs neither to root nor to the owner of what it leads to is refused in
/// the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Work<'a> {
    /// The bytes of a file.
    Read {
        /// Which file; links are followed.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Where to begin.
        offset: u64,
        /// How many bytes at most.
        length: u64,
    },
    /// Writes a file; links are followed, missing directories are made.
    #[serde(borrow)]
    Write(Write<'a>),
    /// One entry.
    Stat {
        /// Which one.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whether a link at the end of the path is followed.
        follow: bool,
        /// Whether to compute the digest of a file.
        digest: bool,
    },
    /// Many entries.
    #[serde(borrow)]
    Walk(Walk<'a>),
    /// Makes a directory, and those above it.
    MakeDirectory {
        /// Which one. One that is there is fine.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Its permissions; 0755 by default.
        mode: Option<u16>,
        /// Whose it is, and the ones made above it.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
    /// Removes an entry. A link is removed, never what it points to.
    Remove {
        /// Which one.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whether a directory goes with all that is in it. Without this an
        /// empty one goes.
        tree: bool,
    },
    /// Gives an entry another name.
    Rename {
        /// Which one.
        #[serde(with = "serde_bytes")]
        from: &'a [u8],
        /// Its new name.
        #[serde(with = "serde_bytes")]
        to: &'a [u8],
        /// Whether what has that name may be replaced.
        replace: bool,
    },
    /// Copies a file, a link, or a directory with all that is in it.
    Copy {
        /// Which one.
        #[serde(with = "serde_bytes")]
        from: &'a [u8],
        /// The name of the copy.
        #[serde(with = "serde_bytes")]
        to: &'a [u8],
        /// Whose it is.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
    /// Sets permissions; links are followed, but not within a tree.
    SetMode {
        /// Of which entry.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The permissions.
        mode: u16,
        /// Whether for all that is below it too.
        tree: bool,
    },
    /// Sets the owner; links are not followed.
    SetOwner {
        /// Of which entry.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whose it is.
        #[serde(borrow)]
        owner: Owner<'a>,
        /// Whether for all that is below it too.
        tree: bool,
    },
    /// Makes a symbolic link.
    Symlink {
        /// Its name.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// What it points to, any bytes.
        #[serde(with = "serde_bytes")]
        target: &'a [u8],
        /// Whose it is.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
    /// Sets the time of the last change; makes an empty file if there is none.
    Touch {
        /// Of which entry; links are followed.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// The time; now if none.
        modified: Option<Time>,
        /// Whose it is if it is made.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
    /// How much a tree takes up: [`Answer::Usage`](super::Answer::Usage).
    Usage {
        /// Its top.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
    },
    /// Makes what was written safe on the disk: a file, or the whole file
    /// system of a directory.
    Sync {
        /// Which one.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
    },
    /// Tells what changes, until the stream is cancelled. The first answer is
    /// the entry itself: from then on nothing is missed.
    Watch {
        /// A file or directory.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whether also in the directories below.
        recursive: bool,
        /// Changes of one path within this time are told once.
        debounce_ms: u32,
    },
    /// Takes a tree.
    #[serde(borrow)]
    Receive(Receive<'a>),
    /// Gives a tree.
    #[serde(borrow)]
    Send(Send<'a>),
    /// Changes many files: all, or none.
    Edit {
        /// The directory that the paths of the records are relative to.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whose files are that are new.
        #[serde(borrow)]
        owner: Owner<'a>,
    },
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write<'a> {
    /// Which file.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// Where the bytes go.
    pub place: WritePlace,
    /// What must be there before.
    pub expect: Expect,
    /// Its permissions. By default they stay as they are, or are 0644.
    pub mode: Option<u16>,
    /// Whose it is.
    #[serde(borrow)]
    pub owner: Owner<'a>,
    /// How many bytes will come, if that is known: to make room for them.
    pub size: Option<u64>,
    /// Whether it must be safe on the disk before the answer.
    pub sync: bool,
}

/// Where written bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WritePlace {
    /// They are the whole file. Whoever opens it sees all of the old one or
    /// all of the new one.
    Replace,
    /// Behind its end.
    Append,
    /// Over what is there from this offset on.
    At(u64),
}

/// What must be true of a file before it is changed. If it is not, that is a
/// [conflict](crate::FailureKind::Conflict).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// Nothing.
    Anything,
    /// It is not there.
    Absent,
    /// Its bytes have this SHA-256.
    Digest([u8; 32]),
}

/// Whose an entry is that is made or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner<'a> {
    /// Of whoever has the directory that it is made in. What is replaced
    /// stays whose it was.
    OfDirectory,
    /// `USER[:GROUP]`, names or numbers.
    User(&'a str),
    /// Of the ids that its record says; where there is none, of root.
    OfRecord,
}

/// Which entries of a tree are told, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk<'a> {
    /// Its top: a directory, or anything else, which is then all there is. A
    /// link at the end of the path is followed.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// How many levels below the top; 0: the top alone.
    pub depth: u32,
    /// Whether the top itself is told, with an empty path.
    pub top: bool,
    /// Only paths that match this [glob](crate::pattern); all if empty.
    #[serde(with = "serde_bytes")]
    pub glob: &'a [u8],
    /// Only what these lines include; all if empty.
    #[serde(with = "serde_bytes")]
    pub include: &'a [u8],
    /// Nothing that these lines exclude.
    #[serde(with = "serde_bytes")]
    pub exclude: &'a [u8],
    /// Whether the names of each directory come in order.
    pub sorted: bool,
    /// Whether files come with their digests.
    pub digest: bool,
    /// Whether owners and groups come with their names.
    pub names: bool,
}

/// How a tree is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receive<'a> {
    /// What the first record becomes. Missing directories above are made.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// Whose its entries are.
    #[serde(borrow)]
    pub owner: Owner<'a>,
    /// Whether it must be safe on the disk before the answer.
    pub sync: bool,
}

/// How a tree is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send<'a> {
    /// The first record; a link is given as a link.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// Only what these lines include; all if empty.
    #[serde(with = "serde_bytes")]
    pub include: &'a [u8],
    /// Nothing that these lines exclude.
    #[serde(with = "serde_bytes")]
    pub exclude: &'a [u8],
}

/// A time of the guest's clock, since 1970.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds, fewer than a billion.
    pub nanoseconds: u32,
}
