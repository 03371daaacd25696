use std::{fmt, time::Duration};

/// Limits on what one operation on a disk may do. When one is exceeded, the
/// operation fails, or ends its incomplete results with a problem.
///
/// A guest can write anything to its disk: directories that contain themselves,
/// or files that claim an enormous size. The limits bound the work in every
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskLimits {
    /// Number of entries visited. Default: 10,000,000.
    pub entries: u64,
    /// Depth of nested directories. Default: 256.
    pub depth: usize,
    /// Number of bytes of file data processed, holes included. Default: 1 TiB.
    pub bytes: u64,
    /// Run time. Default: ten minutes. Only the time inside the operation
    /// counts, not the time that the caller spends between two results of an
    /// iterator.
    pub time: Duration,
    /// Memory for names, links and differences, in bytes. Default: 64 MiB. At
    /// most half of it is used for the lines of a comparison: files beyond that
    /// are listed without their lines. Buffers take a few MiB more.
    pub memory: usize,
}

impl Default for DiskLimits {
    fn default() -> Self {
        Self {
            entries: 10_000_000,
            depth: 256,
            bytes: 1 << 40,
            time: Duration::from_secs(600),
            memory: 64 << 20,
        }
    }
}

/// Which limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskLimit {
    /// The number of entries.
    Entries,
    /// The depth of nested directories.
    Depth,
    /// Bytes of file data.
    Bytes,
    /// Run time, in milliseconds.
    Time,
    /// Memory, in bytes.
    Memory,
    /// The length of a path in bytes. Cannot be raised.
    Path,
    /// The size of a directory in bytes:
    /// [`ext4::Limits::directory`](crate::ext4::Limits::directory).
    Directory,
    /// The size of the extended attributes of one entry in bytes.
    Attributes,
    /// The size of the journal in blocks.
    Journal,
    /// The length of a symlink's target in bytes. Cannot be raised.
    Symlink,
    /// The size limit that the caller set for a read.
    Read,
}

impl fmt::Display for DiskLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Entries => "entries",
            Self::Depth => "directories within each other",
            Self::Bytes => "bytes in files",
            Self::Time => "milliseconds",
            Self::Memory => "bytes in memory",
            Self::Path => "bytes in a path",
            Self::Directory => "bytes in a directory",
            Self::Attributes => "bytes in extended attributes",
            Self::Journal => "blocks in the journal",
            Self::Symlink => "bytes in a symlink",
            Self::Read => "bytes",
        })
    }
}
