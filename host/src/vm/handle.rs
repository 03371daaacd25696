use std::{ffi::OsString, fmt, path::Path, sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::timeout,
};
use vmcell_wire::{Outcome, ProcessMode};

use super::{
    End, Health, VmBuilder, VmEnd, VmInfo, VmState, attached, driver::DriverRequest,
    facts::VmFacts, own_quotas::OwnQuotas, power_off::STOP_TIMEOUT,
};
#[cfg(feature = "terminal")]
use crate::terminal::{Followers, Terminals};
use crate::{
    acceleration::AccelerationChoice,
    attach::{BaselineSlot, ControlRequest, VmName},
    backend::RejectedBackend,
    confinement::LayerStatus,
    console::Console,
    diff::Manifest,
    error::Error,
    files::Files,
    link::LinkChoice,
    metrics::MetricsHistory,
    network::OwnNetwork,
    port::{Ports, PublishedPorts},
    process::{Command, ExecFailure, ExecStream, Input, Output, Process, ProcessId, Processes},
    quotas::QuotaUsage,
    service::Services,
    session::Session,
    vmm::VmmKiller,
};

/// A running VM.
///
/// Handles are cheap to clone and all refer to the same VM. The VM ends when the
/// last one is dropped, and when the program ends, however that ends. Either way
/// it leaves no process, socket or temporary file behind.
///
/// # Effect on the disk
/// | end of the VM | disk that ends with it | [disk that is kept](VmBuilder::disk) |
/// |---|---|---|
/// | [`stop`](Self::stop) | stopped | stopped |
/// | last handle dropped, the runtime goes on | killed at once | stopped, in the background |
/// | the runtime is dropped, for example because `main` returns an error | killed at once | stopped; the drop of the runtime blocks meanwhile |
/// | [`kill`](Self::kill) | killed at once | a power cut |
/// | `std::process::exit`, a panic that aborts, a runtime that is shut down without waiting for it, SIGKILL of the program or of the VMM | killed at once | a power cut |
///
/// Stopping takes [`STOP_TIMEOUT`](Self::STOP_TIMEOUT) at most; a guest that
/// takes longer is killed, which is a power cut. A guest flushes a disk that is
/// kept every second, so that a power cut loses the writes of the last two
/// seconds. (If the guest writes faster than the disk, it also loses what had to
/// wait.) The file system stays consistent.
///
/// While it runs, other programs of the same user can find it ([`Vm::list`]) and
/// use it as well ([`Vm::attach`]). Their handles do not keep it running.
///
/// ```no_run
/// # async fn example() -> Result<(), vmcell::Error> {
/// use vmcell::Vm;
///
/// let vm = Vm::builder().image("base.ext4").start().await?;
/// let output = vm.exec(["uname", "-a"]).await?;
/// println!("{}", output.stdout_text());
/// vm.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Vm {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) id: String,
    pub(super) session: Arc<Session>,
    pub(super) state: watch::Receiver<VmState>,
    pub(super) control: Control,
    pub(super) keeps_disk: bool,
    /// What a snapshot says about the VM; `None` if another program owns it.
    pub(super) facts: Option<VmFacts>,
    pub(super) backend: String,
    /// `None` if another program owns the VM.
    pub(super) rejected_backends: Option<Vec<RejectedBackend>>,
    /// Same.
    pub(super) confinement: Option<Vec<LayerStatus>>,
    /// Same.
    pub(super) quotas: Option<OwnQuotas>,
    pub(super) warnings: Vec<String>,
    pub(super) acceleration: Option<AccelerationChoice>,
    pub(super) link: LinkChoice,
    pub(super) console: Console,
    pub(super) baseline: Arc<BaselineSlot>,
    /// Permits for requests on files.
    pub(super) file_permits: Arc<Semaphore>,
    pub(super) ports: Arc<PublishedPorts>,
    /// `None` if another program owns the VM.
    pub(super) network: Option<OwnNetwork>,
    /// `None` if another program owns the VM, or if it has no metrics.
    pub(super) metrics: Option<Arc<MetricsHistory>>,
    #[cfg(feature = "terminal")]
    pub(super) terminals: Followers,
}

