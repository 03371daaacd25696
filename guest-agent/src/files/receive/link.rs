use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fstat, openat, openat2,
        renameat, symlinkat, unlinkat, utimensat,
    },
    io::Errno,
};
use vmcell_wire::FailureKind;

use super::{attributes::Attributes, directory::Directory, directory_in_the_way, file::Unfinished};
use crate::{
    files::{
        owner::{Ids, NewOwner},
        target::{is, status_of},
        temporary::{TemporaryName, link},
    },
    worker::FileError,
};

/// Makes a symbolic link. What has the name is replaced, unless it is a
/// directory.
pub(super) fn make_symlink(
    directory: &Directory,
    name: &[u8],
    target: &[u8],
    attributes: &Attributes<'_>,
    owner: &NewOwner,
) -> Result<(), FileError> {
    let ids = Some(attributes.ids);
    match symlinkat(target, directory, name) {
        Err(Errno::EXIST) => {}
        outcome => {
            outcome.map_err(linking)?;
            let unfinished = Unfinished { directory, name };
            let heir = owner.heir(directory.status(), ids);
            dress(directory, name, attributes, heir).map_err(linking)?;
            unfinished.keep();
            return Ok(());
        }
    }
    let old = replaced(directory, name)?;
    let heir = owner.successor_by(ids).or(old);
    let mut made = Vec::new();
    let make = |name: &[u8]| {
        made = Vec::from(name);
        symlinkat(target, directory, name)
    };
    let (mut temporary, ()) = TemporaryName::make(directory.as_fd(), make).map_err(linking)?;
    dress(directory, &made, attributes, heir).map_err(linking)?;
    temporary
        .rename_to(directory.as_fd(), name, RenameFlags::empty())
        .map_err(replacing)
}

/// The owner of what is in the way and can be replaced.
fn replaced(directory: &Directory, name: &[u8]) -> Result<Option<Ids>, FileError> {
    match status_of(directory, name) {
        Ok(old) if is(&old, FileType::Directory) => Err(directory_in_the_way()),
        Ok(old) => Ok(Some(Ids::of(&old))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(linking(errno)),
    }
}

/// Gives a new link its owner and its time. Whoever may write to the directory
/// may have put something else in its place by now, which is not to be given
/// away.
fn dress(
    directory: &Directory,
    name: &[u8],
    attributes: &Attributes<'_>,
    heir: Option<Ids>,
) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(directory, name, flags, Mode::empty())?;
    if !is(&fstat(&made)?, FileType::Symlink) {
        return Err(Errno::AGAIN);
    }
    if let Some(ids) = heir {
        ids.own_found(made.as_fd())?;
    }
    utimensat(&made, c"", &attributes.times(), AtFlags::EMPTY_PATH)
}

/// Finds a file of the tree by its path from the top. No link is followed on
/// the way.
pub(super) fn find(top: &Directory, path: &[u8]) -> Result<OwnedFd, FileError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let looking = |errno| FileError::from_errno(errno, "looking for the file of a hard link");
    let file = openat2(top, path, flags, Mode::empty(), resolve).map_err(looking)?;
    if !is(&fstat(&file).map_err(looking)?, FileType::RegularFile) {
        return Err(FileError::new(
            FailureKind::Invalid,
            "only a file can have a hard link",
        ));
    }
    Ok(file)
}

/// Gives a file another name. What has the name is replaced, unless it is a
/// directory.
pub(super) fn make_hard_link(
    directory: &Directory,
    name: &[u8],
    file: BorrowedFd<'_>,
) -> Result<(), FileError> {
    match link(file, directory.as_fd(), name) {
        Err(Errno::EXIST) => {}
        outcome => return outcome.map_err(linking),
    }
    replaced(directory, name)?;
    let make = |name: &[u8]| link(file, directory.as_fd(), name);
    let (temporary, ()) = TemporaryName::make(directory.as_fd(), make).map_err(linking)?;
    let temporary = temporary.into_name();
    let renamed = renameat(directory, &*temporary, directory, name);
    // If both are names of one file already, rename(2) does nothing.
    let _ = unlinkat(directory, &*temporary, AtFlags::empty());
    renamed.map_err(replacing)
}

fn replacing(errno: Errno) -> FileError {
    match errno {
        Errno::ISDIR => directory_in_the_way(),
        errno => linking(errno),
    }
}

fn linking(errno: Errno) -> FileError {
    FileError::from_errno(errno, "making the link")
}
