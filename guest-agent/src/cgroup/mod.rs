//! A cgroup for each child process, so that a whole tree of processes can be
//! killed at once and its end be proved. See cgroups(7), version 2.
//!
//! ```text
//!  /sys/fs/cgroup            only the agent
//!    └─ vmcell               cpu.weight, pids.max: all children together
//!         ├─ 1               one process and its descendants
//!         │    └─ …          what they create, at most MAX_DEPTH deep
//!         └─ 2
//! ```
//!
//! A child's cgroup is the root of its cgroup namespace, which is a delegation
//! boundary (mount option `nsdelegate`): no process in it can move a process out
//! of it, or change the limits that the agent has set. The child finds it mounted
//! at `/sys/fs/cgroup` (`sys/contain.rs`), so that service managers and container
//! runtimes work there. Root can still leave it by force; [`escaped`] looks for
//! processes that did.
//!
//! The kernel's OOM killer never chooses PID 1, so the agent needs no protection
//! from it.
//!
//! The memory controller is enabled when the first process has a memory limit.
//! It makes starting a program a fifth slower, and moving bytes through a pipe a
//! third, for all processes.

mod changes;
mod escaped;
mod freezer;
mod limits;
mod members;
mod pool;
mod tree;

use alloc::{format, rc::Rc};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::sys::{CGROUP_PARENT as PARENT, CgroupNamespace};
use changes::Watch;
pub(crate) use freezer::{FreezeError, FreezeResult, Freezer};
pub(crate) use members::Members;
pub(crate) use pool::Cgroups;

/// A cgroup of one process and its descendants.
pub(crate) struct Cgroup {
    /// Its name in the cgroup of all children.
    number: u64,
    parent: Rc<OwnedFd>,
    /// Open files. `None` after the process has ended, so that descendants that it
    /// left behind cost no descriptor.
    handles: Option<Handles>,
    /// Detects changes. `None`: changes are not detected.
    watch: Option<Watch>,
    /// No other process may use it: it has limits of its own, or was killed.
    not_reusable: bool,
    /// Whether its processes get a cgroup namespace.
    has_namespace: bool,
    /// Whether its processes can see it in place of the whole hierarchy.
    can_be_mounted: bool,
}

struct Handles {
    directory: OwnedFd,
    events: OwnedFd,
    /// Open if there is a memory limit.
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
            handles: Some(Handles {
                directory,
                events,
                memory_events: None,
            }),
            watch: None,
            not_reusable: false,
            has_namespace: false,
            can_be_mounted: false,
        })
    }

    /// Sends SIGKILL to every process in the cgroup and below it, frozen ones
    /// included.
    ///
    /// The cgroup cannot be used again. The kernel (seen with 6.1.190) detects a
    /// child that would escape a kill by the number of kills: it reads that of the
    /// parent's cgroup before the clone and that of the child's after it. With
    /// `CLONE_INTO_CGROUP` these are two cgroups, so a child that is put into one
    /// that was killed before dies at once.
    pub(crate) fn kill(&mut self) -> Result<(), Errno> {
        self.not_reusable = true;
        self.write("cgroup.kill", "1")
    }

    /// Returns whether no living process is in the cgroup or below it.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |events: &OwnedFd| number_in(events, b"populated ") == Some(0);
        match &self.handles {
            Some(handles) => is_empty(&handles.events),
            None => {
                let path = format!("{}/cgroup.events", self.number);
                open(&self.parent, &path, OFlags::RDONLY).is_ok_and(|events| is_empty(&events))
            }
        }
    }

    /// Returns how many processes the OOM killer has killed in the cgroup, or
    /// `None` if it has no memory limit.
    pub(crate) fn oom_kills(&self) -> Option<u32> {
        let events = self.handles.as_ref()?.memory_events.as_ref()?;
        let number = |name| number_in(events, name).unwrap_or(0);
        // The kernel counts the process that it chose twice when it ends all
        // processes of a cgroup.
        Some(number(b"oom_kill ").saturating_sub(number(b"oom_group_kill ")))
    }

    /// Returns the number of the command's cgroup that a process is in.
    pub(crate) fn number_of(pid: u32) -> Option<u64> {
        escaped::number_of(pid)
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Writes a file of this cgroup.
    fn write(&self, file: &str, text: &str) -> Result<(), Errno> {
        write(&self.parent, &format!("{}/{file}", self.number), text)
    }

    /// Returns the cgroup namespace for a process that is started in it.
    pub(crate) fn namespace(&self, mounted: bool) -> CgroupNamespace {
        match (self.has_namespace, mounted && self.can_be_mounted) {
            (false, _) => CgroupNamespace::Shared,
            (true, false) => CgroupNamespace::Own,
            (true, true) => CgroupNamespace::Mounted(self.number),
        }
    }

    /// Returns its directory, for starting a child in it, or `None` if it is
    /// [closed](Cgroups::close).
    pub(crate) fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.handles
            .as_ref()
            .map(|handles| handles.directory.as_fd())
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

/// Returns the number after `name` in a file with a name and a number on each line.
fn number_in(file: &OwnedFd, name: &[u8]) -> Option<u32> {
    let mut text = [0; 256];
    let count = rustix::io::pread(file, &mut text, 0).ok()?;
    text.get(..count)?
        .split(|byte| *byte == b'\n')
        .find_map(|line| core::str::from_utf8(line.strip_prefix(name)?).ok())?
        .parse()
        .ok()
}
