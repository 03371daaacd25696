use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
    thread::sched_yield,
};
use vmcell_wire::{FailureKind, limits::MAX_PATH};

use super::{
    directory::make_directory,
    owner::NewOwner,
    resolve::{self, ResolveError, Start},
};
use crate::worker::{FileError, JobError, JobResult};

/// The directory that no path of a job can leave.
///
/// Even if processes change links and directories meanwhile, the kernel resolves a
/// path within the root or fails: openat2(2). The result is a descriptor; all later
/// work uses descriptors and single names that are not followed.
///
/// Links are followed by the rule of [`resolve`].
pub(crate) struct Root {
    directory: OwnedFd,
    links: LinkPolicy,
}

/// Where a symbolic link on a path may lead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkPolicy {
    /// Anywhere: the root is `/`.
    Anywhere,
    /// To entries below the root.
    Beneath,
}

/// The location of an entry, which need not exist: a directory, and a name in it.
pub(crate) struct EntryLocation<'a> {
    pub(crate) directory: OwnedFd,
    /// One name, neither `.` nor `..`.
    pub(crate) name: &'a [u8],
}

/// The flags for a directory that is not read.
pub(crate) const SEARCH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How often a path is resolved before it fails: the kernel returns `EAGAIN` for a
/// path with `..` while anything is renamed.
const MAX_ATTEMPTS: u32 = 128;

/// The permissions of parent directories that are created.
const PARENT_MODE: u32 = 0o755;

impl Root {
    pub(crate) fn open(root: &[u8]) -> JobResult<Self> {
        if root.first() != Some(&b'/') || root.contains(&0) || root.len() >= MAX_PATH {
            return Err(invalid("the root is not an absolute path"));
        }
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let directory =
            openat2(rustix::fs::CWD, root, SEARCH, Mode::empty(), resolve).map_err(|errno| {
                match errno {
                    Errno::LOOP => FileError::new(
                        FailureKind::Denied,
                        "the root is or goes through a symbolic link: name the real directory",
                    ),
                    errno => FileError::errno(errno, "opening the root"),
                }
            })?;
        // Nothing is outside of `/`, so links are followed as in any process.
        let links = if root.iter().all(|byte| *byte == b'/') {
            LinkPolicy::Anywhere
        } else {
            LinkPolicy::Beneath
        };
        Ok(Self { directory, links })
    }

    /// Opens the entry at `path`. The caller handles the error.
    pub(crate) fn resolve(
        &self,
        path: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, ResolveError> {
        if path.len() >= MAX_PATH {
            return Err(Errno::NAMETOOLONG.into());
        }
        let path = match without_leading_slashes(path) {
            b"" => b".",
            path => path,
        };
        let flags = flags | OFlags::CLOEXEC;
        // Most paths have no link, and the kernel resolves them in one call.
        match self.resolve_without_links(path, flags, mode) {
            Err(Errno::LOOP) => {
                let start = Start {
                    directory: self.directory.as_fd(),
                    is_filesystem_root: self.links == LinkPolicy::Anywhere,
                };
                resolve::open(start, path, flags, mode)
            }
            outcome => Ok(outcome?),
        }
    }

    /// Opens the entry at `path`.
    pub(crate) fn open_path(&self, path: &[u8], flags: OFlags, mode: Mode) -> JobResult<OwnedFd> {
        self.resolve(path, flags, mode).map_err(resolve_error)
    }

    /// Returns a directory below as a root of its own, which no link leaves.
    pub(crate) fn subdirectory(&self, path: &[u8]) -> JobResult<Self> {
        let is_root_itself = without_leading_slashes(path).is_empty();
        Ok(Self {
            directory: self.open_path(path, SEARCH, Mode::empty())?,
            links: if is_root_itself {
                self.links
            } else {
                LinkPolicy::Beneath
            },
        })
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the location of the entry at `path`, whether it exists or not. A link
    /// at the end is not followed.
    pub(crate) fn locate<'a>(&self, path: &'a [u8]) -> JobResult<EntryLocation<'a>> {
        let (above, name) = split(path)?;
        let directory = self.open_path(above, SEARCH, Mode::empty())?;
        Ok(EntryLocation { directory, name })
    }

