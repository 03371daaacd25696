//! Resolves a path that contains symbolic links, one component at a time.
//!
//! The kernel resolves a path without links in one call; [`Root`](super::root)
//! uses this module only when that fails because of a link. Workers run as root,
//! so a link must not give its owner the rights of root. Hence this rule:
//!
//! **A link is followed if it belongs to root, or if what it leads to belongs
//! to the owner of the link.** What it leads to is the entry that its text
//! names, with further links resolved, each of them by the same rule.
//!
//! All of it uses descriptors: the link whose owner is checked is the link whose
//! text is read, and the entry whose owner is compared is the one that is returned
//! or entered.

use alloc::{collections::VecDeque, vec::Vec};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{
        FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, Stat, fstat, fstatfs, openat,
        openat2,
    },
    io::Errno,
    process::geteuid,
};
use vmcell_wire::limits::{MAX_DEPTH, MAX_PATH};

use super::entry::{self, has_type};

/// The reason why a path cannot be resolved.
#[derive(Debug)]
pub(crate) enum ResolveError {
    Kernel(Errno),
    /// The link with this path, from the root of the job, belongs to a user who
    /// does not own what it leads to.
    UntrustedLink(Vec<u8>),
}

impl From<Errno> for ResolveError {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

/// The directory where paths begin, and whether they may leave it.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) directory: BorrowedFd<'a>,
    /// The start is `/`: `..` stays there, and absolute links begin there. Otherwise
    /// both fail with [`Errno::XDEV`].
    pub(super) is_filesystem_root: bool,
}

/// How many links are followed on one path, as in the kernel: path_resolution(7).
pub(super) const MAX_LINKS: usize = 40;

const INSPECT: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the entry at `path`, relative to `start`, as openat2(2) would.
pub(super) fn open(
    start: Start<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, ResolveError> {
    let mut walk = PathWalk {
        start,
        ancestors: Vec::new(),
        remaining: VecDeque::new(),
        links: 0,
    };
    walk.prepend(path);
    walk.run(flags, mode)
}

/// Returns whether a link may be followed to any owner's entry.
pub(super) fn is_trusted(link: &Stat) -> bool {
    // PID 1 is root. The agent as an ordinary program may be another user.
    link.st_uid == 0 || link.st_uid == geteuid().as_raw()
}

struct PathWalk<'a> {
    start: Start<'a>,
    /// The directories below the start, the innermost last.
    ancestors: Vec<Ancestor>,
    remaining: VecDeque<Component>,
    /// How many links were followed.
    links: usize,
}

struct Ancestor {
    directory: OwnedFd,
    name: Vec<u8>,
    owner: u32,
}

/// A component of a path.
enum Component {
    /// Neither empty nor `.`.
    Name(Vec<u8>),
    /// A slash or `.` follows: the path up to here must be a directory.
    Directory,
    /// The text of a link ends here: its owner must own the entry.
    EndOfLink { path: Vec<u8>, owner: u32 },
}

