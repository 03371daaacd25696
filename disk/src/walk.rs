use std::{ffi::OsStr, fmt, path::Path};

use super::{
    Disk, DiskError, DiskProblem,
    accounts::Accounts,
    choice::Choice,
    ext4::{Inode, Kind, SymlinkPolicy},
    traversal::{Order, Step, Traversal},
};
use vmcell_tree::{Entry, WalkOptions};

impl Disk {
    /// What is in a directory, in the order of the names.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], or what is wrong with the first entry that
    /// cannot be looked at. Use [`walk`](Self::walk) to go on past such entries.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<Entry>, DiskError> {
        self.collect(path.as_ref(), WalkOptions::new().depth(1))
    }

    /// The entries below the root that match a pattern, in order: see
    /// [`WalkOptions::glob`].
    ///
    /// # Errors
    /// See [`list`](Self::list).
    pub fn glob(&self, pattern: impl AsRef<OsStr>) -> Result<Vec<Entry>, DiskError> {
        self.collect(Path::new(""), WalkOptions::new().glob(pattern))
    }

    /// The entries below a directory, each with its problem if it cannot be
    /// looked at. Of a path that is no directory it tells that one entry.
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
    /// [`DiskError::NotFound`], or a pattern makes no sense.
    pub fn walk(
        &self,
        path: impl AsRef<Path>,
        walk: WalkOptions,
    ) -> Result<DiskEntries<'_>, DiskError> {
        let choice = Choice::new(&walk.glob, &walk.filter)?;
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
            waiting: None,
            choice,
        };
        let is_directory = inode.kind == Kind::Directory;
        if !is_directory || (walk.top && !entries.choice.has_glob()) {
            entries.waiting = Some(entries.tell(&inode));
        }
        if is_directory && entries.depth > 0 {
            let entered = entries.traversal.enter(&inode, entries.choice.at_top());
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
            budget.keep(size_of::<Entry>() + length, b"")?;
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// The entries below a directory: see [`Disk::walk`].
pub struct DiskEntries<'d> {
    disk: &'d Disk,
    pub(super) traversal: Traversal<'d>,
    choice: Choice,
    accounts: Option<&'d Accounts>,
    depth: usize,
    digest: bool,
    is_last: bool,
    /// What is told before the traversal goes on.
    waiting: Option<Result<Entry, DiskProblem>>,
}

impl DiskEntries<'_> {
    /// Whether nothing comes after the entry that was told last, in the same
    /// directory, as whoever draws a tree needs to know. It is not known of an
    /// unsorted walk, and patterns do not count: then it may be false although
    /// nothing comes.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The next entry, within the time that the caller waits.
    pub(super) fn advance(&mut self) -> Option<Result<Entry, DiskProblem>> {
        if let Some(waiting) = self.waiting.take() {
            return Some(waiting);
        }
        loop {
            match self.traversal.next()? {
                Ok(Step::Entry(inode)) => {
                    if let Some(told) = self.visit(&inode) {
                        return Some(told);
                    }
                }
                Ok(Step::Left) => {}
                Err(problem) => return Some(Err(problem)),
            }
        }
    }

    /// Tells an entry, and enters it, as far as it is meant.
    fn visit(&mut self, inode: &Inode) -> Option<Result<Entry, DiskProblem>> {
        let is_directory = inode.kind == Kind::Directory;
        self.is_last = self.traversal.is_last();
        let below = self.traversal.path_below();
        let selection = self
            .choice
            .select(self.traversal.selection(), below, is_directory);
        let tells = self.choice.tells(selection, below);
        let enters = is_directory
            && self.traversal.depth() < self.depth
            && self.choice.enters(selection, below);
        let told = tells.then(|| self.tell(inode));
        if enters && let Err(problem) = self.traversal.enter(inode, selection) {
            // The entry itself is there; what is in it is the problem.
            let problem = Some(Err(problem));
            if told.is_none() {
                return problem;
            }
            self.waiting = problem;
        }
        told
    }

    fn tell(&mut self, inode: &Inode) -> Result<Entry, DiskProblem> {
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
        self.traversal.budget.rest();
        next
    }
}

impl fmt::Debug for DiskEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskEntries").finish_non_exhaustive()
    }
}
