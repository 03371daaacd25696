use super::Limits;

/// Options for opening a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The limits.
    pub limits: Limits,
    /// Whether to check checksums.
    pub checksums: Checksums,
    /// Whether to replay the journal.
    pub replay: Replay,
    /// Which copy of the superblock to use.
    pub superblock: SuperblockCopy,
}

/// Whether to check inodes as the kernel does, and metadata checksums if the file
/// system has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// A structure with a wrong checksum is damaged, and an inode that the
    /// kernel would reject cannot be read.
    #[default]
    Check,
    /// Checksums are ignored, and an inode is read as far as it is intact.
    Ignore,
}

/// Whether to replay a journal that needs recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// The journal is replayed in memory. The image is not changed.
    #[default]
    InMemory,
    /// The journal is ignored. The file system may be inconsistent.
    Never,
}

/// A copy of the superblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuperblockCopy {
    /// The primary superblock.
    #[default]
    Primary,
    /// The first intact backup, with the group descriptors next to it: in block
    /// group 1, 3, 5, 7 or 9.
    Backup,
}
