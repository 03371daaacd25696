//! The agent's own children, from their start until they are reaped: programs,
//! workers, probes, and the process that writes the disk back.

use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, OwnedFd},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};

use crate::{child_exit::ChildExit, clock::Moment, sys::reap_by_handle};

/// Who reaps the agent's children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reaping {
    /// The agent itself. It holds a pidfd of each of its children and waits for
    /// no other process, so the program and its other children are not
    /// affected. The program must not wait for all children (`waitpid(-1)`).
    #[default]
    OwnChildren,
    /// The program reaps all children, as PID 1 has to, and passes each to
    /// [`Agent::child_ended`](crate::Agent::child_ended).
    HandedOver,
}

/// All children that are not reaped yet.
pub(crate) struct Children {
    reaping: Reaping,
    list: Vec<Child>,
    /// When to open the pidfds that could not be opened.
    retry_at: Option<Moment>,
}

struct Child {
    pid: Pid,
    /// Its pidfd; `None`: it is handed over, or its pidfd is not open yet.
    handle: Option<OwnedFd>,
}

/// Registers a pidfd.
type Watch<'a> = &'a dyn Fn(Pid, &OwnedFd) -> Result<(), Errno>;

/// How long to wait before the kernel is asked again for a pidfd after it ran
/// out of descriptors or memory.
const RETRY_MS: u64 = 100;

impl Children {
    pub(crate) const fn new(reaping: Reaping) -> Self {
        Self {
            reaping,
            list: Vec::new(),
            retry_at: None,
        }
    }

    /// Adds a child that was just started. `watch` registers its pidfd.
    pub(crate) fn add(&mut self, pid: Pid, watch: Watch<'_>) {
        self.list.push(Child { pid, handle: None });
        if self.reaping == Reaping::OwnChildren {
            // One that is gone is found again, and returned, by the next retry.
            let _ = self.open_missing(watch);
        }
    }

    /// Removes a child that was reaped. Returns whether it was one.
    pub(crate) fn remove(&mut self, pid: Pid) -> bool {
        let place = self.list.iter().position(|child| child.pid == pid);
        place.map(|place| self.list.swap_remove(place)).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Reaps a child whose pidfd is ready, if it has ended. The error is that of
    /// waitid(2).
    pub(crate) fn reap(&self, pid: Pid) -> Result<Option<ChildExit>, Errno> {
        let child = self.list.iter().find(|child| child.pid == pid);
        match child.and_then(|child| child.handle.as_ref()) {
            Some(handle) => reap_by_handle(handle.as_fd()),
            None => Ok(None),
        }
    }

    /// Returns when [`retry`](Self::retry) must be called.
    pub(crate) fn retry_at(&self) -> Option<Moment> {
        self.retry_at
    }

    /// Opens the pidfds that could not be opened before, if it is time for that.
    /// Returns the children that another part of the program has reaped meanwhile.
    pub(crate) fn retry(&mut self, watch: Watch<'_>) -> Vec<Pid> {
        match self.retry_at {
            Some(at) if at <= Moment::now() => self.open_missing(watch),
            _ => Vec::new(),
        }
    }

    /// Opens the pidfds that are not open, and returns the children that are gone.
    /// The others are not reaped, so the pids are still their own. One that has
    /// ended is reported as ready at once.
    fn open_missing(&mut self, watch: Watch<'_>) -> Vec<Pid> {
        let mut gone = Vec::new();
        self.retry_at = None;
        let missing = self.list.iter_mut().filter(|child| child.handle.is_none());
        for child in missing {
            let opened = pidfd_open(child.pid, PidfdFlags::empty());
            if opened.as_ref().err() == Some(&Errno::SRCH) {
                gone.push(child.pid);
            }
            let opened = opened.and_then(|handle| watch(child.pid, &handle).map(|()| handle));
            child.handle = opened.ok();
            if child.handle.is_none() {
                self.retry_at = Some(Moment::now().after_ms(RETRY_MS));
            }
        }
        gone
    }

    /// Kills all children.
    pub(crate) fn kill(&self) {
        for child in &self.list {
            // It is not reaped, so the pid is still its own.
            let _ = kill_process(child.pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_that_is_reaped_before_it_could_be_watched_is_gone() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut children = Children::new(Reaping::OwnChildren);
        children.add(pid, &|_, _| Err(Errno::NOSPC));
        assert!(children.retry_at().is_some());
        assert_eq!(children.open_missing(&|_, _| Err(Errno::NOSPC)), []);
        child.wait().unwrap();
        assert_eq!(children.open_missing(&|_, _| Ok(())), [pid]);
        assert!(children.remove(pid));
        assert_eq!(children.open_missing(&|_, _| Ok(())), []);
        assert!(children.retry_at().is_none());
    }
}
