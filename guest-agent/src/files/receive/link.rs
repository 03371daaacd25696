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

use super::{
    attributes::Attributes, directory::Directory, error::directory_in_the_way, file::RemoveOnDrop,
};
use crate::{
    files::{
        entry::{has_type, status_of},
        owner::{Ids, NewOwner},
        temporary::{TemporaryName, link},
    },
    worker::{FileError, FileResult},
};

/// Creates a symbolic link. It replaces an existing entry, unless that is a
/// directory.
pub(super) fn make_symlink(
    directory: &Directory,
    name: &[u8],
    target: &[u8],
    attributes: &Attributes<'_>,
    owner: &NewOwner,
) -> FileResult<()> {
    let ids = Some(attributes.ids);
    match symlinkat(target, directory, name) {
        Err(Errno::EXIST) => {}
        outcome => {
            outcome.map_err(link_failed)?;
            let guard = RemoveOnDrop { directory, name };
            let new_owner = owner.owner_for_new(directory.status(), ids);
            apply_metadata(directory, name, attributes, new_owner).map_err(link_failed)?;
            guard.keep();
            return Ok(());
        }
    }
    let old = replaced(directory, name)?;
    let new_owner = owner.owner_for_replaced_from(ids).or(old);
    let mut made = Vec::new();
    let make = |name: &[u8]| {
        made = Vec::from(name);
        symlinkat(target, directory, name)
    };
    let (mut temporary, ()) = TemporaryName::make(directory.as_fd(), make).map_err(link_failed)?;
    apply_metadata(directory, &made, attributes, new_owner).map_err(link_failed)?;
    temporary
        .rename_to(directory.as_fd(), name, RenameFlags::empty())
        .map_err(replace_failed)
}

/// Returns the owner of the existing entry. Fails if that is a directory.
fn replaced(directory: &Directory, name: &[u8]) -> FileResult<Option<Ids>> {
    match status_of(directory, name) {
        Ok(old) if has_type(&old, FileType::Directory) => Err(directory_in_the_way()),
        Ok(old) => Ok(Some(Ids::of(&old))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(link_failed(errno)),
    }
}

/// Sets the owner and the time of a new link. Another process may have replaced it
/// by something else, whose owner must not be changed.
fn apply_metadata(
    directory: &Directory,
    name: &[u8],
    attributes: &Attributes<'_>,
    new_owner: Option<Ids>,
) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(directory, name, flags, Mode::empty())?;
    if !has_type(&fstat(&made)?, FileType::Symlink) {
        return Err(Errno::AGAIN);
    }
    if let Some(ids) = new_owner {
        ids.chown_path_fd(made.as_fd())?;
    }
    utimensat(&made, c"", &attributes.times(), AtFlags::EMPTY_PATH)
}

/// Opens a file of the tree by its path from the top. No link is followed.
pub(super) fn find(top: &Directory, path: &[u8]) -> FileResult<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let looking = |errno| FileError::errno(errno, "looking for the file of a hard link");
    let file = openat2(top, path, flags, Mode::empty(), resolve).map_err(looking)?;
    if !has_type(&fstat(&file).map_err(looking)?, FileType::RegularFile) {
        return Err(FileError::new(
            FailureKind::Invalid,
            "only a file can have a hard link",
        ));
    }
    Ok(file)
}

/// Creates a hard link. It replaces an existing entry, unless that is a directory.
pub(super) fn make_hard_link(
    directory: &Directory,
    name: &[u8],
    file: BorrowedFd<'_>,
) -> FileResult<()> {
    match link(file, directory.as_fd(), name) {
        Err(Errno::EXIST) => {}
        outcome => return outcome.map_err(link_failed),
    }
    replaced(directory, name)?;
    let make = |name: &[u8]| link(file, directory.as_fd(), name);
    let (temporary, ()) = TemporaryName::make(directory.as_fd(), make).map_err(link_failed)?;
    let temporary = temporary.into_name();
    let renamed = renameat(directory, &*temporary, directory, name);
    // If both are names of the same file already, rename(2) does nothing.
    let _ = unlinkat(directory, &*temporary, AtFlags::empty());
    renamed.map_err(replace_failed)
}

fn replace_failed(errno: Errno) -> FileError {
    match errno {
        Errno::ISDIR => directory_in_the_way(),
        errno => link_failed(errno),
    }
}

fn link_failed(errno: Errno) -> FileError {
    FileError::errno(errno, "making the link")
}
