use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags, openat, symlinkat},
};
use vmcell_wire::{FailureKind, files::Owner, limits::MAX_PATH};

use super::{entry, owner::NewOwner, root::Root};
use crate::worker::{FileError, JobIo, JobResult};

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    target: &[u8],
    owner: Owner<'_>,
) -> JobResult<()> {
    if !(1..MAX_PATH).contains(&target.len()) || target.contains(&0) {
        let text = "a symbolic link cannot point to this";
        return Err(FileError::new(FailureKind::Invalid, text).into());
    }
    let failed = |errno| FileError::errno(errno, "making a symbolic link");
    let owner = NewOwner::find(owner)?;
    let location = root.locate(path)?;
    symlinkat(target, &location.directory, location.name).map_err(failed)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(&location.directory, location.name, flags, Mode::empty()).map_err(failed)?;
    if let Some(ids) = owner
        .owner_for_new_in(&location.directory)
        .map_err(failed)?
    {
        ids.chown_path_fd(made.as_fd()).map_err(failed)?;
    }
    entry::answer(io, made.as_fd())
}
