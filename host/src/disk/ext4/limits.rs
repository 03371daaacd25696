use std::fmt;

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
        })
    }
}
