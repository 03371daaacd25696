use std::{any::Any, fmt, os::unix::net::UnixStream};

use super::{AgentTransport, Vmm};
use crate::link::{LinkChoice, LinkKind};

/// A VM that has been started and will now boot.
pub struct Launched {
    pub(crate) vmm: Vmm,
    pub(crate) transport: AgentTransport,
    pub(crate) link: LinkChoice,
    /// What is read for messages of the guest's kernel and of the VMM.
    pub(crate) consoles: Vec<UnixStream>,
    /// Dropped when the VM has ended.
    pub(crate) kept: Vec<Box<dyn Any + Send>>,
    pub(crate) warnings: Vec<String>,
}

impl Launched {
    /// A VMM that runs, and how the agent in its VM is reached.
    pub fn new(vmm: Vmm, transport: AgentTransport) -> Self {
        let kind = match transport {
            AgentTransport::Port(_) => LinkKind::Serial,
            AgentTransport::Hybrid { .. } => LinkKind::HybridVsock,
            AgentTransport::Vsock { .. } => LinkKind::Vsock,
        };
        Self {
            vmm,
            transport,
            link: LinkChoice::new(kind, "the only one that the backend has"),
            consoles: Vec::new(),
            kept: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Something that tells people what happens: the guest's serial console, or
    /// what the VMM itself complains about. Its end is shown when a boot fails.
    #[must_use]
    pub fn console(mut self, console: UnixStream) -> Self {
        self.consoles.push(console);
        self
    }

    /// What the link is, and why that one, for those who ask how the VM is.
    #[must_use]
    pub fn link(mut self, link: LinkChoice) -> Self {
        self.link = link;
        self
    }

    /// Keeps something until the VM has ended, and drops it then: a folder that
    /// is removed, a lock that is given back.
    #[must_use]
    pub fn keep(mut self, kept: impl Any + Send) -> Self {
        self.kept.push(Box::new(kept));
        self
    }

    /// Something that everybody who uses the VM must know.
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
