//! Applies many changes atomically: all of them or none.
//!
//! ```text
//!  stage    new files and links are created in a staging directory
//!  check    every path is as its record expects
//!  commit   each change is one rename, which can be undone: it moves the old
//!           entry to the staging directory
//! ```
//!
//! A failure before the commit changes nothing. After a failure of the commit, the
//! changes are undone in reverse order. In the end the staging directory is removed,
//! with the old entries or with the unused new ones.

mod change;
mod check;
mod commit;
mod stage;

use rustix::{fs::AtFlags, io::Errno};
use vmcell_wire::files::Owner;

use self::{
    change::Action,
    commit::Commit,
    stage::{Staging, staging_failed},
};
use super::{
    owner::NewOwner,
    root::{Root, split},
};
use crate::worker::{JobError, JobIo, JobResult};

pub(super) fn perform(io: &mut JobIo, root: &Root, path: &[u8], owner: Owner<'_>) -> JobResult<()> {
    let owner = NewOwner::find(owner)?;
    let top = root.subdirectory(path)?;
    let mut staging = Staging::new(top.directory()).map_err(staging_failed)?;
    let mut changes = stage::receive_changes(io, &staging)?;
    check::check(io, &top, &mut changes)?;
    let mut commit = Commit::new(&top, staging.directory(), &owner, &changes);
    if let Err(error) = commit.perform() {
        if !commit.undo() {
            staging.keep();
            return Err(not_undone(error));
        }
        return Err(error);
    }
    drop(staging);
    for change in &changes {
        if matches!(change.action, Action::Remove) {
            remove_empty_parents(&top, &change.path);
        }
    }
    Ok(())
}

/// Removes the directories above a path as long as they are empty, but not the
/// top.
fn remove_empty_parents(top: &Root, path: &[u8]) {
    let mut path = path;
    while let Ok((above, _)) = split(path)
        && let Ok(location) = top.locate(above)
    {
        match rustix::fs::unlinkat(&location.directory, location.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => path = above,
            // It is not empty, or cannot be removed.
            Err(_) => return,
        }
    }
}

#[cold]
fn not_undone(error: JobError) -> JobError {
    match error {
        JobError::Cancelled => error,
        JobError::Failed(failure) => JobError::Failed(
            failure
                .with_path(b"some changes could not be undone; missing entries are in .vmcell-*"),
        ),
    }
}
