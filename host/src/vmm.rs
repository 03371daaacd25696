//! A running VMM: a child process that cannot outlive this program.

use std::{
    any::Any,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::process::ExitStatusExt as _,
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use command_fds::{CommandFdExt, FdMapping};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Resource, Rlimit, Signal, pidfd_open, pidfd_send_signal, prlimit},
};
use tokio::sync::watch;

use crate::{
    confinement::{Layer, LayerStatus},
    error::Error,
    quotas::Quotas,
    secret::disable_core_dumps_of,
    sys::{
        die_with_spawning_thread, limit_file_size_as, limit_process, set_cloexec_from,
        wait_for_process,
    },
};

/// A process that runs a VM and cannot outlive this program. Dropping it kills
/// the process.
#[derive(Debug)]
pub struct Vmm {
    killer: VmmKiller,
    exit: watch::Receiver<Option<ProcessExit>>,
    layers: Vec<LayerStatus>,
    /// The quotas that hold for its process.
    enforced: Quotas,
    /// Another process, which implements a device of the VM.
    device: Option<Box<Vmm>>,
}

/// Kills a VMM from any task, without waiting.
#[derive(Clone, Debug)]
pub(crate) struct VmmKiller {
    process: Arc<OwnedFd>,
    pid: Pid,
    signal: Signal,
    /// The user that only this process has, if it has one.
    own_user: Option<u32>,
}

/// How a process has exited.
#[derive(Clone, Copy, Debug)]
struct ProcessExit {
    status: ExitStatus,
    /// The processor time that it has used.
    cpu_time: Duration,
}

/// Limits of the process of a VMM, whether it is confined or not: setrlimit(2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessLimits {
    /// The most bytes of each file that it writes.
    pub(crate) file_size: Option<u64>,
    /// Its processor time in total.
    pub(crate) cpu_seconds: Option<u64>,
}

/// What a VMM inherits of this program.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    /// Numbered from 3 on.
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl Inherited {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let clone = |descriptor: &Option<OwnedFd>| {
            let descriptor = descriptor.as_ref();
            descriptor.map(OwnedFd::try_clone).transpose()
        };
        let descriptors = self.descriptors.iter().map(OwnedFd::try_clone);
        Ok(Self {
            stdout: clone(&self.stdout)?,
            stderr: clone(&self.stderr)?,
            descriptors: descriptors.collect::<io::Result<_>>()?,
        })
    }
}

/// A process that was started on the thread of a VMM.
pub(crate) struct Started {
    pid: Pid,
    killer: VmmKiller,
    layers: Vec<LayerStatus>,
    enforced: Quotas,
    /// Dropped when it has exited.
    kept: Option<Box<dyn Any + Send>>,
}

/// Returns the user that a process has of its own.
fn own_user(layers: &[LayerStatus]) -> Option<u32> {
    let found = layers.iter().find(|status| status.layer == Layer::User)?;
    found.is_active.then(|| found.detail.parse().ok())?
}

impl Started {
    /// A child of this program that nobody has waited for.
    pub(crate) fn new(pid: Pid, layers: Vec<LayerStatus>) -> Result<Self, Error> {
        // Its pid cannot have been reused.
        let process = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|errno| Error::host("start the VMM")(errno.into()))?;
        Ok(Self {
            pid,
            killer: VmmKiller {
                process: Arc::new(process),
                pid,
                signal: Signal::KILL,
                own_user: own_user(&layers),
            },
            layers,
            enforced: Quotas::new(),
            kept: None,
        })
    }

    /// Same, for one that is not confined. The memory of the guest is its own, with the secrets
    /// in it.
    pub(crate) fn unconfined(child: &Child, layers: Vec<LayerStatus>) -> Result<Self, Error> {
        let pid = Pid::from_child(child);
        disable_core_dumps_of(Some(pid)).map_err(Error::host("start the VMM"))?;
        Self::new(pid, layers)
    }

    /// Says that these quotas hold for the process.
    pub(crate) fn enforces(mut self, quotas: Quotas) -> Self {
        self.enforced = quotas;
        self
    }

    /// Keeps a value until the process has exited.
    pub(crate) fn keep(mut self, kept: impl Any + Send) -> Self {
        self.kept = Some(Box::new(kept));
        self
    }
}

impl Vmm {
    /// Starts a VMM without [confinement](crate::confinement): see
    /// [`VmmProgram`](crate::backend::VmmProgram) for others. It inherits `descriptors`,
    /// numbered from 3 on, and the standard output and error of the command. It has no standard
    /// input, and inherits no other descriptor of this program.
    ///
    /// # Errors
    /// [`Error::Host`] if the process cannot be started.
    pub fn spawn(command: Command, descriptors: Vec<OwnedFd>) -> Result<Self, Error> {
        Self::spawn_limited(command, descriptors, ProcessLimits::default())
    }

