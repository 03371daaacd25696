//! Processes of this machine: the VMMs.

use std::time::Duration;

use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
    time::Timespec,
};
use vmcell::Vm;

/// The process that runs a VM.
pub(crate) struct VmmProcess {
    pid: Pid,
    handle: OwnedFd,
}

impl VmmProcess {
    pub(crate) fn of(vm: &Vm) -> Self {
        let name = format!("vmcell-{}", vm.id());
        let pid = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .find(|pid: &i32| {
                let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                arguments
                    .split(|byte| *byte == 0)
                    .any(|word| word == name.as_bytes())
            })
            .and_then(Pid::from_raw)
            .expect("every VM has a VMM");
        let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        Self { pid, handle }
    }

    pub(crate) fn kill(&self) {
        kill_process(self.pid, Signal::KILL).unwrap();
    }

    /// Waits for its end, and says whether it came in time.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let mut wanted = [PollFd::new(&self.handle, PollFlags::IN)];
        let time = Timespec::try_from(time).unwrap();
        poll(&mut wanted, Some(&time)).unwrap() == 1
    }
}
