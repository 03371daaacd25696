use rustix::fs::{FileType, Mode, OFlags, fstat, fsync, syncfs};

use super::{
    entry::has_type,
    root::{Root, resolve_error},
    target::{NO_SIDE_EFFECTS, open_file},
};
use crate::worker::{FileError, JobResult};

pub(super) fn perform(root: &Root, path: &[u8]) -> JobResult<()> {
    let found = root.open_path(path, OFlags::PATH, Mode::empty())?;
    let status = fstat(&found).map_err(resolve_error)?;
    let synced = if has_type(&status, FileType::Directory) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | NO_SIDE_EFFECTS;
        syncfs(root.open_path(path, flags, Mode::empty())?)
    } else {
        let (file, _) = open_file(root, path, OFlags::RDONLY)?;
        fsync(file)
    };
    synced.map_err(|errno| FileError::errno(errno, "making it safe on the disk").into())
}
