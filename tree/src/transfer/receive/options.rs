#[cfg(feature = "archive")]
use std::io::Write;
use std::path::PathBuf;

#[cfg(feature = "archive")]
use crate::transfer::ArchiveFormat;
use crate::transfer::{TreeLimits, progress::ProgressCallback};

/// Where to write a received tree.
pub enum Destination {
    /// A path of the host: the top of the tree is created there. Missing parent
    /// directories are created.
    ///
    /// If the tree is a directory and one exists, the tree is merged into it:
    /// files and links are replaced, and the existing directory keeps its
    /// permissions and its time. Symbolic links in the path are rejected
    /// ([`TreeError::ThroughSymlink`](crate::transfer::TreeError::ThroughSymlink)).
    Path(PathBuf),
    /// An archive that is written as the records arrive.
    #[cfg(feature = "archive")]
    Archive {
        /// The writer for the bytes of the archive.
        writer: Box<dyn Write + Send>,
        /// The format of the archive.
        format: ArchiveFormat,
        /// The name of the entry if the tree is a single one.
        name: Vec<u8>,
    },
    /// An archive file of the host. It appears under its name when it is
    /// complete.
    #[cfg(feature = "archive")]
    ArchiveFile {
        /// The path of the archive. An existing file is replaced.
        path: PathBuf,
        /// The format of the archive.
        format: ArchiveFormat,
        /// The name of the entry if the tree is a single one.
        name: Vec<u8>,
    },
}

/// How to receive a tree.
#[derive(Default)]
pub struct ReceiveOptions<'a> {
    /// How large the tree may be.
    pub limits: TreeLimits,
    /// Who owns the entries.
    pub ownership: Ownership,
    /// How to treat the setuid, setgid and sticky bits.
    pub special_bits: SpecialBits,
    /// How to treat a tree that is a single symbolic link.
    pub top_symlink: TopSymlink,
    /// Called for each entry and each piece of a file.
    pub progress: Option<ProgressCallback<'a>>,
}

/// Who owns the files that are written. Archives always record the guest's
/// owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ownership {
    /// The user who runs this program.
    #[default]
    Caller,
    /// The user and group IDs that they had in the guest. This needs
    /// privileges.
    Recorded,
}

/// How to treat the setuid, setgid and sticky bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecialBits {
    /// Clears them: a guest must not leave programs on the host that run as
    /// another user.
    #[default]
    Drop,
    /// Keeps them.
    Keep,
}

/// How to treat a tree that is a single symbolic link. In an archive it is an
/// ordinary entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopSymlink {
    /// Fails with
    /// [`TreeError::IsSymlink`](crate::transfer::TreeError::IsSymlink): the
    /// link would be among the caller's own files.
    #[default]
    Reject,
    /// Creates the link.
    Allow,
}
