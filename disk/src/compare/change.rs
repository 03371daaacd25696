use std::{
    io::{self, Write},
    path::Path,
};

use vmcell_tree::diff::{ChangeKind, FileDiff};

use crate::{DiskError, DiskProblem};

/// The differences between two trees, sorted by path. Returned by
/// [`Comparison::run`](crate::Comparison::run).
#[derive(Debug, Default)]
pub struct DiskDiff {
    pub(super) changes: Vec<DiskChange>,
    problems: Vec<DiskProblem>,
    problem_count: u64,
}

/// A difference at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskChange {
    /// The change, with its part of the patch.
    pub file: FileDiff,
    /// The previous owner, if owners are compared.
    pub old_owner: Option<Owner>,
    /// The new owner, if owners are compared.
    pub new_owner: Option<Owner>,
}

/// A numeric owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiskChangeKind {
    /// Exists only in the new tree.
    Added,
    /// Exists only in the old tree.
    Removed,
    /// The contents of a file, or the target of a symlink, differ. The mode and
    /// the owner may differ too.
    Modified,
    /// The type differs, for example a file became a directory.
    TypeChanged,
    /// The mode differs, and possibly the owner, but not the contents.
    ModeChanged,
    /// Only the owner differs.
    OwnerChanged,
}

impl DiskChange {
    /// Returns the path, relative to the roots of the two trees.
    pub fn path(&self) -> &Path {
        &self.file.change().path
    }

    /// Returns the kind of the change.
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

    /// Returns whether the entry exists in both trees with different owners.
    pub fn owner_changed(&self) -> bool {
        match (self.old_owner, self.new_owner) {
            (Some(old), Some(new)) => old != new,
            _ => false,
        }
    }
}

/// Maximum number of problems that are listed.
const MAX_PROBLEMS: usize = 1000;

impl DiskDiff {
    /// Returns the differences, sorted by path.
    pub fn changes(&self) -> &[DiskChange] {
        &self.changes
    }

    /// Returns whether no differences were found. Entries that could not be
    /// read may still differ: see [`problem_count`](Self::problem_count).
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the entries that could not be compared: the first thousand.
    pub fn problems(&self) -> &[DiskProblem] {
        &self.problems
    }

    /// Returns the number of entries that could not be compared.
    pub fn problem_count(&self) -> u64 {
        self.problem_count
    }

    /// Writes a patch in git's format, for `Files::apply_patch` of the crate
    /// `vmcell` and for `git apply`. [`FileDiff::detail`] returns how much of a
    /// change is in the patch.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_patch(&self, mut out: impl Write) -> io::Result<()> {
        self.changes
            .iter()
            .try_for_each(|change| out.write_all(change.file.patch()))
    }

    /// Records a problem, or fails with it if it ends the whole operation.
    pub(super) fn problem(&mut self, problem: DiskProblem) -> Result<(), DiskError> {
        if !problem.error.is_local() {
            return Err(problem.error);
        }
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
        Ok(())
    }

    pub(super) fn sort(&mut self) {
        self.changes
            .sort_by(|first, second| first.path().cmp(second.path()));
    }
}
