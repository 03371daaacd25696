//! Where children live: a cgroup each, so that a whole tree of processes can
//! be ended at once and be proved to be gone. See cgroups(7), version 2.
//!
//! ```text
//!  /sys/fs/cgroup            the agent, and nobody else
//!    └─ vmcell               cpu.weight, pids.max: all children together
//!         ├─ 1               one process and its descendants
//!         └─ 2
//! ```
//!
//! The kernel never chooses PID 1 when memory runs out, so the agent needs no
//! protection from that.
//!
//! Memory is only counted from the first process on that has a memory limit.
//! Counting every page makes starting a program a fifth slower, and moving bytes
//! through a pipe a third, for everybody.

mod limits;
mod pool;

use alloc::string::String;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};

pub(crate) use pool::Cgroups;

/// A cgroup of one process and its descendants.
pub(crate) struct Cgroup {
    name: String,
    directory: OwnedFd,
    events: OwnedFd,
    kill: OwnedFd,
    /// Of one with a memory limit.
    memory_events: Option<OwnedFd>,
    /// Nobody else can use it: it has limits of its own, or was killed.
    spent: bool,
}

impl Cgroup {
    fn create(parent: &OwnedFd, name: String) -> Result<Self, Errno> {
        rustix::fs::mkdirat(parent, name.as_str(), Mode::from_raw_mode(0o755))?;
        let directory = open(parent, &name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let events = open(&directory, "cgroup.events", OFlags::RDONLY)?;
        let kill = open(&directory, "cgroup.kill", OFlags::WRONLY)?;
        Ok(Self {
            name,
            directory,
            events,
            kill,
            memory_events: None,
            spent: false,
        })
    }

    fn remove(&self, parent: &OwnedFd) {
        // It stays behind if somebody moved in since; nothing is lost.
        let _ = rustix::fs::unlinkat(parent, self.name.as_str(), AtFlags::REMOVEDIR);
    }

    /// Ends every process in it, descendants included, with SIGKILL.
    ///
    /// It cannot be used for another process: the kernel (6.1.190 does) tells a
    /// child that slips through a kill by the number of kills, which it takes
    /// from the parent's cgroup before and from the child's after the clone.
    /// With `CLONE_INTO_CGROUP` these are two cgroups, and a child that is put
    /// into one that was killed before dies at once.
    pub(crate) fn kill(&mut self) -> Result<(), Errno> {
        self.spent = true;
        rustix::io::pwrite(&self.kill, b"1", 0).map(|_| ())
    }

    /// Whether no living process is in it.
    pub(crate) fn is_empty(&self) -> bool {
        number_in(&self.events, b"populated ") == Some(0)
    }

    /// How many processes in it were ended because they needed more memory than
    /// it may have. None: it may have all there is.
    pub(crate) fn oom_kills(&self) -> Option<u32> {
        let events = self.memory_events.as_ref()?;
        let number = |name| number_in(events, name).unwrap_or(0);
        // The kernel counts the process that it chose twice when it ends all
        // processes of a cgroup.
        Some(number(b"oom_kill ").saturating_sub(number(b"oom_group_kill ")))
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

fn open(at: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, path, flags | OFlags::CLOEXEC, Mode::empty())
}

/// Writes a file of a cgroup.
fn write(at: &OwnedFd, path: &str, text: &str) -> Result<(), Errno> {
    let file = open(at, path, OFlags::WRONLY)?;
    rustix::io::write(&file, text.as_bytes()).map(|_| ())
}

/// The number behind `name` in a file with a name and a number on each line.
fn number_in(file: &OwnedFd, name: &[u8]) -> Option<u32> {
    let mut text = [0; 256];
    let count = rustix::io::pread(file, &mut text, 0).ok()?;
    text.get(..count)?
        .split(|byte| *byte == b'\n')
        .find_map(|line| core::str::from_utf8(line.strip_prefix(name)?).ok())?
        .parse()
        .ok()
}
