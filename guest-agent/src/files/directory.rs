use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{Mode, OFlags, mkdirat, openat},
    io::Errno,
};
use vmcell_wire::files::Owner;

use super::{
    entry,
    owner::NewOwner,
    resolve::ResolveError,
    root::{Root, SEARCH},
};
use crate::worker::{FileError, JobError, JobIo, JobResult};

/// Permissions that mkdir(2) can set.
const SIMPLE: u32 = 0o1777;

const DEFAULT_MODE: u32 = 0o755;

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    mode: Option<u16>,
    owner: Owner<'_>,
) -> JobResult<()> {
    let owner = NewOwner::find(owner)?;
    let there = root.resolve(path, SEARCH, Mode::empty());
    if matches!(there, Err(ResolveError::Kernel(Errno::NOENT))) {
        let location = root.locate_creating_parents(path, &owner)?;
        let mode = mode.map_or(DEFAULT_MODE, u32::from);
        make_directory(location.directory.as_fd(), location.name, mode, &owner)?;
    }
    let directory = root.open_path(path, SEARCH, Mode::empty())?;
    entry::answer(io, directory.as_fd())
}

/// Creates a directory if the name is free. Returns whether it was.
pub(crate) fn make_directory(
    above: BorrowedFd<'_>,
    name: &[u8],
    mode: u32,
    owner: &NewOwner,
) -> JobResult<bool> {
    const TRIED: &str = "making a directory";
    let failed = |errno| JobError::from(FileError::errno(errno, TRIED));
    match mkdirat(above, name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) => return Ok(false),
        outcome => outcome.map_err(failed)?,
    }
    let new_owner = owner.owner_for_new_in(above).map_err(failed)?;
    if new_owner.is_none() && mode & !SIMPLE == 0 {
        return Ok(true);
    }
    // The name may stand for something else by now, which is not followed.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(above, name, flags, Mode::empty()).map_err(failed)?;
    if let Some(ids) = new_owner {
        ids.chown(made.as_fd()).map_err(failed)?;
    }
    if mode & !SIMPLE != 0 {
        rustix::fs::fchmod(&made, Mode::from_raw_mode(mode)).map_err(failed)?;
    }
    Ok(true)
}
