use alloc::{boxed::Box, vec, vec::Vec};
use core::mem::MaybeUninit;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, statat},
    io::Errno,
};
use vmcell_wire::{FailureKind, limits::MAX_DEPTH, pattern::Selection};

use super::listing::{BUFFER, Buffer, Listing, Order};
use crate::worker::{FileError, FileResult};

/// A traversal of everything below a directory.
///
/// It uses descriptors and single names, so it stays below the directory even if
/// processes rename entries meanwhile. It enters a directory only if the caller
/// calls [`enter`](Self::enter), and holds one descriptor for each level.
///
/// ```text
///  next ─> Entry, a directory ─> enter ─> next ─> Entry … ─> next ─> Left
///  next ─> Entry ─> next ─> Entry …
/// ```
pub(crate) struct Traversal {
    levels: Vec<Level>,
    /// The path of the current entry from the top.
    path: Vec<u8>,
    /// The offset of its name in the path.
    name: usize,
    order: Order,
    buffer: Box<Buffer>,
}

/// A step of a traversal. [`Traversal::path`] returns its path.
pub(crate) enum Step {
    /// An entry, with its type if the file system reports it.
    Entry(FileType),
    /// The directory has no more entries.
    Left,
}

struct Level {
    directory: OwnedFd,
    /// The length of the directory's path.
    path: usize,
    selection: Selection,
    listing: Listing,
}

/// The flags for reading a directory. They fail for other types and for links.
pub(crate) const READ_DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Traversal {
    /// Starts a traversal of what is below `top`.
    pub(crate) fn new(top: OwnedFd, order: Order, selection: Selection) -> Self {
        let level = Level {
            directory: top,
            path: 0,
            selection,
            listing: Listing::default(),
        };
        Self {
            levels: vec![level],
            path: Vec::new(),
            name: 0,
            order,
            buffer: vec![MaybeUninit::uninit(); BUFFER].into_boxed_slice(),
        }
    }

    /// Returns the next step, or `None` at the end. After a failure the rest of the
    /// directory is skipped.
    pub(crate) fn next(&mut self) -> Option<FileResult<Step>> {
        loop {
            let level = self.levels.last_mut()?;
            self.path.truncate(level.path);
            if let Some((name, kind)) = level.listing.next() {
                if !self.path.is_empty() {
                    self.path.push(b'/');
                }
                self.name = self.path.len();
                self.path.extend_from_slice(name);
                return Some(Ok(Step::Entry(kind)));
            }
            if level.listing.is_complete() {
                self.levels.pop();
                return Some(Ok(Step::Left));
            }
            let directory = level.directory.as_fd();
            if let Err(failure) = level.listing.read(directory, self.order, &mut self.buffer) {
                return Some(Err(failure));
            }
        }
    }

    /// Enters the current entry, which is open as `directory`.
    pub(crate) fn enter(&mut self, directory: OwnedFd, selection: Selection) -> FileResult<()> {
        if self.levels.len() >= MAX_DEPTH {
            return Err(FileError::new(
                FailureKind::Limit,
                "what is below is too deep: name a directory further down",
            ));
        }
        self.levels.push(Level {
            directory,
            path: self.path.len(),
            selection,
            listing: Listing::default(),
        });
        Ok(())
    }

    /// Returns how many directories are entered, including the top.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Returns the path of the current entry from the top.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns the path of the current directory.
    pub(crate) fn path_above(&self) -> &[u8] {
        let length = self.levels.last().map_or(0, |level| level.path);
        self.path.get(..length).unwrap_or_default()
    }

    /// Returns the name of the current entry.
    pub(crate) fn name(&self) -> &[u8] {
        self.path.get(self.name..).unwrap_or_default()
    }

    /// Returns the selection of the current directory.
    pub(crate) fn selection(&self) -> Selection {
        self.levels
            .last()
            .map_or(Selection::Skip, |level| level.selection)
    }

    /// Returns the current directory.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        match self.levels.last() {
            Some(level) => level.directory.as_fd(),
            // The traversal is over: every call with this descriptor fails.
            None => rustix::fs::ABS,
        }
    }

    /// Returns the status of the current entry.
    pub(crate) fn status(&self) -> Result<Stat, Errno> {
        statat(self.directory(), self.name(), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens the current entry.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat(self.directory(), self.name(), flags, Mode::empty())
    }
}

/// Ignores errors about entries that were removed or replaced since their names were
/// read.
pub(super) fn ignore_vanished(errno: Errno) -> FileResult<()> {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Ok(()),
        errno => Err(FileError::errno(errno, "looking at it")),
    }
}
