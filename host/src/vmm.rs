//! A running VMM: a child process that cannot outlive this program.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
};

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;

use crate::{
    error::Error,
    secret::disable_core_dumps_of,
    sys::{die_with_spawning_thread, set_cloexec_from},
};

/// A process that runs a VM and cannot outlive this program. Dropping it kills
/// the process.
#[derive(Debug)]
pub struct Vmm {
    killer: VmmKiller,
    exit: watch::Receiver<Option<ExitStatus>>,
    /// Another process, which implements a device of the VM.
    device: Option<Box<Vmm>>,
}

/// Kills a VMM from any task, without waiting.
#[derive(Clone, Debug)]
pub(crate) struct VmmKiller {
    process: Arc<OwnedFd>,
    pid: Pid,
    signal: Signal,
}

impl Vmm {
    /// Starts a VMM. It inherits `descriptors`, numbered from 3 on, and the
    /// standard output and error of the command. It has no standard input, and
    /// inherits no other descriptor of this program.
    ///
    /// # Errors
    /// [`Error::Host`] if the process cannot be started.
    pub fn spawn(command: Command, descriptors: Vec<OwnedFd>) -> Result<Self, Error> {
        let (started, starting) = std::sync::mpsc::sync_channel(1);
        let (exited, exit) = watch::channel(None);
        // The kernel kills a child with the *thread* that spawned it, so this
        // cannot be a thread of the async runtime, which may end at any time. The
        // thread also waits for the VMM, so that it leaves no zombie.
        thread::Builder::new()
            .name("vmcell-vmm".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                let mut child = match spawn(command, descriptors) {
                    Ok((child, killer)) => {
                        // The receiver waits for this.
                        let _ = started.send(Ok(killer));
                        child
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                        return;
                    }
                };
                if let Ok(status) = child.wait() {
                    exited.send_replace(Some(status));
                }
            })
            .map_err(Error::host("start a thread for the VMM"))?;
        let killer = starting
            .recv()
            .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
            .map_err(Error::host("start the VMM"))?;
        Ok(Self {
            killer,
            exit,
            device: None,
        })
    }

    /// Adds a process that implements a device of the same VM. When one of them
    /// exits, the other is killed.
    #[must_use]
    pub fn with_device(mut self, device: Self) -> Self {
        self.device = Some(Box::new(device));
        self
    }

    /// Sets the signal with which it is killed; SIGKILL by default. For a program
    /// that has to clean up before it exits.
    #[must_use]
    pub(crate) fn with_kill_signal(mut self, signal: Signal) -> Self {
        self.killer.signal = signal;
        self
    }

    pub(crate) fn killer(&self) -> VmmKiller {
        self.killer.clone()
    }

    /// Returns its process, and that of its device if it has one.
    pub(crate) fn processes(&self) -> Vec<VmmKiller> {
        let device = self.device.iter().map(|device| device.killer());
        std::iter::once(self.killer()).chain(device).collect()
    }

    /// Waits until the VMM and its device have exited. When one exits, kills the
    /// other.
    ///
    /// Cancel safe.
    pub(crate) async fn exited(&mut self) -> Option<ExitStatus> {
        self.any_exited().await;
        if let Some(device) = &mut self.device {
            self.killer.kill();
            device.killer.kill();
            wait_for_exit(&mut device.exit).await;
        }
        wait_for_exit(&mut self.exit).await
    }

    /// Waits until the VMM or its device has exited.
    ///
    /// Cancel safe.
    pub(crate) async fn any_exited(&mut self) {
        match &mut self.device {
            None => {
                wait_for_exit(&mut self.exit).await;
            }
            Some(device) => tokio::select! {
                _ = wait_for_exit(&mut self.exit) => {}
                _ = wait_for_exit(&mut device.exit) => {}
            },
        }
    }
}

async fn wait_for_exit(exit: &mut watch::Receiver<Option<ExitStatus>>) -> Option<ExitStatus> {
    match exit.wait_for(Option::is_some).await {
        Ok(status) => *status,
        // The thread has ended without a status, and the VMM with it.
        Err(_) => None,
    }
}

impl Drop for Vmm {
    fn drop(&mut self) {
        self.killer.kill();
    }
}

impl VmmKiller {
    pub(crate) fn kill(&self) {
        // Fails only if the VMM has exited.
        let _ = pidfd_send_signal(&*self.process, self.signal);
    }

    /// Returns its number, which another process may have once it has exited.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the pidfd, which is readable once the process has exited:
    /// pidfd_open(2).
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

fn spawn(
    mut command: Command,
    descriptors: Vec<OwnedFd>,
) -> io::Result<(std::process::Child, VmmKiller)> {
    let first_unmapped = u32::try_from(3 + descriptors.len()).map_err(io::Error::other)?;
    let mappings = descriptors.into_iter().zip(3..);
    let mappings = mappings
        .map(|(parent_fd, child_fd)| FdMapping {
            parent_fd,
            child_fd,
        })
        .collect();
    command
        .fd_mappings(mappings)
        .map_err(|_| io::ErrorKind::InvalidInput)?;
    die_with_spawning_thread(&mut command);
    // Last, because the child applies the mappings above too.
    set_cloexec_from(&mut command, first_unmapped);
    let child = command.stdin(Stdio::null()).spawn()?;
    let pid = Pid::from_child(&child);
    // The child was not waited for, so its pid cannot have been reused. The memory of the
    // guest is its own, with the secrets in it.
    disable_core_dumps_of(Some(pid))?;
    let killer = VmmKiller {
        process: Arc::new(pidfd_open(pid, PidfdFlags::empty())?),
        pid,
        signal: Signal::KILL,
    };
    Ok((child, killer))
}
