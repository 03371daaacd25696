//! Cloud Hypervisor, configured by its command line.
//!
//! ```text
//!  this program ── cloud-hypervisor --disk path=/proc/self/fd/3 …
//!                    3 disk   4 initramfs   stdout: console
//!                    vsock: Unix sockets in a folder of the VM
//!
//!  this program ── cloud-hypervisor --api-socket fd=4
//!                    3 disk   4 API   5… saved files   PUT vm.restore, vm.resume
//! ```
//!
//! A saved VM names its disk and its vsock socket as they were. So that each copy
//! has its own, the disk is always descriptor 3, and the socket has a relative path.
//!
//! Its devices are on a PCI bus, and its machine powers off through ACPI. The
//! default guest kernel has neither, so it needs a separate one: see
//! `kernel-config/README.md`.

mod arguments;
mod control;

use std::{
    fs,
    os::unix::{ffi::OsStrExt as _, net::UnixListener},
    path::{Path, PathBuf},
};

use self::{
    arguments::{FIRST_SAVED_FD, Parts, VSOCK},
    control::{CloudHypervisorControl, SavedFolder, has_snapshots, require_snapshots},
};
use super::{
    AgentTransport, Backend, BackendHealth, Feature, Launched, Machine, SavedMachine, VmmProgram,
    http_api::{API_WRITES_ANYWHERE, Api, NO_API_REMEDY},
    kvm::{check_kvm, require_kvm},
    messages::with_messages,
    raw_disk::{check_disk_rate, raw_disk, raw_disk_quota},
    savable::{Savable, WITHOUT_JAIL, check_fits},
    version::Version,
};
use crate::{
    error::Error,
    link::LinkKind,
    locate,
    metrics::DiskFile,
    quotas::Quotas,
    run_folder::{RunFolder, VMM},
};

/// The Cloud Hypervisor backend. It needs KVM, and a guest kernel with PCI and
/// ACPI: `kernel-config/build.sh cloud-hypervisor` builds one.
#[derive(Clone, Debug, Default)]
pub struct CloudHypervisor {
    program: Option<PathBuf>,
    has_api: bool,
}

/// The options that the guest's kernel must have.
const REQUIRED_OPTIONS: [&str; 2] = ["CONFIG_VIRTIO_PCI", "CONFIG_ACPI"];

/// The name of its API socket in the folder of the VM.
const API: &str = "api";

/// The name of the folder that a VM is restored from, in the folder of the VM.
const SAVED: &str = "saved";

