//! Entries of a tree.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Numeric user and group of an entry, as the guest will see them.
///
/// ```
/// use vmcell_rootfs::Owner;
///
/// assert_eq!(Owner::ROOT, Owner { uid: 0, gid: 0 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Owner {
    /// User and group 0.
    pub const ROOT: Self = Self { uid: 0, gid: 0 };
}

/// Where the bytes of a regular file come from.
///
/// ```
/// use vmcell_rootfs::Content;
///
/// assert_eq!(Content::from("hello\n"), Content::Bytes(b"hello\n".to_vec()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The bytes themselves.
    Bytes(Vec<u8>),
    /// A file of the host, read when the image is built. Blocks of zeros become holes.
    HostFile(PathBuf),
}

impl Content {
    /// Returns its length in bytes; zero if it cannot be read.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::HostFile(path) => std::fs::metadata(path).map_or(0, |found| found.len()),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// The type of an entry.
///
/// ```
/// use vmcell_rootfs::{Kind, Tree};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let mut tree = Tree::new();
/// tree.symlink("/var/run", "../run")?;
/// assert_eq!(tree.get("/var").unwrap().kind, Kind::Directory);
/// assert_eq!(tree.get("/var/run").unwrap().kind, Kind::Symlink("../run".into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File(Content),
    /// A symbolic link with this target.
    Symlink(PathBuf),
    /// A hard link to the file at this path of the image. Mode, owner, time and attributes are
    /// those of that file; the other fields of this node are ignored.
    HardLink(PathBuf),
    /// A named pipe.
    Fifo,
    /// A character device.
    CharDevice {
        /// Which driver.
        major: u32,
        /// Which of its devices.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// Which driver.
        major: u32,
        /// Which of its devices.
        minor: u32,
    },
}

/// One entry of a [`Tree`](crate::Tree).
///
/// ```
/// use vmcell_rootfs::{Kind, Node, Tree};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let mut tree = Tree::new();
/// tree.insert("/dev/null", Node::new(Kind::CharDevice { major: 1, minor: 3 }, 0o666))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The type of the entry.
    pub kind: Kind,
    /// The permission bits, with setuid, setgid and sticky: the low twelve bits of a mode.
    pub mode: u16,
    /// The user and group that own it.
    pub owner: Owner,
    /// Modification time in seconds since 1970; `None` is the image's epoch.
    pub modified: Option<i64>,
    /// Extended attributes by full name, such as `user.note`.
    pub xattrs: BTreeMap<OsString, Vec<u8>>,
}

impl Node {
    /// Returns an entry owned by root, dated to the image's epoch, without extended attributes.
    ///
    /// ```
    /// use vmcell_rootfs::{Kind, Node, Owner};
    ///
    /// let spool = Node { owner: Owner { uid: 8, gid: 8 }, ..Node::new(Kind::Directory, 0o2775) };
    /// ```
    #[must_use]
    pub fn new(kind: Kind, mode: u16) -> Self {
        Self {
            kind,
            mode: mode & 0o7777,
            owner: Owner::ROOT,
            modified: None,
            xattrs: BTreeMap::new(),
        }
    }
}
