use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, openat, utimensat},
    io::Errno,
};
use vmcell_wire::{
    FailureKind,
    files::{Owner, Time},
};

use super::{
    entry,
    owner::NewOwner,
    resolve::ResolveError,
    root::{Root, resolve_error},
    target::Target,
    write::NEW_MODE,
};
use crate::worker::{FileError, JobIo, JobResult};

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    modified: Option<Time>,
    owner: Owner<'_>,
) -> JobResult<()> {
    let failed = |errno| FileError::errno(errno, "touching it");
    let times = times(modified)?;
    let owner = NewOwner::find(owner)?;
    let found = match root.resolve(path, OFlags::PATH, Mode::empty()) {
        Err(ResolveError::Kernel(Errno::NOENT)) => make(root, path, &owner)?,
        found => found.map_err(resolve_error)?,
    };
    utimensat(&found, c"", &times, AtFlags::EMPTY_PATH).map_err(failed)?;
    entry::answer(io, found.as_fd())
}

/// Creates an empty file.
fn make(root: &Root, path: &[u8], owner: &NewOwner) -> JobResult<OwnedFd> {
    let failed = |errno| FileError::errno(errno, "making the file");
    let target = Target::find(root, path, owner)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(NEW_MODE);
    let file = openat(&target.directory, &*target.name, flags, mode).map_err(failed)?;
    if let Some(ids) = owner.owner_for_new_in(&target.directory).map_err(failed)? {
        ids.chown(file.as_fd()).map_err(failed)?;
    }
    Ok(file)
}

/// Returns timestamps that set the modification time and keep the access time.
fn times(modified: Option<Time>) -> JobResult<Timestamps> {
    let (tv_sec, tv_nsec) = match modified {
        None => (0, UTIME_NOW),
        Some(time) if time.nanoseconds < 1_000_000_000 => (time.seconds, time.nanoseconds.into()),
        Some(_) => {
            return Err(FileError::new(FailureKind::Invalid, "there is no such time").into());
        }
    };
    Ok(Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec { tv_sec, tv_nsec },
    })
}
