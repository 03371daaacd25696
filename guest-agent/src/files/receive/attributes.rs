use rustix::{
    fd::BorrowedFd,
    fs::{Mode, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens},
    io::Errno,
};
use vmcell_wire::files::{Metadata, Time, Xattrs};

use crate::files::{owner::Ids, xattrs};

/// The metadata of an entry in its record.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    /// Permissions, at most twelve bits.
    pub(super) mode: u32,
    /// The owner of the original.
    pub(super) ids: Ids,
    pub(super) modified: Time,
    pub(super) xattrs: Xattrs<'a>,
}

/// Permission bits that a change of the owner or a write clears. So they are set
/// last.
const SPECIAL_BITS: u32 = 0o7000;

impl<'a> Attributes<'a> {
    pub(super) fn of(meta: &Metadata<'a>) -> Self {
        Self {
            mode: u32::from(meta.mode),
            ids: Ids {
                uid: meta.uid,
                gid: meta.gid,
            },
            modified: meta.modified,
            xattrs: meta.xattrs,
        }
    }

    /// Returns the permissions with which an entry can be created.
    pub(super) fn creation_mode(&self) -> Mode {
        Mode::from_raw_mode(self.mode & !SPECIAL_BITS)
    }

    /// Sets the metadata of a file whose bytes are complete. `has_mode`: it was
    /// created with its [permissions](Self::creation_mode).
    pub(super) fn apply_metadata(
        &self,
        file: BorrowedFd<'_>,
        new_owner: Option<Ids>,
        has_mode: bool,
    ) -> Result<(), Errno> {
        xattrs::set(file, self.xattrs)?;
        if let Some(ids) = new_owner {
            ids.chown(file)?;
        }
        if !has_mode || self.mode & SPECIAL_BITS != 0 {
            fchmod(file, Mode::from_raw_mode(self.mode))?;
        }
        futimens(file, &self.times())
    }

    /// Returns timestamps that set the modification time and keep the access time.
    pub(super) fn times(&self) -> Timestamps {
        Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: self.modified.seconds,
                tv_nsec: self.modified.nanoseconds.into(),
            },
        }
    }
}
