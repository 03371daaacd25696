use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat},
    io::Errno,
};
use vmcell_wire::FailureKind;

use super::{
    descent::open_entry,
    entry,
    link_walk::{MAX_LINKS, Unresolved, is_trusted},
    owner::NewOwner,
    root::{Root, split, unresolved},
};
use crate::worker::{FileError, JobError};

/// Where the entry is, or would be, that a path leads to when links at its end
/// are followed.
pub(crate) struct Target {
    pub(crate) directory: OwnedFd,
    /// One name in it, with no link behind it.
    pub(crate) name: Vec<u8>,
    /// What is there now.
    pub(crate) status: Option<Stat>,
}

impl Target {
    /// Follows `path`; directories that are not there are made. Links are
    /// followed by the rule of [`link_walk`](super::link_walk); one at the end of the path leads
    /// to the file that is there, or else to the directory it would be in.
    pub(crate) fn find(root: &Root, path: &[u8], owner: &NewOwner) -> Result<Self, JobError> {
        let mut path = Vec::from(path);
        // Links of users, each with its owner, whom the target must belong to.
        let mut links: Vec<(Vec<u8>, u32)> = Vec::new();
        for _ in 0..MAX_LINKS {
            let (above, _) = split(&path)?;
            let place = if links.is_empty() {
                root.make_place(&path, owner)?
            } else {
                // Nothing is made where a user's link leads.
                root.place(&path)?
            };
            let status = match status_of(&place.directory, place.name) {
                Err(Errno::NOENT) => None,
                status => Some(status.map_err(unresolved)?),
            };
            if !status.is_some_and(|status| is(&status, FileType::Symlink)) {
                let target = Self {
                    name: Vec::from(place.name),
                    directory: place.directory,
                    status,
                };
                target.must_belong_to(links)?;
                return Ok(target);
            }
            let (link, status) = match read_link(place.directory.as_fd(), place.name) {
                // It was replaced just now.
                Err(Errno::INVAL | Errno::NOENT) => continue,
                link => link.map_err(unresolved)?,
            };
            if !is_trusted(&status) {
                links.push((path.clone(), status.st_uid));
            }
            // The root decides whether such a path leaves it.
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
        Err(unresolved(Errno::LOOP))
    }

    /// Fails unless the owners of these links own it, or, if it is not there,
    /// the directory that it would be in.
    fn must_belong_to(&self, links: Vec<(Vec<u8>, u32)>) -> Result<(), JobError> {
        for (path, owner) in links {
            let status = match self.status {
                Some(status) => status,
                None => fstat(&self.directory).map_err(unresolved)?,
            };
            if status.st_uid != owner {
                return Err(unresolved(Unresolved::LinkOfOther(path)));
            }
        }
        Ok(())
    }

    /// Refuses what is there if it is not a regular file.
    pub(crate) fn must_be_file(&self) -> Result<(), JobError> {
        self.status.as_ref().map_or(Ok(()), must_be_file)
    }

    /// Opens the file that is there.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, JobError> {
        let flags = flags | OFlags::NOFOLLOW | HARMLESS;
        let file =
            openat(&self.directory, &*self.name, flags, Mode::empty()).map_err(unresolved)?;
        checked(file).map(|(file, _)| file)
    }

    /// Whether the same file is still there, unchanged.
    pub(crate) fn is_still(&self, known: &Stat) -> bool {
        status_of(&self.directory, &self.name).is_ok_and(|now| {
            (now.st_dev, now.st_ino, now.st_size) == (known.st_dev, known.st_ino, known.st_size)
                && (now.st_mtime, now.st_mtime_nsec) == (known.st_mtime, known.st_mtime_nsec)
                && (now.st_ctime, now.st_ctime_nsec) == (known.st_ctime, known.st_ctime_nsec)
        })
    }
}

/// A pipe or a device must not hold us up, or become our terminal.
pub(crate) const HARMLESS: OFlags = OFlags::NONBLOCK
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens the regular file that `path` leads to.
pub(crate) fn open_file(
    root: &Root,
    path: &[u8],
    flags: OFlags,
) -> Result<(OwnedFd, Stat), JobError> {
    // To open some devices is to do something with them, so it is looked at
    // first.
    let found = root.open_path(path, OFlags::PATH, Mode::empty())?;
    checked(found)?;
    checked(root.open_path(path, flags | HARMLESS, Mode::empty())?)
}

/// The text of a link, and the link's own status.
fn read_link(directory: BorrowedFd<'_>, name: &[u8]) -> Result<(Vec<u8>, Stat), Errno> {
    let link = open_entry(directory, name)?;
    let text = entry::target(link.as_fd(), c"")?;
    Ok((text, fstat(&link)?))
}

/// What a name stands for; a link stands for itself.
pub(crate) fn status_of(directory: impl AsFd, name: &[u8]) -> Result<Stat, Errno> {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn is(status: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(status.st_mode) == kind
}

fn checked(file: OwnedFd) -> Result<(OwnedFd, Stat), JobError> {
    let status = fstat(&file).map_err(unresolved)?;
    must_be_file(&status)?;
    Ok((file, status))
}

fn must_be_file(status: &Stat) -> Result<(), JobError> {
    let text = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "it is a directory",
        _ => "it is not a regular file",
    };
    Err(FileError::new(FailureKind::Invalid, text).into())
}
