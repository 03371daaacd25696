use std::{
    io::{self, Write},
    path::Path,
};

use vmcell_tree::diff::{ChangeKind, FileDiff};

use crate::{DiskError, DiskProblem};

/// All differences between two trees, by path.
#[derive(Debug, Default)]
pub struct DiskDiff {
    pub(super) changes: Vec<DiskChange>,
    problems: Vec<DiskProblem>,
    problem_count: u64,
}

/// A path at which two trees differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskChange {
    /// What has changed, and the part of a patch for it.
    pub file: FileDiff,
    /// Whose it was, if that is compared.
    pub old_owner: Option<Owner>,
    /// Whose it is now, if that is compared.
    pub new_owner: Option<Owner>,
}

/// The numbers of a user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// What sort of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiskChangeKind {
    /// Nothing was there.
    Added,
    /// Nothing is there now.
    Removed,
    /// The bytes of a file, or the target of a symlink, are others. The mode
    /// and the owner may be others too.
    Modified,
    /// Something of another type is there now.
    TypeChanged,
    /// The mode is another, and maybe the owner.
    ModeChanged,
    /// Only the owner is another.
    OwnerChanged,
}

impl DiskChange {
    /// The path, relative to the top of the trees.
    pub fn path(&self) -> &Path {
        &self.file.change().path
    }

    /// What sort of change it is.
    pub fn kind(&self) -> DiskChangeKind {
        match self.file.change().kind() {
            ChangeKind::Added => DiskChangeKind::Added,
            ChangeKind::Removed => DiskChangeKind::Removed,
            ChangeKind::TypeChanged => DiskChangeKind::TypeChanged,
            ChangeKind::ModeChanged if self.file.change().mode_changed() => {
                DiskChangeKind::ModeChanged
            }
            ChangeKind::ModeChanged => DiskChangeKind::OwnerChanged,
            _ => DiskChangeKind::Modified,
        }
    }

    /// Whether something was there, is still there, and is somebody else's.
    pub fn owner_changed(&self) -> bool {
        match (self.old_owner, self.new_owner) {
            (Some(old), Some(new)) => old != new,
            _ => false,
        }
    }
}

/// More problems are only counted.
const TOLD: usize = 1000;

impl DiskDiff {
    /// The differences, by path.
    pub fn changes(&self) -> &[DiskChange] {
        &self.changes
    }

    /// Whether there are none. What could not be looked at may differ.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What could not be compared: the first thousand.
    pub fn problems(&self) -> &[DiskProblem] {
        &self.problems
    }

    /// How much could not be compared.
    pub fn problem_count(&self) -> u64 {
        self.problem_count
    }

    /// Writes a patch as git does: what
    /// [`Files::apply_patch`](vmcell_tree::Files::apply_patch) and `git apply`
    /// take. How much of a change is in it tells [`FileDiff::shown`].
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_patch(&self, mut out: impl Write) -> io::Result<()> {
        self.changes
            .iter()
            .try_for_each(|change| out.write_all(change.file.patch()))
    }

    /// Goes on past a problem, unless it ends everything.
    pub(super) fn problem(&mut self, problem: DiskProblem) -> Result<(), DiskError> {
        if !problem.error.is_local() {
            return Err(problem.error);
        }
        self.problem_count += 1;
        if self.problems.len() < TOLD {
            self.problems.push(problem);
        }
        Ok(())
    }

    pub(super) fn sort(&mut self) {
        self.changes
            .sort_by(|first, second| first.path().cmp(second.path()));
    }
}
