use alloc::ffi::CString;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{FileType, Stat, fstat},
    io::Errno,
};
use vmcell_wire::{FailureKind, limits::MAX_DEPTH};

use super::{
    directory_stack::{DirectoryStack, Step, open_directory, open_entry},
    entry::has_type,
};
use crate::worker::{FileError, JobError, JobIo, JobResult};

/// A change of an entry.
pub(super) type Change<'a> = &'a dyn Fn(BorrowedFd<'_>, &Stat) -> Result<(), Errno>;

/// Changes an entry, and with `tree` all that is below it. Links below it are not
/// followed. `operation` names the change in messages.
pub(super) fn change_recursively(
    io: &JobIo,
    top: &OwnedFd,
    tree: bool,
    operation: &'static str,
    change: Change<'_>,
) -> JobResult<()> {
    let failed = |errno| FileError::errno(errno, operation);
    let status = fstat(top).map_err(failed)?;
    change(top.as_fd(), &status).map_err(failed)?;
    if !tree || !has_type(&status, FileType::Directory) {
        return Ok(());
    }
    let mut stack = DirectoryStack::new();
    let opened = open_directory(top.as_fd(), c".").map_err(failed)?;
    stack.enter(opened, CString::default(), ());
    while let Some(step) = stack.step().map_err(failed)? {
        io.check_cancelled()?;
        let Step::Entry { level, name, .. } = step else {
            continue;
        };
        let changed = open_entry(level.directory.as_fd(), &*name).and_then(|entry| {
            let status = fstat(&entry)?;
            change(entry.as_fd(), &status)?;
            if has_type(&status, FileType::Directory) {
                open_directory(entry.as_fd(), c".").map(Some)
            } else {
                Ok(None)
            }
        });
        match changed {
            Ok(Some(_)) if stack.depth() > MAX_DEPTH => return Err(too_deep()),
            Ok(Some(directory)) => stack.enter(directory, name, ()),
            // The entry was removed meanwhile.
            Ok(None) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno).with_path(&stack.path_of(&name)).into()),
        }
    }
    Ok(())
}

#[cold]
pub(super) fn too_deep() -> JobError {
    FileError::new(FailureKind::Limit, "the tree is too deep").into()
}
