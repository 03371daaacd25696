//! Comparing two disks, or a disk and a directory on the host.
//!
//! ```text
//!  DiffSide ──┐                    ┌─ same blocks of the same file: not read
//!             ├─ pairs of entries ─┤
//!  DiffSide ──┘                    └─ else compared ──> DiskChange ──> patch
//! ```
//!
//! Two disks with a common layer share most of their blocks. `shared_blocks`
//! determines these ranges once from the image metadata. A file that lies
//! completely in them is equal and need not be read.

mod change;
mod node;
mod pair_comparer;
mod pairs;
mod shared_blocks;
mod side;

use std::ffi::OsStr;

use self::{pair_comparer::PairComparer, pairs::Pairs};
use super::{DiskError, DiskLimits, DiskProblem, budget::Budget, entry_filter::compile_filter};
pub use change::{DiskChange, DiskChangeKind, DiskDiff, Owner};
pub use side::DiffSide;

use vmcell_tree::{FilterLines, diff::DiffOptions};

/// A comparison of two trees.
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
    /// Creates a comparison of `old` with `new`. Owners are compared if both
    /// sides are on disks.
    pub fn new(old: DiffSide<'a>, new: DiffSide<'a>) -> Self {
        Self {
            owners: old.as_disk().is_some() && new.as_disk().is_some(),
            old,
            new,
            filter: FilterLines::default(),
            options: DiffOptions::default(),
        }
    }

    /// Compares only what matches this pattern, in the syntax of a `.gitignore`
    /// line. Can be called several times.
    pub fn include(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.include(line.as_ref());
        self
    }

    /// Skips what matches this pattern, in the syntax of a `.gitignore` line.
    /// Can be called several times; a later line that starts with `!` includes
    /// again what an earlier one excluded.
    pub fn exclude(mut self, line: impl AsRef<OsStr>) -> Self {
        self.filter.exclude(line.as_ref());
        self
    }

    /// Ignores ownership.
    pub fn ignore_owners(mut self) -> Self {
        self.owners = false;
        self
    }

    /// Sets how differences of text files are shown.
    pub fn diff_options(mut self, options: DiffOptions) -> Self {
        self.options = options;
        self
    }

    /// Runs the comparison. Entries that cannot be read are listed in the
    /// result; the others are compared.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] if a tree does not exist;
    /// [`DiskError::WrongKind`] if it is not a directory; [`DiskError::Limit`].
    pub fn run(self) -> Result<DiskDiff, DiskError> {
        let filter = compile_filter(&self.filter)?;
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
            let mut comparer = PairComparer {
                sides: (&self.old, &self.new),
                shared: pairs.shared.as_ref(),
                options: self.options,
                budget: &mut pairs.budget,
            };
            match comparer.change(&pair, self.owners) {
                Ok(Some(change)) => diff.changes.push(change),
                Ok(None) => {}
                Err(error) => diff.problem(DiskProblem::new(&pair.path, error))?,
            }
        }
        diff.sort();
        Ok(diff)
    }
}
