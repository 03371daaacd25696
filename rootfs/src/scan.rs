//! Reads a tree from a directory of the host.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{lgetxattr, lgetxattr_query, llistxattr, llistxattr_query, major, minor};
use rustix::io::Errno;

use crate::{Content, Error, Kind, Node, Owner, Tree};

/// Which owners the entries read from a directory get.
///
/// ```no_run
/// use vmcell_rootfs::{Ownership, Tree};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let tree = Tree::from_dir_with("/srv/rootfs", Ownership::Keep)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ownership {
    /// Root owns everything; the owners on the host are ignored.
    #[default]
    AllRoot,
    /// The numeric owners on the host are kept.
    Keep,
}

impl Tree {
    /// Reads a directory. All entries are owned by root.
    ///
    /// Keeps modes, modification times, symbolic and hard links, named pipes and device nodes. Of
    /// the extended attributes, keeps `user.*`, file capabilities and ACLs; others, such as
    /// SELinux labels, describe the host. Skips sockets, which are useless without their
    /// listener. Ignores the metadata of the directory itself: `/` is owned by root with mode
    /// 0755, because the 0700 of a temporary folder would keep other users out of the guest.
    ///
    /// File contents are read when the image is built.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let tree = vmcell_rootfs::Tree::from_dir("./my-rootfs")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::TreeMissing`], [`Error::TreeNotDirectory`], [`Error::Read`], or
    /// [`Error::Path`] for a path that is too long for Linux.
    pub fn from_dir(directory: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_dir_with(directory, Ownership::default())
    }

    /// Reads a directory with a choice of owners. See [`Tree::from_dir`].
    ///
    /// ```no_run
    /// # use vmcell_rootfs::{Ownership, Tree};
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let tree = Tree::from_dir_with("/srv/rootfs", Ownership::Keep)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tree::from_dir`].
    pub fn from_dir_with(directory: impl AsRef<Path>, ownership: Ownership) -> Result<Self, Error> {
        let directory = directory.as_ref();
        check_directory(directory)?;
        let root = std::path::absolute(directory).map_err(|source| Error::Read {
            path: directory.to_owned(),
            source,
        })?;

        let mut tree = Self::new();
        // The first name of a file, in sorted order, becomes the file; others become hard links.
        let mut first_names = HashMap::new();
        for (path, found) in list(&root)? {
            let host_path = root.join(&path);
            let Some(kind) = kind_of(&path, &host_path, &found, &mut first_names)? else {
                continue;
            };
            let owner = match ownership {
                Ownership::AllRoot => Owner::ROOT,
                Ownership::Keep => Owner {
                    uid: found.uid(),
                    gid: found.gid(),
                },
            };
            let xattrs = match kind {
                Kind::HardLink(_) => BTreeMap::new(),
                _ => xattrs_of(&host_path).map_err(|errno| read_error(&host_path, errno.into()))?,
            };
            // The mask leaves the twelve permission bits, which fit.
            let mode = (found.mode() & 0o7777) as u16;
            tree.insert(
                path,
                Node {
                    kind,
                    mode,
                    owner,
                    modified: Some(found.mtime()),
                    xattrs,
                },
            )?;
        }
        Ok(tree)
    }
}

fn check_directory(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::TreeNotDirectory {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::TreeMissing {
            path: path.to_owned(),
        }),
        Err(source) => Err(read_error(path, source)),
    }
}

/// Lists everything beneath `root`, by relative path.
fn list(root: &Path) -> Result<BTreeMap<PathBuf, Metadata>, Error> {
    let mut listing = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        let host_directory = root.join(&directory);
        let entries = fs::read_dir(&host_directory).map_err(|e| read_error(&host_directory, e))?;
        for entry in entries {
            let entry = entry.map_err(|source| read_error(&host_directory, source))?;
            let path = directory.join(entry.file_name());
            // This is an lstat(2): symbolic links are not followed.
            let found = entry
                .metadata()
                .map_err(|source| read_error(&entry.path(), source))?;
            if found.is_dir() {
                waiting.push(path.clone());
            }
            listing.insert(path, found);
        }
    }
    Ok(listing)
}

/// Returns the kind of an entry of the host; `None` if it is skipped.
fn kind_of(
    path: &Path,
    host_path: &Path,
    found: &Metadata,
    first_names: &mut HashMap<(u64, u64), PathBuf>,
) -> Result<Option<Kind>, Error> {
    let file_type = found.file_type();
    if file_type.is_socket() {
        return Ok(None);
    }
    if !file_type.is_dir() && found.nlink() > 1 {
        let inode = (found.dev(), found.ino());
        if let Some(first) = first_names.get(&inode) {
            return Ok(Some(Kind::HardLink(first.clone())));
        }
        first_names.insert(inode, path.to_owned());
    }
    let (major, minor) = (major(found.rdev()), minor(found.rdev()));
    Ok(Some(if file_type.is_dir() {
        Kind::Directory
    } else if file_type.is_symlink() {
        Kind::Symlink(fs::read_link(host_path).map_err(|source| read_error(host_path, source))?)
    } else if file_type.is_fifo() {
        Kind::Fifo
    } else if file_type.is_char_device() {
        Kind::CharDevice { major, minor }
    } else if file_type.is_block_device() {
        Kind::BlockDevice { major, minor }
    } else {
        Kind::File(Content::HostFile(host_path.to_owned()))
    }))
}

/// Reads the extended attributes that belong to the file rather than to the host.
fn xattrs_of(path: &Path) -> Result<BTreeMap<OsString, Vec<u8>>, Errno> {
    // Most files have no attributes and need only this call.
    let length = match llistxattr_query(path) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(BTreeMap::new()),
        other => other?,
    };
    let mut names = vec![0; length];
    let length = llistxattr(path, &mut names[..])?;
    names.truncate(length);
    let mut xattrs = BTreeMap::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| is_portable(name))
    {
        let name = OsStr::from_bytes(name);
        let mut value = vec![0; lgetxattr_query(path, name)?];
        let length = lgetxattr(path, name, &mut value[..])?;
        value.truncate(length);
        xattrs.insert(name.to_owned(), value);
    }
    Ok(xattrs)
}

/// Returns whether an extended attribute describes the file rather than its host.
pub(crate) fn is_portable(name: &[u8]) -> bool {
    name.starts_with(b"user.")
        || name.starts_with(b"system.posix_acl_")
        || name == b"security.capability"
}

fn read_error(path: &Path, source: io::Error) -> Error {
    Error::Read {
        path: path.to_owned(),
        source,
    }
}
