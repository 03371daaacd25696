use std::{
    ffi::OsStr,
    ops::{Bound, RangeBounds},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    time::SystemTime,
};

use vmcell_wire::pattern::Glob;

use super::{Disk, DiskError, DiskProblem, entry_filter::bad_pattern, walk::DiskEntries};
use vmcell_tree::{Entry, EntryKind, WalkOptions};

/// Conditions that an entry must meet, like those of find(1). Used with
/// [`Disk::find`].
///
/// ```
/// use vmcell_disk::{Find, EntryKind};
///
/// let large_logs = Find::new().name("*.log").kind(EntryKind::File).size(1 << 20..);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Find {
    walk: WalkOptions,
    name: Option<Vec<u8>>,
    ignore_case: bool,
    kinds: Vec<EntryKind>,
    size: Bounds<u64>,
    modified: Bounds<SystemTime>,
}

impl Find {
    /// Matches every entry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options of the walk: depth, patterns, order.
    #[must_use]
    pub fn within(mut self, walk: WalkOptions) -> Self {
        self.walk = walk;
        self
    }

    /// Matches only entries whose file name matches a glob with `*`, `?` and
    /// `[a-z]`, in any directory.
    #[must_use]
    pub fn name(mut self, pattern: impl AsRef<OsStr>) -> Self {
        self.name = Some(pattern.as_ref().as_bytes().to_vec());
        self
    }

    /// Ignores the case of ASCII letters in names.
    #[must_use]
    pub fn ignore_case(mut self) -> Self {
        self.ignore_case = true;
        self
    }

    /// Matches only entries of this kind. Can be called several times to match
    /// several kinds.
    #[must_use]
    pub fn kind(mut self, kind: EntryKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Matches only entries whose size in bytes is in this range.
    #[must_use]
    pub fn size(mut self, bytes: impl RangeBounds<u64>) -> Self {
        self.size = Bounds::new(&bytes);
        self
    }

    /// Matches only entries whose modification time is in this range. The times
    /// come from the guest's clock.
    #[must_use]
    pub fn modified(mut self, time: impl RangeBounds<SystemTime>) -> Self {
        self.modified = Bounds::new(&time);
        self
    }
}

/// An owned range.
#[derive(Clone, Copy, Debug)]
struct Bounds<T>(Bound<T>, Bound<T>);

impl<T> Default for Bounds<T> {
    fn default() -> Self {
        Self(Bound::Unbounded, Bound::Unbounded)
    }
}

impl<T: Copy + PartialOrd> Bounds<T> {
    fn new(range: &impl RangeBounds<T>) -> Self {
        Self(range.start_bound().cloned(), range.end_bound().cloned())
    }

    fn contains(&self, value: &T) -> bool {
        (self.0, self.1).contains(value)
    }
}

impl Disk {
    /// Returns the entries below a directory that match, one at a time as they
    /// are found.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use vmcell_disk::{Disk, EntryKind, Find};
    ///
    /// let disk = Disk::open("stopped.qcow2")?;
    /// for entry in disk.find("/var/log", Find::new().name("*.log").kind(EntryKind::File))? {
    ///     println!("{}", entry?.path.display());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`walk`](Self::walk).
    pub fn find(&self, path: impl AsRef<Path>, find: Find) -> Result<FindMatches<'_>, DiskError> {
        let name = match &find.name {
            Some(name) if find.ignore_case => {
                let lower = name.to_ascii_lowercase();
                Some(Glob::new(&lower).map_err(bad_pattern)?)
            }
            Some(name) => Some(Glob::new(name).map_err(bad_pattern)?),
            None => None,
        };
        Ok(FindMatches {
            entries: self.walk(path, find.walk.clone())?,
            name,
            find,
        })
    }
}

/// The matching entries. Returned by [`Disk::find`].
#[derive(Debug)]
pub struct FindMatches<'d> {
    entries: DiskEntries<'d>,
    name: Option<Glob>,
    find: Find,
}

impl FindMatches<'_> {
    fn matches(&self, entry: &Entry) -> bool {
        let name = entry.name().unwrap_or_default().as_bytes();
        let find = &self.find;
        (find.kinds.is_empty() || find.kinds.contains(&entry.kind))
            && find.size.contains(&entry.size)
            && find.modified.contains(&entry.modified)
            && self
                .name
                .as_ref()
                .is_none_or(|glob| match find.ignore_case {
                    true => glob.matches(&name.to_ascii_lowercase()),
                    false => glob.matches(name),
                })
    }
}

impl Iterator for FindMatches<'_> {
    type Item = Result<Entry, DiskProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next()? {
                Ok(entry) if !self.matches(&entry) => {}
                item => return Some(item),
            }
        }
    }
}
