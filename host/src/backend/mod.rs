//! Backends: the programs that run VMs.
//!
//! A [`Backend`] turns a [`Machine`] into a running VMM. A pure function builds
//! the command line or config file; the code that acts is small.
//! [`VmBuilder::backend`](crate::VmBuilder::backend) selects the backend of a
//! VM; [`Backends`] holds all of them by name.
//!
//! You can add backends of your own: implement the trait, and add it with
//! [`Backends::with`].

mod api_socket;
mod cloud_hypervisor;
mod control;
mod firecracker;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod guarded_call;
mod health;
mod http_api;
mod kvm;
mod launched;
mod layer_quota;
mod machine;
mod messages;
mod process;
pub(crate) mod qemu;
mod raw_disk;
mod registry;
mod savable;
mod saved;
mod transport;
mod version;

use std::{
    fmt,
    path::{Path, PathBuf},
};

pub use cloud_hypervisor::CloudHypervisor;
pub use control::{Feature, VmmControl};
pub(crate) use firecracker::vulnerability;
pub use firecracker::{Firecracker, Jail};
pub(crate) use guarded_call::launch_error;
pub use health::BackendHealth;
pub use launched::Launched;
pub(crate) use layer_quota::LayerQuota;
pub use machine::{BootLink, Machine, Root};
pub use process::HostProcess;
pub(crate) use process::cgroup::mount_point as cgroup_mount_point;
pub use qemu::Qemu;
pub use registry::{Backends, RejectedBackend};
pub use saved::{PartKind, SavedMachine, SavedPart, SavedVm, VmmRecord};
pub(crate) use transport::AGENT_PORT;
pub use transport::AgentTransport;
pub(crate) use version::version_line;

pub use crate::{confinement::VmmProgram, run_folder::RunFolder, vmm::Vmm, vsock::VsockListener};
use crate::{error::Error, locate};

/// A program that can run VMs.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Returns a stable name.
    fn name(&self) -> &str;

    /// Returns whether it can run a VM on this machine now. It is quick and has
    /// no side effects.
    ///
    /// Called on a thread that may block. A backend that has not returned after
    /// 10 seconds counts as unavailable, as does one that panics.
    fn health(&self) -> BackendHealth;

    /// Returns whether a VM isolates the guest. A backend without one is used
    /// only if the caller allows that: see
    /// [`VmBuilder::allow_host_compat`](crate::VmBuilder::allow_host_compat).
    fn is_vm(&self) -> bool {
        true
    }

    /// Returns the program that it runs VMs with, if it is a file. A
    /// [template](crate::template) is made again when that has changed.
    fn program(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the kernel that its VMs boot if the caller names this one, or none. A
    /// [template](crate::template) is made again when that has changed.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::BadFile`].
    fn kernel(&self, given: Option<&Path>) -> Result<PathBuf, Error> {
        locate::kernel(given)
    }

    /// Starts the VM. It ends when the returned [`Vmm`] is dropped.
    ///
    /// Called on a thread that may block. A panic is reported to the caller
    /// that starts the VM, as [`Error::BackendPanicked`].
    ///
    /// # Errors
    /// Why it cannot be started. In that case nothing is left behind.
    fn launch(&self, machine: Machine) -> Result<Launched, Error>;
}
