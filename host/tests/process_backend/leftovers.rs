//! Processes, files and mounts that a VM could leave behind on this machine.

use std::{fs, path::PathBuf, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
    time::Timespec,
};
use vmcell::backend::RunFolder;

/// The processes of a VM: the supervisor first, then PID 1 and its workers.
pub(crate) struct Processes(Vec<(Pid, OwnedFd)>);

impl Processes {
    pub(crate) fn of(id: &str) -> Self {
        let name = format!("vmcell-{id}\0");
        let mut pids: Vec<i32> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.starts_with(name.as_bytes())
            })
            .collect();
        pids.sort_unstable();
        let open = |pid| {
            let pid = Pid::from_raw(pid)?;
            Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?))
        };
        Self(pids.into_iter().filter_map(open).collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn kill_supervisor(&self) {
        kill_process(self.0[0].0, Signal::KILL).unwrap();
    }

    /// Waits for the end of all of them, and returns whether it came in time.
    pub(crate) fn end_within(&self, time: Duration) -> bool {
        let limit = Timespec::try_from(time).unwrap();
        self.0.iter().all(|(_, process)| {
            let mut waiting = [PollFd::new(process, PollFlags::IN)];
            poll(&mut waiting, Some(&limit)).unwrap() == 1
        })
    }
}

/// Returns the files, folders and cgroups of a VM that exist.
pub(crate) fn leftovers(id: &str) -> Vec<PathBuf> {
    let name = format!("vmcell-{id}");
    let cgroups = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let cgroups = cgroups.map(|root| PathBuf::from(root).join(&name));
    let folder = RunFolder::base().join(id);
    let mut leftovers: Vec<_> = cgroups.into_iter().chain([folder]).collect();
    leftovers.retain(|path| path.exists());
    leftovers
}

/// Returns the overlay mounts that this program sees. Other programs may create
/// other mounts meanwhile.
pub(crate) fn mounts() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ours = mounts.lines().filter(|line| line.contains(" - overlay "));
    ours.map(str::to_owned).collect()
}
