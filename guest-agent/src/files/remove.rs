use alloc::ffi::CString;
use core::ffi::CStr;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, FileType, RenameFlags, renameat_with, unlinkat},
    io::Errno,
};

use super::{
    descent::{Descent, Level, Step, open_directory},
    root::Root,
    temporary::random_name,
};
use crate::worker::{FileError, JobError, JobIo};

/// So many directories are open at once. What lies deeper is first moved to
/// the top of the tree: so any depth will do.
const MAX_OPEN: usize = 100;

/// So often a directory is looked through again into which something was put
/// meanwhile.
const PATIENCE: u32 = 100;

pub(super) fn perform(io: &JobIo, root: &Root, path: &[u8], tree: bool) -> Result<(), JobError> {
    let place = root.place(path)?;
    let directory = place.directory.as_fd();
    if tree {
        return remove_tree(directory, place.name, || io.check_cancelled());
    }
    // An entry that is not there must be told, so the first try decides.
    let outcome = match unlinkat(directory, place.name, AtFlags::empty()) {
        Err(Errno::ISDIR) => unlinkat(directory, place.name, AtFlags::REMOVEDIR),
        outcome => outcome,
    };
    outcome.map_err(|errno| removing(errno).into())
}

/// Removes an entry with all that is below it. It ends early if `check` says
/// so.
pub(super) fn remove_tree(
    directory: BorrowedFd<'_>,
    name: &[u8],
    check: impl Fn() -> Result<(), JobError>,
) -> Result<(), JobError> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        outcome => return outcome.map_err(|errno| removing(errno).into()),
    }
    let name = CString::new(name).map_err(|_| removing(Errno::INVAL))?;
    let mut patience = PATIENCE;
    while erase(directory, &name, FileType::Directory).map_err(removing)? == Erased::NotEmpty {
        patience = patience
            .checked_sub(1)
            .ok_or_else(|| removing(Errno::NOTEMPTY))?;
        let moved = empty(directory, &name, &check)?;
        patience = patience.saturating_add(moved);
    }
    Ok(())
}

/// Goes through a directory once and removes what is in it. Answers how many
/// directories were moved to its top, where they may have been overlooked.
fn empty(
    directory: BorrowedFd<'_>,
    name: &CStr,
    check: impl Fn() -> Result<(), JobError>,
) -> Result<u32, JobError> {
    let mut moved = 0u32;
    let mut descent = Descent::new();
    if let Some(top) = open(directory, name).map_err(removing)? {
        descent.enter(top, CString::from(name), ());
    }
    while let Some(step) = descent.step().map_err(removing)? {
        check()?;
        let (name, outcome) = match step {
            Step::Entry { level, name, kind } => {
                let above = level.directory.as_fd();
                let outcome = erase(above, &name, kind).and_then(|erased| match erased {
                    Erased::Gone => Ok(None),
                    Erased::NotEmpty => open(above, &name),
                });
                (name, outcome)
            }
            // If something was put into it, so be it: then it is not the last
            // time that we go through all this.
            Step::Left(Level {
                directory, name, ..
            }) => {
                drop(directory);
                let above = descent.deepest().map(|above| above.directory.as_fd());
                let outcome = above.map_or(Ok(Erased::Gone), |above| {
                    erase(above, &name, FileType::Directory)
                });
                (name, outcome.map(|_| None))
            }
        };
        let outcome = match outcome {
            Ok(Some(_)) if descent.depth() >= MAX_OPEN => {
                moved = moved.saturating_add(1);
                move_to_top(&descent, &name)
            }
            Ok(Some(opened)) => {
                descent.enter(opened, name, ());
                continue;
            }
            outcome => outcome.map(|_| ()),
        };
        outcome.map_err(|errno| removing(errno).with_path(&descent.path_of(&name)))?;
    }
    Ok(moved)
}

/// Opens a directory, if that is what it still is.
fn open(directory: BorrowedFd<'_>, name: &CStr) -> Result<Option<OwnedFd>, Errno> {
    match open_directory(directory, name) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        opened => opened.map(Some),
    }
}

fn move_to_top(descent: &Descent<()>, name: &CStr) -> Result<(), Errno> {
    let (Some(top), Some(deepest)) = (descent.top(), descent.deepest()) else {
        return Ok(());
    };
    let (from, to) = (&deepest.directory, &top.directory);
    match renameat_with(from, name, to, &*random_name()?, RenameFlags::NOREPLACE) {
        Err(Errno::NOENT) => Ok(()),
        outcome => outcome,
    }
}

#[derive(PartialEq, Eq)]
enum Erased {
    Gone,
    NotEmpty,
}

/// Removes a name that may be one of a directory or not.
fn erase(directory: BorrowedFd<'_>, name: &CStr, kind: FileType) -> Result<Erased, Errno> {
    let mut flags = AtFlags::empty();
    flags.set(AtFlags::REMOVEDIR, kind == FileType::Directory);
    let mut last = Errno::NOTDIR;
    // It may change what it is meanwhile, but not for ever.
    for _ in 0..PATIENCE {
        match unlinkat(directory, name, flags) {
            Ok(()) | Err(Errno::NOENT) => return Ok(Erased::Gone),
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Erased::NotEmpty),
            Err(errno @ (Errno::ISDIR | Errno::NOTDIR)) => last = errno,
            Err(errno) => return Err(errno),
        }
        flags.toggle(AtFlags::REMOVEDIR);
    }
    Err(last)
}

#[cold]
fn removing(errno: Errno) -> FileError {
    FileError::from_errno(errno, "removing it")
}
