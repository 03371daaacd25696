//! Processes on this machine, and their sockets.

use std::{collections::HashSet, fs, process::Child, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    process::{Pid, PidfdFlags, pidfd_open},
};

/// A process, identified by a pidfd, so that a reused PID does not matter.
pub(crate) struct Process {
    pub(crate) pid: Pid,
    handle: OwnedFd,
}

impl Process {
    pub(crate) fn of_child(child: &Child) -> Self {
        Self::new(Pid::from_child(child))
    }

    /// Returns the only child of a process.
    pub(crate) fn only_child_of(pid: u32) -> Self {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let children: Vec<i32> = tasks
            .map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap())
            .flat_map(|children| {
                let numbers = children.split_whitespace();
                numbers.map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()
            })
            .collect();
        let [child] = children[..] else {
            panic!("{pid} has the children {children:?}");
        };
        Self::new(Pid::from_raw(child).unwrap())
    }

    pub(crate) fn new(pid: Pid) -> Self {
        let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        Self { pid, handle }
    }

    /// Waits for its end, and returns whether it came in time.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let mut poll_fds = [PollFd::new(&self.handle, PollFlags::IN)];
        let time = Timespec::try_from(time).unwrap();
        poll(&mut poll_fds, Some(&time)).unwrap() == 1
    }

    pub(crate) fn arguments(&self) -> String {
        let path = format!("/proc/{}/cmdline", self.pid.as_raw_nonzero());
        fs::read_to_string(path).unwrap().replace('\0', " ")
    }

    /// Returns the inode numbers of its sockets.
    pub(crate) fn sockets(&self) -> HashSet<String> {
        let folder = format!("/proc/{}/fd", self.pid.as_raw_nonzero());
        let targets = fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        targets
            .filter_map(|target| {
                let target = target.to_str()?.strip_prefix("socket:[")?;
                Some(target.strip_suffix(']')?.to_owned())
            })
            .collect()
    }
}

/// A Unix socket on this machine: a line of `/proc/net/unix`, see proc(5).
#[derive(Debug)]
pub(crate) struct UnixSocket {
    pub(crate) inode: String,
    /// Its address, if it has one.
    pub(crate) path: Option<String>,
}

pub(crate) fn unix_sockets() -> Vec<UnixSocket> {
    let table = fs::read_to_string("/proc/net/unix").unwrap();
    let sockets = table.lines().skip(1).map(|line| {
        let mut words = line.split_whitespace().skip(6);
        UnixSocket {
            inode: words.next().unwrap().to_owned(),
            path: words.next().map(str::to_owned),
        }
    });
    sockets.collect()
}