impl PathWalk<'_> {
    /// Puts the components of a path before the remaining ones.
    fn prepend(&mut self, path: &[u8]) {
        let mut names = Vec::new();
        for name in path.split(|byte| *byte == b'/') {
            names.push(match name {
                b"" | b"." => Component::Directory,
                name => Component::Name(Vec::from(name)),
            });
        }
        for component in names.into_iter().rev() {
            self.remaining.push_front(component);
        }
    }

    fn run(mut self, flags: OFlags, mode: Mode) -> Result<OwnedFd, ResolveError> {
        while let Some(component) = self.remaining.pop_front() {
            let name = match component {
                Component::Name(name) => name,
                Component::Directory => continue,
                Component::EndOfLink { path, owner } => {
                    check_owner(self.owner()?, path, owner)?;
                    continue;
                }
            };
            if name == b".." {
                self.enter_parent()?;
                continue;
            }
            let found = openat(self.directory(), &*name, INSPECT, Mode::empty())?;
            let status = fstat(&found)?;
            if has_type(&status, FileType::Symlink) {
                if self.is_last() && flags.contains(OFlags::NOFOLLOW) {
                    return self.open_last(&name, found, flags, mode);
                }
                self.follow(&name, &found, &status)?;
            } else if self.is_last() {
                return self.open_last(&name, found, flags, mode);
            } else if has_type(&status, FileType::Directory) {
                self.enter(name, found, &status)?;
            } else {
                return Err(Errno::NOTDIR.into());
            }
        }
        // The last name was `.` or `..`.
        Ok(openat(self.directory(), c".", flags, mode)?)
    }

    /// Returns whether the current component is the last one, so that it need not be
    /// a directory.
    fn is_last(&self) -> bool {
        self.remaining
            .iter()
            .all(|component| matches!(component, Component::EndOfLink { .. }))
    }

    /// Opens the last component, which is not a link, or a link that is not to be
    /// followed.
    fn open_last(
        self,
        name: &[u8],
        found: OwnedFd,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, ResolveError> {
        let opened = if flags.contains(OFlags::PATH) && !flags.contains(OFlags::DIRECTORY) {
            found
        } else {
            openat(self.directory(), name, flags | OFlags::NOFOLLOW, mode)?
        };
        let owner = fstat(&opened)?.st_uid;
        for component in self.remaining {
            if let Component::EndOfLink { path, owner: of } = component {
                check_owner(owner, path, of)?;
            }
        }
        Ok(opened)
    }

    fn enter(&mut self, name: Vec<u8>, found: OwnedFd, status: &Stat) -> Result<(), Errno> {
        if self.ancestors.len() >= MAX_DEPTH {
            return Err(Errno::NAMETOOLONG);
        }
        self.ancestors.push(Ancestor {
            directory: found,
            name,
            owner: status.st_uid,
        });
        Ok(())
    }

    fn enter_parent(&mut self) -> Result<(), Errno> {
        if self.ancestors.pop().is_none() && !self.start.is_filesystem_root {
            return Err(Errno::XDEV);
        }
        Ok(())
    }

    /// Replaces a link by the components of its text.
    fn follow(&mut self, name: &[u8], link: &OwnedFd, status: &Stat) -> Result<(), Errno> {
        self.links = self.links.saturating_add(1);
        if self.links > MAX_LINKS || self.is_magic_link(name, link)? {
            return Err(Errno::LOOP);
        }
        let text = entry::link_target(link.as_fd(), c"")?;
        if text.is_empty() {
            return Err(Errno::NOENT);
        }
        if text.len() >= MAX_PATH {
            return Err(Errno::NAMETOOLONG);
        }
        if !is_trusted(status) {
            let (path, owner) = (self.path_of(name), status.st_uid);
            self.remaining
                .push_front(Component::EndOfLink { path, owner });
        }
        if text.first() == Some(&b'/') {
            if !self.start.is_filesystem_root {
                return Err(Errno::XDEV);
            }
            self.ancestors.clear();
        }
        self.prepend(&text);
        Ok(())
    }

    /// Returns whether a link leads elsewhere than its text says, as some in `/proc`
    /// do: openat2(2), `RESOLVE_NO_MAGICLINKS`.
    fn is_magic_link(&self, name: &[u8], link: &OwnedFd) -> Result<bool, Errno> {
        if fstatfs(link)?.f_type != PROC_SUPER_MAGIC {
            return Ok(false);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let followed = openat2(self.directory(), name, flags, Mode::empty(), resolve);
        Ok(matches!(followed, Err(Errno::LOOP)))
    }

    /// Returns the directory of the next component.
    fn directory(&self) -> BorrowedFd<'_> {
        match self.ancestors.last() {
            Some(ancestors) => ancestors.directory.as_fd(),
            None => self.start.directory,
        }
    }

    /// Returns the owner of that directory.
    fn owner(&self) -> Result<u32, Errno> {
        match self.ancestors.last() {
            Some(ancestors) => Ok(ancestors.owner),
            None => Ok(fstat(self.start.directory)?.st_uid),
        }
    }

    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        let mut path = Vec::new();
        for ancestors in &self.ancestors {
            path.extend_from_slice(&ancestors.name);
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }
}

fn check_owner(owner: u32, path: Vec<u8>, owner_of_link: u32) -> Result<(), ResolveError> {
    if owner == owner_of_link {
        return Ok(());
    }
    Err(ResolveError::UntrustedLink(path))
}
