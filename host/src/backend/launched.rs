use std::{
    any::Any,
    fmt,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::Command,
};

use super::{AgentTransport, LayerQuota, Vmm, VmmControl, VmmProgram};
use crate::{
    error::Error,
    link::{LinkChoice, LinkKind},
    metrics::DiskFile,
    quotas::Quotas,
    vmm::ProcessLimits,
};

/// A VM that has been started and will now boot.
pub struct Launched {
    pub(crate) vmm: Vmm,
    pub(crate) transport: AgentTransport,
    pub(crate) link: LinkChoice,
    /// If the VM can only be run and killed, what to do about it.
    pub(crate) control: Result<Box<dyn VmmControl>, &'static str>,
    /// Streams with messages of the guest's kernel and of the VMM.
    pub(crate) consoles: Vec<UnixStream>,
    /// Dropped when the VM has ended.
    pub(crate) kept: Vec<Box<dyn Any + Send>>,
    pub(crate) warnings: Vec<String>,
    /// The file that the VM writes to, for its metrics.
    pub(crate) disk: DiskFile,
    /// The quotas that the backend enforces.
    pub(crate) enforced: Quotas,
    pub(crate) layer_quota: Option<LayerQuota>,
}

impl Launched {
    /// Creates it from a running VMM and the transport to the agent in its VM.
    pub fn new(vmm: Vmm, transport: AgentTransport) -> Self {
        let kind = match transport {
            AgentTransport::Serial(_) => LinkKind::Serial,
            AgentTransport::Hybrid { .. } => LinkKind::HybridVsock,
            AgentTransport::Vsock { .. } => LinkKind::Vsock,
        };
        let vmm_quotas = vmm.quotas();
        Self {
            vmm,
            transport,
            link: LinkChoice::new(kind, "the only one that the backend has"),
            control: Err("choose the backend qemu"),
            consoles: Vec::new(),
            kept: Vec::new(),
            warnings: Vec::new(),
            disk: DiskFile::default(),
            enforced: vmm_quotas,
            layer_quota: None,
        }
    }

    /// Starts a VMM whose standard output is the guest's console.
    pub(super) fn start(vmm: VmmProgram, transport: AgentTransport) -> Result<Self, Error> {
        let pair = || UnixStream::pair().map_err(Error::host("make a socket pair"));
        let (console, vmm_console) = pair()?;
        let (stderr, vmm_stderr) = pair()?;
        let vmm = vmm.stdout(vmm_console).stderr(vmm_stderr).spawn()?;
        Ok(Self::new(vmm, transport).console(console).console(stderr))
    }

    /// Same, for a program that confines the VMM itself.
    pub(super) fn spawn_jailed(
        mut command: Command,
        transport: AgentTransport,
        limits: ProcessLimits,
    ) -> Result<Self, Error> {
        let pair = || UnixStream::pair().map_err(Error::host("make a socket pair"));
        let (console, vmm_console) = pair()?;
        let (stderr, vmm_stderr) = pair()?;
        command
            .env_clear()
            // A Ctrl-C at the terminal is for the program, not for its VMs.
            .process_group(0)
            .stdout(OwnedFd::from(vmm_console))
            .stderr(OwnedFd::from(vmm_stderr));
        let vmm = Vmm::spawn_limited(command, Vec::new(), limits)?;
        Ok(Self::new(vmm, transport).console(console).console(stderr))
    }

    /// Adds a stream of messages for people: the guest's serial console, or the
    /// VMM's standard error. Its end is shown when a boot fails.
    #[must_use]
    pub fn console(mut self, console: UnixStream) -> Self {
        self.consoles.push(console);
        self
    }

    /// Sets the kind of link and why it was chosen, which the VM's health
    /// reports.
    #[must_use]
    pub fn link(mut self, link: LinkChoice) -> Self {
        self.link = link;
        self
    }

    /// Sets the control over the VMM, with which the VM can be paused. The
    /// [health](super::Backend::health) of the backend reports what it can do.
    #[must_use]
    pub fn control(mut self, control: impl VmmControl + 'static) -> Self {
        self.control = Ok(Box::new(control));
        self
    }

    /// Says what the user can do to get a VM with [control](Self::control) over its VMM:
    /// `choose the link serial`. By default, choose the backend qemu.
    #[must_use]
    pub fn no_control(mut self, remedy: &'static str) -> Self {
        self.control = Err(remedy);
        self
    }

    /// Keeps a value until the VM has ended, and drops it then: a folder that
    /// is removed, a lock that is released.
    #[must_use]
    pub fn keep(mut self, kept: impl Any + Send) -> Self {
        self.kept.push(Box::new(kept));
        self
    }

    /// Sets the file that the VM writes to, for its [metrics](crate::metrics).
    #[must_use]
    pub(crate) fn disk(mut self, disk: DiskFile) -> Self {
        self.disk = disk;
        self
    }

    /// Says that the backend enforces these quotas of the [machine](super::Machine::quotas),
    /// besides those that its [`VmmProgram`] does. A VM with others is not started.
    #[must_use]
    pub fn enforces(mut self, quotas: Quotas) -> Self {
        self.enforced.layer_bytes = self.enforced.layer_bytes.or(quotas.layer_bytes);
        self.enforced.cpu_seconds = self.enforced.cpu_seconds.or(quotas.cpu_seconds);
        self.enforced.cpu_milli = self.enforced.cpu_milli.or(quotas.cpu_milli);
        self.enforced.disk_rate = self.enforced.disk_rate.or(quotas.disk_rate);
        self
    }

    /// Sets the quota of the layer, which the VM's health reports, and says that the backend
    /// enforces it.
    #[must_use]
    pub(crate) fn layer_quota(mut self, quota: LayerQuota) -> Self {
        self.enforced.layer_bytes = Some(quota.file_limit());
        self.layer_quota = Some(quota);
        self
    }

    /// Adds a warning for every user of the VM.
    #[must_use]
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched")
            .field("vmm", &self.vmm)
            .field("transport", &self.transport)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}