impl CloudHypervisor {
    /// Uses the Cloud Hypervisor that `VMCELL_CLOUD_HYPERVISOR` names, or the
    /// one in `PATH`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this Cloud Hypervisor.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: Some(program.into()),
            ..Self::default()
        }
    }

    /// Enables its API, with which VMs can be [paused](crate::Vm::pause) and, since
    /// version 52, [saved](crate::Vm::snapshot). It is off by default: an API that is off
    /// cannot be attacked. Each VM has a socket of its own, which only the user who started
    /// the VM can use.
    #[must_use]
    pub fn with_api(mut self) -> Self {
        self.has_api = true;
        self
    }

    fn locate(&self) -> Result<PathBuf, Error> {
        locate::cloud_hypervisor(self.program.as_deref())
    }

    /// Returns what was found, or why it cannot be used.
    fn check(&self) -> Result<BackendHealth, String> {
        let program = self.locate().map_err(|error| error.to_string())?;
        check_kvm()?;
        let version = version(&program).map_err(|error| error.to_string())?;
        kernel(None).map_err(|error| error.to_string())?;
        let found = format!("{} {version}, /dev/kvm works", program.display());
        let health = BackendHealth::available(found);
        Ok(match (self.has_api, has_snapshots(version)) {
            (false, _) => health,
            (true, false) => health.with(Feature::Pause),
            (true, true) => health.with(Feature::Pause).with(Feature::Snapshot),
        })
    }

    /// Starts the VMM for a VM that boots.
    fn boot(&self, program: &Path, machine: &Machine, version: Version) -> Result<Started, Error> {
        let folder = RunFolder::create(&RunFolder::base(), machine.id())?;
        let vmm_folder = folder.vmm_folder()?;
        let api = vmm_folder.join(API);
        if self.has_api && api.as_os_str().as_bytes().contains(&b',') {
            return Err(Error::BadFile {
                what: "run folder",
                path: api,
                reason: "has a comma in its path, where Cloud Hypervisor ends it: set \
                         XDG_RUNTIME_DIR to another folder"
                    .to_owned(),
            });
        }
        let transport = AgentTransport::hybrid(vmm_folder.join(VSOCK))?;
        let disk = raw_disk(machine, self.name())?;
        let savable = self
            .has_api
            .then(|| Savable::new(machine, &disk, WITHOUT_JAIL))
            .transpose()?;
        let initramfs = machine.initramfs("/dev/vda", transport.boot_link())?;
        let parts = Parts {
            kernel: kernel(machine.kernel.as_deref())?,
            version,
            api: self.has_api.then_some(api),
        };
        let disk_file = DiskFile::new(&disk);
        let (quota, file_size) = raw_disk_quota(machine, &disk, self.name())?;
        let mut vmm = vmm_program(program, machine, &vmm_folder)
            .file_size(file_size)
            .args(arguments::arguments(machine, &parts))
            .readable(&parts.kernel)
            .descriptors([disk.into(), initramfs.into()])
            .reopens(3)
            .reopens(4);
        if self.has_api {
            vmm = vmm.unconfined(API_WRITES_ANYWHERE);
        }
        let launched = Launched::start(vmm, transport)?;
        Ok(Started {
            launched: launched.disk(disk_file).layer_quota(quota).keep(folder),
            savable,
        })
    }

    /// Starts the VMM for a VM that is restored.
    fn start_to_restore(
        &self,
        program: &Path,
        machine: &Machine,
        saved: &SavedMachine,
    ) -> Result<(Started, SavedFolder), Error> {
        let folder = RunFolder::create(&RunFolder::base(), machine.id())?;
        let vmm_folder = folder.vmm_folder()?;
        let transport = AgentTransport::hybrid(vmm_folder.join(VSOCK))?;
        let disk = raw_disk(machine, self.name())?;
        let savable = Savable::new(machine, &disk, WITHOUT_JAIL)?;
        let api = UnixListener::bind(vmm_folder.join(API))
            .map_err(Error::host("make a socket for the API"))?;
        let files = SavedFolder::create(vmm_folder.join(SAVED), saved, FIRST_SAVED_FD);
        let (files, saved) = files.map_err(Error::host("open the saved VM"))?;
        let disk_file = DiskFile::new(&disk);
        let (quota, file_size) = raw_disk_quota(machine, &disk, self.name())?;
        let mut descriptors = vec![disk.into(), api.into()];
        descriptors.extend(saved);
        let vmm = vmm_program(program, machine, &vmm_folder)
            .file_size(file_size)
            .args(arguments::restore_arguments())
            .descriptors(descriptors)
            .unconfined(API_WRITES_ANYWHERE);
        let launched = Launched::start(vmm, transport)?;
        let started = Started {
            launched: launched.disk(disk_file).layer_quota(quota).keep(folder),
            savable: Some(savable),
        };
        Ok((started, files))
    }
}

impl Backend for CloudHypervisor {
    fn name(&self) -> &str {
        "cloud_hypervisor"
    }

    fn health(&self) -> BackendHealth {
        self.check().unwrap_or_else(BackendHealth::unavailable)
    }

    fn program(&self) -> Option<PathBuf> {
        self.locate().ok()
    }

