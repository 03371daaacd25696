use std::{
    fs, io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{FileExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::node::{Node, NodeSource, OpenFile};
use crate::{
    Disk, DiskError,
    budget::Budget,
    ext4::{self, Kind, SymlinkPolicy},
    listing::Listing,
    path::{shown, to_path},
};

/// One side of a comparison.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DiffSide<'a> {
    /// A directory on a disk.
    Disk {
        /// The disk.
        disk: &'a Disk,
        /// The path of the directory on the disk.
        path: PathBuf,
    },
    /// A directory on the host.
    Folder(PathBuf),
}

/// A name in a directory and, on a disk, its inode number.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) name: Vec<u8>,
    pub(super) inode: u32,
}

/// The names of a directory, sorted.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) names: Vec<Name>,
    pub(super) problems: Vec<DiskError>,
    pub(super) memory: usize,
}

/// Approximate memory of a name on the host, without its text.
const NAME_MEMORY: usize = 64;

impl<'a> DiffSide<'a> {
    /// Returns a side that is a directory on a disk.
    pub fn disk(disk: &'a Disk, path: impl Into<PathBuf>) -> Self {
        Self::Disk {
            disk,
            path: path.into(),
        }
    }

    /// Returns a side that is a directory on the host.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self::Folder(path.into())
    }

    pub(super) fn budget(&self) -> Option<Budget> {
        self.as_disk().map(Disk::budget)
    }

    pub(super) fn as_disk(&self) -> Option<&'a Disk> {
        match self {
            Self::Disk { disk, .. } => Some(disk),
            Self::Folder(_) => None,
        }
    }

    /// Returns the directory itself.
    pub(super) fn top(&self) -> Result<Node, DiskError> {
        let (node, path) = match self {
            Self::Disk { disk, path } => {
                let (inode, _) = disk.find_inode(path, SymlinkPolicy::All)?;
                (Node::of_inode(inode), path)
            }
            // A symlink to the top directory is followed; no other symlink is.
            Self::Folder(path) => {
                let real = path.canonicalize();
                let real = real.map_err(|error| unreadable(path, error))?;
                (host_node(real)?, path)
            }
        };
        if node.kind != Kind::Directory {
            return Err(DiskError::WrongKind {
                path: shown(path.as_os_str().as_bytes()),
                wanted: "directory",
            });
        }
        Ok(node)
    }

    /// Returns the names in a directory, sorted.
    pub(super) fn names(
        &self,
        directory: &Node,
        path: &[u8],
        budget: &mut Budget,
    ) -> Result<Names, DiskError> {
        match (&directory.source, self) {
            (NodeSource::Disk(inode), Self::Disk { disk, .. }) => {
                let listing = Listing::read(&disk.ext4, inode, path, budget)?;
                let problems = listing.problems.into_iter();
                Ok(Names {
                    names: listing.entries.into_iter().map(Name::from).collect(),
                    problems: problems.map(|error| DiskError::at(path, error)).collect(),
                    memory: listing.memory,
                })
            }
            (NodeSource::Host(folder), _) => host_names(folder, path, budget),
            (NodeSource::Disk(_), Self::Folder(_)) => Err(wrong_side(path)),
        }
    }

    /// Returns the entry with this name in a directory.
    pub(super) fn node(
        &self,
        directory: &Node,
        name: &Name,
        path: &[u8],
    ) -> Result<Node, DiskError> {
        match (&directory.source, self) {
            (NodeSource::Host(folder), _) => host_node(folder.join(to_path(&name.name))),
            (NodeSource::Disk(_), Self::Disk { disk, .. }) => {
                let inode = disk.ext4.inode(name.inode);
                inode
                    .map(Node::of_inode)
                    .map_err(|error| DiskError::at(path, error))
            }
            (NodeSource::Disk(_), Self::Folder(_)) => Err(wrong_side(path)),
        }
    }

    /// Returns the target of a symlink.
    pub(super) fn link(&self, node: &Node, path: &[u8]) -> Result<Vec<u8>, DiskError> {
        match (&node.source, self) {
            (NodeSource::Host(link), _) => {
                let target = fs::read_link(link).map_err(|error| unreadable(link, error))?;
                Ok(target.into_os_string().into_vec())
            }
            (NodeSource::Disk(inode), Self::Disk { disk, .. }) => {
                let target = disk.ext4.read_link(inode);
                target.map_err(|error| DiskError::at(path, error))
            }
            (NodeSource::Disk(_), Self::Folder(_)) => Err(wrong_side(path)),
        }
    }

    /// Opens a file.
    pub(super) fn open<'n>(&self, node: &'n Node, path: &[u8]) -> Result<OpenFile<'n>, DiskError>
    where
        'a: 'n,
    {
        match (&node.source, self) {
            (NodeSource::Host(file), _) => {
                // If a symlink or a pipe has just replaced the file, do not
                // follow it or block on it.
                let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
                let opened = fs::OpenOptions::new()
                    .read(true)
                    .custom_flags(flags.bits().cast_signed())
                    .open(file);
                let opened = opened.map_err(|error| unreadable(file, error))?;
                Ok(OpenFile::Host(opened))
            }
            (NodeSource::Disk(inode), Self::Disk { disk, .. }) => Ok(OpenFile::Disk(disk, inode)),
            (NodeSource::Disk(_), Self::Folder(_)) => Err(wrong_side(path)),
        }
    }
}