    /// Same, with limits of its process.
    pub(crate) fn spawn_limited(
        mut command: Command,
        descriptors: Vec<OwnedFd>,
        limits: ProcessLimits,
    ) -> Result<Self, Error> {
        Self::start(move || {
            limit_process(&mut command, limits);
            let child = spawn_child(command, descriptors).map_err(Error::host("start the VMM"))?;
            let quotas = Quotas {
                cpu_seconds: limits.cpu_seconds,
                ..Quotas::new()
            };
            Ok(Started::unconfined(&child, Vec::new())?.enforces(quotas))
        })
    }

    /// Starts a VMM on a thread of its own.
    pub(crate) fn start(
        start: impl FnOnce() -> Result<Started, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let (started, starting) = std::sync::mpsc::sync_channel(1);
        let (exited, exit) = watch::channel(None);
        // The kernel kills a child with the *thread* that spawned it, so this
        // cannot be a thread of the async runtime, which may end at any time. The
        // thread also waits for the VMM, so that it leaves no zombie.
        thread::Builder::new()
            .name("vmcell-vmm".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                let (pid, kept) = match start() {
                    Ok(process) => {
                        // The receiver waits for this.
                        let facts = (process.killer, process.layers, process.enforced);
                        let _ = started.send(Ok(facts));
                        (process.pid, process.kept)
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                        return;
                    }
                };
                let waited = wait_for_process(pid);
                drop(kept);
                if let Ok((status, cpu_time)) = waited {
                    exited.send_replace(Some(ProcessExit { status, cpu_time }));
                }
            })
            .map_err(Error::host("start a thread for the VMM"))?;
        let (killer, layers, enforced) = starting.recv().unwrap_or_else(|_| {
            Err(Error::host("start the VMM")(
                io::ErrorKind::BrokenPipe.into(),
            ))
        })?;
        Ok(Self {
            killer,
            exit,
            layers,
            enforced,
            device: None,
        })
    }

    /// Returns how it is confined. The list is empty if it was started without that.
    pub fn confinement(&self) -> &[LayerStatus] {
        &self.layers
    }

    /// Returns the quotas that hold for its process.
    pub(crate) fn quotas(&self) -> Quotas {
        self.enforced
    }

    /// Returns whether it or its device has exited because it had used up its processor time.
    pub(crate) fn has_used_cpu_time(&self) -> bool {
        let exit = *self.exit.borrow();
        let used_here = match (exit, self.enforced.cpu_seconds) {
            (Some(exit), Some(seconds)) => exit.has_used(Duration::from_secs(seconds)),
            _ => false,
        };
        used_here || self.device.as_deref().is_some_and(Self::has_used_cpu_time)
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

impl ProcessExit {
    /// Returns whether the kernel has killed it at this limit of its processor time. The kernel
    /// does not say why it kills, and counts in ticks, so that the sum may be a little less.
    fn has_used(&self, limit: Duration) -> bool {
        let signal = self.status.signal();
        let is_killed = signal == Some(Signal::KILL.as_raw());
        is_killed && self.cpu_time + limit / 8 + Duration::from_millis(100) >= limit
    }
}

async fn wait_for_exit(exit: &mut watch::Receiver<Option<ProcessExit>>) -> Option<ExitStatus> {
    match exit.wait_for(Option::is_some).await {
        Ok(exit) => exit.map(|exit| exit.status),
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

    /// Lowers the most bytes of each file that it writes.
    pub(crate) fn limit_file_size(&self, bytes: u64) -> io::Result<()> {
        let both = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        // pidfd_open(2): it is readable once the process has exited. If it has not, nobody else
        // has its number.
        let mut exited = [PollFd::new(&*self.process, PollFlags::IN)];
        match poll(&mut exited, Some(&Timespec::default()))? {
            0 => match (
                prlimit(Some(self.pid), Resource::Fsize, both),
                self.own_user,
            ) {
                // This root has no CAP_SYS_RESOURCE.
                (Err(Errno::PERM), Some(user)) => limit_file_size_as(user, self.pid, both),
                (limited, _) => Ok(limited.map(drop)?),
            },
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns the pidfd, which is readable once the process has exited:
    /// pidfd_open(2).
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

/// Spawns a process that inherits these descriptors only, and dies with this thread.
pub(crate) fn spawn_child(mut command: Command, descriptors: Vec<OwnedFd>) -> io::Result<Child> {
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
    command.stdin(Stdio::null()).spawn()
}
