//! A running VMM: a child process that never outlives this program.

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
    sys::{die_with_spawning_thread, set_cloexec_from},
};

/// A program that runs a VM, and that cannot outlive this one. Dropping it ends
/// the program.
#[derive(Debug)]
pub struct Vmm {
    killer: VmmKiller,
    exit: watch::Receiver<Option<ExitStatus>>,
    /// Another program, which is a part of the machine.
    device: Option<Box<Vmm>>,
}

/// Ends a VMM from wherever it is needed, at once and without waiting.
#[derive(Clone, Debug)]
pub(crate) struct VmmKiller {
    process: Arc<OwnedFd>,
    signal: Signal,
}

impl Vmm {
    /// Starts a VMM, with descriptors that it inherits, numbered from 3 on, and
    /// what the command sets as its standard output and error. It has no
    /// standard input, and inherits no other descriptor of this program.
    ///
    /// # Errors
    /// [`Error::Host`] if the system refuses.
    pub fn spawn(command: Command, descriptors: Vec<OwnedFd>) -> Result<Self, Error> {
        let (started, starting) = std::sync::mpsc::sync_channel(1);
        let (exited, exit) = watch::channel(None);
        // The kernel ends a child with the *thread* that made it, so a thread of
        // the async runtime, which may end at any time, will not do. This one
        // also waits for the VMM, so its end is an event and leaves no zombie.
        thread::Builder::new()
            .name("vmcell-vmm".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                let mut child = match spawn(command, descriptors) {
                    Ok((child, killer)) => {
                        // The receiver waits for exactly this.
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

    /// Another program that is a device of the same VM. Neither outlives the
    /// other.
    #[must_use]
    pub fn with_device(mut self, device: Self) -> Self {
        self.device = Some(Box::new(device));
        self
    }

    /// Chooses the signal that ends it at once; SIGKILL unless told. For a
    /// program that has something to end before itself.
    #[must_use]
    pub(crate) fn with_kill_signal(mut self, signal: Signal) -> Self {
        self.killer.signal = signal;
        self
    }

    pub(crate) fn killer(&self) -> VmmKiller {
        self.killer.clone()
    }

    /// Waits until the VMM has ended, and its device with it.
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

    /// Waits until the VMM or its device has ended, of which the end of the
    /// other follows.
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
        // The thread is gone without a status. So is the program.
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
        // It fails only if the VMM has ended.
        let _ = pidfd_send_signal(&*self.process, self.signal);
    }

    /// Something that can be read when the program has ended: pidfd_open(2).
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
    // Last, because the mappings above are made in the child too.
    set_cloexec_from(&mut command, first_unmapped);
    let child = command.stdin(Stdio::null()).spawn()?;
    let pid = Pid::from_child(&child);
    // The child has not been waited for, so the number is still its own.
    let killer = VmmKiller {
        process: Arc::new(pidfd_open(pid, PidfdFlags::empty())?),
        signal: Signal::KILL,
    };
    Ok((child, killer))
}
