//! QEMU, with its `microvm` machine: virtio-mmio devices and nothing else.

mod arguments;

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
};

use super::{Backend, Launched, Machine};
use crate::{
    error::Error,
    vmm::{Vmm, VmmCommand},
};

/// The QEMU backend.
#[derive(Debug)]
pub(crate) struct Qemu {
    pub(crate) program: PathBuf,
}

impl Backend for Qemu {
    fn name(&self) -> &'static str {
        "qemu"
    }

    /// Everything that QEMU works with is a descriptor that it inherits:
    /// sockets without an address, files without a name. So there is nothing
    /// to find for others, and nothing to clean up after a crash.
    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        let pair = || UnixStream::pair().map_err(Error::host("make a socket pair"));
        let (link, link_of_vmm) = pair()?;
        let (console, console_of_vmm) = pair()?;
        let (complaints, complaints_of_vmm) = pair()?;

        let mut command = Command::new(&self.program);
        command
            .args(arguments::arguments(&machine))
            .env_clear()
            .current_dir("/")
            // A Ctrl-C at the terminal is for the program, not for its VMs.
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(OwnedFd::from(complaints_of_vmm));
        let mut descriptors = vec![
            link_of_vmm.into(),
            console_of_vmm.into(),
            machine.initramfs.into(),
            machine.disk.layer.into(),
        ];
        let beneath = machine.disk.beneath.into_iter();
        descriptors.extend(beneath.map(|layer| OwnedFd::from(layer.file)));
        let vmm = Vmm::start(VmmCommand {
            command,
            descriptors,
        })?;
        Ok(Launched {
            vmm,
            link,
            console,
            complaints,
        })
    }
}
