use std::{collections::HashSet, vec};

use vmcell_wire::pattern::Selection;

use super::{
    Disk, DiskError, DiskProblem,
    budget::Budget,
    ext4::{self, Damage, DamageKind, Directory, DirectoryEntry, Inode, Structure},
    listing::Listing,
    path::push,
};

/// The order in which the names of a directory are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The order on the disk. Needs memory for one name at a time.
    Any,
    /// Sorted by bytes. Needs memory for all names of a directory.
    Sorted,
}

/// One step of a traversal.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one step, and most of them are entries"
)]
pub(super) enum Step {
    /// An entry. If it is a directory, the caller may [enter](Traversal::enter)
    /// it.
    Entry(Inode),
    /// The directory that was entered last has no more entries.
    Left,
}

/// A traversal of directories, step by step. The caller decides which
/// directories to enter.
///
/// An entry that cannot be read is returned as a problem, and the traversal
/// continues. No directory is entered twice, so hard links to directories
/// cannot make it endless.
pub(super) struct Traversal<'d> {
    disk: &'d Disk,
    order: Order,
    levels: Vec<Level<'d>>,
    path: Vec<u8>,
    /// Length of the path of the top directory.
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
        memory: usize,
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

/// Approximate memory for remembering that a directory was entered.
const VISITED_MEMORY: usize = 16;

impl<'d> Traversal<'d> {
    /// Creates a traversal below the directory `top`. Call
    /// [`enter`](Self::enter) with that directory first.
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

    /// Returns the path of the last entry, or of the directory just left, from
    /// the root of the disk.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns the same path, relative to the top of the traversal.
    pub(super) fn path_below(&self) -> &[u8] {
        let below = self.path.get(self.top_length..).unwrap_or_default();
        below.strip_prefix(b"/").unwrap_or(below)
    }

    /// Returns the number of open directories.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Returns whether the last entry is the last one in its directory. Always
    /// false for unsorted names, where it is not known.
    pub(super) fn is_last(&self) -> bool {
        self.levels.last().is_none_or(|level| match &level.names {
            Names::Sorted { entries, .. } => entries.len() == 0,
            Names::Streamed(_) => false,
        })
    }

    /// Returns whether the last problem is about an entry of the directory that
    /// was entered last, and not about the directory or the whole operation.
    pub(super) fn is_about_entry(&self) -> bool {
        self.levels
            .last()
            .is_some_and(|level| self.path.len() > level.path_length)
    }

    /// Returns the selection of the directory that was entered last.
    pub(super) fn selection(&self) -> Selection {
        self.levels
            .last()
            .map_or(Selection::Include, |level| level.selection)
    }

    /// Enters the directory that was returned last. The next steps are its
    /// entries.
    ///
    /// # Errors
    /// If the directory cannot be entered, the traversal continues without it.
    /// If a limit of the whole operation is exceeded, the traversal ends.
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
            return Err(DiskError::at(&self.path, directory_loop(directory)));
        }
        self.budget.reserve(VISITED_MEMORY, &self.path)?;
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
                    memory: listing.memory,
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
            // Sorted names were counted when they were read.
            self.budget.count_entry(&self.path)?;
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
            names: Names::Sorted { memory, .. },
            ..
        }) = self.levels.pop()
        {
            self.budget.release(memory);
        }
    }

    /// Returns a problem at the current path. Ends the traversal if the error
    /// ends the whole operation.
    pub(super) fn problem(&mut self, error: DiskError) -> DiskProblem {
        if !error.is_local() {
            self.end();
        }
        DiskProblem::new(&self.path, error)
    }

    /// Ends the traversal.
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

pub(super) fn directory_loop(directory: &Inode) -> ext4::Error {
    ext4::Error::Damaged(Damage {
        structure: Structure::Directory,
        inode: Some(directory.number),
        block: None,
        problem: DamageKind::Loop,
    })
}
