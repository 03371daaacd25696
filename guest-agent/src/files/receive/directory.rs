use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{Mode, Stat, Timestamps, fchmod, fstat, futimens, mkdirat, openat},
    io::Errno,
};
use vmcell_wire::FailureKind;

use super::attributes::Attributes;
use crate::{
    files::{
        owner::{Ids, NewOwner},
        walk::READ_DIRECTORY,
        xattrs,
    },
    worker::{FileError, FileResult},
};

/// A directory in which entries are created.
pub(super) struct Directory {
    descriptor: OwnedFd,
    status: Stat,
}

impl Directory {
    pub(super) fn new(descriptor: OwnedFd) -> FileResult<Self> {
        let status = fstat(&descriptor).map_err(create_failed)?;
        Ok(Self { descriptor, status })
    }

    pub(super) fn status(&self) -> &Stat {
        &self.status
    }

    fn set_owner(&mut self, ids: Ids) -> FileResult<()> {
        if ids != Ids::of(&self.status) {
            ids.chown(self.as_fd()).map_err(create_failed)?;
            (self.status.st_uid, self.status.st_gid) = (ids.uid, ids.gid);
        }
        Ok(())
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A directory of the tree whose entries are being received.
pub(super) struct ReceivedDirectory {
    directory: Directory,
    /// The length of its path.
    path: usize,
    is_new: bool,
    /// Permissions and times, which are set when all entries are complete:
    /// permissions may forbid to create entries, and entries change the times.
    deferred: Option<(u32, Timestamps)>,
}

/// The permissions that the agent needs to create entries in a directory.
const OWNER_ACCESS: Mode = Mode::RWXU;

const DEFAULT_MODE: u32 = 0o755;

impl ReceivedDirectory {
    /// Wraps the existing top of a tree.
    pub(super) fn existing(directory: Directory, path: usize) -> Self {
        Self {
            directory,
            path,
            is_new: false,
            deferred: None,
        }
    }

    /// Creates a directory, or opens the existing one.
    pub(super) fn make(
        parent: &Directory,
        name: &[u8],
        attributes: Option<&Attributes<'_>>,
        owner: &NewOwner,
        path: usize,
    ) -> FileResult<Self> {
        let mode = attributes.map_or(Mode::from_raw_mode(DEFAULT_MODE), Attributes::creation_mode);
        let is_new = match mkdirat(parent, name, mode | OWNER_ACCESS) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(create_failed(errno)),
        };
        let descriptor =
            openat(parent, name, READ_DIRECTORY, Mode::empty()).map_err(|errno| match errno {
                Errno::NOTDIR | Errno::LOOP => FileError::new(
                    FailureKind::Conflict,
                    "something that is not a directory is in the way: remove it first",
                ),
                errno => create_failed(errno),
            })?;
        let mut directory = Directory::new(descriptor)?;
        if is_new {
            let ids = attributes.map(|attributes| attributes.ids);
            if let Some(new_owner) = owner.owner_for_new(parent.status(), ids) {
                directory.set_owner(new_owner)?;
            }
        }
        Ok(Self {
            is_new,
            ..Self::existing(directory, path)
        })
    }

    /// Sets the metadata of its record, or defers it.
    pub(super) fn apply_metadata(
        &mut self,
        attributes: Option<&Attributes<'_>>,
        owner: &NewOwner,
    ) -> FileResult<()> {
        let Some(attributes) = attributes else {
            return Ok(());
        };
        if !self.is_new
            && let Some(ids) = owner.owner_for_replaced_from(Some(attributes.ids))
        {
            self.directory.set_owner(ids)?;
        }
        xattrs::set(self.directory.as_fd(), attributes.xattrs).map_err(create_failed)?;
        self.deferred = Some((attributes.mode, attributes.times()));
        Ok(())
    }

    /// Returns whether it was created by this job.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the length of its path.
    pub(super) fn path(&self) -> usize {
        self.path
    }

    /// Sets the deferred metadata, after all entries are complete.
    pub(super) fn leave(self) -> FileResult<Directory> {
        if let Some((mode, times)) = &self.deferred {
            if self.directory.status.st_mode & 0o7777 != *mode {
                fchmod(&self.directory, Mode::from_raw_mode(*mode)).map_err(create_failed)?;
            }
            futimens(&self.directory, times).map_err(create_failed)?;
        }
        Ok(self.directory)
    }
}

fn create_failed(errno: Errno) -> FileError {
    FileError::errno(errno, "making the directory")
}
