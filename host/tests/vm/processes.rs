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
        Self::find(|word| word == name).expect("every VM has a VMM")
    }

    /// The process that has such a word on its command line.
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

    /// The file that it has open and that has no name: the layer of the VM's
    /// disk.
    #[cfg(feature = "disk")]
    pub(crate) fn unnamed_file(&self) -> Option<std::fs::File> {
        let folder = format!("/proc/{}/fd", self.pid.as_raw_nonzero());
        let unnamed = std::fs::read_dir(folder).unwrap().find_map(|entry| {
            let path = entry.unwrap().path();
            let mut file = std::fs::read_link(&path)
                .ok()
                .filter(|target| target.to_string_lossy().ends_with(" (deleted)"))
                .and_then(|_| std::fs::File::open(path).ok())?;
            let mut magic = [0; 4];
            std::io::Read::read_exact(&mut file, &mut magic).ok()?;
            (magic == *b"QFI\xfb").then_some(file)
        });
        unnamed.map(|mut file| {
            std::io::Seek::rewind(&mut file).unwrap();
            file
        })
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
