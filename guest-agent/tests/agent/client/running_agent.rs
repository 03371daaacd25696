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

use super::{Host, Reply};

pub(crate) struct RunningAgent {
    pub(crate) child: Child,
    path: std::path::PathBuf,
}

impl RunningAgent {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts an agent that soon gives up processes whose link was lost: see
    /// [`Host::start_canary`].
    pub(crate) fn with_short_grace() -> Self {
        Self::with_grace("300")
    }

    /// Starts an agent that gives up processes after so many milliseconds
    /// without a link.
    pub(crate) fn with_grace(milliseconds: &str) -> Self {
        Self::start_with(&[milliseconds])
    }

    fn start_with(arguments: &[&str]) -> Self {
        Self::run(Command::new(env!("CARGO_BIN_EXE_vmcell-agent")).args(arguments))
    }

    /// Starts a program that runs an agent, with a listening socket as its
    /// standard input.
    pub(crate) fn run(program: &mut Command) -> Self {
        let unique = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let path = std::env::temp_dir().join(format!(
            "vmcell-agent-test-{}-{}",
            std::process::id(),
            unique.as_nanos()
        ));
        let listener = UnixListener::bind(&path).unwrap();
        let child = program
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .spawn()
            .unwrap();
        Self { child, path }
    }

    /// Returns the path of its socket.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Opens a link for raw bytes.
    pub(crate) fn connect_raw(&self) -> UnixStream {
        UnixStream::connect(&self.path).unwrap()
    }

    /// Opens a link without a hello.
    pub(crate) fn connect_without_hello(&self) -> Host {
        Host::new(self.connect_raw())
    }

    pub(crate) fn connect(&self) -> Host {
        self.connect_with_window(64 * 1024)
    }

    pub(crate) fn connect_with_window(&self, window: u32) -> Host {
        let mut host = self.connect_without_hello();
        host.say_hello(window);
        host.until(|reply| matches!(reply, Reply::Hello));
        host
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        // On SIGTERM it kills its processes too. A test may have stopped it.
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

/// Waits until a process has ended.
pub(crate) fn wait_until_gone(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    assert!(is_gone_in_time(pid), "process {pid:?} still runs");
}

/// Returns whether a process ends in time, by its pidfd instead of polling.
fn is_gone_in_time(pid: Pid) -> bool {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    let mut wanted = [PollFd::new(&process, PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    poll(&mut wanted, Some(&timeout)).unwrap() == 1
}
