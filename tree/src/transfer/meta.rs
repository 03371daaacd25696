use rustix::fs::{FileType, Stat, Timespec, Timestamps, UTIME_OMIT};
use vmcell_wire::files::{FileKind, Metadata, Time, XattrsBuf};

/// An owned [`Meta`].
#[derive(Clone, Debug, Default)]
pub(super) struct MetaBuf {
    pub(super) mode: u16,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) modified: Time,
    pub(super) xattrs: XattrsBuf,
}

impl MetaBuf {
    pub(super) fn from_stat(stat: &Stat) -> Self {
        Self {
            mode: mode_of(stat),
            uid: stat.st_uid,
            gid: stat.st_gid,
            modified: modified_of(stat),
            xattrs: XattrsBuf::new(),
        }
    }

    pub(super) fn from_wire(meta: &Metadata<'_>) -> Self {
        let mut xattrs = XattrsBuf::new();
        for (name, value) in meta.xattrs.iter() {
            // They fitted into the same limits before.
            let _fits = xattrs.push(name, value);
        }
        Self {
            mode: meta.mode,
            uid: meta.uid,
            gid: meta.gid,
            modified: meta.modified,
            xattrs,
        }
    }

    /// Returns the memory that the attributes take, in bytes.
    #[cfg(feature = "archive")]
    pub(super) fn xattrs_size(&self) -> usize {
        let xattrs = self.xattrs.as_xattrs();
        xattrs
            .iter()
            .map(|(name, value)| name.len() + value.len() + 3)
            .sum()
    }

    pub(super) fn as_wire(&self) -> Metadata<'_> {
        Metadata {
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            modified: self.modified,
            xattrs: self.xattrs.as_xattrs(),
        }
    }
}

pub(super) fn mode_of(stat: &Stat) -> u16 {
    // The mask leaves the twelve permission bits, which fit.
    (stat.st_mode & 0o7777) as u16
}

pub(super) fn modified_of(stat: &Stat) -> Time {
    Time {
        seconds: stat.st_mtime,
        nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
    }
}

pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

pub(super) fn kind_of(stat: &Stat) -> Option<FileKind> {
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::Unknown => return None,
    })
}

/// Names a kind of entry, for messages.
pub(super) fn kind_text(kind: Option<FileKind>) -> &'static str {
    match kind {
        Some(FileKind::File) => "a file",
        Some(FileKind::Directory) => "a directory",
        Some(FileKind::Symlink) => "a symbolic link",
        Some(FileKind::Fifo) => "a named pipe",
        Some(FileKind::Socket) => "a socket",
        Some(FileKind::CharacterDevice) => "a character device",
        Some(FileKind::BlockDevice) => "a block device",
        None => "of no known kind",
    }
}

/// Sets the modification time and leaves the access time unchanged.
pub(super) fn timestamps(modified: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanoseconds.into(),
        },
    }
}
