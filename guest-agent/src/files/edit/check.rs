use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FileType, Mode, OFlags, Stat, fstat},
    io::Errno,
};
use vmcell_wire::files::Precondition;

use super::change::{Action, Change};
use crate::{
    files::{
        digest::{Digester, digest_of},
        entry::{self, has_type},
        resolve::ResolveError,
        root::{Root, resolve_error},
        target::NO_SIDE_EFFECTS,
        write::conflict,
    },
    worker::{JobError, JobIo, JobResult},
};

/// Inspects every entry that is to be changed. Fails with a conflict if one is not
/// as expected.
pub(super) fn check(io: &JobIo, top: &Root, changes: &mut [Change]) -> JobResult<()> {
    let mut digester = Digester::new();
    for index in 0..changes.len() {
        io.check_cancelled()?;
        let Some(change) = changes.get(index) else {
            break;
        };
        let before =
            inspect(io, top, changes, change, &mut digester).map_err(|error| match error {
                JobError::Failed(failure) => failure.with_path(&change.path).into(),
                error => error,
            })?;
        if let Some(change) = changes.get_mut(index) {
            change.before = before;
        }
    }
    Ok(())
}

fn inspect(
    io: &JobIo,
    top: &Root,
    changes: &[Change],
    change: &Change,
    digester: &mut Digester,
) -> JobResult<Option<Stat>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    let found = match top.resolve(&change.path, flags, Mode::empty()) {
        // A parent may be a file that is to be removed.
        Err(ResolveError::Kernel(Errno::NOENT | Errno::NOTDIR)) => None,
        found => Some(found.map_err(resolve_error)?),
    };
    let puts = matches!(change.action, Action::Put { .. } | Action::PutLink);
    let Some(found) = found else {
        return match change.precondition {
            Precondition::Digest(_) => Err(conflict("there is no such file")),
            _ if !puts => Err(conflict("there is no such file")),
            _ => Ok(None),
        };
    };
    let status = fstat(&found).map_err(resolve_error)?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink if !matches!(change.action, Action::SetMode(_)) => {}
        FileType::Directory if puts && is_to_be_emptied(changes, &change.path) => {
            return match change.precondition {
                Precondition::Digest(_) => Err(conflict("it is a directory")),
                _ => Ok(Some(status)),
            };
        }
        FileType::Directory => return Err(conflict("it is a directory")),
        _ => return Err(conflict("it is not a regular file")),
    }
    match change.precondition {
        Precondition::Anything => {}
        Precondition::Absent => return Err(conflict("there is such a file already")),
        Precondition::Digest(expected) => {
            if digest(io, top, change, &found, &status, digester)? != expected {
                return Err(conflict("the file is not as expected"));
            }
        }
    }
    Ok(Some(status))
}

/// Returns the digest of a file's bytes, or of a link's target.
fn digest(
    io: &JobIo,
    top: &Root,
    change: &Change,
    found: &OwnedFd,
    status: &Stat,
    digester: &mut Digester,
) -> JobResult<[u8; 32]> {
    if has_type(status, FileType::Symlink) {
        return Ok(digest_of(
            &entry::link_target(found.as_fd(), c"").map_err(resolve_error)?,
        ));
    }
    let file = top.open_path(
        &change.path,
        OFlags::RDONLY | NO_SIDE_EFFECTS,
        Mode::empty(),
    )?;
    let opened = fstat(&file).map_err(resolve_error)?;
    if (opened.st_dev, opened.st_ino) != (status.st_dev, status.st_ino) {
        return Err(conflict("the file was replaced meanwhile"));
    }
    digester.digest(io, file.as_fd())
}

/// Returns whether something below a directory is to be removed. The commit checks
/// whether that is all of it.
fn is_to_be_emptied(changes: &[Change], directory: &[u8]) -> bool {
    changes.iter().any(|change| {
        matches!(change.action, Action::Remove)
            && change
                .path
                .strip_prefix(directory)
                .is_some_and(|rest| rest.first() == Some(&b'/'))
    })
}
