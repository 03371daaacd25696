use rustix::fs::{FileType, Mode, OFlags, fstat, fsync, syncfs};

use super::{
    root::{Root, unresolved},
    target::{HARMLESS, is, open_file},
};
use crate::worker::{FileError, JobError};

pub(super) fn perform(root: &Root, path: &[u8]) -> Result<(), JobError> {
    let found = root.open_path(path, OFlags::PATH, Mode::empty())?;
    let status = fstat(&found).map_err(unresolved)?;
    let synced = if is(&status, FileType::Directory) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | HARMLESS;
        syncfs(root.open_path(path, flags, Mode::empty())?)
    } else {
        let (file, _) = open_file(root, path, OFlags::RDONLY)?;
        fsync(file)
    };
    synced.map_err(|errno| FileError::from_errno(errno, "making it safe on the disk").into())
}
