use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use vmcell_wire::files::{FileKind, Time};

use super::{
    Disk, DiskError, DiskProblem,
    accounts::Accounts,
    ext4::{self, Attribute, Inode, Kind, SymlinkPolicy, Timestamp},
    path::{checked_path, shown, to_path},
};
use vmcell_tree::{Entry, EntryKind};

/// The complete metadata of a file, directory or other entry. Returned by
/// [`Disk::details`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryDetails {
    /// The metadata that is also available for the files of a running guest.
    pub entry: Entry,
    /// When its contents were last read (`atime`).
    pub accessed: SystemTime,
    /// When its contents or metadata were last changed (`ctime`).
    pub changed: SystemTime,
    /// When it was created (`crtime`), if the file system records it.
    pub created: Option<SystemTime>,
    /// The major and minor number, if it is a device.
    pub device: Option<(u32, u32)>,
    /// The inode flags that `lsattr` prints, as stored on disk.
    pub flags: u32,
    /// Whether its contents are encrypted and, for a directory, its names.
    pub is_encrypted: bool,
    /// The names of its extended attributes. [`Disk::xattrs`] reports
    /// attributes that cannot be read.
    pub xattrs: Vec<Vec<u8>>,
}

impl Disk {
    /// Returns the metadata of a path. Follows symlinks.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], [`DiskError::DanglingLink`],
    /// [`DiskError::TooManySymlinks`],
    /// [`DiskError::WrongKind`] if a parent is not a directory, or
    /// [`DiskError::Damaged`].
    pub fn stat(&self, path: impl AsRef<Path>) -> Result<Entry, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::All)?;
        self.describe(&inode, path, Some(self.accounts()))
    }

    /// Returns the metadata of a path. If it is a symlink, returns that of the
    /// symlink itself.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    pub fn stat_link(&self, path: impl AsRef<Path>) -> Result<Entry, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::Parents)?;
        self.describe(&inode, path, Some(self.accounts()))
    }

    /// Returns the complete metadata of a path. If it is a symlink, returns
    /// that of the symlink itself.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    pub fn details(&self, path: impl AsRef<Path>) -> Result<EntryDetails, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::Parents)?;
        let attributes = self.ext4.attributes(&inode).into_iter().flatten();
        Ok(EntryDetails {
            entry: self.describe(&inode, path, Some(self.accounts()))?,
            accessed: system_time(inode.accessed),
            changed: system_time(inode.changed),
            created: inode.created.map(system_time),
            device: inode.device,
            flags: inode.flags,
            is_encrypted: inode.is_encrypted(),
            xattrs: attributes.map(|attribute| attribute.name).collect(),
        })
    }

    /// Returns whether a path exists. Follows symlinks.
    ///
    /// # Errors
    /// If the lookup fails for another reason, for example damage.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool, DiskError> {
        match self.find_inode(path.as_ref(), SymlinkPolicy::All) {
            Ok(_) => Ok(true),
            Err(
                DiskError::NotFound { .. }
                | DiskError::DanglingLink { .. }
                | DiskError::WrongKind { .. },
            ) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the target of a symlink as stored, unresolved.
    ///
    /// # Errors
    /// [`DiskError::WrongKind`] if it is not a symlink; see
    /// [`stat`](Self::stat).
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::Parents)?;
        let target = self.ext4.read_link(&inode);
        target
            .map(|target| to_path(&target))
            .map_err(|error| DiskError::at(path, error))
    }

    /// Returns the extended attributes of a path, in all namespaces. Does not
    /// follow a final symlink. An attribute that cannot be read is returned as
    /// a problem.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    pub fn xattrs(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<Vec<Result<Attribute, DiskProblem>>, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::Parents)?;
        let problem = |error| DiskProblem::new(path, DiskError::at(path, error));
        let attributes = self.ext4.attributes(&inode).into_iter();
        Ok(attributes
            .map(|attribute| attribute.map_err(problem))
            .collect())
    }

    /// Looks up a path from the caller. Also returns the path without leading
    /// and trailing slashes.
    pub(super) fn find_inode<'p>(
        &self,
        path: &'p Path,
        follow: SymlinkPolicy,
    ) -> Result<(Inode, &'p [u8]), DiskError> {
        let path = checked_path(path)?;
        let inode = self.ext4.lookup(path, follow);
        let inode = inode.map_err(|error| match error {
            ext4::Error::NotFound { .. } => self.not_found(path),
            error => DiskError::at(path, error),
        })?;
        Ok((inode, path))
    }

    /// Returns the error for a path that leads nowhere.
    fn not_found(&self, path: &[u8]) -> DiskError {
        let link = self.ext4.lookup(path, SymlinkPolicy::Parents);
        match link.and_then(|link| self.ext4.read_link(&link)) {
            Ok(target) => DiskError::DanglingLink {
                path: shown(path),
                target: shown(&target),
            },
            Err(_) => DiskError::NotFound { path: shown(path) },
        }
    }

    /// Returns the metadata of an inode under the given path.
    pub(super) fn describe(
        &self,
        inode: &Inode,
        path: &[u8],
        accounts: Option<&Accounts>,
    ) -> Result<Entry, DiskError> {
        let target = match inode.kind {
            Kind::Symlink => {
                let target = self.ext4.read_link(inode);
                Some(to_path(
                    &target.map_err(|error| DiskError::at(path, error))?,
                ))
            }
            _ => None,
        };
        let kind = EntryKind::from_wire(wire_kind(inode.kind));
        let mut entry = Entry::new(to_path(path), kind);
        entry.size = inode.size;
        entry.allocated = inode.allocated;
        entry.mode = inode.mode.into();
        entry.uid = inode.uid;
        entry.gid = inode.gid;
        entry.owner = accounts.and_then(|accounts| accounts.user(inode.uid));
        entry.group = accounts.and_then(|accounts| accounts.group(inode.gid));
        entry.modified = system_time(inode.modified);
        entry.links = inode.links.into();
        entry.inode = inode.number.into();
        entry.target = target;
        Ok(entry)
    }
}

pub(super) fn wire_kind(kind: Kind) -> FileKind {
    match kind {
        Kind::File => FileKind::File,
        Kind::Directory => FileKind::Directory,
        Kind::Symlink => FileKind::Symlink,
        Kind::Fifo => FileKind::Fifo,
        Kind::Socket => FileKind::Socket,
        Kind::CharacterDevice => FileKind::CharacterDevice,
        Kind::BlockDevice => FileKind::BlockDevice,
    }
}

pub(crate) fn system_time(time: Timestamp) -> SystemTime {
    vmcell_tree::system_time(wire_time(time))
}

pub(super) fn wire_time(time: Timestamp) -> Time {
    Time {
        seconds: time.seconds,
        nanoseconds: time.nanoseconds,
    }
}
