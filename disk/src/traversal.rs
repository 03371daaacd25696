use std::{collections::HashSet, vec};

use vmcell_wire::pattern::Selection;

use super::{
    Disk, DiskError, DiskProblem,
    budget::Budget,
    ext4::{self, Damage, DamageKind, Directory, DirectoryEntry, Inode, Structure},
    listing::Listing,
    path::push,
};

/// In which order the names of a directory come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As the disk has them: one at a time is in memory.
    Any,
    /// By their bytes: all of a directory's are in memory.
    Sorted,
}

/// What comes next on a traversal.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one step, and most of them are entries"
)]
pub(super) enum Step {
    /// An entry. If it is a directory, it may be [entered](Traversal::enter).
    Entry(Inode),
    /// The directory that was entered last is at its end.
    Left,
}

/// A way through the directories of a disk, told step by step. Whoever goes it
/// decides which directories to enter.
///
/// What cannot be looked at is told and passed by. No directory is entered
/// twice: what hard links make endless ends here.
pub(super) struct Traversal<'d> {
    disk: &'d Disk,
    order: Order,
    levels: Vec<Level<'d>>,
    path: Vec<u8>,
    /// How much of the path was there before the traversal.
    top_length: usize,
    entered: HashSet<u32>,
    pub(super) budget: Budget,
}

struct Level<'d> {
    names: Names<'d>,
    path_length: usize,
    selection: Selection,
}

enum Names<'d> {
    Streamed(Box<Directory<'d>>),
    Sorted {
        entries: vec::IntoIter<DirectoryEntry>,
        problems: vec::IntoIter<ext4::Error>,
        kept: usize,
    },
}

impl Names<'_> {
    fn next(&mut self) -> Option<Result<DirectoryEntry, ext4::Error>> {
        match self {
            Self::Streamed(directory) => directory.next(),
            Self::Sorted {
                entries, problems, ..
            } => problems.next().map(Err).or_else(|| entries.next().map(Ok)),
        }
    }
}

/// What remembering a directory takes in memory, roughly.
const REMEMBERED: usize = 16;

impl<'d> Traversal<'d> {
    /// A traversal that begins in no directory yet: [`enter`](Self::enter) the first
    /// one, whose path this is.
    pub(super) fn new(disk: &'d Disk, order: Order, top: &[u8], budget: Budget) -> Self {
        Self {
            disk,
            order,
            levels: Vec::new(),
            path: top.to_vec(),
            top_length: top.len(),
            entered: HashSet::new(),
            budget,
        }
    }

    /// The path of the entry that came last, or of the directory that was left,
    /// from the root of the disk.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// The same from the top of the traversal.
    pub(super) fn path_below(&self) -> &[u8] {
        let below = self.path.get(self.top_length..).unwrap_or_default();
        below.strip_prefix(b"/").unwrap_or(below)
    }

    /// How many directories are open.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Whether no name comes after the entry that came last, in the same
    /// directory. Of names that are not sorted it is not known.
    pub(super) fn is_last(&self) -> bool {
        self.levels.last().is_none_or(|level| match &level.names {
            Names::Sorted { entries, .. } => entries.len() == 0,
            Names::Streamed(_) => false,
        })
    }

    /// What was chosen for the directory that was entered last.
    pub(super) fn selection(&self) -> Selection {
        self.levels
            .last()
            .map_or(Selection::Take, |level| level.selection)
    }

    /// Enters the directory that came last: the next steps are in it.
    ///
    /// # Errors
    /// It cannot be entered, and the traversal goes on without it; or a limit of the
    /// whole operation is reached, and the traversal ends.
    pub(super) fn enter(
        &mut self,
        directory: &Inode,
        selection: Selection,
    ) -> Result<(), DiskProblem> {
        self.try_enter(directory, selection)
            .map_err(|error| self.problem(error))
    }

    fn try_enter(&mut self, directory: &Inode, selection: Selection) -> Result<(), DiskError> {
        self.budget.check_depth(self.levels.len(), &self.path)?;
        if !self.entered.insert(directory.number) {
            return Err(DiskError::at(&self.path, in_two_places(directory)));
        }
        self.budget.keep(REMEMBERED, &self.path)?;
        let ext4 = &self.disk.ext4;
        let names = match self.order {
            Order::Any => {
                let names = ext4.directory(directory);
                let names = names.map_err(|error| DiskError::at(&self.path, error))?;
                Names::Streamed(Box::new(names))
            }
            Order::Sorted => {
                let listing = Listing::read(ext4, directory, &self.path, &mut self.budget)?;
                Names::Sorted {
                    entries: listing.entries.into_iter(),
                    problems: listing.problems.into_iter(),
                    kept: listing.kept,
                }
            }
        };
        self.levels.push(Level {
            names,
            path_length: self.path.len(),
            selection,
        });
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Step>, DiskError> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(None);
        };
        self.path.truncate(level.path_length);
        let next = level.names.next();
        if self.order == Order::Any {
            // Sorted ones were counted when they were read.
            self.budget.entry(&self.path)?;
        } else {
            self.budget.check_time(&self.path)?;
        }
        let Some(entry) = next else {
            self.leave();
            return Ok(Some(Step::Left));
        };
        let entry = entry.map_err(|error| DiskError::at(&self.path, error))?;
        push(&mut self.path, &entry.name);
        self.budget.check_path(&self.path)?;
        let inode = self.disk.ext4.inode(entry.inode);
        inode
            .map(|inode| Some(Step::Entry(inode)))
            .map_err(|error| DiskError::at(&self.path, error))
    }

    fn leave(&mut self) {
        if let Some(Level {
            names: Names::Sorted { kept, .. },
            ..
        }) = self.levels.pop()
        {
            self.budget.forget(kept);
        }
    }

    /// A problem at the path. After one that ends the operation nothing comes.
    pub(super) fn problem(&mut self, error: DiskError) -> DiskProblem {
        if !error.is_local() {
            self.end();
        }
        DiskProblem::new(&self.path, error)
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self) {
        self.levels.clear();
    }
}

impl Iterator for Traversal<'_> {
    type Item = Result<Step, DiskProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().map_err(|error| self.problem(error)).transpose()
    }
}

pub(super) fn in_two_places(directory: &Inode) -> ext4::Error {
    ext4::Error::Damaged(Damage {
        structure: Structure::Directory,
        inode: Some(directory.number),
        block: None,
        problem: DamageKind::Loop,
    })
}
