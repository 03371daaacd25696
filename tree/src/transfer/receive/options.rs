#[cfg(feature = "archive")]
use std::io::Write;
use std::path::PathBuf;

#[cfg(feature = "archive")]
use crate::transfer::ArchiveFormat;
use crate::transfer::{TreeLimits, progress::Tell};

/// Where a tree goes.
pub enum Destination {
    /// It becomes what is at this path of the host. Directories above it are
    /// made if they are missing.
    ///
    /// If a directory is there and one comes, what is in it is added: files and
    /// links are replaced, and the directory itself keeps its permissions and
    /// its time. Which symbolic links the path may have says
    /// [`HostEntry`](crate::transfer::host_entry::HostEntry).
    Path(PathBuf),
    /// An archive, written as it comes.
    #[cfg(feature = "archive")]
    Archive {
        /// Where it is written to.
        writer: Box<dyn Write + Send>,
        /// What sort of archive.
        format: ArchiveFormat,
        /// The name in it of a tree that is a single entry.
        name: Vec<u8>,
    },
    /// An archive that is a file of the host. It gets its name when it is
    /// complete.
    #[cfg(feature = "archive")]
    ArchiveAt {
        /// Which file. What has the name is replaced.
        path: PathBuf,
        /// What sort of archive.
        format: ArchiveFormat,
        /// The name in it of a tree that is a single entry.
        name: Vec<u8>,
    },
}

/// How a tree is received.
#[derive(Default)]
pub struct ReceiveOptions<'a> {
    /// How large it may be.
    pub limits: TreeLimits,
    /// Whose its entries are.
    pub ownership: Ownership,
    /// What becomes of permissions that are more than permissions.
    pub special_bits: SpecialBits,
    /// What becomes of a tree that is a single symbolic link.
    pub top_symlink: TopSymlink,
    /// Is told of each entry and each piece of a file.
    pub progress: Option<Tell<'a>>,
}

/// Whose entries are that came from a guest. Archives always say whose they
/// were in the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ownership {
    /// Of whoever runs this program.
    #[default]
    Caller,
    /// Of the ids that they had in the guest. This takes privileges.
    Recorded,
}

/// What becomes of the bits setuid, setgid and sticky.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecialBits {
    /// They are dropped: a guest must not leave programs on the host that run
    /// as somebody else.
    #[default]
    Drop,
    /// They are kept.
    Keep,
}

/// What becomes of a tree that is a single symbolic link. In an archive it is
/// an entry like others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopSymlink {
    /// It is an error: the link would stand among the caller's own files.
    #[default]
    Refuse,
    /// It is made.
    Make,
}