    /// Like [`locate`](Self::locate), and creates missing parent directories.
    pub(crate) fn locate_creating_parents<'a>(
        &self,
        path: &'a [u8],
        owner: &NewOwner,
    ) -> JobResult<EntryLocation<'a>> {
        let (above, name) = split(path)?;
        let directory = self.make_directories(above, owner)?;
        Ok(EntryLocation { directory, name })
    }

    /// Opens a directory, and creates it and its parents if they are missing.
    pub(crate) fn make_directories(&self, path: &[u8], owner: &NewOwner) -> JobResult<OwnedFd> {
        self.make_directories_with(path, owner, &mut |_| {})
    }

    /// Like [`make_directories`](Self::make_directories), and calls `on_created` with
    /// the path of each new directory.
    pub(crate) fn make_directories_with(
        &self,
        path: &[u8],
        owner: &NewOwner,
        on_created: &mut dyn FnMut(&[u8]),
    ) -> JobResult<OwnedFd> {
        match self.resolve(path, SEARCH, Mode::empty()) {
            Err(ResolveError::Kernel(Errno::NOENT)) => {}
            found => return found.map_err(resolve_error),
        }
        let mut above = self.open_path(b"", SEARCH, Mode::empty())?;
        for (prefix, name) in prefixes(path) {
            above = match self.resolve(prefix, SEARCH, Mode::empty()) {
                Err(ResolveError::Kernel(Errno::NOENT)) => {
                    if make_directory(above.as_fd(), name, PARENT_MODE, owner)? {
                        on_created(prefix);
                    }
                    self.open_path(prefix, SEARCH, Mode::empty())?
                }
                found => found.map_err(resolve_error)?,
            };
        }
        Ok(above)
    }

    /// Fails unless the root is `/`: an absolute link leads out of any other root.
    pub(crate) fn allows_absolute_links(&self) -> JobResult<()> {
        if self.links == LinkPolicy::Anywhere {
            Ok(())
        } else {
            Err(resolve_error(Errno::XDEV))
        }
    }

    fn resolve_without_links(
        &self,
        path: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        let confined = match self.links {
            LinkPolicy::Anywhere => ResolveFlags::IN_ROOT,
            LinkPolicy::Beneath => ResolveFlags::BENEATH,
        };
        let resolve = confined | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        for _ in 1..MAX_ATTEMPTS {
            match openat2(&self.directory, path, flags, mode, resolve) {
                Err(Errno::AGAIN | Errno::INTR) => sched_yield(),
                outcome => return outcome,
            }
        }
        openat2(&self.directory, path, flags, mode, resolve)
    }
}

/// Converts the reason why a path cannot be resolved to a failure with a text.
#[cold]
pub(crate) fn resolve_error(reason: impl Into<ResolveError>) -> JobError {
    let errno = match reason.into() {
        ResolveError::Kernel(errno) => errno,
        ResolveError::UntrustedLink(path) => {
            let text = "a symbolic link of another user is on the way: \
                        name what it leads to instead";
            return FileError::new(FailureKind::Denied, text)
                .with_path(&path)
                .into();
        }
    };
    let failure = match errno {
        Errno::XDEV => FileError::new(FailureKind::Denied, "the path leaves its root"),
        Errno::INVAL => FileError::new(FailureKind::Invalid, "the path is not valid"),
        Errno::AGAIN => FileError::errno(errno, "directories on the path are renamed all the time"),
        Errno::LOOP => FileError::errno(errno, "a symbolic link on the way cannot be followed"),
        errno => FileError::errno(errno, "opening it"),
    };
    failure.into()
}

/// Splits a path into its parent and its last name.
pub(crate) fn split(path: &[u8]) -> JobResult<(&[u8], &[u8])> {
    let mut path = path;
    while let Some(shorter) = path.strip_suffix(b"/") {
        path = shorter;
    }
    let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => path.split_at_checked(slash).unwrap_or_default(),
        None => (&[][..], path),
    };
    let name = without_leading_slashes(name);
    if matches!(name, b"" | b"." | b"..") {
        return Err(invalid("the path does not end with a name"));
    }
    if name.contains(&0) {
        return Err(invalid("the path contains a zero byte"));
    }
    Ok((above, name))
}

/// Returns the prefixes of a path, each with its last name.
fn prefixes(path: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut end = 0usize;
    path.split(|byte| *byte == b'/').filter_map(move |name| {
        let name_end = end.saturating_add(name.len());
        end = name_end.saturating_add(1);
        (!name.is_empty()).then_some((path.get(..name_end)?, name))
    })
}

fn without_leading_slashes(mut path: &[u8]) -> &[u8] {
    while let Some(shorter) = path.strip_prefix(b"/") {
        path = shorter;
    }
    path
}

#[cold]
fn invalid(text: &'static str) -> JobError {
    FileError::new(FailureKind::Invalid, text).into()
}
