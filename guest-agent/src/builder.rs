use alloc::{boxed::Box, vec::Vec};
use core::{fmt, time::Duration};

use rustix::{fd::OwnedFd, io::Errno};

use crate::{
    agent::{Agent, AgentParts, DiagnosticHandler},
    cgroup::Cgroups,
    children::Reaping,
    diagnostic::Diagnostic,
    event::Poller,
    kernel_error::KernelError,
    link::Medium,
    power::PowerControl,
    process::{Processes, SpawnSettings},
    program::Dedicated,
    snapshot::IdentityControl,
    sys,
};

/// Builds an [`Agent`].
///
/// Without further settings an agent has no link, rejects power-offs and requests
/// for snapshots, leaves the clock and the network alone, uses no cgroups, reaps its own children, and drops
/// diagnostics.
pub struct AgentBuilder<'a> {
    boot_id: [u8; 16],
    listener: Option<OwnedFd>,
    links: Vec<(OwnedFd, Medium)>,
    has_clock: bool,
    has_network: bool,
    power_control: Option<Box<dyn PowerControl>>,
    identity_control: Option<Box<dyn IdentityControl>>,
    write_back: bool,
    cgroups: Option<&'a str>,
    reaping: Reaping,
    dedicated: Option<Dedicated>,
    resume_grace: Duration,
    on_diagnostic: Option<DiagnosticHandler>,
}

/// Why an agent could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A write to a closed pipe would end the program: it has to ignore or block
    /// SIGPIPE, as programs with Rust's standard library do.
    Sigpipe,
    /// Exit statuses of children would be lost: the program must not ignore
    /// SIGCHLD, nor handle it with `SA_NOCLDWAIT`.
    Sigchld,
    /// Descriptor 0, 1 or 2 is not open.
    StandardStream(u8),
    /// The listening socket cannot be used.
    Listener(Errno),
    /// A socket or port cannot be used. `EMFILE`: there are too many.
    Link(Errno),
    /// The directory of the cgroups cannot be opened.
    Cgroups(Errno),
    /// A system call failed.
    Kernel(Errno),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sigpipe => f.write_str("SIGPIPE is neither ignored nor blocked"),
            Self::Sigchld => f.write_str("SIGCHLD is ignored, or handled with SA_NOCLDWAIT"),
            Self::StandardStream(number) => write!(f, "descriptor {number} is not open"),
            Self::Listener(errno) => write!(f, "the listening socket cannot be used: {errno}"),
            Self::Link(errno) => write!(f, "a link cannot be used: {errno}"),
            Self::Cgroups(errno) => write!(f, "the cgroups cannot be opened: {errno}"),
            Self::Kernel(errno) => write!(f, "{errno}"),
        }
    }
}

impl core::error::Error for BuildError {}

impl From<KernelError> for BuildError {
    fn from(KernelError(errno): KernelError) -> Self {
        Self::Kernel(errno)
    }
}

impl Agent {
    /// Returns a builder of an agent.
    pub fn builder<'a>() -> AgentBuilder<'a> {
        AgentBuilder::new()
    }
}

impl<'a> AgentBuilder<'a> {
    /// The default of [`resume_grace`](Self::resume_grace).
    pub const RESUME_GRACE: Duration = Duration::from_secs(10);

    fn new() -> Self {
        Self {
            boot_id: [0; 16],
            listener: None,
            links: Vec::new(),
            has_clock: false,
            has_network: false,
            power_control: None,
            identity_control: None,
            write_back: false,
            cgroups: None,
            reaping: Reaping::default(),
            dedicated: None,
            resume_grace: Self::RESUME_GRACE,
            on_diagnostic: None,
        }
    }

    /// Sets the boot id that the hello reports: a host that started the VM
    /// compares it with the one that it chose. It is zeros by default.
    #[must_use]
    pub fn boot_id(mut self, boot_id: [u8; 16]) -> Self {
        self.boot_id = boot_id;
        self
    }

    /// Sets a listening socket on which hosts connect: a Unix socket, or vsock.
    /// From vsock only connections of the host are accepted; who connects to a
    /// Unix socket is for the program to decide.
    #[must_use]
    pub fn listener(mut self, listener: OwnedFd) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Adds a connected socket: see [`Agent::add_socket`].
    #[must_use]
    pub fn socket(mut self, socket: OwnedFd) -> Self {
        self.links.push((socket, Medium::Socket));
        self
    }

    /// Adds a virtio-serial port: see [`Agent::add_port`].
    #[must_use]
    pub fn port(mut self, port: OwnedFd, reset_key: [u8; 16]) -> Self {
        self.links.push((port, Medium::Port { key: reset_key }));
        self
    }

