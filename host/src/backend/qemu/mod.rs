//! QEMU, with its `microvm` machine: virtio-mmio devices and nothing else.

mod arguments;
mod confinement;
mod control;
mod disk;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod link;
mod qmp;
mod vhost_device;

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
};

use rustix::fs::{MemfdFlags, memfd_create};

use self::{
    arguments::{Memory, Parts, START_FD},
    control::{MachineRecord, QemuControl},
    disk::DiskFiles,
    link::{Device, Link},
    qmp::Qmp,
};
use super::{
    Backend, BackendHealth, Feature, Launched, Machine, PartKind, VmmProgram,
    messages::with_messages, version::Version,
};
use crate::{
    acceleration::{Acceleration, AccelerationChoice},
    error::Error,
    locate, processor,
    quotas::Quotas,
    tsc,
};

/// The QEMU backend.
#[derive(Clone, Debug, Default)]
pub struct Qemu {
    program: Option<PathBuf>,
    vhost_device_vsock: Option<PathBuf>,
    readable: Vec<PathBuf>,
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

    /// Lets a [confined](crate::confinement) QEMU read a file or a folder: for one that has
    /// libraries or firmware neither in the folders of the system nor beside itself. Can be
    /// called many times.
    #[must_use]
    pub fn readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.readable.push(path.into());
        self
    }

    fn locate(&self) -> Result<PathBuf, Error> {
        locate::qemu(self.program.as_deref())
    }
}

impl Backend for Qemu {
    fn name(&self) -> &str {
        "qemu"
    }

    fn health(&self) -> BackendHealth {
        match self.locate() {
            Ok(program) => {
                let choice = AccelerationChoice::detect();
                BackendHealth::available(format!(
                    "{}, {}: {}",
                    program.display(),
                    choice.acceleration,
                    choice.reason
                ))
                .with(Feature::Pause)
                .with(Feature::Snapshot)
                .with(Feature::SwitchDisk)
            }
            Err(error) => BackendHealth::unavailable(error.to_string()),
        }
    }

    fn program(&self) -> Option<PathBuf> {
        self.locate().ok()
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
        let qmp = Qmp::new(control).map_err(Error::host("make a socket pair"))?;
        let program = self.locate()?;
        let kernel = match machine.saved() {
            None => Some(machine.kernel()?),
            Some(_) => None,
        };
        let disk = machine.overlay()?;
        // Prepared last, because it may start a program.
        let link = Link::prepare(&machine, self.vhost_device_vsock.as_deref())?;
        let parts = Parts {
            kernel,
            disk,
            link: link.device,
            tsc_khz: tsc::frequency_khz(),
            single_thread: needs_single_thread(&machine, || Version::of(&program)),
            memory: memory(&machine, link.device).map_err(Error::host("make the VM's memory"))?,
        };
        let start = match machine.saved() {
            None => machine.initramfs("/dev/vda", link.transport.boot_link())?,
            Some(saved) => saved
                .open_first(PartKind::State)
                .map_err(Error::host("open the saved state"))?,
        };
        let mut control = QemuControl {
            qmp,
            machine: MachineRecord {
                machine: arguments::machine_text(&machine, &parts),
                processor: match machine.acceleration.acceleration {
                    Acceleration::Kvm => processor::description(),
                    Acceleration::Tcg => String::new(),
                },
                tsc_khz: match machine.acceleration.acceleration {
                    Acceleration::Kvm => None,
                    Acceleration::Tcg => parts.tsc_khz,
                },
                memory_mib: machine.memory_mib,
            },
            disk: DiskFiles::open(&machine, &parts.disk)
                .map_err(Error::host("open the VM's disk"))?,
            memory: match &parts.memory {
                Memory::Shared(memory) => Some(
                    memory
                        .try_clone()
                        .map_err(Error::host("make the VM's memory"))?,
                ),
                Memory::Own | Memory::CopyOf(_) => None,
            },
            can_be_saved: link.device == Device::Serial,
        };

        let vmm = confinement::vmm_program(program, &machine, &parts);
        let mut vmm = (self.readable.iter().fold(vmm, VmmProgram::readable))
            .file_size(control.disk.quota.file_limit())
            .args(arguments::arguments(&machine, &parts))
            .stderr(vmm_stderr);
        let mut descriptors = vec![
            link.descriptor,
            vmm_console.into(),
            vmm_control.into(),
            start.into(),
            parts.disk.layer.into(),
        ];
        let backing = parts.disk.backing.into_iter();
        descriptors.extend(backing.map(|layer| OwnedFd::from(layer.file)));
        if let Memory::Shared(memory) | Memory::CopyOf(memory) = parts.memory {
            vmm = vmm.reopens(3 + descriptors.len());
            descriptors.push(memory.into());
        }
        let vmm = vmm.descriptors(descriptors).spawn()?;
        control.disk.vmm = Some(vmm.killer());
        if let Some(saved) = machine.saved() {
            let restored = control.restore(saved, START_FD);
            restored.map_err(|error| with_messages(error, &stderr))?;
        }
        let launched = match link.helper {
            None => Launched::new(vmm, link.transport),
            Some(helper) => Launched::new(vmm.with_device(helper.program), link.transport)
                .console(helper.stderr)
                .keep(helper.folder),
        };
        let launched = (launched.link(link.choice))
            .disk(control.disk.top.clone())
            .layer_quota(control.disk.quota.clone())
            .enforces(Quotas {
                disk_rate: machine.quotas.disk_rate,
                ..Quotas::new()
            });
        let launched = launched.console(console).console(stderr);
        Ok(match link.device {
            // Seen with vhost-device-vsock 0.3: after a pause it stops passing bytes on.
            Device::VhostUserVsock => {
                launched.no_control("it has the link hybrid-vsock, choose the link serial")
            }
            Device::Serial | Device::Vsock { .. } => launched.control(control),
        })
    }
}

/// Makes the memory of a VM.
fn memory(machine: &Machine, link: Device) -> io::Result<Memory> {
    if let Some(saved) = machine.saved()
        && let Some(file) = saved.open(PartKind::Memory)?.into_iter().next()
    {
        return Ok(Memory::CopyOf(file));
    }
    // A vhost-user device is another process and must map the guest's memory.
    if !machine.shares_memory && link != Device::VhostUserVsock {
        return Ok(Memory::Own);
    }
    let file = File::from(memfd_create("vmcell-memory", MemfdFlags::CLOEXEC)?);
    file.set_len(u64::from(machine.memory_mib) << 20)?;
    Ok(Memory::Shared(file))
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
