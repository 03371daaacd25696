//! What runs a VM of our own.

use clap::Args;
use vmcell::{LinkKind, VmBuilder};

/// The options for it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for the machine")]
pub(crate) struct MachineOptions {
    /// What runs the VM: `qemu`, `firecracker`, `cloud_hypervisor` or `process`.
    /// Without it, the first that can.
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// What carries the bytes between us and the VM: `serial`, `vsock` or
    /// `hybrid-vsock`. Without it, the best that the backend has.
    #[arg(long, value_name = "KIND")]
    link: Option<LinkKind>,
    /// Allow the backend `process`, which is no VM and no security boundary: the
    /// command runs in namespaces on the kernel of this machine.
    #[arg(long)]
    allow_host_compat: bool,
}

impl MachineOptions {
    /// Whether anything was asked for.
    pub(crate) fn are_given(&self) -> bool {
        self.backend.is_some() || self.link.is_some() || self.allow_host_compat
    }

    /// Has a VM run so.
    pub(crate) fn apply(self, mut builder: VmBuilder) -> VmBuilder {
        if let Some(backend) = self.backend {
            builder = builder.backend(backend);
        }
        if let Some(link) = self.link {
            builder = builder.link(link);
        }
        if self.allow_host_compat {
            builder = builder.allow_host_compat();
        }
        builder
    }
}