    fn kernel(&self, given: Option<&Path>) -> Result<PathBuf, Error> {
        kernel(given)
    }

    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        require_kvm(&machine, self.name())?;
        let link = machine.only_link(LinkKind::HybridVsock, self.name())?;
        check_disk_rate(&machine, self.name())?;
        let program = self.locate()?;
        let version = version(&program)?;
        let (started, files) = match machine.saved() {
            None => (self.boot(&program, &machine, version)?, None),
            Some(_) if !self.has_api => {
                return Err(Error::BackendLacks {
                    backend: self.name().to_owned(),
                    feature: Feature::Snapshot,
                    remedy: NO_API_REMEDY,
                });
            }
            Some(saved) => {
                require_snapshots(version)?;
                check_fits(saved, &machine, &program, WITHOUT_JAIL)?;
                let (started, files) = self.start_to_restore(&program, &machine, saved)?;
                (started, Some(files))
            }
        };
        let Started { launched, savable } = started;
        let launched = launched.link(link).enforces(Quotas {
            disk_rate: machine.quotas.disk_rate,
            ..Quotas::new()
        });
        let Some(savable) = savable else {
            return Ok(launched.no_control(NO_API_REMEDY));
        };
        let mut control = CloudHypervisorControl {
            api: Api {
                socket: RunFolder::base().join(machine.id()).join(VMM).join(API),
            },
            savable,
            version,
        };
        if let (Some(files), Some(stderr)) = (files, launched.consoles.last()) {
            let restored = control.restore(&files);
            restored.map_err(|error| with_messages(error, stderr))?;
        }
        Ok(launched.control(control))
    }
}

/// Returns the VMM, with what it needs whether or not it boots a VM.
fn vmm_program(program: &Path, machine: &Machine, folder: &Path) -> VmmProgram {
    VmmProgram::new(program, machine)
        .current_dir(folder)
        .writable(folder)
        .device("/dev/kvm")
        .uses_sockets()
        .uses_memory_files()
}

/// A Cloud Hypervisor that runs.
struct Started {
    launched: Launched,
    /// Set if it has an API.
    savable: Option<Savable>,
}

fn version(program: &Path) -> Result<Version, Error> {
    Version::of(program).ok_or_else(|| Error::BadFile {
        what: "Cloud Hypervisor",
        path: program.to_owned(),
        reason: "prints no version".to_owned(),
    })
}

/// Returns a guest kernel that it can boot.
fn kernel(given: Option<&Path>) -> Result<PathBuf, Error> {
    let path = locate::cloud_hypervisor_kernel(given)?;
    match missing_option(&path) {
        None => Ok(path),
        Some(option) => Err(Error::BadFile {
            what: "kernel",
            path,
            reason: format!(
                "has no {option}, which Cloud Hypervisor needs: use the one that \
                 `kernel-config/build.sh cloud-hypervisor` makes"
            ),
        }),
    }
}

/// Returns the first required option that a kernel lacks, according to the
/// config that its build left beside it. A kernel without such a config is
/// assumed to have all.
fn missing_option(kernel: &Path) -> Option<&'static str> {
    let config = fs::read_to_string(kernel.with_file_name("config")).ok()?;
    let has = |option: &str| {
        let mut lines = config.lines();
        lines.any(|line| line.strip_prefix(option) == Some("=y"))
    };
    REQUIRED_OPTIONS.into_iter().find(|option| !has(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_pci_is_told_from_one_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("vmlinux");
        assert_eq!(missing_option(&kernel), None, "nothing is known of it");
        let write = |text| fs::write(folder.path().join("config"), text).unwrap();
        write("CONFIG_ACPI=y\n# CONFIG_VIRTIO_PCI is not set\n");
        assert_eq!(missing_option(&kernel), Some("CONFIG_VIRTIO_PCI"));
        write("CONFIG_ACPI=y\nCONFIG_VIRTIO_PCI=y\n");
        assert_eq!(missing_option(&kernel), None);
    }
}
