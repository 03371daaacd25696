//! Options for how a new VM is run.

use clap::Args;
use vmcell::{Confinement, LinkKind, VmBuilder};

/// Given to each option: one for all would last beyond them.
const HELP_HEADING: &str = "Backend options";

/// The options for the backend of a new VM.
#[derive(Debug, Default, Args)]
pub(crate) struct MachineOptions {
    /// Backend that runs the VM: `qemu`, `firecracker`, `cloud_hypervisor` or
    /// `process`. Default: the first one that can run here.
    #[arg(long, value_name = "NAME", help_heading = HELP_HEADING)]
    backend: Option<String>,
    /// Transport between host and guest: `serial`, `vsock` or `hybrid-vsock`.
    /// Default: the best one that the backend supports.
    #[arg(long, value_name = "KIND", help_heading = HELP_HEADING)]
    link: Option<LinkKind>,
    /// Confinement of the VMM: `required`, `best-effort` or `off`. With
    /// `required` the VM does not start unless this machine's files, network and
    /// processes are out of its reach. Default: `best-effort`.
    #[arg(long, value_name = "HOW", help_heading = HELP_HEADING)]
    confinement: Option<Confinement>,
    /// Allow the backend `process`, which is not a VM and not a security
    /// boundary: the command runs in namespaces on this machine's kernel.
    #[arg(long, help_heading = HELP_HEADING)]
    allow_host_compat: bool,
}

impl MachineOptions {
    /// Returns whether any of the options was given.
    pub(crate) fn is_set(&self) -> bool {
        self.backend.is_some()
            || self.link.is_some()
            || self.confinement.is_some()
            || self.allow_host_compat
    }

    /// Applies the options to a VM.
    pub(crate) fn apply(self, mut builder: VmBuilder) -> VmBuilder {
        if let Some(backend) = self.backend {
            builder = builder.backend(backend);
        }
        if let Some(link) = self.link {
            builder = builder.link(link);
        }
        if let Some(confinement) = self.confinement {
            builder = builder.confinement(confinement);
        }
        if self.allow_host_compat {
            builder = builder.allow_host_compat();
        }
        builder
    }
}
