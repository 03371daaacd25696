//! What can run a VM.
//!
//! A backend turns a [`Machine`] into a running VMM. The part that decides is
//! a pure function to a command line; the part that acts is small.

pub(crate) mod qemu;

use std::{fs::File, os::unix::net::UnixStream, path::PathBuf};

use crate::{acceleration::Acceleration, error::Error, overlay::Overlay, vmm::Vmm};

/// A VM to be: everything that differs from one VM to the next.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Shows in the list of processes whose VMM it is.
    pub(crate) id: String,
    pub(crate) kernel: PathBuf,
    /// What is added to the kernel's command line.
    pub(crate) kernel_arguments: String,
    /// The archive with the agent.
    pub(crate) initramfs: File,
    pub(crate) disk: Overlay,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) acceleration: Acceleration,
    pub(crate) randomise_addresses: bool,
    /// How fast the host's time stamp counter runs, if it runs evenly.
    pub(crate) time_stamp_khz: Option<u64>,
}

/// A VM that has been started and will now boot.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) vmm: Vmm,
    /// The byte stream to the agent. What is sent waits until it is there.
    pub(crate) link: UnixStream,
    /// What the guest prints on its serial console.
    pub(crate) console: UnixStream,
    /// What the VMM itself complains about.
    pub(crate) complaints: UnixStream,
}

/// Something that can run a VM.
pub(crate) trait Backend {
    /// A name that never changes.
    fn name(&self) -> &'static str;

    /// Starts the VM. It ends with the [`Vmm`] in the answer.
    fn launch(&self, machine: Machine) -> Result<Launched, Error>;
}
