//! Where children live: a cgroup each, so that a whole tree of processes can
//! be ended at once and be proved to be gone. See cgroups(7), version 2.

use alloc::{collections::VecDeque, format, string::String};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, CWD, Mode, OFlags},
    io::Errno,
};

/// A cgroup of one process and its descendants.
pub(crate) struct Cgroup {
    name: String,
    directory: OwnedFd,
    events: OwnedFd,
    kill: OwnedFd,
}

impl Cgroup {
    fn create(parent: &OwnedFd, name: String) -> Result<Self, Errno> {
        rustix::fs::mkdirat(parent, name.as_str(), Mode::from_raw_mode(0o755))?;
        let open = |at: BorrowedFd<'_>, path: &str, flags| {
            rustix::fs::openat(at, path, flags | OFlags::CLOEXEC, Mode::empty())
        };
        let directory = open(parent.as_fd(), &name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let events = open(directory.as_fd(), "cgroup.events", OFlags::RDONLY)?;
        let kill = open(directory.as_fd(), "cgroup.kill", OFlags::WRONLY)?;
        Ok(Self {
            name,
            directory,
            events,
            kill,
        })
    }

    /// Ends every process in it, descendants included, with SIGKILL.
    pub(crate) fn kill(&self) -> Result<(), Errno> {
        rustix::io::pwrite(&self.kill, b"1", 0).map(|_| ())
    }

    /// Whether no living process is in it.
    pub(crate) fn is_empty(&self) -> bool {
        let mut text = [0; 128];
        let count = rustix::io::pread(&self.events, &mut text, 0).unwrap_or(0);
        let text = text.get(..count).unwrap_or_default();
        text.split(|byte| *byte == b'\n')
            .any(|line| line == b"populated 0")
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// All cgroups of children.
///
/// Making one takes longer than starting a small program, so empty ones are
/// used again, and the next one is made while nobody waits for it.
pub(crate) struct Cgroups {
    parent: OwnedFd,
    made: u64,
    spare: VecDeque<Cgroup>,
    /// Their process was reported, but descendants of it live on.
    lingering: VecDeque<Cgroup>,
}

/// How many unused cgroups are kept.
const MAX_SPARE: usize = 4;

impl Cgroups {
    /// Makes children's cgroups in the directory `path`, which is created.
    pub(crate) fn new(path: &str) -> Result<Self, Errno> {
        match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            parent: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            made: 0,
            spare: VecDeque::new(),
            lingering: VecDeque::new(),
        })
    }

    /// An empty cgroup for a new process.
    pub(crate) fn take(&mut self) -> Result<Cgroup, Errno> {
        match self.spare.pop_front() {
            Some(cgroup) => Ok(cgroup),
            None => self.make(),
        }
    }

    /// Takes back the cgroup of a process that has been reported.
    pub(crate) fn give_back(&mut self, cgroup: Cgroup, is_empty: bool) {
        if !is_empty {
            self.lingering.push_back(cgroup);
        } else if self.spare.len() < MAX_SPARE {
            self.spare.push_back(cgroup);
        } else {
            // It stays behind if somebody moved in since; nothing is lost.
            let _ = rustix::fs::unlinkat(&self.parent, cgroup.name.as_str(), AtFlags::REMOVEDIR);
        }
    }

    /// Some process ended: looks whether it was the last of its cgroup.
    pub(crate) fn sweep(&mut self) {
        for _ in 0..self.lingering.len() {
            if let Some(cgroup) = self.lingering.pop_front() {
                let is_empty = cgroup.is_empty();
                self.give_back(cgroup, is_empty);
            }
        }
    }

    /// Has one ready for the next process. For quiet moments.
    pub(crate) fn prepare_spare(&mut self) {
        if self.spare.is_empty()
            && let Ok(cgroup) = self.make()
        {
            self.spare.push_back(cgroup);
        }
    }

    fn make(&mut self) -> Result<Cgroup, Errno> {
        self.made = self.made.saturating_add(1);
        Cgroup::create(&self.parent, format!("{}", self.made))
    }
}
