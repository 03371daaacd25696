//! What can run a VM.
//!
//! A [`Backend`] turns a [`Machine`] into a running VMM. The part that decides
//! is a pure function to a command line or a config file; the part that acts is
//! small. Which one a VM gets says [`VmBuilder::backend`](crate::VmBuilder::backend);
//! all that there are, by name, is [`Backends`].
//!
//! Backends of other people are as good as ours: implement the trait, and
//! add it with [`Backends::with`].

mod ask;
mod cloud_hypervisor;
mod firecracker;
mod health;
mod kvm;
mod launched;
mod machine;
mod process;
pub(crate) mod qemu;
mod raw_disk;
mod registry;
mod transport;
mod version;

use std::fmt;

pub(crate) use ask::launch_error;
pub use cloud_hypervisor::CloudHypervisor;
pub(crate) use firecracker::vulnerability;
pub use firecracker::{Firecracker, Jail};
pub use health::BackendHealth;
pub use launched::Launched;
pub use machine::{BootLink, Machine, Root};
pub use process::HostProcess;
pub use qemu::Qemu;
pub use registry::{Backends, RejectedBackend};
pub(crate) use transport::AGENT_PORT;
pub use transport::AgentTransport;
pub(crate) use version::told_by;

use crate::error::Error;
pub use crate::{run_folder::RunFolder, vmm::Vmm, vsock::VsockListener};

/// Something that can run a VM.
pub trait Backend: fmt::Debug + Send + Sync {
    /// A name that never changes.
    fn name(&self) -> &str;

    /// Whether it could run a VM on this machine now. It is quick and changes
    /// nothing.
    ///
    /// Called on a thread that may wait. One that has not answered after 10
    /// seconds counts as not available, as does one that panics.
    fn health(&self) -> BackendHealth;

    /// Whether a VM holds what runs in it. A backend without one is used only
    /// where the caller allows that: see
    /// [`VmBuilder::allow_host_compat`](crate::VmBuilder::allow_host_compat).
    fn is_vm(&self) -> bool {
        true
    }

    /// Starts the VM. It ends with the [`Vmm`] in the answer.
    ///
    /// Called on a thread that may wait. A panic is reported to whoever starts
    /// the VM, as [`Error::BackendPanicked`].
    ///
    /// # Errors
    /// Why it cannot be started. Nothing is left of it then.
    fn launch(&self, machine: Machine) -> Result<Launched, Error>;
}
