use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use vmcell_wire::files::{FileEntry, FileKind, FileReply, Time, Usage as WireUsage};

use crate::printable;

/// An entry of a guest's or a disk's file system: a file, a directory, a
/// symbolic link, a device, ….
///
/// Paths are bytes and need not be UTF-8. They may contain escape sequences, so
/// print them with [`printable_name`](crate::printable_name()).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The path, relative to the root that was listed.
    pub path: PathBuf,
    /// The kind of entry.
    pub kind: EntryKind,
    /// The length in bytes.
    pub size: u64,
    /// How many bytes of the disk it takes up.
    pub allocated: u64,
    /// The permission bits: the low twelve bits of `st_mode`.
    pub mode: u32,
    /// The owner's user ID.
    pub uid: u32,
    /// The group ID.
    pub gid: u32,
    /// The owner's name, if the guest's `/etc/passwd` has one.
    pub owner: Option<String>,
    /// The group's name, if the guest's `/etc/group` has one.
    pub group: Option<String>,
    /// The modification time, by the guest's clock.
    pub modified: SystemTime,
    /// The number of hard links.
    pub links: u32,
    /// The inode number.
    pub inode: u64,
    /// The target of a symbolic link.
    pub target: Option<PathBuf>,
    /// The SHA-256 of a file's content, if it was requested.
    pub sha256: Option<[u8; 32]>,
}

/// The kind of an [`Entry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

/// The number of entries and bytes of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Usage {
    /// The number of entries, including the top one.
    pub entries: u64,
    /// The number of directories among them.
    pub directories: u64,
    /// The sum of the file lengths. A file with several hard links counts once.
    pub bytes: u64,
    /// How many bytes of the disk it takes up.
    pub allocated: u64,
    /// The number of entries that could not be read.
    pub problems: u64,
}

impl Entry {
    /// Creates an empty entry with mode 0, one hard link and the time
    /// 1970-01-01.
    pub fn new(path: PathBuf, kind: EntryKind) -> Self {
        Self {
            path,
            kind,
            size: 0,
            allocated: 0,
            mode: 0,
            uid: 0,
            gid: 0,
            owner: None,
            group: None,
            modified: SystemTime::UNIX_EPOCH,
            links: 1,
            inode: 0,
            target: None,
            sha256: None,
        }
    }

    /// Returns the last component of the path, or `None` for the root.
    pub fn name(&self) -> Option<&OsStr> {
        self.path.file_name()
    }

    /// Returns the kind and the permissions as `ls -l` prints them:
    /// `-rw-r--r--`.
    pub fn permissions(&self) -> String {
        let mode = self.mode;
        let triple = |shift: u32, special: u32, with: char, without: char| {
            let bits = mode >> shift;
            let execute = match (bits & 1 != 0, mode & special != 0) {
                (true, true) => with,
                (false, true) => without,
                (true, false) => 'x',
                (false, false) => '-',
            };
            [
                if bits & 4 != 0 { 'r' } else { '-' },
                if bits & 2 != 0 { 'w' } else { '-' },
                execute,
            ]
        };
        let triples = [
            triple(6, 0o4000, 's', 'S'),
            triple(3, 0o2000, 's', 'S'),
            triple(0, 0o1000, 't', 'T'),
        ];
        std::iter::once(self.kind.letter())
            .chain(triples.into_iter().flatten())
            .collect()
    }

    /// Estimates the memory that the entry occupies, in bytes.
    pub fn memory_size(&self) -> usize {
        let path = |path: &Path| path.as_os_str().len();
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size_of::<Self>()
            + path(&self.path)
            + self.target.as_deref().map_or(0, path)
            + text(&self.owner)
            + text(&self.group)
    }

    /// Converts an entry that a guest sent. Its path is relative to `top`.
    #[doc(hidden)]
    pub fn from_guest(entry: &FileEntry<'_>, top: &Path) -> Self {
        let name = |text: &str| match text {
            "" => None,
            text => Some(printable(text.as_bytes()).into_owned()),
        };
        Self {
            path: match entry.path {
                b"" => top.to_owned(),
                path => top.join(relative_path_from_bytes(path)),
            },
            kind: EntryKind::from_wire(entry.kind),
            size: entry.size,
            allocated: entry.allocated,
            mode: entry.mode.into(),
            uid: entry.uid,
            gid: entry.gid,
            owner: name(entry.owner),
            group: name(entry.group),
            modified: system_time(entry.modified),
            links: entry.links,
            inode: entry.inode,
            target: (entry.kind == FileKind::Symlink).then(|| path_from_bytes(entry.target)),
            sha256: entry.digest,
        }
    }
}

impl EntryKind {
    /// Returns a stable name, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::CharacterDevice => "character-device",
            Self::BlockDevice => "block-device",
        }
    }

    /// Returns the letter that `ls -l` prints for this kind.
    pub fn letter(self) -> char {
        match self {
            Self::File => '-',
            Self::Directory => 'd',
            Self::Symlink => 'l',
            Self::Fifo => 'p',
            Self::Socket => 's',
            Self::CharacterDevice => 'c',
            Self::BlockDevice => 'b',
        }
    }

    /// Converts what a guest sent.
    #[doc(hidden)]
    pub fn from_wire(kind: FileKind) -> Self {
        match kind {
            FileKind::File => Self::File,
            FileKind::Directory => Self::Directory,
            FileKind::Symlink => Self::Symlink,
            FileKind::Fifo => Self::Fifo,
            FileKind::Socket => Self::Socket,
            FileKind::CharacterDevice => Self::CharacterDevice,
            FileKind::BlockDevice => Self::BlockDevice,
        }
    }
}

impl Usage {
    fn from_wire(usage: WireUsage) -> Self {
        Self {
            entries: usage.entries,
            directories: usage.directories,
            bytes: usage.bytes,
            allocated: usage.allocated,
            problems: usage.problems,
        }
    }

    /// Converts a guest's answer, or returns `None` if it is not a usage
    /// answer.
    #[doc(hidden)]
    pub fn from_answer(answer: FileReply<'_>) -> Option<Self> {
        match answer {
            FileReply::Usage(usage) => Some(Self::from_wire(usage)),
            _ => None,
        }
    }
}

/// Converts bytes to a path.
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

/// Converts bytes to a relative path. Drops leading slashes, because joining an
/// absolute path would replace the base path.
pub fn relative_path_from_bytes(bytes: &[u8]) -> PathBuf {
    let start = bytes.iter().position(|byte| *byte != b'/');
    path_from_bytes(&bytes[start.unwrap_or(bytes.len())..])
}

/// Converts a guest's time. A time that this system cannot represent becomes
/// 1970-01-01.
pub fn system_time(time: Time) -> SystemTime {
    let seconds = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = if time.seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(seconds)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    };
    whole
        .and_then(|whole| whole.checked_add(Duration::from_nanos(time.nanoseconds.into())))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Converts a time to the guest's representation.
pub fn wire_time(time: SystemTime) -> Time {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Time {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: since.subsec_nanos(),
        },
        Err(before) => {
            let before = before.duration();
            let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => Time {
                    seconds: -seconds,
                    nanoseconds: 0,
                },
                rest => Time {
                    seconds: -seconds - 1,
                    nanoseconds: 1_000_000_000 - rest,
                },
            }
        }
    }
}
