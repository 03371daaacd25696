//! What differs between two disks, or a disk and a directory of the host.
//!
//! ```text
//!  DiffSide ──┐                    ┌─ same blocks of the same file: not read
//!             ├─ pairs of entries ─┤
//!  DiffSide ──┘                    └─ else compared ──> DiskChange ──> patch
//! ```
//!
//! Two disks that have a layer in common share most of their blocks. Where these
//! are is asked once (`shared`); then a file is known to be the same without a
//! byte of it being read.

mod change;
mod contents;
mod node;
mod pairs;
mod shared;
mod side;

use std::ffi::OsStr;

use self::{contents::Contents, pairs::Pairs};
use super::{DiskError, DiskLimits, DiskProblem, budget::Budget, choice::filter};
pub use change::{DiskChange, DiskChangeKind, DiskDiff, Owner};
pub use side::DiffSide;

use vmcell_tree::{FilterLines, diff::DiffOptions};

/// Two trees that are to be compared.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use vmcell_disk::{Comparison, DiffSide, Disk};
///
/// let (base, child) = (Disk::open("base.ext4")?, Disk::open("child.qcow2")?);
/// let (old, new) = (DiffSide::disk(&base, "/"), DiffSide::disk(&child, "/"));
/// let diff = Comparison::new(old, new).exclude("/tmp/").run()?;
/// for change in diff.changes() {
///     println!("{:?} {}", change.kind(), change.path().display());
/// }
/// diff.write_patch(std::fs::File::create("changes.patch")?)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing happens before it is run"]
pub struct Comparison<'a> {
    old: DiffSide<'a>,
    new: DiffSide<'a>,
    filter: FilterLines,
    options: DiffOptions,
    owners: bool,
}

impl<'a> Comparison<'a> {
    /// What leads from the one tree to the other. Owners are compared if both
    /// are of disks.
    pub fn new(old: DiffSide<'a>, new: DiffSide<'a>) -> Self {
        Self {
            owners: old.as_disk().is_some() && new.as_disk().is_some(),
            old,
            new,
            filter: FilterLines::default(),
            options: DiffOptions::default(),
        }
    }

    /// Only what a line like those of a `.gitignore` file names. Can be called
    /// many times.
    pub fn include(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.include(line.as_ref());
        self
    }

    /// Not what a line like those of a `.gitignore` file names. Can be called
    /// many times; a later line can bring back what an earlier one excluded.
    pub fn exclude(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.exclude(line.as_ref());
        self
    }

    /// Whose entries are does not matter.
    pub fn ignore_owners(mut self) -> Self {
        self.owners = false;
        self
    }

    /// How differences of texts are shown.
    pub fn shown(mut self, options: DiffOptions) -> Self {
        self.options = options;
        self
    }

    /// Compares. What cannot be looked at is told in the result; the rest is
    /// compared.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] if a tree is not there; [`DiskError::Limit`].
    pub fn run(self) -> Result<DiskDiff, DiskError> {
        let filter = filter(&self.filter)?;
        let budget = self.old.budget().or_else(|| self.new.budget());
        let budget = budget.unwrap_or_else(|| Budget::new(DiskLimits::default()));
        let mut pairs = Pairs::new(&self.old, &self.new, filter, budget)?;
        let mut diff = DiskDiff::default();
        while let Some(pair) = pairs.next() {
            let pair = match pair {
                Ok(pair) => pair,
                Err(problem) => {
                    diff.problem(problem)?;
                    continue;
                }
            };
            let mut contents = Contents {
                sides: (&self.old, &self.new),
                shared: pairs.shared.as_ref(),
                options: self.options,
                budget: &mut pairs.budget,
            };
            match contents.change(&pair, self.owners) {
                Ok(Some(change)) => diff.changes.push(change),
                Ok(None) => {}
                Err(error) => diff.problem(DiskProblem::new(&pair.path, error))?,
            }
        }
        diff.sort();
        Ok(diff)
    }
}
