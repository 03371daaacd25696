use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat, stat, statat},
    io::Errno,
};

use super::{
    TreeError,
    error::display_path_below,
    platform::{file_id, open_search},
};

/// A name in an open directory of the host, at which something from a guest
/// will be written.
///
/// Every write to a path that a caller chose goes through this type. No
/// component of the path, including the last one, may be a symbolic link that
/// an export can have created: an earlier export may have brought the link, and
/// then a guest would choose where this one goes. Above the last name, links in
/// the root directory (`/home`, `/tmp`) are followed. The root and the working
/// directory are not checked, and `..` is the parent directory. To write
/// through a link of their own, callers pass the path that it leads to.
#[derive(Debug)]
pub(super) struct HostEntry {
    directory: OwnedFd,
    /// A single name, or `.` if the path has no last name, like `..` and `/`.
    name: Vec<u8>,
    /// The path, for errors.
    path: PathBuf,
}

impl HostEntry {
    /// Opens the parent directory of a path. Creates missing directories.
    ///
    /// # Errors
    /// [`TreeError::ThroughSymlink`] and [`TreeError::NotADirectory`] if a
    /// component above the last name is not a directory.
    pub(super) fn open(path: &Path) -> Result<Self, TreeError> {
        let write_error =
            |path: &Path, errno| TreeError::write(display_path_below(path, b""), errno);
        let (above, name) = match (path.parent(), path.file_name()) {
            (Some(above), Some(name)) => (above, name),
            _ if path.as_os_str().is_empty() => return Err(write_error(path, Errno::NOENT)),
            _ => (path, OsStr::new(".")),
        };
        let open_start = |path: &Path| {
            let start = if path.is_absolute() { "/" } else { "." };
            let opened = open_search(CWD, start.as_bytes());
            opened.map_err(|errno| write_error(Path::new(start), errno))
        };
        let mut directory = open_start(path)?;
        let mut walked = PathBuf::new();
        // The rest of the path, with the next component last.
        let mut remaining: Vec<OsString> = reversed_components(above);
        let mut symlinks_left = MAX_SYMLINKS;
        if path.is_absolute() {
            walked.push("/");
        }
        while let Some(name) = remaining.pop() {
            match open_or_create(directory.as_fd(), &name) {
                Ok(next) => {
                    directory = next;
                    walked.push(name);
                }
                Err(errno) => {
                    let target =
                        root_symlink_target(directory.as_fd(), &name).filter(|_| symlinks_left > 0);
                    let Some(target) = target else {
                        let found = file_type(directory.as_fd(), name.as_bytes());
                        walked.push(name);
                        return Err(entry_error(found, &walked)
                            .unwrap_or_else(|| write_error(&walked, errno)));
                    };
                    symlinks_left -= 1;
                    if target.is_absolute() {
                        directory = open_start(&target)?;
                        walked = PathBuf::from("/");
                    }
                    remaining.extend(reversed_components(&target));
                }
            }
        }
        Ok(Self {
            directory,
            name: name.as_bytes().to_vec(),
            path: path.to_owned(),
        })
    }

    /// Opens the directory with this name, or creates it. Also returns whether
    /// it was created.
    ///
    /// # Errors
    /// [`TreeError::ThroughSymlink`] and [`TreeError::NotADirectory`] if
    /// something else has the name.
    pub(super) fn open_directory(&self, mode: Mode) -> Result<(OwnedFd, bool), TreeError> {
        let is_created = match mkdirat(&self.directory, &self.name, mode) {
            Ok(()) => true,
            // Some systems have another error for `.`.
            Err(Errno::EXIST | Errno::ISDIR) => false,
            Err(errno) => return Err(self.write_error(errno)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(directory) => Ok((directory, is_created)),
            Err(errno) => {
                let found = file_type(self.directory.as_fd(), &self.name);
                Err(entry_error(found, &self.path).unwrap_or_else(|| self.write_error(errno)))
            }
        }
    }

    /// Checks that a file or a symbolic link may be created with this name. It
    /// never replaces a directory, and replaces a symbolic link only with
    /// another one, since the link may be the caller's own.
    ///
    /// # Errors
    /// [`TreeError::ThroughSymlink`], [`TreeError::DirectoryInTheWay`].
    pub(super) fn check_replaceable(&self, incoming: FileType) -> Result<(), TreeError> {
        let path = || display_path_below(&self.path, b"");
        match file_type(self.directory.as_fd(), &self.name) {
            Some(FileType::Directory) => Err(TreeError::DirectoryInTheWay { path: path() }),
            Some(FileType::Symlink) if incoming != FileType::Symlink => {
                Err(TreeError::ThroughSymlink { path: path() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the directory and the name in it.
    pub(super) fn into_parts(self) -> (OwnedFd, Vec<u8>) {
        (self.directory, self.name)
    }

    fn write_error(&self, errno: Errno) -> TreeError {
        TreeError::write(display_path_below(&self.path, b""), errno)
    }
}

/// The number of links that the kernel follows: path_resolution(7).
const MAX_SYMLINKS: usize = 40;

/// Returns the names and `..` components of a path, the last one first.
fn reversed_components(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|component| {
        let is_name = matches!(component, Component::Normal(_) | Component::ParentDir);
        is_name.then(|| component.as_os_str().to_owned())
    });
    names.collect()
}

/// Returns the target of a symbolic link in the root directory. Such links are
/// trusted: an export onto `/` itself would have replaced the system anyway.
fn root_symlink_target(directory: BorrowedFd<'_>, name: &OsStr) -> Option<PathBuf> {
    let (root, here) = (stat("/").ok()?, fstat(directory).ok()?);
    if file_id(&root) != file_id(&here) {
        return None;
    }
    let target = readlinkat(directory, name, Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

fn open_or_create(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let open = || open_search(directory, name.as_bytes());
    match open() {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    match mkdirat(directory, name, Mode::from_raw_mode(0o777)) {
        // If another process has just created it, the open shows what it is.
        Ok(()) | Err(Errno::EXIST) => open(),
        Err(errno) => Err(errno),
    }
}

/// Returns the type of the entry with this name, if there is one.
fn file_type(directory: BorrowedFd<'_>, name: &[u8]) -> Option<FileType> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Returns the error for an entry that is not a directory, or `None` if it is
/// one or does not exist.
fn entry_error(found: Option<FileType>, path: &Path) -> Option<TreeError> {
    let path = display_path_below(path, b"");
    match found? {
        FileType::Directory => None,
        FileType::Symlink => Some(TreeError::ThroughSymlink { path }),
        _ => Some(TreeError::NotADirectory { path }),
    }
}
