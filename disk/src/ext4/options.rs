use super::Limits;

/// How a file system is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How much is read.
    pub limits: Limits,
    /// What is done about wrong checksums.
    pub checksums: Checksums,
    /// What is done about a journal that waits to be replayed.
    pub replay: Replay,
    /// Where the superblock is.
    pub superblock: SuperblockCopy,
}

/// What is done about checksums of metadata, where the file system has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// What has a wrong one is damaged.
    #[default]
    Check,
    /// They are not looked at.
    Ignore,
}

/// What is done about a journal that waits to be replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// It is replayed in memory. The image stays as it is.
    #[default]
    InMemory,
    /// The file system is read as it is without the journal: possibly torn.
    Never,
}

/// Which copy of the superblock is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuperblockCopy {
    /// The first one.
    #[default]
    Primary,
    /// The one in the second group of blocks, with the descriptors next to it.
    Backup,
}
