//! What VMs use of this machine, and must leave behind nothing of.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    processes,
    setup::{FOLDERS, Setup},
};

/// How long the kernel and the runtime may take to release what has ended.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What stays: the locks and the folders of all runs, and templates, which are counted apart.
const KEPT: [&str; 8] = [
    "cache/vmcell",
    "run/vmcell",
    "run/vmcell/lock",
    "state/vmcell",
    "state/vmcell/vms",
    "state/vmcell/workspaces",
    "state/vmcell/workspaces/listed",
    "state/vmcell/workspaces/lock",
];

/// The open descriptors of the worker, by what they are.
pub(crate) type Descriptors = BTreeMap<String, usize>;

/// Counts the open descriptors.
pub(crate) fn descriptors() -> Descriptors {
    let entries = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut counts = Descriptors::new();
    for target in targets {
        let target = target.to_string_lossy().into_owned();
        if target.starts_with("/proc") {
            // The folder that is listed.
            continue;
        }
        // Those of sockets and pipes have numbers.
        let class = match target.split_once(':') {
            Some((class, _)) if class != "anon_inode" => class.to_owned(),
            _ => target,
        };
        *counts.entry(class).or_default() += 1;
    }
    counts
}

/// Returns everything that is there, except of descriptors.
fn present(setup: &Setup) -> Vec<String> {
    let mut found: Vec<String> = processes::started()
        .iter()
        .map(processes::Process::describe)
        .collect();
    for (_, folder) in FOLDERS {
        list(&setup.folder.join(folder), folder, &mut found);
    }
    found.retain(|entry| {
        let is_cached = entry
            .strip_prefix("cache/vmcell/")
            .is_some_and(|rest| !rest.starts_with("templates/"));
        !KEPT.contains(&entry.as_str()) && !is_cached
    });
    let prefix = setup.prefix();
    for table in ["/proc/net/unix", "/proc/self/mountinfo"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        let lines = text.lines().filter(|line| line.contains(&prefix));
        found.extend(lines.map(|line| format!("{table}: {line}")));
    }
    for root in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] {
        if Path::new(root).join("cgroup.procs").exists() {
            find_cgroups(Path::new(root), &prefix, &mut found);
        }
    }
    found
}

/// Lists the files below a folder.
fn list(folder: &Path, name: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&entry.path(), &name, found);
        }
        found.push(name);
    }
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

/// What is there before a round.
pub(crate) struct Baseline {
    descriptors: Descriptors,
    others: BTreeSet<String>,
}

impl Baseline {
    pub(crate) fn now(setup: &Setup) -> Self {
        Self {
            descriptors: descriptors(),
            others: present(setup).into_iter().collect(),
        }
    }

    /// Returns what is there now and was not there before.
    fn left(&self, setup: &Setup) -> Vec<String> {
        let mut left = present(setup);
        left.retain(|what| !self.others.contains(what));
        for (class, count) in descriptors() {
            let expected = self.descriptors.get(&class).copied().unwrap_or(0);
            if count > expected {
                left.push(format!("{} descriptors of {class}", count - expected));
            }
        }
        left
    }

    /// Waits until nothing is left besides what was there before, and returns what is.
    pub(crate) async fn wait_until_gone(&self, setup: &Setup) -> Vec<String> {
        let started_at = Instant::now();
        loop {
            let left = self.left(setup);
            if left.is_empty() || started_at.elapsed() > RELEASE_TIMEOUT {
                return left;
            }
            // Nothing reports the release of the last resource.
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Waits until what has ended before the first round is released.
pub(crate) async fn settle() {
    let started_at = Instant::now();
    while !processes::started().is_empty() && started_at.elapsed() < RELEASE_TIMEOUT {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::{self, File};

    use super::*;
    use crate::arguments::Kind;

    #[test]
    fn what_is_left_is_found_and_what_was_there_is_not() {
        let folder = tempfile::Builder::new().prefix("soak").tempdir().unwrap();
        for (_, name) in FOLDERS {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("tmp/before"), "").unwrap();
        let setup = Setup {
            kind: Kind::Process,
            folder: folder.path().to_owned(),
            image: folder.path().join("image"),
        };
        let mut baseline = Baseline::now(&setup);
        // Other processes of the test's parent are not ours.
        baseline.others.extend(present(&setup));
        let file = File::create(folder.path().join("run/left")).unwrap();
        let left = baseline.left(&setup);
        assert!(left.contains(&"run/left".to_owned()), "{left:?}");
        let name = folder.path().join("run/left").display().to_string();
        assert!(
            left.contains(&format!("1 descriptors of {name}")),
            "{left:?}"
        );
        drop(file);
        fs::remove_file(folder.path().join("run/left")).unwrap();
        let mut left = baseline.left(&setup);
        left.retain(|what| what.contains("left") || what.contains("before"));
        assert!(left.is_empty(), "{left:?}");
    }
}
