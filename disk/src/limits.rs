use std::{fmt, time::Duration};

/// How much one operation on a disk may do. What goes beyond is an error, or
/// the last problem of a result that is not complete.
///
/// A disk that a guest has written can hold anything: directories within
/// themselves, files that claim to be larger than the world. These limits hold
/// whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskLimits {
    /// How many entries are looked at; ten million unless told.
    pub entries: u64,
    /// How many directories within each other are entered; 256 unless told.
    pub depth: usize,
    /// How many bytes of files are gone through, holes included; 1 TiB unless
    /// told.
    pub bytes: u64,
    /// How long it takes; ten minutes unless told. Only the time counts for
    /// which a caller waits: what comes piece by piece may be taken slowly.
    pub time: Duration,
    /// How many bytes are kept in memory for names, links and differences;
    /// 64 MiB unless told. Half of it at most is for lines that a comparison
    /// shows: files that would go beyond are only named. A few MiB for buffers
    /// come on top.
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

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskLimit {
    /// Entries.
    Entries,
    /// Directories within each other.
    Depth,
    /// Bytes in files.
    Bytes,
    /// Milliseconds.
    Time,
    /// Bytes in memory.
    Memory,
    /// Bytes in a path. This limit cannot be raised.
    Path,
    /// Bytes in a directory.
    Directory,
    /// Bytes in the extended attributes of one entry.
    Attributes,
    /// Blocks in the journal.
    Journal,
    /// Bytes in the target of a symlink. This limit cannot be raised.
    Link,
    /// Bytes that the caller wanted at most.
    Wanted,
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
            Self::Link => "bytes in a symlink",
            Self::Wanted => "bytes",
        })
    }
}
