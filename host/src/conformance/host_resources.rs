//! Resources of the host that a VM uses: processes, descriptors, files, mounts
//! and cgroups.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::check::{CheckError, CheckResult};
use crate::run_folder::RunFolder;

/// The descendants of a process at one moment.
#[derive(Debug)]
pub(super) struct Descendants(Vec<Process>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    /// The start time, which distinguishes it from a later process with the
    /// same pid.
    started: String,
    name: String,
}

impl Descendants {
    pub(super) fn of(program: u32) -> Self {
        let all: Vec<_> = pids().filter_map(process).collect();
        let mut descendants: Vec<Process> = Vec::new();
        loop {
            let is_new = |process: &&Process| {
                let parent = process.parent;
                !descendants.contains(process)
                    && (parent == program || descendants.iter().any(|known| known.pid == parent))
            };
            match all.iter().find(is_new) {
                Some(process) => descendants.push(process.clone()),
                None => return Self(descendants),
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn without(mut self, others: &Self) -> Self {
        self.0.retain(|process| !others.0.contains(process));
        self
    }

    /// Returns those that still exist, including zombies.
    pub(super) fn alive(&self) -> Vec<String> {
        let alive = self.0.iter().filter(|known| {
            process(known.pid).is_some_and(|process| process.started == known.started)
        });
        alive
            .map(|process| format!("process {} ({})", process.pid, process.name))
            .collect()
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Reads proc_pid_stat(5) of a process.
fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, and ends with the last parenthesis.
    let (before, after) = stat.rsplit_once(')')?;
    let fields: Vec<_> = after.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        started: (*fields.get(19)?).to_owned(),
        name: before.split_once('(')?.1.to_owned(),
    })
}

/// Returns the open descriptors of this program: sockets, files, pipes.
pub(super) fn descriptors() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets
        .map(|target| target.to_string_lossy().into_owned())
        // Skips the folder that was just listed, and anonymous inodes, which
        // have no number.
        .filter(|target| !target.starts_with("/proc") && !target.starts_with("anon_inode"))
        .collect()
}

/// Returns files, sockets, mounts and cgroups with the id of a VM in their
/// name.
pub(super) fn resources_of(id: &str) -> Vec<String> {
    let mut found = Vec::new();
    for folder in [RunFolder::base(), std::env::temp_dir()] {
        found.extend(entries_named(&folder, id).map(|path| path.display().to_string()));
    }
    for table in ["/proc/net/unix", "/proc/self/mountinfo"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        let lines = text.lines().filter(|line| line.contains(id));
        found.extend(lines.map(|line| format!("{table}: {line}")));
    }
    for root in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] {
        if Path::new(root).join("cgroup.procs").exists() {
            find_cgroups(Path::new(root), id, &mut found);
        }
    }
    found
}

fn entries_named(folder: &Path, id: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(move |path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().contains(id)
    })
}

fn find_cgroups(parent: &Path, id: &str, found: &mut Vec<String>) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name().to_string_lossy().contains(id) {
            found.push(entry.path().display().to_string());
        }
        find_cgroups(&entry.path(), id, found);
    }
}

/// Waits until `list` returns nothing, or fails with what it returns. It polls,
/// because nothing signals when the kernel and the runtime have released the
/// last resource.
pub(super) async fn wait_gone(list: impl Fn() -> Vec<String>) -> CheckResult {
    const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);
    const POLL_INTERVAL: Duration = Duration::from_millis(10);
    let started_at = Instant::now();
    loop {
        let left = list();
        if left.is_empty() {
            return Ok(());
        }
        if started_at.elapsed() > CLEANUP_TIMEOUT {
            return Err(CheckError::failed(format!("left: {}", left.join(", "))));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
