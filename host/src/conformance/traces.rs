//! Where a VM would show that it is there.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::unmet::{Seen, Unmet};
use crate::run_folder::RunFolder;

/// Processes that descend from a program, as they were at one moment.
#[derive(Debug)]
pub(super) struct Kin(Vec<Process>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    /// When it was started, which tells it from a later one with its number.
    started: String,
    name: String,
}

impl Kin {
    pub(super) fn of(program: u32) -> Self {
        let all: Vec<_> = pids().filter_map(process).collect();
        let mut kin: Vec<Process> = Vec::new();
        loop {
            let is_new = |process: &&Process| {
                let parent = process.parent;
                !kin.contains(process)
                    && (parent == program || kin.iter().any(|known| known.pid == parent))
            };
            match all.iter().find(is_new) {
                Some(process) => kin.push(process.clone()),
                None => return Self(kin),
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

    /// Those that have not ended. One that has ended and whose parent does not
    /// ask for its end is still there.
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

/// What proc_pid_stat(5) says of a process.
fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, and ends with the last parenthesis.
    let (before, after) = stat.rsplit_once(')')?;
    let fields: Vec<_> = after.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        started: (*fields.get(19)?).to_owned(),
        name: before.split_once('(')?.1.to_owned(),
    })
}

/// What this program has open: sockets, files, pipes.
pub(super) fn descriptors() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets
        .map(|target| target.to_string_lossy().into_owned())
        // The folder that was just listed, and what has no number of its own.
        .filter(|target| !target.starts_with("/proc") && !target.starts_with("anon_inode"))
        .collect()
}

/// Files, sockets, mounts and cgroups that have the id of a VM in their name.
pub(super) fn named(id: &str) -> Vec<String> {
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

/// Waits until there is none, or fails with those that there are. Nothing tells
/// when the kernel and the runtime have put away the last of what has ended, so
/// this looks again and again, for a little while.
pub(super) async fn until_none(look: impl Fn() -> Vec<String>) -> Seen {
    const TRACE_TIMEOUT: Duration = Duration::from_secs(20);
    const PAUSE: Duration = Duration::from_millis(10);
    let begun = Instant::now();
    loop {
        let left = look();
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > TRACE_TIMEOUT {
            return Err(Unmet::failed(format!("still there: {}", left.join(", "))));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
