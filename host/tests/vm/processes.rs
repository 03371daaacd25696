//! The VMM processes of this machine.

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
        Self::find(|word| word == name).expect("every VM has a VMM")
    }

    /// Finds the process that has such an argument.
    pub(crate) fn find(wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let pid = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .find(|pid: &i32| {
                let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let arguments = String::from_utf8_lossy(&arguments);
                arguments.split('\0').any(&wanted)
            })
            .and_then(Pid::from_raw)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { pid, handle })
    }

    pub(crate) fn kill(&self) {
        kill_process(self.pid, Signal::KILL).unwrap();
    }

    /// Stops it with SIGSTOP. It can still be killed.
    pub(crate) fn pause(&self) {
        kill_process(self.pid, Signal::STOP).unwrap();
    }

    /// Waits for its end, and returns whether it came in time.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let mut wanted = [PollFd::new(&self.handle, PollFlags::IN)];
        let time = Timespec::try_from(time).unwrap();
        poll(&mut wanted, Some(&time)).unwrap() == 1
    }
}
