use alloc::{ffi::CString, vec::Vec};
use core::{ffi::CStr, mem::MaybeUninit};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{FileType, Mode, OFlags, RawDir, openat},
    io::Errno,
};

/// The open directories of a depth-first traversal, without recursion. It uses
/// descriptors and follows no link.
pub(crate) struct DirectoryStack<T> {
    levels: Vec<Level<T>>,
    buffer: Vec<MaybeUninit<u8>>,
}

/// An open directory.
pub(crate) struct Level<T> {
    pub(crate) directory: OwnedFd,
    pub(crate) name: CString,
    /// Data of the caller.
    pub(crate) data: T,
    /// Entries that were read and not returned yet.
    pending: Vec<(CString, FileType)>,
}

/// A step of the traversal.
pub(crate) enum Step<'a, T> {
    /// An entry of the deepest directory.
    Entry {
        level: &'a Level<T>,
        name: CString,
        /// According to the directory: it may be unknown or outdated.
        kind: FileType,
    },
    /// The deepest directory has no more entries and was popped.
    Left(Level<T>),
}

/// How much of a directory is read at once.
const BUFFER: usize = 32 * 1024;

const READ: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl<T> DirectoryStack<T> {
    pub(crate) fn new() -> Self {
        let mut buffer = Vec::new();
        buffer.resize_with(BUFFER, MaybeUninit::uninit);
        Self {
            levels: Vec::new(),
            buffer,
        }
    }

    /// Returns how many directories are open.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    pub(crate) fn top(&self) -> Option<&Level<T>> {
        self.levels.first()
    }

    pub(crate) fn deepest(&self) -> Option<&Level<T>> {
        self.levels.last()
    }

    /// Pushes an open directory.
    pub(crate) fn enter(&mut self, directory: OwnedFd, name: CString, data: T) {
        self.levels.push(Level {
            directory,
            name,
            data,
            pending: Vec::new(),
        });
    }

    /// Returns the next entry, or the end of the deepest directory. `None` at the
    /// end of the traversal.
    pub(crate) fn step(&mut self) -> Result<Option<Step<'_, T>>, Errno> {
        let Some(mut level) = self.levels.pop() else {
            return Ok(None);
        };
        if level.pending.is_empty() {
            level.read(&mut self.buffer)?;
        }
        let Some((name, kind)) = level.pending.pop() else {
            return Ok(Some(Step::Left(level)));
        };
        self.levels.push(level);
        Ok(self
            .levels
            .last()
            .map(|level| Step::Entry { level, name, kind }))
    }

    /// Returns the path of an entry of the deepest directory, relative to the top.
    pub(crate) fn path_of(&self, name: &CStr) -> Vec<u8> {
        let mut path = Vec::new();
        for level in self.levels.iter().skip(1) {
            path.extend_from_slice(level.name.as_bytes());
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        path
    }
}

impl<T> Level<T> {
    /// Reads more entries, if there are any.
    fn read(&mut self, buffer: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
        let mut entries = RawDir::new(&self.directory, buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // The directory was removed meanwhile.
                Err(Errno::NOENT) => break,
                Err(errno) => return Err(errno),
            };
            let (name, kind) = (entry.file_name(), entry.file_type());
            if !matches!(name.to_bytes(), b"." | b"..") {
                self.pending.push((CString::from(name), kind));
            }
            if entries.is_buffer_empty() && !self.pending.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Opens a directory for reading. Does not follow a link.
pub(crate) fn open_directory(
    above: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> Result<OwnedFd, Errno> {
    openat(above, name, READ, Mode::empty())
}

/// Opens an entry of any type with `O_PATH`. Does not follow a link.
pub(crate) fn open_entry(
    above: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(above.as_fd(), name, flags, Mode::empty())
}
