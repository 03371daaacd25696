use crate::SparseMap;

/// An entry of an archive. [`ArchiveReader::name`](crate::ArchiveReader::name)
/// returns its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind.
    pub kind: EntryKind,
    /// The twelve permission bits.
    pub mode: u16,
    /// The numeric user.
    pub uid: u32,
    /// The numeric group.
    pub gid: u32,
    /// The modification time.
    pub modified: Time,
    /// Names and values of all extended attributes, in the order of the archive.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The kind of an [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// The number of bytes that follow.
        stored: u64,
        /// Where these bytes belong, if the file has holes.
        sparse: Option<SparseMap>,
    },
    /// A symbolic link.
    Symlink {
        /// The target, as the archive states it.
        target: Vec<u8>,
    },
    /// A hard link.
    HardLink {
        /// The name of another entry, as the archive states it.
        target: Vec<u8>,
    },
    /// A named pipe.
    Fifo,
    /// A character device; `None` if its numbers are malformed.
    CharacterDevice(Option<Device>),
    /// A block device; `None` if its numbers are malformed.
    BlockDevice(Option<Device>),
    /// The label of the archive.
    Label,
    /// A type that this crate does not know.
    Unknown(u8),
}

/// The numbers of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

/// A time since 1970. Nanoseconds always count forward, also before 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds, below a billion.
    pub nanoseconds: u32,
}
