use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{Mode, OFlags, mkdirat, openat},
    io::Errno,
};

use super::owner::NewOwner;
use crate::worker::{FileError, JobError, JobResult};

/// Permissions that mkdir(2) can set.
const SIMPLE: u32 = 0o1777;

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
