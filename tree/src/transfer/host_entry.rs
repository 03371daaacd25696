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

use super::{TreeError, error::shown_below};

/// One name in an open directory of the host: where something that comes from
/// a guest is written.
///
/// This is the only way from a path that a caller names to a place that is
/// written. No component of the path may be a symbolic link that an export can
/// have made, neither the last one nor one above it: an earlier export may have
/// brought the link, and then a guest would choose where this one goes. Above
/// the last name, links in the root directory (`/home`, `/tmp`) are followed. The
/// root and the working directory are taken as they are, and `..` is the
/// directory above. Who wants to go through a link of their own names the path
/// that it leads to.
#[derive(Debug)]
pub(super) struct HostEntry {
    directory: OwnedFd,
    /// A single name. `.` if the path names no entry of a directory, as `..`
    /// and `/` do.
    name: Vec<u8>,
    /// The path, for errors.
    path: PathBuf,
}

impl HostEntry {
    /// Opens the directory that the last name of a path is in. Directories that
    /// are missing are made.
    ///
    /// # Errors
    /// [`TreeError::ThroughSymlink`] and [`TreeError::NotADirectory`] if a
    /// component above the last name is not a directory.
    pub(super) fn open(path: &Path) -> Result<Self, TreeError> {
        let failed = |path: &Path, errno| TreeError::write(shown_below(path, b""), errno);
        let (above, name) = match (path.parent(), path.file_name()) {
            (Some(above), Some(name)) => (above, name),
            _ if path.as_os_str().is_empty() => return Err(failed(path, Errno::NOENT)),
            _ => (path, OsStr::new(".")),
        };
        let open_start = |path: &Path| {
            let start = if path.is_absolute() { "/" } else { "." };
            openat(CWD, start, DIRECTORY, Mode::empty())
                .map_err(|errno| failed(Path::new(start), errno))
        };
        let mut directory = open_start(path)?;
        let mut walked = PathBuf::new();
        // What is left of the path, the next component last.
        let mut ahead: Vec<OsString> = names_backwards(above);
        let mut links_left = MAX_LINKS;
        if path.is_absolute() {
            walked.push("/");
        }
        while let Some(name) = ahead.pop() {
            match enter(directory.as_fd(), &name) {
                Ok(next) => {
                    directory = next;
                    walked.push(name);
                }
                Err(errno) => {
                    let target = system_link(directory.as_fd(), &name).filter(|_| links_left > 0);
                    let Some(target) = target else {
                        let found = kind(directory.as_fd(), name.as_bytes());
                        walked.push(name);
                        return Err(
                            refusal(found, &walked).unwrap_or_else(|| failed(&walked, errno))
                        );
                    };
                    links_left -= 1;
                    if target.is_absolute() {
                        directory = open_start(&target)?;
                        walked = PathBuf::from("/");
                    }
                    ahead.extend(names_backwards(&target));
                }
            }
        }
        Ok(Self {
            directory,
            name: name.as_bytes().to_vec(),
            path: path.to_owned(),
        })
    }

    /// Opens the directory that has the name, and makes it if nothing has. Also
    /// returns whether it was made.
    ///
    /// # Errors
    /// [`TreeError::ThroughSymlink`] and [`TreeError::NotADirectory`] if
    /// something else has the name.
    pub(super) fn enter(&self, mode: Mode) -> Result<(OwnedFd, bool), TreeError> {
        let is_made = match mkdirat(&self.directory, &self.name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(self.failed(errno)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(directory) => Ok((directory, is_made)),
            Err(errno) => {
                let found = kind(self.directory.as_fd(), &self.name);
                Err(refusal(found, &self.path).unwrap_or_else(|| self.failed(errno)))
            }
        }
    }

    /// Checks that a file or a symbolic link may get the name. A directory is
    /// not replaced; a symbolic link only by another one, since it may be the
    /// caller's own.
    ///
    /// # Errors
    /// [`TreeError::ThroughSymlink`], [`TreeError::InTheWay`].
    pub(super) fn check_replaceable(&self, coming: FileType) -> Result<(), TreeError> {
        let path = || shown_below(&self.path, b"");
        match kind(self.directory.as_fd(), &self.name) {
            Some(FileType::Directory) => Err(TreeError::InTheWay { path: path() }),
            Some(FileType::Symlink) if coming != FileType::Symlink => {
                Err(TreeError::ThroughSymlink { path: path() })
            }
            _ => Ok(()),
        }
    }

    /// The directory and the name in it.
    pub(super) fn into_parts(self) -> (OwnedFd, Vec<u8>) {
        (self.directory, self.name)
    }

    fn failed(&self, errno: Errno) -> TreeError {
        TreeError::write(shown_below(&self.path, b""), errno)
    }
}

const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// As many as the kernel follows: path_resolution(7).
const MAX_LINKS: usize = 40;

/// The names of a path that lead from directory to directory, the last one first.
fn names_backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|component| {
        let is_name = matches!(component, Component::Normal(_) | Component::ParentDir);
        is_name.then(|| component.as_os_str().to_owned())
    });
    names.collect()
}

/// Where a symbolic link of the root directory leads. Whoever has exported a
/// guest's tree onto `/` itself has no system left to protect.
fn system_link(directory: BorrowedFd<'_>, name: &OsStr) -> Option<PathBuf> {
    let (root, here) = (stat("/").ok()?, fstat(directory).ok()?);
    if (root.st_dev, root.st_ino) != (here.st_dev, here.st_ino) {
        return None;
    }
    let target = readlinkat(directory, name, Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

fn enter(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    match openat(directory, name, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    match mkdirat(directory, name, Mode::from_raw_mode(0o777)) {
        // Whatever somebody else has just made is looked at next.
        Ok(()) | Err(Errno::EXIST) => openat(directory, name, DIRECTORY, Mode::empty()),
        Err(errno) => Err(errno),
    }
}

/// What has a name, if anything has.
fn kind(directory: BorrowedFd<'_>, name: &[u8]) -> Option<FileType> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Why something cannot be entered. None: it is a directory, or not there.
fn refusal(found: Option<FileType>, path: &Path) -> Option<TreeError> {
    let path = shown_below(path, b"");
    match found? {
        FileType::Directory => None,
        FileType::Symlink => Some(TreeError::ThroughSymlink { path }),
        _ => Some(TreeError::NotADirectory { path }),
    }
}
