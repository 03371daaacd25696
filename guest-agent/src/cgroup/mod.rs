//! Where children live: a cgroup each, so that a whole tree of processes can
//! be ended at once and be proved to be gone. See cgroups(7), version 2.
//!
//! ```text
//!  /sys/fs/cgroup            the agent, and nobody else
//!    └─ vmcell               cpu.weight, pids.max: all children together
//!         ├─ 1               one process and its descendants
//!         │    └─ …          what they make, at most MAX_DEPTH deep
//!         └─ 2
//! ```
//!
//! A child's cgroup is the root of its cgroup namespace, which is a delegation
//! boundary (mount option `nsdelegate`): nobody in it can move a process out of
//! it, nor change the limits that the agent has set. It is what the child finds
//! at `/sys/fs/cgroup` (`sys/contain.rs`), so that service managers and container
//! runtimes work there. Root can still leave it by force; [`outsiders`] looks for
//! those who did.
//!
//! The kernel never chooses PID 1 when memory runs out, so the agent needs no
//! protection from that.
//!
//! Memory is only counted from the first process on that has a memory limit.
//! Counting every page makes starting a program a fifth slower, and moving bytes
//! through a pipe a third, for everybody.

mod changes;
mod limits;
mod members;
mod outsiders;
mod pool;
mod tree;

use alloc::{format, rc::Rc};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::sys::CgroupNamespace;
use changes::Watch;
pub(crate) use members::Members;
pub(crate) use pool::{Cgroups, PARENT};

/// A cgroup of one process and its descendants.
pub(crate) struct Cgroup {
    /// Its name in the cgroup of all children.
    number: u64,
    parent: Rc<OwnedFd>,
    /// What a running process needs. None: its process has ended, and what is
    /// left of its tree costs no descriptor.
    open: Option<Open>,
    /// Tells whether somebody has changed it. None: nobody knows.
    watch: Option<Watch>,
    /// Nobody else can use it: it has limits of its own, or was killed.
    spent: bool,
    /// Whether its processes get a cgroup namespace.
    has_namespace: bool,
}

struct Open {
    directory: OwnedFd,
    events: OwnedFd,
    /// Of one with a memory limit.
    memory_events: Option<OwnedFd>,
}

impl Cgroup {
    fn create(parent: &Rc<OwnedFd>, number: u64) -> Result<Self, Errno> {
        let name = format!("{number}");
        rustix::fs::mkdirat(&**parent, name.as_str(), Mode::from_raw_mode(0o755))?;
        let directory = open(parent, &name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let events = open(&directory, "cgroup.events", OFlags::RDONLY)?;
        Ok(Self {
            number,
            parent: Rc::clone(parent),
            open: Some(Open {
                directory,
                events,
                memory_events: None,
            }),
            watch: None,
            spent: false,
            has_namespace: false,
        })
    }

    /// Ends every process in it, descendants included, with SIGKILL, frozen ones
    /// too.
    ///
    /// It cannot be used for another process: the kernel (6.1.190 does) tells a
    /// child that slips through a kill by the number of kills, which it takes
    /// from the parent's cgroup before and from the child's after the clone.
    /// With `CLONE_INTO_CGROUP` these are two cgroups, and a child that is put
    /// into one that was killed before dies at once.
    pub(crate) fn kill(&mut self) -> Result<(), Errno> {
        self.spent = true;
        self.write("cgroup.kill", "1")
    }

    /// Whether no living process is in it, nor in any cgroup below it.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |events: &OwnedFd| number_in(events, b"populated ") == Some(0);
        match &self.open {
            Some(open) => is_empty(&open.events),
            None => {
                let path = format!("{}/cgroup.events", self.number);
                open(&self.parent, &path, OFlags::RDONLY).is_ok_and(|events| is_empty(&events))
            }
        }
    }

    /// How many processes in it were ended because they needed more memory than
    /// it may have. None: it may have all there is.
    pub(crate) fn oom_kills(&self) -> Option<u32> {
        let events = self.open.as_ref()?.memory_events.as_ref()?;
        let number = |name| number_in(events, name).unwrap_or(0);
        // The kernel counts the process that it chose twice when it ends all
        // processes of a cgroup.
        Some(number(b"oom_kill ").saturating_sub(number(b"oom_group_kill ")))
    }

    /// The number of the command's cgroup that a process is in.
    pub(crate) fn number_of(pid: u32) -> Option<u64> {
        outsiders::number_of(pid)
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Writes one of its files.
    fn write(&self, file: &str, text: &str) -> Result<(), Errno> {
        write(&self.parent, &format!("{}/{file}", self.number), text)
    }

    /// The namespace of a process that is started in it.
    pub(crate) fn namespace(&self, mounted: bool) -> CgroupNamespace {
        match (self.has_namespace, mounted) {
            (false, _) => CgroupNamespace::Shared,
            (true, false) => CgroupNamespace::Own,
            (true, true) => CgroupNamespace::Mounted(self.number),
        }
    }

    /// Its directory, which a child is put into. None: it is closed.
    pub(crate) fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().map(|open| open.directory.as_fd())
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
