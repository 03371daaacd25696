//! Many changes, all of them or none.
//!
//! ```text
//!  stage    new files and links are made in a directory of their own
//!  check    everything is as the records expect
//!  commit   each change is one rename, which can be undone: what was there
//!           before lies in that directory now
//! ```
//!
//! What fails, fails before the commit, or the commit is undone in reverse
//! order. The directory goes away in the end, and with it what is old, or what
//! was to be new.

mod check;
mod commit;
mod stage;

use alloc::vec::Vec;

use rustix::{fs::AtFlags, io::Errno};
use vmcell_wire::files::{Expect, Owner};

use self::{commit::Commit, stage::Staging};
use super::{
    owner::NewOwner,
    root::{Root, split},
};
use crate::worker::{FileError, JobError, JobIo, JobResult};

/// What is to be done with a path.
struct Change {
    path: Vec<u8>,
    expect: Expect,
    action: Action,
    /// What is there, once that was checked.
    before: Option<rustix::fs::Stat>,
}

enum Action {
    /// A file that is staged takes its place.
    Put {
        mode: Option<u16>,
    },
    /// A link that is staged takes its place.
    PutLink,
    SetMode(u16),
    Remove,
}

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
            // It has other entries, or is none of our business.
            Err(_) => return,
        }
    }
}

#[cold]
fn staging_failed(errno: Errno) -> JobError {
    FileError::errno(errno, "preparing the changes").into()
}

#[cold]
fn not_undone(error: JobError) -> JobError {
    match error {
        JobError::Cancelled => error,
        JobError::Failed(failure) => JobError::Failed(
            failure.with_path(b"not all could be undone: what is missing is in .vmcell-*"),
        ),
    }
}
