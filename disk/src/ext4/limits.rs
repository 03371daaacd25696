use std::{
    fmt,
    time::{Duration, Instant},
};

use super::Error;

/// Limits on what is read. Exceeding one is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Size of the metadata cache in bytes. Default: 4 MiB.
    pub cache: usize,
    /// Size of a directory in bytes. Default: 256 MiB, enough for about five
    /// million names.
    pub directory: u64,
    /// Size of the extended attributes of one inode in bytes, together.
    /// Default: 1 MiB. The kernel returns no value above 64 KiB.
    pub attributes: usize,
    /// Number of journal blocks that are replayed. Default: 262,144, the
    /// largest journal that `mke2fs` creates by default.
    pub journal: u32,
    /// Number of entries in a walk. Default: 10,000,000.
    pub entries: u64,
    /// Depth of nested directories in a walk. Default: 256.
    pub depth: usize,
    /// Time to open a file system, look up a path or a name, find the next name
    /// of a directory, or read the attributes of an inode. Default: one minute.
    /// Each of these can need many reads, and an image can make each of them
    /// slow.
    pub time: Duration,
}

impl Limits {
    pub(super) fn is_late(&self, since: Instant) -> bool {
        since.elapsed() > self.time
    }

    pub(super) fn check_time(&self, since: Instant, inode: u32) -> Result<(), Error> {
        if !self.is_late(since) {
            return Ok(());
        }
        Err(Error::Limit {
            what: Limit::Time,
            limit: u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            inode,
        })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cache: 4 << 20,
            directory: 256 << 20,
            attributes: 1 << 20,
            journal: 1 << 18,
            entries: 10_000_000,
            depth: 256,
            time: Duration::from_secs(60),
        }
    }
}

/// Which limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The size of a directory in bytes.
    Directory,
    /// The size of extended attributes in bytes.
    Attributes,
    /// The size of the journal in blocks.
    Journal,
    /// The number of entries of a walk.
    Entries,
    /// The depth of nested directories.
    Depth,
    /// The length of a symlink's target in bytes. Cannot be raised.
    Symlink,
    /// Time, in milliseconds.
    Time,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "bytes in a directory",
            Self::Attributes => "bytes in extended attributes",
            Self::Journal => "blocks in a journal",
            Self::Entries => "entries",
            Self::Depth => "directories within each other",
            Self::Symlink => "bytes in a symlink",
            Self::Time => "milliseconds",
        })
    }
}
