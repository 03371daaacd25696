use std::{
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    process::{Child, Command, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
    time::Timespec,
};
use vmcell_wire::{Hello, encode};

use super::{Host, Said};

pub(crate) struct RunningAgent {
    pub(crate) child: Child,
    path: std::path::PathBuf,
}

impl RunningAgent {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// An agent that gives up processes soon whose link was lost: see
    /// [`Host::start_canary`].
    pub(crate) fn impatient() -> Self {
        Self::with_grace("300")
    }

    /// An agent that gives up processes after so many milliseconds.
    pub(crate) fn with_grace(milliseconds: &str) -> Self {
        Self::start_with(&[milliseconds])
    }

    fn start_with(arguments: &[&str]) -> Self {
        let unique = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let path = std::env::temp_dir().join(format!(
            "vmcell-agent-test-{}-{}",
            std::process::id(),
            unique.as_nanos()
        ));
        let listener = UnixListener::bind(&path).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_vmcell-agent"))
            .args(arguments)
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .spawn()
            .unwrap();
        Self { child, path }
    }

    /// A link that has not said hello.
    pub(crate) fn connect_silently(&self) -> Host {
        Host::new(UnixStream::connect(&self.path).unwrap())
    }

    pub(crate) fn connect(&self) -> Host {
        self.connect_with_window(64 * 1024)
    }

    pub(crate) fn connect_with_window(&self, window: u32) -> Host {
        let mut host = self.connect_silently();
        host.window = window;
        host.send(|out| encode::hello(out, &Hello::new("test", window, [0; 16])).unwrap());
        host.until(|said| matches!(said, Said::Hello));
        host
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        // Asked to, it ends its processes too. A test may have stopped it.
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::TERM);
        let _ = kill_process(pid, Signal::CONT);
        if !is_gone_in_time(pid) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Waits until a process is gone or a zombie.
pub(crate) fn wait_until_gone(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    assert!(is_gone_in_time(pid), "process {pid:?} lives on");
}

/// Whether a process is gone or a zombie, soon enough: by its pidfd and not by
/// polling.
fn is_gone_in_time(pid: Pid) -> bool {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    let mut wanted = [PollFd::new(&process, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    poll(&mut wanted, Some(&patience)).unwrap() == 1
}
