//! QEMU, with its `microvm` machine: virtio-mmio devices and nothing else.

mod arguments;

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
};

use self::arguments::Parts;
use super::{Backend, BackendHealth, BootLink, Launched, Machine, Vmm, Wiring};
use crate::{acceleration::AccelerationChoice, error::Error, locate, time_stamp};

/// The QEMU backend.
#[derive(Clone, Debug, Default)]
pub struct Qemu {
    program: Option<PathBuf>,
}

impl Qemu {
    /// The QEMU that `VMCELL_QEMU` names, or the one in `PATH`.
    pub fn new() -> Self {
        Self::default()
    }

    /// This QEMU.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: Some(program.into()),
        }
    }

    fn program(&self) -> Result<PathBuf, Error> {
        locate::qemu(self.program.as_deref())
    }
}

impl Backend for Qemu {
    fn name(&self) -> &str {
        "qemu"
    }

    fn health(&self) -> BackendHealth {
        match self.program() {
            Ok(program) => {
                let choice = AccelerationChoice::detect();
                BackendHealth::available(format!(
                    "{}, {}: {}",
                    program.display(),
                    choice.acceleration,
                    choice.reason
                ))
            }
            Err(error) => BackendHealth::unavailable(error.to_string()),
        }
    }

    /// Everything that QEMU works with is a descriptor that it inherits:
    /// sockets without an address, files without a name. So there is nothing
    /// to find for others, and nothing to clean up after a crash.
    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        let pair = || UnixStream::pair().map_err(Error::host("make a socket pair"));
        let (link, link_of_vmm) = pair()?;
        let (console, console_of_vmm) = pair()?;
        let (complaints, complaints_of_vmm) = pair()?;
        let parts = Parts {
            kernel: machine.kernel()?,
            disk: machine.overlay()?,
            time_stamp_khz: time_stamp::rate_khz(),
        };
        let initramfs = machine.initramfs("/dev/vda", BootLink::Ports)?;

        let mut command = Command::new(self.program()?);
        command
            .args(arguments::arguments(&machine, &parts))
            .env_clear()
            .current_dir("/")
            // A Ctrl-C at the terminal is for the program, not for its VMs.
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(OwnedFd::from(complaints_of_vmm));
        let mut descriptors = vec![
            link_of_vmm.into(),
            console_of_vmm.into(),
            initramfs.into(),
            parts.disk.layer.into(),
        ];
        let beneath = parts.disk.beneath.into_iter();
        descriptors.extend(beneath.map(|layer| OwnedFd::from(layer.file)));
        let vmm = Vmm::spawn(command, descriptors)?;
        let launched = Launched::new(vmm, Wiring::Port(link));
        Ok(launched.console(console).console(complaints))
    }
}
