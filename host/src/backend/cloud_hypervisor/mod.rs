//! Cloud Hypervisor, configured by its command line.
//!
//! Its devices are on a PCI bus, and its machine powers off through ACPI. The
//! default guest kernel has neither, so it needs a separate one: see
//! `kernel-config/README.md`.

mod arguments;

use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::Command,
};

use self::arguments::Parts;
use super::{
    AgentTransport, Backend, BackendHealth, Feature, Launched, Machine, Vmm,
    http_api::{ApiControl, ApiRequest, NO_API_REMEDY},
    kvm::{check_kvm, require_kvm},
    raw_disk::raw_disk,
    version::Version,
};
use crate::{error::Error, link::LinkKind, locate, run_folder::RunFolder};

/// The Cloud Hypervisor backend. It needs KVM, and a guest kernel with PCI and
/// ACPI: `kernel-config/build.sh cloud-hypervisor` builds one.
#[derive(Clone, Debug, Default)]
pub struct CloudHypervisor {
    program: Option<PathBuf>,
    has_api: bool,
}

/// The options that the guest's kernel must have.
const REQUIRED_OPTIONS: [&str; 2] = ["CONFIG_VIRTIO_PCI", "CONFIG_ACPI"];

const PAUSE: ApiRequest = ApiRequest {
    method: "PUT",
    path: "/api/v1/vm.pause",
    body: "",
};

const RESUME: ApiRequest = ApiRequest {
    path: "/api/v1/vm.resume",
    ..PAUSE
};

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

    /// Enables its API, with which VMs can be [paused](crate::Vm::pause). It is off
    /// by default: an API that is off cannot be attacked. Each VM has a socket of its
    /// own, which only the user who started the VM can use.
    #[must_use]
    pub fn with_api(mut self) -> Self {
        self.has_api = true;
        self
    }

    fn program(&self) -> Result<PathBuf, Error> {
        locate::cloud_hypervisor(self.program.as_deref())
    }

    /// Returns what was found, or why it cannot be used.
    fn check(&self) -> Result<String, String> {
        let program = self.program().map_err(|error| error.to_string())?;
        check_kvm()?;
        let version = version(&program).map_err(|error| error.to_string())?;
        kernel(None).map_err(|error| error.to_string())?;
        Ok(format!("{} {version}, /dev/kvm works", program.display()))
    }
}

impl Backend for CloudHypervisor {
    fn name(&self) -> &str {
        "cloud_hypervisor"
    }

    fn health(&self) -> BackendHealth {
        match self.check() {
            Ok(found) if self.has_api => BackendHealth::available(found).with(Feature::Pause),
            Ok(found) => BackendHealth::available(found),
            Err(reason) => BackendHealth::unavailable(reason),
        }
    }

    fn kernel(&self, given: Option<&Path>) -> Result<PathBuf, Error> {
        kernel(given)
    }

    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        require_kvm(&machine, self.name())?;
        let link = machine.only_link(LinkKind::HybridVsock, self.name())?;
        let program = self.program()?;
        let folder = RunFolder::create(&RunFolder::base(), machine.id())?;
        let vsock = folder.path().join("v");
        if vsock.as_os_str().as_bytes().contains(&b',') {
            return Err(Error::BadFile {
                what: "run folder",
                path: vsock,
                reason: "has a comma in its path, where Cloud Hypervisor ends it: set \
                         XDG_RUNTIME_DIR to another folder"
                    .to_owned(),
            });
        }
        let transport = AgentTransport::hybrid(&vsock)?;
        let disk = raw_disk(&machine, self.name())?;
        let initramfs = machine.initramfs("/dev/vda", transport.boot_link())?;
        let parts = Parts {
            kernel: kernel(machine.kernel.as_deref())?,
            vsock,
            version: version(&program)?,
            api: self.has_api.then(|| folder.path().join("api")),
        };

        let pair = || UnixStream::pair().map_err(Error::host("make a socket pair"));
        let (console, vmm_console) = pair()?;
        let (stderr, vmm_stderr) = pair()?;
        let mut command = Command::new(program);
        command
            .args(arguments::arguments(&machine, &parts))
            .env_clear()
            .current_dir("/")
            // A Ctrl-C at the terminal is for the program, not for its VMs.
            .process_group(0)
            .stdout(OwnedFd::from(vmm_console))
            .stderr(OwnedFd::from(vmm_stderr));
        let vmm = Vmm::spawn(command, vec![disk.into(), initramfs.into()])?;
        let launched = Launched::new(vmm, transport).link(link).keep(folder);
        let launched = launched.console(console).console(stderr);
        Ok(match parts.api {
            Some(socket) => launched.control(ApiControl {
                socket,
                pause: PAUSE,
                resume: RESUME,
            }),
            None => launched.no_control(NO_API_REMEDY),
        })
    }
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
