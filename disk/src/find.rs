use std::{
    ffi::OsStr,
    ops::{Bound, RangeBounds},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    time::SystemTime,
};

use vmcell_wire::pattern::Glob;

use super::{Disk, DiskError, DiskProblem, choice::bad_pattern, walk::DiskEntries};
use vmcell_tree::{Entry, EntryKind, WalkOptions};

/// What is looked for below a directory.
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
    kinds: Vec<EntryKind>,
    size: Bounds<u64>,
    modified: Bounds<SystemTime>,
}

impl Find {
    /// Everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where it is looked for: how deep, below which names, in which order.
    #[must_use]
    pub fn within(mut self, walk: WalkOptions) -> Self {
        self.walk = walk;
        self
    }

    /// Only what has a name that matches this pattern, wherever it is: `*`,
    /// `?` and `[a-z]`.
    #[must_use]
    pub fn name(mut self, pattern: impl AsRef<OsStr>) -> Self {
        self.name = Some(pattern.as_ref().as_bytes().to_vec());
        self
    }

    /// Only what is of this kind, or of one of those that are told in other
    /// calls.
    #[must_use]
    pub fn kind(mut self, kind: EntryKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Only what has so many bytes.
    #[must_use]
    pub fn size(mut self, bytes: impl RangeBounds<u64>) -> Self {
        self.size = Bounds::new(&bytes);
        self
    }

    /// Only what was changed last in this time, by the guest's clock.
    #[must_use]
    pub fn modified(mut self, time: impl RangeBounds<SystemTime>) -> Self {
        self.modified = Bounds::new(&time);
        self
    }
}

/// A range that can be kept.
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
    /// What is looked for below a directory, as it is found.
    ///
    /// # Errors
    /// See [`walk`](Self::walk).
    pub fn find(&self, path: impl AsRef<Path>, find: Find) -> Result<Findings<'_>, DiskError> {
        let name = match &find.name {
            Some(name) => Some(Glob::new(name).map_err(bad_pattern)?),
            None => None,
        };
        Ok(Findings {
            entries: self.walk(path, find.walk.clone())?,
            name,
            find,
        })
    }
}

/// What was looked for: see [`Disk::find`].
#[derive(Debug)]
pub struct Findings<'d> {
    entries: DiskEntries<'d>,
    name: Option<Glob>,
    find: Find,
}

impl Findings<'_> {
    fn is_meant(&self, entry: &Entry) -> bool {
        let name = entry.name().unwrap_or_default().as_bytes();
        let find = &self.find;
        (find.kinds.is_empty() || find.kinds.contains(&entry.kind))
            && find.size.contains(&entry.size)
            && find.modified.contains(&entry.modified)
            && self.name.as_ref().is_none_or(|glob| glob.matches(name))
    }
}

impl Iterator for Findings<'_> {
    type Item = Result<Entry, DiskProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next()? {
                Ok(entry) if !self.is_meant(&entry) => {}
                told => return Some(told),
            }
        }
    }
}
