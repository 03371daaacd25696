use std::{ffi::OsStr, fmt, path::Path};

use super::{
    Disk, DiskError, DiskProblem,
    accounts::Accounts,
    entry_filter::EntryFilter,
    ext4::{Inode, Kind, SymlinkPolicy},
    traversal::{Order, Step, Traversal},
};
use vmcell_tree::{Entry, WalkOptions};

impl Disk {
    /// Lists a directory, sorted by name.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], or the error of the first entry that cannot be
    /// read. Use [`walk`](Self::walk) to continue past such entries.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<Entry>, DiskError> {
        self.collect(path.as_ref(), WalkOptions::new().depth(1))
    }

    /// Returns the entries that match a glob relative to the root, sorted by
    /// path: see [`WalkOptions::glob`].
    ///
    /// # Errors
    /// See [`list`](Self::list).
    pub fn glob(&self, pattern: impl AsRef<OsStr>) -> Result<Vec<Entry>, DiskError> {
        self.collect(Path::new(""), WalkOptions::new().glob(pattern))
    }

    /// Returns the entries below a directory, recursively. An entry that cannot
    /// be read is returned as a problem, and the walk continues. If the path is
    /// not a directory, it is the only entry.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), vmcell_disk::DiskError> {
    /// use vmcell_disk::{Disk, WalkOptions};
    ///
    /// let disk = Disk::open("base.ext4")?;
    /// for entry in disk.walk("/etc", WalkOptions::new().glob("**/*.conf"))? {
    ///     match entry {
    ///         Ok(entry) => println!("{} {}", entry.permissions(), entry.path.display()),
    ///         Err(problem) => eprintln!("{problem}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DiskError::NotFound`], or [`DiskError::Invalid`] for a bad pattern.
    pub fn walk(
        &self,
        path: impl AsRef<Path>,
        walk: WalkOptions,
    ) -> Result<DiskEntries<'_>, DiskError> {
        let filter = EntryFilter::new(&walk.glob, &walk.filter)?;
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::All)?;
        let order = if walk.sorted {
            Order::Sorted
        } else {
            Order::Any
        };
        let mut entries = DiskEntries {
            disk: self,
            traversal: Traversal::new(self, order, path, self.budget()),
            accounts: walk.names.then(|| self.accounts()),
            depth: usize::try_from(walk.depth).unwrap_or(usize::MAX),
            digest: walk.digest,
            is_last: true,
            pending: None,
            filter,
        };
        let is_directory = inode.kind == Kind::Directory;
        if !is_directory || (walk.top && !entries.filter.has_glob()) {
            entries.pending = Some(entries.entry(&inode));
        }
        if is_directory && entries.depth > 0 {
            let entered = entries.traversal.enter(&inode, entries.filter.at_root());
            entered.map_err(|problem| problem.error)?;
        }
        Ok(entries)
    }

    fn collect(&self, path: &Path, walk: WalkOptions) -> Result<Vec<Entry>, DiskError> {
        let mut budget = self.budget();
        let mut entries = Vec::new();
        for entry in self.walk(path, walk)? {
            let entry = entry.map_err(|problem| problem.error)?;
            let length = entry.path.as_os_str().len();
            budget.reserve(size_of::<Entry>() + length, b"")?;
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// The entries of a walk. Returned by [`Disk::walk`].
pub struct DiskEntries<'d> {
    disk: &'d Disk,
    pub(super) traversal: Traversal<'d>,
    filter: EntryFilter,
    accounts: Option<&'d Accounts>,
    depth: usize,
    digest: bool,
    is_last: bool,
    /// Returned before the traversal continues.
    pending: Option<Result<Entry, DiskProblem>>,
}

impl DiskEntries<'_> {
    /// Returns whether the last returned entry is the last one in its
    /// directory, which is what a program that draws a tree needs. Patterns are
    /// not considered and the order of an unsorted walk is not known: the
    /// result can then be false for the last entry.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns the next entry. The budget's clock must be running.
    pub(super) fn advance(&mut self) -> Option<Result<Entry, DiskProblem>> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        loop {
            match self.traversal.next()? {
                Ok(Step::Entry(inode)) => {
                    if let Some(item) = self.visit(&inode) {
                        return Some(item);
                    }
                }
                Ok(Step::Left) => {}
                Err(problem) if !self.leaves_out_last() => return Some(Err(problem)),
                Err(_) => {}
            }
        }
    }

    /// Returns whether the patterns leave out the entry that could not be read.
    fn leaves_out_last(&self) -> bool {
        let parent = self.traversal.selection();
        let below = self.traversal.path_below();
        self.traversal.is_about_entry() && self.filter.leaves_out(parent, below)
    }

    /// Returns an entry if it is selected, and enters it if it is a directory.
    fn visit(&mut self, inode: &Inode) -> Option<Result<Entry, DiskProblem>> {
        let is_directory = inode.kind == Kind::Directory;
        self.is_last = self.traversal.is_last();
        let below = self.traversal.path_below();
        let selection = self
            .filter
            .select(self.traversal.selection(), below, is_directory);
        let is_included = self.filter.includes(selection, below);
        let descends = is_directory
            && self.traversal.depth() < self.depth
            && self.filter.descends_into(selection, below);
        let item = is_included.then(|| self.entry(inode));
        if descends && let Err(problem) = self.traversal.enter(inode, selection) {
            // The entry itself is readable; its contents are not.
            let problem = Some(Err(problem));
            if item.is_none() {
                return problem;
            }
            self.pending = problem;
        }
        item
    }

    fn entry(&mut self, inode: &Inode) -> Result<Entry, DiskProblem> {
        let described = self
            .disk
            .describe(inode, self.traversal.path(), self.accounts);
        let with_digest = described.and_then(|mut entry| {
            if self.digest && inode.kind == Kind::File {
                let path = self.traversal.path().to_vec();
                let digest = self.disk.digest(inode, &path, &mut self.traversal.budget)?;
                entry.sha256 = Some(digest);
            }
            Ok(entry)
        });
        with_digest.map_err(|error| self.traversal.problem(error))
    }
}

impl Iterator for DiskEntries<'_> {
    type Item = Result<Entry, DiskProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        self.traversal.budget.resume();
        let next = self.advance();
        self.traversal.budget.pause();
        next
    }
}

impl fmt::Debug for DiskEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskEntries").finish_non_exhaustive()
    }
}
