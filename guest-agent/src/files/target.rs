use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{FileType, Mode, OFlags, Stat, fstat, openat},
    io::Errno,
};
use vmcell_wire::FailureKind;

use super::{
    directory_stack::open_entry,
    entry::{self, has_type, status_of},
    owner::NewOwner,
    resolve::{MAX_LINKS, ResolveError, is_trusted},
    root::{Root, resolve_error, split},
};
use crate::worker::{FileError, JobResult};

/// The location of the entry at a path, after following links at its end. The entry
/// need not exist.
pub(crate) struct Target {
    pub(crate) directory: OwnedFd,
    /// A name in the directory. It is not a link.
    pub(crate) name: Vec<u8>,
    /// The status of the entry, if it exists.
    pub(crate) status: Option<Stat>,
}

impl Target {
    /// Resolves `path`, and creates missing directories. Links are followed by the
    /// rule of [`resolve`](super::resolve). For a link at the end of the path to a
    /// missing file, the rule applies to the directory that it would be in.
    pub(crate) fn find(root: &Root, path: &[u8], owner: &NewOwner) -> JobResult<Self> {
        let mut path = Vec::from(path);
        // Links of users, each with its owner, who must own the target.
        let mut links: Vec<(Vec<u8>, u32)> = Vec::new();
        for _ in 0..MAX_LINKS {
            let (above, _) = split(&path)?;
            let location = if links.is_empty() {
                root.locate_creating_parents(&path, owner)?
            } else {
                // No directory is created where a user's link leads.
                root.locate(&path)?
            };
            let status = match status_of(&location.directory, location.name) {
                Err(Errno::NOENT) => None,
                status => Some(status.map_err(resolve_error)?),
            };
            if !status.is_some_and(|status| has_type(&status, FileType::Symlink)) {
                let target = Self {
                    name: Vec::from(location.name),
                    directory: location.directory,
                    status,
                };
                target.check_link_owners(links)?;
                return Ok(target);
            }
            let (link, status) = match read_link(location.directory.as_fd(), location.name) {
                // The link was replaced just now.
                Err(Errno::INVAL | Errno::NOENT) => continue,
                link => link.map_err(resolve_error)?,
            };
            if !is_trusted(&status) {
                links.push((path.clone(), status.st_uid));
            }
            // The root rejects the path if that leaves it.
            let mut next = Vec::new();
            if link.first() == Some(&b'/') {
                root.allows_absolute_links()?;
            } else {
                next.extend_from_slice(above);
                next.push(b'/');
            }
            next.extend_from_slice(&link);
            path = next;
        }
        Err(resolve_error(Errno::LOOP))
    }

    /// Fails unless the owners of these links own the entry, or, if it does not
    /// exist, the directory that it would be in.
    fn check_link_owners(&self, links: Vec<(Vec<u8>, u32)>) -> JobResult<()> {
        for (path, owner) in links {
            let status = match self.status {
                Some(status) => status,
                None => fstat(&self.directory).map_err(resolve_error)?,
            };
            if status.st_uid != owner {
                return Err(resolve_error(ResolveError::UntrustedLink(path)));
            }
        }
        Ok(())
    }

    /// Fails if the entry exists and is not a regular file.
    pub(crate) fn must_be_file(&self) -> JobResult<()> {
        self.status.as_ref().map_or(Ok(()), must_be_file)
    }

    /// Opens the existing file.
    pub(crate) fn open(&self, flags: OFlags) -> JobResult<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | NO_SIDE_EFFECTS;
        let file =
            openat(&self.directory, &*self.name, flags, Mode::empty()).map_err(resolve_error)?;
        require_file(file).map(|(file, _)| file)
    }

    /// Returns whether the same file is still there, unchanged.
    pub(crate) fn is_unchanged(&self, known: &Stat) -> bool {
        status_of(&self.directory, &self.name).is_ok_and(|now| {
            (now.st_dev, now.st_ino, now.st_size) == (known.st_dev, known.st_ino, known.st_size)
                && (now.st_mtime, now.st_mtime_nsec) == (known.st_mtime, known.st_mtime_nsec)
                && (now.st_ctime, now.st_ctime_nsec) == (known.st_ctime, known.st_ctime_nsec)
        })
    }
}

/// Flags that keep a pipe or a device from blocking or becoming the terminal.
pub(crate) const NO_SIDE_EFFECTS: OFlags = OFlags::NONBLOCK
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens the regular file at `path`.
pub(crate) fn open_file(root: &Root, path: &[u8], flags: OFlags) -> JobResult<(OwnedFd, Stat)> {
    // Opening some devices has side effects, so the type is checked first.
    let found = root.open_path(path, OFlags::PATH, Mode::empty())?;
    require_file(found)?;
    require_file(root.open_path(path, flags | NO_SIDE_EFFECTS, Mode::empty())?)
}

/// Returns the text of a link and the link's own status.
fn read_link(directory: BorrowedFd<'_>, name: &[u8]) -> Result<(Vec<u8>, Stat), Errno> {
    let link = open_entry(directory, name)?;
    let text = entry::link_target(link.as_fd(), c"")?;
    Ok((text, fstat(&link)?))
}

fn require_file(file: OwnedFd) -> JobResult<(OwnedFd, Stat)> {
    let status = fstat(&file).map_err(resolve_error)?;
    must_be_file(&status)?;
    Ok((file, status))
}

fn must_be_file(status: &Stat) -> JobResult<()> {
    let text = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "it is a directory",
        _ => "it is not a regular file",
    };
    Err(FileError::new(FailureKind::Invalid, text).into())
}
