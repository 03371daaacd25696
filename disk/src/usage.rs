use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use vmcell_wire::pattern::Selection;

use super::{
    Disk, DiskError, DiskProblem,
    ext4::{Inode, Kind, SymlinkPolicy},
    path::to_path,
    traversal::{Order, Step, Traversal},
};
use vmcell_tree::Usage;

/// The disk usage of a directory and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryUsage {
    /// The path of the directory, relative to the root.
    pub path: PathBuf,
    /// Its usage.
    pub usage: Usage,
}

/// Approximate memory for remembering a file with several hard links.
const HARD_LINK_MEMORY: usize = 16;

impl Disk {
    /// Returns the disk usage of a directory and everything below it, or of a
    /// file. A file with several hard links counts once. Entries that cannot be
    /// read are counted in [`Usage::problems`].
    ///
    /// # Errors
    /// [`DiskError::NotFound`]; [`DiskError::Limit`].
    pub fn usage(&self, path: impl AsRef<Path>) -> Result<Usage, DiskError> {
        let mut whole = Usage::default();
        for directory in self.usage_by_directory(path, 0)? {
            whole = directory.map_err(|problem| problem.error)?.usage;
        }
        Ok(whole)
    }

    /// Returns the usage of each directory in a tree, down to `depth` levels,
    /// each including everything below it. Subdirectories come before their
    /// parent, so the given directory comes last. Entries that cannot be read
    /// are counted in the usage of their directory. Only an error that ends the
    /// operation is returned.
    ///
    /// # Errors
    /// See [`usage`](Self::usage).
    pub fn usage_by_directory(
        &self,
        path: impl AsRef<Path>,
        depth: usize,
    ) -> Result<DirectoryUsages<'_>, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::All)?;
        let mut usages = DirectoryUsages {
            traversal: Traversal::new(self, Order::Sorted, path, self.budget()),
            sums: Vec::new(),
            counted_links: HashSet::new(),
            depth,
            single_file: None,
        };
        let mut sum = Usage::default();
        let added = usages.add(&mut sum, &inode);
        added.map_err(|problem| problem.error)?;
        if inode.kind != Kind::Directory {
            usages.single_file = Some(DirectoryUsage {
                path: to_path(path),
                usage: sum,
            });
            return Ok(usages);
        }
        let entered = usages.traversal.enter(&inode, Selection::Include);
        entered.map_err(|problem| problem.error)?;
        usages.sums.push(sum);
        Ok(usages)
    }
}

/// The usage of the directories in a tree. Returned by
/// [`Disk::usage_by_directory`].
pub struct DirectoryUsages<'d> {
    traversal: Traversal<'d>,
    /// The usage so far of each open directory.
    sums: Vec<Usage>,
    /// Inodes of files with several hard links that were counted.
    counted_links: HashSet<u32>,
    depth: usize,
    /// The only result, if the path is not a directory.
    single_file: Option<DirectoryUsage>,
}

impl DirectoryUsages<'_> {
    fn advance(&mut self) -> Option<Result<DirectoryUsage, DiskProblem>> {
        if let Some(single_file) = self.single_file.take() {
            return Some(Ok(single_file));
        }
        loop {
            match self.traversal.next()? {
                Ok(Step::Entry(inode)) => {
                    if let Err(problem) = self.visit(&inode) {
                        return Some(Err(problem));
                    }
                }
                Ok(Step::Left) => {
                    let usage = self.sums.pop()?;
                    self.add_to_parent(&usage);
                    if self.sums.len() <= self.depth {
                        let path = to_path(self.traversal.path());
                        return Some(Ok(DirectoryUsage { path, usage }));
                    }
                }
                Err(problem) if problem.error.is_local() => {
                    if let Some(sum) = self.sums.last_mut() {
                        sum.problems += 1;
                    }
                }
                Err(problem) => return Some(Err(problem)),
            }
        }
    }

    fn visit(&mut self, inode: &Inode) -> Result<(), DiskProblem> {
        let mut sum = Usage::default();
        self.add(&mut sum, inode)?;
        if inode.kind == Kind::Directory {
            match self.traversal.enter(inode, Selection::Include) {
                Ok(()) => {
                    self.sums.push(sum);
                    return Ok(());
                }
                Err(problem) if problem.error.is_local() => sum.problems += 1,
                Err(problem) => return Err(problem),
            }
        }
        self.add_to_parent(&sum);
        Ok(())
    }

    fn add(&mut self, sum: &mut Usage, inode: &Inode) -> Result<(), DiskProblem> {
        sum.entries += 1;
        let is_directory = inode.kind == Kind::Directory;
        sum.directories += u64::from(is_directory);
        if !is_directory && inode.links > 1 {
            if !self.counted_links.insert(inode.number) {
                return Ok(());
            }
            let path = self.traversal.path().to_vec();
            let reserved = self.traversal.budget.reserve(HARD_LINK_MEMORY, &path);
            reserved.map_err(|error| self.traversal.problem(error))?;
        }
        if inode.kind == Kind::File {
            sum.bytes = sum.bytes.saturating_add(inode.size);
        }
        sum.allocated = sum.allocated.saturating_add(inode.allocated);
        Ok(())
    }

    fn add_to_parent(&mut self, sum: &Usage) {
        if let Some(parent) = self.sums.last_mut() {
            parent.entries += sum.entries;
            parent.directories += sum.directories;
            parent.bytes = parent.bytes.saturating_add(sum.bytes);
            parent.allocated = parent.allocated.saturating_add(sum.allocated);
            parent.problems += sum.problems;
        }
    }
}

impl Iterator for DirectoryUsages<'_> {
    type Item = Result<DirectoryUsage, DiskProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        self.traversal.budget.resume();
        let next = self.advance();
        self.traversal.budget.pause();
        next
    }
}

impl fmt::Debug for DirectoryUsages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryUsages").finish_non_exhaustive()
    }
}
