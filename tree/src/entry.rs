use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use vmcell_wire::files::{Answer, FileEntry, FileKind, Time, Usage as WireUsage};

use crate::printable;

/// A file, directory, symbolic link or other entry of a guest or a disk.
///
/// Names are bytes: a path that is not UTF-8 stays what it is. To show one to
/// people use [`printable`](crate::printable()), because names may hold escape
/// sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its path, relative to the root that was listed.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// Its length in bytes.
    pub size: u64,
    /// How many bytes of the disk it takes up.
    pub allocated: u64,
    /// Permissions: the lowest twelve bits of a mode.
    pub mode: u32,
    /// The number of its owner.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
    /// The owner's name, if the guest has one.
    pub owner: Option<String>,
    /// The group's name, if the guest has one.
    pub group: Option<String>,
    /// When it was last changed, by the guest's clock.
    pub modified: SystemTime,
    /// How many names it has.
    pub links: u32,
    /// The number of its inode.
    pub inode: u64,
    /// What a symbolic link points to.
    pub target: Option<PathBuf>,
    /// The SHA-256 of a file's bytes, if it was asked for.
    pub sha256: Option<[u8; 32]>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// What a tree takes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// How many entries it has, its top included.
    pub entries: u64,
    /// How many of them are directories.
    pub directories: u64,
    /// The lengths of its files, together. A file of many names counts once.
    pub bytes: u64,
    /// How many bytes of the disk it takes up.
    pub allocated: u64,
    /// How many entries could not be looked at.
    pub problems: u64,
}

impl Entry {
    /// An empty entry of this kind, without permissions, with one name, of 1970.
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

    /// The last part of its path. None: it is the root.
    pub fn name(&self) -> Option<&OsStr> {
        self.path.file_name()
    }

    /// Its kind and permissions, as `ls -l` shows them: `-rw-r--r--`.
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

    /// Estimates how many bytes of memory it takes.
    pub fn memory(&self) -> usize {
        let path = |path: &Path| path.as_os_str().len();
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size_of::<Self>()
            + path(&self.path)
            + self.target.as_deref().map_or(0, path)
            + text(&self.owner)
            + text(&self.group)
    }

    /// Converts what a guest sent. The guest's path is relative to `top`.
    pub fn from_guest(entry: &FileEntry<'_>, top: &Path) -> Self {
        let name = |text: &str| match text {
            "" => None,
            text => Some(printable(text.as_bytes()).into_owned()),
        };
        Self {
            path: match entry.path {
                b"" => top.to_owned(),
                path => top.join(relative(path)),
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
            target: (entry.kind == FileKind::Symlink).then(|| path(entry.target)),
            sha256: entry.digest,
        }
    }
}

impl EntryKind {
    /// The letter that `ls -l` shows.
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

    /// Converts what a guest sent. None: it is about something else.
    pub fn of(answer: Answer<'_>) -> Option<Self> {
        match answer {
            Answer::Usage(usage) => Some(Self::from_wire(usage)),
            _ => None,
        }
    }
}

/// Converts the bytes of a path.
pub fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

/// Converts the bytes of a relative path. Leading slashes are dropped, because
/// an absolute path would replace what it is joined to.
pub fn relative(bytes: &[u8]) -> PathBuf {
    let start = bytes.iter().position(|byte| *byte != b'/');
    path(&bytes[start.unwrap_or(bytes.len())..])
}

/// Converts a guest's time; one that this system cannot represent is 1970.
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

/// Converts a time for a guest.
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