    /// Sets whether hosts may set the clock. They should not where programs
    /// outside of the guest share it.
    #[must_use]
    pub fn may_set_clock(mut self, may_set_clock: bool) -> Self {
        self.has_clock = may_set_clock;
        self
    }

    /// Sets whether hosts may take the connections that programs make to other
    /// machines. The agent then changes addresses and routes of the loopback
    /// interface, attaches a BPF program to the network namespace, and mounts a file
    /// over `/etc/resolv.conf`, all when a host first asks for it. So only PID 1 of a
    /// machine without a network should.
    #[must_use]
    pub fn may_capture_network(mut self, may_capture: bool) -> Self {
        self.has_network = may_capture;
        self
    }

    /// Accepts power-off requests.
    #[must_use]
    pub fn power_control(mut self, control: impl PowerControl + 'static) -> Self {
        self.power_control = Some(Box::new(control));
        self
    }

    /// Accepts requests for snapshots: freezing all processes, and taking a new
    /// identity. They need [`cgroups`](Self::cgroups), too.
    #[must_use]
    pub fn identity_control(mut self, control: impl IdentityControl + 'static) -> Self {
        self.identity_control = Some(Box::new(control));
        self
    }

    /// Sets whether a process writes the file system of `/` back every second,
    /// for a disk that outlives its VM.
    #[must_use]
    pub fn write_back(mut self, write_back: bool) -> Self {
        self.write_back = write_back;
        self
    }

    /// Sets the directory of a cgroup2 hierarchy in which the agent may create a
    /// cgroup for each process. Without one, only process groups can be killed,
    /// no limits can be set, and hosts do not learn whether a tree has ended.
    ///
    /// It is `/sys/fs/cgroup` usually. In another directory processes see the
    /// whole hierarchy, and the end of a tree after a kill is not proved.
    #[must_use]
    pub fn cgroups(mut self, directory: &'a str) -> Self {
        self.cgroups = Some(directory);
        self
    }

    /// Sets who reaps the agent's children.
    #[must_use]
    pub fn reaping(mut self, reaping: Reaping) -> Self {
        self.reaping = reaping;
        self
    }

    /// Declares that the process belongs to the agent:
    /// see [`program::dedicate`](crate::program::dedicate).
    #[must_use]
    pub fn dedicated(mut self, dedicated: Dedicated) -> Self {
        self.dedicated = Some(dedicated);
        self
    }

    /// Sets how long a foreground process that lost its link waits to be
    /// resumed, before it is killed.
    #[must_use]
    pub fn resume_grace(mut self, grace: Duration) -> Self {
        self.resume_grace = grace;
        self
    }

    /// Sets what is called with each diagnostic.
    #[must_use]
    pub fn on_diagnostic(mut self, handler: impl FnMut(&Diagnostic) + 'static) -> Self {
        self.on_diagnostic = Some(Box::new(handler));
        self
    }

    /// Builds the agent. It serves no host before its first turn.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(self) -> Result<Agent, BuildError> {
        if sys::is_ended_by_sigpipe().map_err(BuildError::Kernel)? {
            return Err(BuildError::Sigpipe);
        }
        if sys::discards_exit_statuses().map_err(BuildError::Kernel)? {
            return Err(BuildError::Sigchld);
        }
        let may_renice = self.dedicated.is_some();
        let open = |directory| Cgroups::new(directory, may_renice);
        let cgroups = self.cgroups.map(open).transpose();
        let cgroups = cgroups.map_err(BuildError::Cgroups)?;
        let settings = match self.dedicated {
            Some(dedicated) => dedicated.settings(),
            None => SpawnSettings {
                descriptors: sys::descriptor_limit(),
                directory: Some(b"/"),
                ignored_signals: sys::ignored_signals(),
            },
        };
        let grace_ms = u64::try_from(self.resume_grace.as_millis()).unwrap_or(u64::MAX);
        let mut agent = Agent::new(AgentParts {
            poller: Poller::new(self.reaping).map_err(BuildError::Kernel)?,
            processes: Processes::new(cgroups, settings, grace_ms).map_err(BuildError::Kernel)?,
            boot_id: self.boot_id,
            has_clock: self.has_clock,
            has_network: self.has_network,
            power_control: self.power_control,
            identity_control: self.identity_control,
            write_back: self.write_back,
            on_diagnostic: self.on_diagnostic,
        });
        if let Some(listener) = self.listener {
            agent.listen(listener).map_err(BuildError::Listener)?;
        }
        for (descriptor, medium) in self.links {
            let added = agent.add_nonblocking(descriptor, medium);
            added.map_err(BuildError::Link)?;
        }
        // A child's streams are copied to these numbers, from descriptors that
        // must not have them.
        match sys::first_closed_stream() {
            Some(number) => Err(BuildError::StandardStream(number)),
            None => Ok(agent),
        }
    }
}
