//! QEMU, with its `microvm` machine: virtio-mmio devices and nothing else.

mod arguments;
mod link;
mod qmp;
mod vhost_device;

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
};

use self::{
    arguments::Parts,
    link::{Device, Link},
    qmp::Qmp,
};
use super::{Backend, BackendHealth, Feature, Launched, Machine, Vmm, version::Version};
use crate::{
    acceleration::{Acceleration, AccelerationChoice},
    error::Error,
    locate, tsc,
};

/// The QEMU backend.
#[derive(Clone, Debug, Default)]
pub struct Qemu {
    program: Option<PathBuf>,
    vhost_device_vsock: Option<PathBuf>,
}

impl Qemu {
    /// Uses the QEMU that `VMCELL_QEMU` names, or the one in `PATH`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this QEMU.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: Some(program.into()),
            ..Self::default()
        }
    }

    /// Sets the program that provides its vsock device for the link
    /// [hybrid-vsock](crate::LinkKind::HybridVsock). The default is the one
    /// that `VMCELL_VHOST_DEVICE_VSOCK` names, the one in `PATH`, or the one
    /// that the set-up has installed.
    #[must_use]
    pub fn vhost_device_vsock(mut self, program: impl Into<PathBuf>) -> Self {
        self.vhost_device_vsock = Some(program.into());
        self
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
                .with(Feature::Pause)
            }
            Err(error) => BackendHealth::unavailable(error.to_string()),
        }
    }

    /// Everything that QEMU uses is a descriptor that it inherits: unnamed
    /// sockets and unnamed files. So other processes cannot find them, and a
    /// crash leaves nothing to clean up. Where a link needs sockets with an
    /// address, they are in a private folder.
    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        let pair = || UnixStream::pair().map_err(Error::host("make a socket pair"));
        let (console, vmm_console) = pair()?;
        let (stderr, vmm_stderr) = pair()?;
        let (control, vmm_control) = pair()?;
        let control = Qmp::new(control).map_err(Error::host("make a socket pair"))?;
        let program = self.program()?;
        let (kernel, disk) = (machine.kernel()?, machine.overlay()?);
        // Prepared last, because it may start a program.
        let link = Link::prepare(&machine, self.vhost_device_vsock.as_deref())?;
        let parts = Parts {
            kernel,
            disk,
            link: link.device,
            tsc_khz: tsc::frequency_khz(),
            single_thread: needs_single_thread(&machine, || Version::of(&program)),
        };
        let initramfs = machine.initramfs("/dev/vda", link.transport.boot_link())?;

        let mut command = Command::new(program);
        command
            .args(arguments::arguments(&machine, &parts))
            .env_clear()
            .current_dir("/")
            // A Ctrl-C at the terminal is for the program, not for its VMs.
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(OwnedFd::from(vmm_stderr));
        let mut descriptors = vec![
            link.descriptor,
            vmm_console.into(),
            vmm_control.into(),
            initramfs.into(),
            parts.disk.layer.into(),
        ];
        let backing = parts.disk.backing.into_iter();
        descriptors.extend(backing.map(|layer| OwnedFd::from(layer.file)));
        let vmm = Vmm::spawn(command, descriptors)?;
        let launched = match link.helper {
            None => Launched::new(vmm, link.transport),
            Some(helper) => Launched::new(vmm.with_device(helper.program), link.transport)
                .console(helper.stderr)
                .keep(helper.folder),
        };
        let launched = launched.link(link.choice);
        let launched = launched.console(console).console(stderr);
        Ok(match link.device {
            // Seen with vhost-device-vsock 0.3: after a pause it stops passing bytes on.
            Device::VhostUserVsock => launched,
            Device::Serial | Device::Vsock { .. } => launched.control(control),
        })
    }
}

/// The first version whose emulated processors never execute an instruction
/// that another processor has already replaced. With earlier ones a guest
/// kernel that patches its own code on several processors panics now and then.
const FIRST_WITH_SAFE_PATCHING: Version = Version(8, 1, 0);

/// Returns whether one thread must emulate all processors of a machine. Queries
/// QEMU's version only if it matters.
fn needs_single_thread(machine: &Machine, version: impl FnOnce() -> Option<Version>) -> bool {
    machine.acceleration.acceleration == Acceleration::Tcg
        && machine.vcpus > 1
        && version().is_none_or(|version| version < FIRST_WITH_SAFE_PATCHING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_emulates_several_processors_where_patching_is_not_safe() {
        let mut machine = Machine::sample(Acceleration::Tcg);
        machine.vcpus = 2;
        for (version, expected) in [
            (Some(Version(7, 2, 22)), true),
            (Some(Version(8, 0, 5)), true),
            (Some(Version(8, 1, 0)), false),
            (Some(Version(10, 0, 0)), false),
            (None, true),
        ] {
            assert_eq!(needs_single_thread(&machine, || version), expected);
        }
        let unasked = || panic!("the version does not matter");
        machine.vcpus = 1;
        assert!(!needs_single_thread(&machine, unasked));
        let mut machine = Machine::sample(Acceleration::Kvm);
        machine.vcpus = 2;
        assert!(!needs_single_thread(&machine, unasked));
    }
}