impl OpenFile<'_> {
    /// Reads until the buffer is full or the file ends.
    pub(super) fn read_at(
        &self,
        offset: u64,
        buffer: &mut [u8],
        path: &[u8],
    ) -> Result<usize, DiskError> {
        match self {
            Self::Disk(disk, inode) => disk
                .ext4
                .read(inode, offset, buffer)
                .map_err(|error| DiskError::at(path, error)),
            Self::Host(file) => read_full(file, offset, buffer).map_err(|source| DiskError::Read {
                path: shown(path),
                source,
            }),
        }
    }
}

fn read_full(file: &fs::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let rest = buffer.get_mut(done..).unwrap_or_default();
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn host_node(path: PathBuf) -> Result<Node, DiskError> {
    let metadata = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, error))?;
    let text = shown(path.as_os_str().as_bytes());
    Node::of_host(path, &metadata).ok_or(DiskError::NotFound { path: text })
}

fn host_names(folder: &Path, path: &[u8], budget: &mut Budget) -> Result<Names, DiskError> {
    let mut names = Names::default();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            names.problems.push(unreadable(folder, error));
            return Ok(names);
        }
    };
    for entry in entries {
        budget.count_entry(path)?;
        match entry {
            Ok(entry) => {
                let name = entry.file_name().into_vec();
                budget.reserve(NAME_MEMORY + name.len(), path)?;
                names.memory += NAME_MEMORY + name.len();
                names.names.push(Name { name, inode: 0 });
            }
            Err(error) => names.problems.push(unreadable(folder, error)),
        }
    }
    names
        .names
        .sort_by(|first, second| first.name.cmp(&second.name));
    Ok(names)
}

fn unreadable(path: &Path, source: io::Error) -> DiskError {
    let path = shown(path.as_os_str().as_bytes());
    match source.kind() {
        io::ErrorKind::NotFound => DiskError::NotFound { path },
        _ => DiskError::Read { path, source },
    }
}

/// Returns the error for a node of the other side, which does not happen: each
/// side creates its own nodes.
fn wrong_side(path: &[u8]) -> DiskError {
    DiskError::NotFound { path: shown(path) }
}

impl From<ext4::DirectoryEntry> for Name {
    fn from(entry: ext4::DirectoryEntry) -> Self {
        Self {
            name: entry.name,
            inode: entry.inode,
        }
    }
}
