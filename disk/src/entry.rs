use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use vmcell_wire::files::{FileKind, Time};

use super::{
    Disk, DiskError, DiskProblem,
    accounts::Accounts,
    ext4::{Attribute, Inode, Kind, SymlinkPolicy, Timestamp},
    path::{named, to_path},
};
use vmcell_tree::{Entry, EntryKind};

/// All that there is to know of an entry of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// What a guest's files tell too.
    pub entry: Entry,
    /// When it was read last.
    pub accessed: SystemTime,
    /// When anything of it was changed last.
    pub changed: SystemTime,
    /// When it was made, if the file system has written that down.
    pub created: Option<SystemTime>,
    /// The major and minor number of a device.
    pub device: Option<(u32, u32)>,
    /// The flags that `lsattr` shows, as they are on the disk.
    pub flags: u32,
    /// Whether its contents are encrypted, and a directory's names.
    pub is_encrypted: bool,
    /// The names of its extended attributes. What is wrong with others comes
    /// with [`Disk::xattrs`].
    pub xattrs: Vec<Vec<u8>>,
}

impl Disk {
    /// What is at a path. Symlinks are followed.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], or why it cannot be looked at.
    pub fn stat(&self, path: impl AsRef<Path>) -> Result<Entry, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::All)?;
        self.describe(&inode, path, Some(self.accounts()))
    }

    /// What is at a path. If that is a symlink, it is told itself.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    pub fn stat_link(&self, path: impl AsRef<Path>) -> Result<Entry, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::Parents)?;
        self.describe(&inode, path, Some(self.accounts()))
    }

    /// All that there is to know of what is at a path. A symlink is told
    /// itself.
    ///
    /// # Errors
    /// See [`stat`](Self::stat).
    pub fn details(&self, path: impl AsRef<Path>) -> Result<Details, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::Parents)?;
        let attributes = self.ext4.attributes(&inode).into_iter().flatten();
        Ok(Details {
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

    /// Whether something is at a path. Symlinks are followed.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool, DiskError> {
        match self.find_inode(path.as_ref(), SymlinkPolicy::All) {
            Ok(_) => Ok(true),
            Err(DiskError::NotFound { .. } | DiskError::WrongKind { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What a symlink points to, in its own bytes.
    ///
    /// # Errors
    /// [`DiskError::WrongKind`] if it is none; see [`stat`](Self::stat).
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf, DiskError> {
        let (inode, path) = self.find_inode(path.as_ref(), SymlinkPolicy::Parents)?;
        let target = self.ext4.link(&inode);
        target
            .map(|target| to_path(&target))
            .map_err(|error| DiskError::at(path, error))
    }

    /// The extended attributes of what is at a path, of all namespaces. A
    /// symlink is meant itself. Those that cannot be read are problems.
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

    /// What a path that a caller named leads to, and the path without slashes
    /// around it.
    pub(super) fn find_inode<'p>(
        &self,
        path: &'p Path,
        follow: SymlinkPolicy,
    ) -> Result<(Inode, &'p [u8]), DiskError> {
        let path = named(path)?;
        let inode = self.ext4.lookup(path, follow);
        let inode = inode.map_err(|error| DiskError::at(path, error))?;
        Ok((inode, path))
    }

    /// What can be told of an inode that has a name.
    pub(super) fn describe(
        &self,
        inode: &Inode,
        path: &[u8],
        accounts: Option<&Accounts>,
    ) -> Result<Entry, DiskError> {
        let target = match inode.kind {
            Kind::Link => {
                let target = self.ext4.link(inode);
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
        Kind::Link => FileKind::Symlink,
        Kind::Fifo => FileKind::Fifo,
        Kind::Socket => FileKind::Socket,
        Kind::CharacterDevice => FileKind::CharacterDevice,
        Kind::BlockDevice => FileKind::BlockDevice,
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    vmcell_tree::system_time(wire_time(time))
}

pub(super) fn wire_time(time: Timestamp) -> Time {
    Time {
        seconds: time.seconds,
        nanoseconds: time.nanoseconds,
    }
}
