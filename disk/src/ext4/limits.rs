use std::{
    fmt,
    time::{Duration, Instant},
};

use super::Error;

/// How much of a file system is read. What goes beyond is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many bytes of metadata stay in memory; 4 MiB unless told.
    pub cache: usize,
    /// How long a directory may be; 256 MiB unless told, which is room for some
    /// five million names.
    pub directory: u64,
    /// How many bytes the extended attributes of one inode may have together;
    /// 1 MiB unless told. The kernel shows no value above 64 KiB.
    pub attributes: usize,
    /// How many blocks of a journal are replayed; 262,144 unless told, which is
    /// the largest journal that `mke2fs` makes by itself.
    pub journal: u32,
    /// How many entries a walk goes through; ten million unless told.
    pub entries: u64,
    /// How many directories within each other a walk enters; 256 unless told.
    pub depth: usize,
    /// How long it may take to open a file system, to look a path or a name up,
    /// to go on to the next name of a directory, and to read the attributes of an
    /// inode; a minute unless told. There may be a lot to go through before
    /// something is found, and an image can make every block of it slow to read.
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

/// What a file system can have too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Bytes in a directory.
    Directory,
    /// Bytes in extended attributes.
    Attributes,
    /// Blocks in a journal.
    Journal,
    /// Entries of a walk.
    Entries,
    /// Directories within each other.
    Depth,
    /// Bytes in a symlink. This limit cannot be raised.
    Link,
    /// Milliseconds.
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
            Self::Link => "bytes in a symlink",
            Self::Time => "milliseconds",
        })
    }
}
