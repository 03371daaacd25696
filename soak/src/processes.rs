//! The processes of this machine: proc_pid_stat(5).

use std::{fs, path::Path};

use rustix::process::{Pid, Signal, getppid, kill_process};

/// Another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    name: String,
}

impl Process {
    /// Its arguments, separated by spaces.
    pub(crate) fn command_line(&self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    }

    /// Whether it has a file open whose path contains these words.
    pub(crate) fn has_open(&self, folder: &Path, word: &str) -> bool {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid));
        let entries = entries.into_iter().flatten().flatten();
        let mut targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| target.starts_with(folder) && target.to_string_lossy().contains(word))
    }

    pub(crate) fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            // Fails if it has ended.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    pub(crate) fn describe(&self) -> String {
        let line: String = self.command_line().chars().take(120).collect();
        format!("process {} ({}) {line}", self.pid, self.name)
    }
}

fn read(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, and ends with the last parenthesis.
    let (before, after) = stat.rsplit_once(')')?;
    Some(Process {
        pid,
        parent: after.split_whitespace().nth(1)?.parse().ok()?,
        name: before.split_once('(')?.1.to_owned(),
    })
}

/// Returns all descendants of a process.
pub(crate) fn descendants(of: i32) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut others: Vec<Process> = pids.filter_map(read).collect();
    let mut parents = vec![of];
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        let is_child = |process: &Process| process.parent == parent;
        let (children, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(is_child);
        others = rest;
        parents.extend(children.iter().map(|child| child.pid));
        found.extend(children);
    }
    found
}

/// Returns all processes that the worker and its programs have started, for the worker.
pub(crate) fn started() -> Vec<Process> {
    let supervisor = getppid().map_or(1, Pid::as_raw_pid);
    let own = std::process::id() as i32;
    let mut all = descendants(supervisor);
    all.retain(|process| process.pid != own);
    all
}