/// Which program owns the VM.
pub(super) enum Control {
    /// This program.
    Owner {
        requests: mpsc::UnboundedSender<DriverRequest>,
        killer: VmmKiller,
    },
    /// Another program, to which this one is attached.
    Attached(VmName),
}

impl Vm {
    /// How long a guest may take to stop before it is killed.
    pub const STOP_TIMEOUT: Duration = STOP_TIMEOUT;

    /// How long [`health`](Self::health) waits for the agent.
    const PING_TIMEOUT: Duration = Duration::from_secs(2);

    /// Returns a builder with the default configuration.
    pub fn builder() -> VmBuilder {
        VmBuilder::default()
    }

    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the VMs that programs of this user run, ordered by id. Includes
    /// those whose owner does not answer; it waits 5 seconds for each, up to 128
    /// at once. Other users can neither add to the list nor delay it.
    ///
    /// On kernels without `CONFIG_UNIX_DIAG` or before Linux 5.3 the owner of a
    /// socket can only be found out by connecting. There a VM is left out if its
    /// owner accepts no connections and its queue of them is full.
    ///
    /// # Errors
    /// [`Error::Host`] if the system does not list its sockets.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list() -> Result<Vec<VmInfo>, Error> {
        attached::list().await
    }

    /// Attaches to a VM that another program of this user runs. The handle can do
    /// all that the owner's handle can, unless a function documents
    /// [`Error::NotOwner`]. When it is dropped, its foreground commands end; the VM
    /// is not affected otherwise.
    ///
    /// The owner's program relays all requests, so it must keep running. When it
    /// ends, so does the VM.
    ///
    /// # Errors
    /// [`Error::NoSuchVm`] if no such VM runs, [`Error::OwnerNotAnswering`] if
    /// its owner does not answer within 5 seconds, [`Error::OwnerVersion`] if the
    /// owner uses another version of vmcell.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn attach(id: &str) -> Result<Self, Error> {
        attached::attach_if(id, |_| true).await
    }

    /// As [`attach`](Self::attach), unless the disk that the VM was started from is not
    /// the one that is meant.
    pub(crate) async fn attach_if(
        id: &str,
        is_meant: impl FnOnce(&Path) -> bool,
    ) -> Result<Self, Error> {
        attached::attach_if(id, is_meant).await
    }

    /// Returns the id of this VM, which is unique among the VMs of its user.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Returns the state of the VM.
    pub fn state(&self) -> VmState {
        *self.shared.state.borrow()
    }

    /// Returns whether the disk is kept when the VM ends: see
    /// [`VmBuilder::disk`].
    pub fn keeps_disk(&self) -> bool {
        self.shared.keeps_disk
    }

    /// Returns what every user of this VM must know, for example that no VM
    /// isolates it: see [`allow_host_compat`](VmBuilder::allow_host_compat). Every
    /// [`Output`] and its [`Health`] contain it too.
    pub fn warnings(&self) -> &[String] {
        &self.shared.warnings
    }

    /// Returns the end of what the guest's kernel printed on its console, made
    /// safe to print.
    ///
    /// # Errors
    /// [`Error::NotOwner`] on an [attached](Self::attach) handle.
    pub fn console(&self) -> Result<String, Error> {
        self.check_owner("read its console")?;
        Ok(self.shared.console.text())
    }

    /// Runs a program and collects its output. A nonzero exit code is a result,
    /// not an error.
    ///
    /// The program may take [`Command::DEFAULT_TIMEOUT`] and print
    /// [`Command::DEFAULT_MAX_OUTPUT`] bytes to each output; use
    /// [`exec_with`](Self::exec_with) to change that.
    ///
    /// # Errors
    /// [`Error::Exec`] if it could not be started, [`Error::ExecTimeout`] and
    /// [`Error::OutputLimit`] with its output so far if it was ended for that,
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the program and all its descendants are ended.
    pub async fn exec(
        &self,
        argv: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Output, Error> {
        self.exec_with(argv, |command| command).await
    }

    /// As [`exec`](Self::exec), with a closure that configures the command.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let sorted = vm.exec_with(["sort"], |command| command.stdin("b\na\n")).await?;
    /// assert_eq!(sorted.stdout, b"a\nb\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`exec`](Self::exec).
    ///
    /// # Cancel safety
    /// See [`exec`](Self::exec).
    pub async fn exec_with(
        &self,
        argv: impl IntoIterator<Item = impl Into<OsString>>,
        change: impl FnOnce(Command) -> Command,
    ) -> Result<Output, Error> {
        self.exec_command(change(Command::from_argv(argv))).await
    }

    /// As [`exec`](Self::exec), for an existing [`Command`].
    ///
    /// # Errors
    /// See [`exec`](Self::exec).
    ///
    /// # Cancel safety
    /// See [`exec`](Self::exec).
    pub async fn exec_command(&self, mut command: Command) -> Result<Output, Error> {
        command.timeout.get_or_insert(Command::DEFAULT_TIMEOUT);
        self.exec_stream(command)?.wait_with_output().await
    }

    /// Runs a program and returns a stream of its events.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// use vmcell::{Command, ExecEvent};
    ///
    /// let mut events = vm.exec_stream(Command::new("make").arg("test"))?;
    /// while let Some(event) = events.next().await? {
    ///     if let ExecEvent::Stdout(bytes) = event {
    ///         println!("{} bytes", bytes.len());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The command is invalid, or the VM has ended. If the program cannot be
    /// started, the first event fails.
    ///
    /// # Cancel safety
    /// Does not wait. Dropping the stream ends the command and all its
    /// descendants, unless it was [detached](ExecStream::detach).
    pub fn exec_stream(&self, command: Command) -> Result<ExecStream, Error> {
        tracing::debug!(vm = self.id(), program = command.program(), "exec");
        let (stream, tag) =
            command.with_request(ProcessMode::Foreground, |request| self.open(request))?;
        Ok(ExecStream::owning(stream, self.clone(), command, tag))
    }

    /// Starts a program in the background. It runs independently of this handle,
    /// and the guest keeps its record and the end of its output until it is
    /// [forgotten](Process::forget).
    ///
    /// The guest keeps the records of 256 processes that have ended, and forgets
    /// the oldest. [Bytes](Command::stdin) for its standard input are sent as fast
    /// as it reads them, as long as this program runs and the VM has a handle.
    ///
    /// # Errors
    /// [`Error::Exec`] if it could not be started, [`Error::Gone`] if the VM
    /// ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the program may or may not run.
    pub async fn spawn(&self, command: Command) -> Result<Process, Error> {
        tracing::debug!(vm = self.id(), program = command.program(), "spawn");
        let (mut stream, tag) =
            command.with_request(ProcessMode::Background, |request| self.open(request))?;
        let (id, pid) = match self.outcome(&mut stream).await?.outcome() {
            Outcome::Spawned { id, pid } => (ProcessId(id), pid),
            other => {
                let subject = format!("{:?} did not start", command.program());
                return Err(ExecFailure::refusal(&other, subject));
            }
        };
        if let Input::Bytes(bytes) = command.input {
            self.processes().feed(id, bytes)?;
        }
        Ok(Process::new(self.clone(), id, pid, tag))
    }

    /// Returns access to the files of this VM: see [`files`](crate::files).
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let workspace = vm.files().at("/workspace");
    /// workspace.write("hello.txt", "hello\n").await?;
    /// assert_eq!(workspace.read("hello.txt").await?, b"hello\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn files(&self) -> Files {
        Files::new(self.clone())
    }

    /// Stores a manifest of the VM's files as the baseline for later comparisons
    /// by this program or by others that [attach](Self::attach).
    ///
    /// # Errors
    /// [`Error::NotOwner`] on an attached handle, [`Error::Invalid`] if the
    /// manifest is too large to be stored.
    pub fn set_baseline(&self, manifest: &Manifest) -> Result<(), Error> {
        self.check_owner("set the baseline")?;
        let bytes = manifest.to_bytes();
        let bytes = bytes.map_err(|error| Error::Invalid(error.to_string()))?;
        self.shared.baseline.put(bytes.into());
        Ok(())
    }

    /// Returns the baseline that the program that owns the VM has
    /// [set](Self::set_baseline), or `None` if it has not.
    ///
    /// # Errors
    /// [`Error::NoSuchVm`] if the owner is gone.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn baseline(&self) -> Result<Option<Manifest>, Error> {
        let bytes = match &self.shared.control {
            Control::Owner { .. } => self.shared.baseline.get(),
            Control::Attached(name) => attached::baseline(name).await?,
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        let manifest = Manifest::from_bytes(&bytes);
        manifest
            .map(Some)
            .map_err(|error| Error::Invalid(error.to_string()))
    }

    /// Returns access to the processes of this VM.
    pub fn processes(&self) -> Processes {
        Processes::new(self.clone())
    }

    /// Returns access to the services of this VM: see [`service`](crate::service).
    pub fn services(&self) -> Services {
        Services::new(self.clone())
    }

    /// Returns access to the ports of this VM: see [`port`](crate::port).
    pub fn ports(&self) -> Ports {
        Ports::new(self.clone())
    }

    pub(crate) fn published_ports(&self) -> &PublishedPorts {
        &self.shared.ports
    }

    /// Returns access to the terminals of this VM: see [`terminal`](crate::terminal).
    #[cfg(feature = "terminal")]
    pub fn terminals(&self) -> Terminals {
        Terminals::new(self.clone())
    }

    #[cfg(feature = "terminal")]
    pub(crate) fn known_terminals(&self) -> &Followers {
        &self.shared.terminals
    }

    /// Drops the link to the agent and makes a new one. Bytes in flight are sent
    /// again: streams continue at the byte where they broke off.
    ///
    /// The library does so by itself when a link breaks.
    ///
    /// # Errors
    /// [`Error::NotOwner`] on an [attached](Self::attach) handle: the link is the
    /// owner's.
    pub fn reconnect(&self) -> Result<(), Error> {
        self.check_owner("reconnect it")?;
        self.shared.session.drop_link();
        Ok(())
    }

    /// Pings the agent and returns the health of the VM. It changes nothing in
    /// the guest, and takes at most 2 seconds.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn health(&self) -> Health {
        let pinging = async {
            match self.state() {
                // It would answer only when it is resumed.
                VmState::Paused => None,
                _ => timeout(Self::PING_TIMEOUT, self.ping())
                    .await
                    .ok()
                    .flatten(),
            }
        };
        let (round_trip, quotas) = tokio::join!(pinging, self.quota_usage());
        Health {
            state: self.state(),
            round_trip,
            backend: self.shared.backend.clone(),
            rejected_backends: self.shared.rejected_backends.clone(),
            confinement: self.shared.confinement.clone(),
            quotas,
            warnings: self.shared.warnings.clone(),
            acceleration: self.shared.acceleration,
            link: self.shared.link.clone(),
            agent: self.shared.session.peer().build.clone(),
        }
    }

    /// Returns its quotas, and how much of them is used.
    async fn quota_usage(&self) -> Option<QuotaUsage> {
        match (&self.shared.quotas, &self.shared.control) {
            (Some(quotas), _) => Some(quotas.usage()),
            (None, Control::Attached(name)) => {
                let quotas = timeout(Self::PING_TIMEOUT, attached::quotas(name)).await;
                quotas.ok().flatten()
            }
            (None, Control::Owner { .. }) => None,
        }
    }

    /// Stops the VM: asks its processes to end, and makes its disk clean. Kills a
    /// guest that takes longer than [`STOP_TIMEOUT`](Self::STOP_TIMEOUT). Stopping
    /// a VM that has ended has no effect.
    ///
    /// # Errors
    /// [`Error::Gone`] if it was not stopped cleanly, now or before: it was killed,
    /// or it died while it was stopping. A disk that is kept may lack the last
    /// writes then.
    ///
    /// # Cancel safety
    /// The VM stops even if the future is dropped.
    pub async fn stop(&self) -> Result<(), Error> {
        match self
            .request_end(DriverRequest::Stop, ControlRequest::Stop)
            .await?
            .reason
        {
            End::Stopped | End::StoppedUnproven => Ok(()),
            other => Err(Error::Gone(other)),
        }
    }

    /// Kills the VM and waits until it has ended. For a disk that is kept this is
    /// a power cut: use [`stop`](Self::stop). Killing a VM that has ended has no
    /// effect. [`ended`](Self::ended) returns how it ended.
    ///
    /// # Errors
    /// None in the program that owns the VM. An [attached](Self::attach) handle
    /// asks the owner to do it: [`Error::OwnerNotAnswering`] and
    /// [`Error::OwnerVersion`] as for that.
    ///
    /// # Cancel safety
    /// The VM ends even if the future is dropped.
    pub async fn kill(&self) -> Result<(), Error> {
        self.request_end(DriverRequest::Kill, ControlRequest::Kill)
            .await
            .map(drop)
    }

    /// Kills the VMM without telling the driver, as a crash would.
    #[cfg(feature = "conformance")]
    pub(crate) fn crash(&self) {
        if let Control::Owner { killer, .. } = &self.shared.control {
            killer.kill();
        }
    }

    /// Waits until the VM has ended and returns how.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn ended(&self) -> VmEnd {
        let mut state = self.shared.state.clone();
        let ended = state
            .wait_for(|state| matches!(state, VmState::Ended(_)))
            .await;
        match ended.as_deref() {
            Ok(VmState::Ended(end)) => *end,
            // The driver is gone with its runtime, and has killed the VMM.
            _ => VmEnd {
                reason: End::Killed,
                status: None,
            },
        }
    }

    /// Returns a future that waits until the VM has ended, and does not keep it running.
    pub(crate) fn watch_end(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut state = self.shared.state.clone();
        async move {
            // Fails if the driver is gone, and the VM with it.
            let _ = state
                .wait_for(|state| matches!(state, VmState::Ended(_)))
                .await;
        }
    }

    /// Fails with [`Error::NotOwner`] on an attached handle.
    fn check_owner(&self, doing: &'static str) -> Result<(), Error> {
        match self.shared.control {
            Control::Owner { .. } => Ok(()),
            Control::Attached(_) => Err(Error::NotOwner { doing }),
        }
    }

    /// Ends the VM: with a request to its driver, or to its owner.
    async fn request_end(
        &self,
        own: DriverRequest,
        attached: ControlRequest,
    ) -> Result<VmEnd, Error> {
        match &self.shared.control {
            Control::Owner { requests, .. } => {
                // Fails only if the driver has ended, and the VM with it.
                let _ = requests.send(own);
                Ok(self.ended().await)
            }
            Control::Attached(name) => match attached::end_vm(name, attached).await? {
                Some(end) => Ok(end),
                // It had ended already.
                None => Ok(self.ended().await),
            },
        }
    }
}

impl Drop for Shared {
    /// Kills the VM at once; the driver would do so only when its runtime runs it.
    /// A VM whose disk is kept is stopped by the driver.
    fn drop(&mut self) {
        if let (Control::Owner { killer, .. }, false) = (&self.control, self.keeps_disk) {
            killer.kill();
        }
    }
}

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vm")
            .field("id", &self.shared.id)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
