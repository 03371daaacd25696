use alloc::{boxed::Box, vec, vec::Vec};
use core::mem::MaybeUninit;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, statat},
    io::Errno,
};
use vmcell_wire::{FailureKind, limits::MAX_DEPTH, pattern::Selection};

use super::listing::{BUFFER, Buffer, Listing, Order};
use crate::worker::FileError;

/// Everything below a directory, name by name.
///
/// It goes by descriptors and single names, so it ends up nowhere else,
/// whatever is renamed meanwhile. It enters a directory only if it is
/// [sent to](Self::enter), and holds one descriptor for each level.
///
/// ```text
///  next ─> Entry, a directory ─> enter ─> next ─> Entry … ─> next ─> Left
///  next ─> Entry ─> next ─> Entry …
/// ```
pub(crate) struct Traversal {
    levels: Vec<Level>,
    /// Of the entry that came last, from the top.
    path: Vec<u8>,
    /// Where its name begins in there.
    name: usize,
    order: Order,
    buffer: Box<Buffer>,
}

/// What comes on a traversal. [`Traversal::path`] tells which one it is.
pub(crate) enum Step {
    /// An entry, and what it is if the file system tells.
    Entry(FileType),
    /// The directory has no more entries.
    Left,
}

struct Level {
    directory: OwnedFd,
    /// How long the directory's path is.
    path: usize,
    selection: Selection,
    listing: Listing,
}

/// How a directory is opened to be read: nothing else is, and no link followed.
pub(crate) const READ_DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Traversal {
    /// A traversal of what is below `top`.
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

    /// The next step; None: that was all. After failure with a directory the
    /// rest of it is passed over.
    pub(crate) fn next(&mut self) -> Option<Result<Step, FileError>> {
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

    /// Goes into the directory that came last, which `directory` is.
    pub(crate) fn enter(
        &mut self,
        directory: OwnedFd,
        selection: Selection,
    ) -> Result<(), FileError> {
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

    /// How many directories the traversal is in, its top included.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Where it is, from the top.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// The path of the directory that it is in.
    pub(crate) fn path_above(&self) -> &[u8] {
        let length = self.levels.last().map_or(0, |level| level.path);
        self.path.get(..length).unwrap_or_default()
    }

    /// The name of the entry that came last.
    pub(crate) fn name(&self) -> &[u8] {
        self.path.get(self.name..).unwrap_or_default()
    }

    /// What was selected of the directory that it is in.
    pub(crate) fn selection(&self) -> Selection {
        self.levels
            .last()
            .map_or(Selection::Skip, |level| level.selection)
    }

    /// The directory that it is in.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        match self.levels.last() {
            Some(level) => level.directory.as_fd(),
            // Nothing can be found here once the traversal is over.
            None => rustix::fs::ABS,
        }
    }

    /// Looks at the entry that came last.
    pub(crate) fn status(&self) -> Result<Stat, Errno> {
        statat(self.directory(), self.name(), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens the entry that came last.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat(self.directory(), self.name(), flags, Mode::empty())
    }
}
