use alloc::ffi::CString;
use core::ffi::CStr;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, FileType, RenameFlags, renameat_with, unlinkat},
    io::Errno,
};

use super::{
    directory_stack::{DirectoryStack, Level, Step, open_directory},
    root::Root,
    temporary::random_name,
};
use crate::worker::{FileError, JobIo, JobResult};

/// How many directories are open at once. Deeper ones are first moved to the top of
/// the tree, so that any depth can be removed.
const MAX_OPEN: usize = 100;

/// How often a tree is traversed again because entries were added meanwhile.
const MAX_PASSES: u32 = 100;

/// How often an entry may turn from a directory into something else, or back.
const MAX_TYPE_CHANGES: u32 = 100;

pub(super) fn perform(io: &JobIo, root: &Root, path: &[u8], tree: bool) -> JobResult<()> {
    let location = root.locate(path)?;
    let directory = location.directory.as_fd();
    if tree {
        return remove_tree(directory, location.name, || io.check_cancelled());
    }
    // The first error is reported, so that a missing entry is an error.
    let outcome = match unlinkat(directory, location.name, AtFlags::empty()) {
        Err(Errno::ISDIR) => unlinkat(directory, location.name, AtFlags::REMOVEDIR),
        outcome => outcome,
    };
    outcome.map_err(|errno| remove_failed(errno).into())
}

/// Removes an entry with all that is below it. It stops when `check` fails.
pub(super) fn remove_tree(
    directory: BorrowedFd<'_>,
    name: &[u8],
    check: impl Fn() -> JobResult<()>,
) -> JobResult<()> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        outcome => return outcome.map_err(|errno| remove_failed(errno).into()),
    }
    let name = CString::new(name).map_err(|_| remove_failed(Errno::INVAL))?;
    let mut passes_left = MAX_PASSES;
    while remove_entry(directory, &name, FileType::Directory).map_err(remove_failed)?
        == Removal::NotEmpty
    {
        passes_left = passes_left
            .checked_sub(1)
            .ok_or_else(|| remove_failed(Errno::NOTEMPTY))?;
        let moved = empty(directory, &name, &check)?;
        passes_left = passes_left.saturating_add(moved);
    }
    Ok(())
}

/// Traverses a directory once and removes what is in it. Returns how many
/// directories were moved to its top, where they may have been missed.
fn empty(
    directory: BorrowedFd<'_>,
    name: &CStr,
    check: impl Fn() -> JobResult<()>,
) -> JobResult<u32> {
    let mut moved = 0u32;
    let mut stack = DirectoryStack::new();
    if let Some(top) = open(directory, name).map_err(remove_failed)? {
        stack.enter(top, CString::from(name), ());
    }
    while let Some(step) = stack.step().map_err(remove_failed)? {
        check()?;
        let (name, outcome) = match step {
            Step::Entry { level, name, kind } => {
                let above = level.directory.as_fd();
                let outcome = remove_entry(above, &name, kind).and_then(|removal| match removal {
                    Removal::Gone => Ok(None),
                    Removal::NotEmpty => open(above, &name),
                });
                (name, outcome)
            }
            // If entries were added to it meanwhile, the next pass removes them.
            Step::Left(Level {
                directory, name, ..
            }) => {
                drop(directory);
                let above = stack.deepest().map(|above| above.directory.as_fd());
                let outcome = above.map_or(Ok(Removal::Gone), |above| {
                    remove_entry(above, &name, FileType::Directory)
                });
                (name, outcome.map(|_| None))
            }
        };
        let outcome = match outcome {
            Ok(Some(_)) if stack.depth() >= MAX_OPEN => {
                moved = moved.saturating_add(1);
                move_to_top(&stack, &name)
            }
            Ok(Some(opened)) => {
                stack.enter(opened, name, ());
                continue;
            }
            outcome => outcome.map(|_| ()),
        };
        outcome.map_err(|errno| remove_failed(errno).with_path(&stack.path_of(&name)))?;
    }
    Ok(moved)
}

/// Opens a directory. Returns `None` if it is not a directory any more.
fn open(directory: BorrowedFd<'_>, name: &CStr) -> Result<Option<OwnedFd>, Errno> {
    match open_directory(directory, name) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        opened => opened.map(Some),
    }
}

fn move_to_top(stack: &DirectoryStack<()>, name: &CStr) -> Result<(), Errno> {
    let (Some(top), Some(deepest)) = (stack.top(), stack.deepest()) else {
        return Ok(());
    };
    let (from, to) = (&deepest.directory, &top.directory);
    match renameat_with(from, name, to, &*random_name()?, RenameFlags::NOREPLACE) {
        Err(Errno::NOENT) => Ok(()),
        outcome => outcome,
    }
}

#[derive(PartialEq, Eq)]
enum Removal {
    Gone,
    NotEmpty,
}

/// Removes an entry, which may be a directory or not. `kind` is a hint.
fn remove_entry(directory: BorrowedFd<'_>, name: &CStr, kind: FileType) -> Result<Removal, Errno> {
    let mut flags = AtFlags::empty();
    flags.set(AtFlags::REMOVEDIR, kind == FileType::Directory);
    let mut last = Errno::NOTDIR;
    // Another process may change its type meanwhile.
    for _ in 0..MAX_TYPE_CHANGES {
        match unlinkat(directory, name, flags) {
            Ok(()) | Err(Errno::NOENT) => return Ok(Removal::Gone),
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Removal::NotEmpty),
            Err(errno @ (Errno::ISDIR | Errno::NOTDIR)) => last = errno,
            Err(errno) => return Err(errno),
        }
        flags.toggle(AtFlags::REMOVEDIR);
    }
    Err(last)
}

#[cold]
fn remove_failed(errno: Errno) -> FileError {
    FileError::errno(errno, "removing it")
}
