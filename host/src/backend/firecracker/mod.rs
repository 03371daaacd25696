//! Firecracker, configured by a config file.
//!
//! ```text
//!  this program ── firecracker --no-api --config-file /proc/self/fd/5
//!                    3 disk   4 initramfs   5 config   stdout: console
//!                    vsock: Unix sockets in a folder of the VM
//! ```
//!
//! Its API is off unless a caller enables it. Only pausing, saving and restoring a
//! VM need it: the config file says everything else, a guest that powers off ends
//! Firecracker, and an API that is off cannot be attacked. If it is on, its socket
//! is in the folder of the VM, and is opened before the VM boots.
//!
//! A VM that is restored has no config file:
//!
//! ```text
//!  this program ── firecracker --api-sock …/api
//!                    3 disk   4 state   5 memory   PUT /snapshot/load
//! ```
//!
//! The state names the disk and the vsock socket as they were when the VM was
//! saved. So that each copy has its own, the disk is always descriptor 3, and the
//! socket has a relative path, in the folder that Firecracker is started in.

mod config;
mod control;
mod jail;
mod vulnerable_versions;

use std::{
    ffi::OsString,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

pub use self::jail::Jail;
use self::{
    config::{Paths, config, instance_id},
    control::{FirecrackerControl, SavedPaths},
};
use super::{
    AgentTransport, Backend, BackendHealth, Feature, Launched, Machine, PartKind, SavedMachine,
    VmmProgram,
    http_api::{API_WRITES_ANYWHERE, Api, NO_API_REMEDY},
    kvm::{check_kvm, require_kvm},
    messages::with_messages,
    raw_disk::{check_disk_rate, raw_disk, raw_disk_quota},
    savable::{Savable, WITHOUT_JAIL, check_fits},
};
use crate::{
    error::Error,
    link::LinkKind,
    locate,
    memory_file::memory_file,
    metrics::DiskFile,
    quotas::Quotas,
    run_folder::{RunFolder, VMM},
};

pub(crate) use self::vulnerable_versions::vulnerability;

/// The Firecracker backend. It needs KVM.
#[derive(Clone, Debug, Default)]
pub struct Firecracker {
    program: Option<PathBuf>,
    jail: Option<Jail>,
    has_api: bool,
}

/// The name of its vsock socket: short, because socket addresses are.
const VSOCK: &str = "v";

/// The name of its API socket. It cannot collide with the sockets of guest
/// ports, which are named `v_<port>`.
const API: &str = "api";

// The descriptors that it inherits, in the order in which they are passed.
const DISK: &str = "/proc/self/fd/3";
const INITRAMFS: &str = "/proc/self/fd/4";
const CONFIG: &str = "/proc/self/fd/5";

// Same, after the disk, for a VM that is restored.
const SAVED: SavedPaths = SavedPaths {
    state: "/proc/self/fd/4",
    memory: "/proc/self/fd/5",
};

/// A Firecracker that runs.
struct Started {
    launched: Launched,
    /// Set if it has an API.
    savable: Option<Savable>,
}

impl Firecracker {
    /// Uses the Firecracker that `VMCELL_FIRECRACKER` names, or the one in
    /// `PATH`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this Firecracker.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self {
            program: Some(program.into()),
            ..Self::default()
        }
    }

    /// Runs it in a jail, with Firecracker's `jailer`.
    #[must_use]
    pub fn jailed(mut self, jail: Jail) -> Self {
        self.jail = Some(jail);
        self
    }

    /// Enables its API, with which VMs can be [paused](crate::Vm::pause) and
    /// [saved](crate::Vm::snapshot). It also has features that this library does
    /// not use, such as limiting the rate of a disk. It is off by default.
    ///
    /// Each VM has a socket of its own: see [`api_socket`](Self::api_socket). A
    /// VM that is paused there, not by this library, does not reply here.
    #[must_use]
    pub fn with_api(mut self) -> Self {
        self.has_api = true;
        self
    }

    /// Returns the Unix socket of Firecracker's API for the VM with this id. It
    /// speaks HTTP as Firecracker's documentation describes. It exists from the
    /// start of the VM until its end, accessible to the user who started it
    /// only. In a jail do not trust it: a Firecracker that a guest has taken
    /// over may have put something else there.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use tokio::net::UnixStream;
    /// use vmcell::{Vm, backend::{Backends, Firecracker}};
    ///
    /// let firecracker = Firecracker::new().with_api();
    /// let vm = Vm::builder()
    ///     .image("base.ext4")
    ///     .backends(Backends::new().with(firecracker.clone()))
    ///     .backend("firecracker")
    ///     .start()
    ///     .await?;
    /// let api = UnixStream::connect(firecracker.api_socket(vm.id())?).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if its VMs have [no API](Self::with_api),
    /// [`Error::Missing`] if it is jailed and there is no Firecracker.
    pub fn api_socket(&self, id: &str) -> Result<PathBuf, Error> {
        if !self.has_api {
            return Err(Error::Invalid(
                "this Firecracker has no API: start its VMs with `Firecracker::with_api`"
                    .to_owned(),
            ));
        }
        Ok(match &self.jail {
            None => RunFolder::base().join(id).join(VMM).join(API),
            Some(jail) => jail.root(&self.locate()?, id).join(API),
        })
    }

    fn locate(&self) -> Result<PathBuf, Error> {
        locate::firecracker(self.program.as_deref())
    }

    /// Returns what was found, or why it cannot be used.
    fn check(&self) -> Result<String, String> {
        let program = self.locate().map_err(|error| error.to_string())?;
        check_kvm()?;
        if let Some(vulnerability) = vulnerability(&program) {
            return Err(vulnerability);
        }
        if let Some(jail) = &self.jail {
            jail.check().map_err(|error| error.to_string())?;
        }
        Ok(format!("{}, /dev/kvm works", program.display()))
    }

    fn start_unjailed(&self, program: &Path, machine: &Machine) -> Result<Started, Error> {
        let folder = RunFolder::create(&RunFolder::base(), machine.id())?;
        let vmm_folder = folder.vmm_folder()?;
        let transport = AgentTransport::hybrid(vmm_folder.join(VSOCK))?;
        let disk = raw_disk(machine, "firecracker")?;
        let savable = self
            .has_api
            .then(|| Savable::new(machine, &disk, WITHOUT_JAIL))
            .transpose()?;
        let disk_file = DiskFile::new(&disk);
        let (quota, file_size) = raw_disk_quota(machine, &disk, "firecracker")?;
        let mut descriptors = vec![disk.into()];
        let mut vmm = VmmProgram::new(program, machine)
            .current_dir(&vmm_folder)
            .writable(&vmm_folder)
            .device("/dev/kvm")
            .file_size(file_size)
            .uses_sockets()
            .uses_memory_files();
        let config = match machine.saved() {
            None => {
                vmm = vmm.readable(machine.kernel()?);
                descriptors.extend(boot_files(machine, &transport)?);
                Some(CONFIG)
            }
            Some(saved) => {
                descriptors.extend(saved_files(saved)?);
                None
            }
        };
        let api = self.has_api.then(|| vmm_folder.join(API));
        if self.has_api {
            vmm = vmm.unconfined(API_WRITES_ANYWHERE);
        }
        for number in 0..descriptors.len() {
            vmm = vmm.reopens(3 + number);
        }
        let vmm = vmm
            .args(arguments(machine, config, api.as_deref()))
            .descriptors(descriptors);
        let launched = Launched::start(vmm, transport)?
            .disk(disk_file)
            .layer_quota(quota)
            .keep(folder);
        Ok(Started { launched, savable })
    }
}

impl Backend for Firecracker {
    fn name(&self) -> &str {
        "firecracker"
    }

    fn health(&self) -> BackendHealth {
        match self.check() {
            Ok(found) if self.has_api => BackendHealth::available(found)
                .with(Feature::Pause)
                .with(Feature::Snapshot),
            Ok(found) => BackendHealth::available(found),
            Err(reason) => BackendHealth::unavailable(reason),
        }
    }

    fn program(&self) -> Option<PathBuf> {
        self.locate().ok()
    }

    fn launch(&self, machine: Machine) -> Result<Launched, Error> {
        require_kvm(&machine, self.name())?;
        let link = machine.only_link(LinkKind::HybridVsock, self.name())?;
        check_disk_rate(&machine, self.name())?;
        let program = self.locate()?;
        if let Some(saved) = machine.saved() {
            if !self.has_api {
                return Err(Error::BackendLacks {
                    backend: self.name().to_owned(),
                    feature: Feature::Snapshot,
                    remedy: NO_API_REMEDY,
                });
            }
            let setting = match &self.jail {
                None => WITHOUT_JAIL,
                Some(_) => jail::IN_JAIL,
            };
            check_fits(saved, &machine, &program, setting)?;
        }
        let started = match &self.jail {
            None => self.start_unjailed(&program, &machine),
            Some(jail) => jail.start(&program, &machine, self.has_api),
        };
        let Started { launched, savable } = started?;
        let launched = launched.link(link).enforces(Quotas {
            disk_rate: machine.quotas.disk_rate,
            ..Quotas::new()
        });
        let Some(savable) = savable else {
            return Ok(launched.no_control(NO_API_REMEDY));
        };
        let control = FirecrackerControl {
            api: Api {
                socket: self.api_socket(machine.id())?,
            },
            savable,
            root: self
                .jail
                .as_ref()
                .map(|jail| jail.root(&program, machine.id())),
        };
        if let (Some(_), Some(stderr)) = (machine.saved(), launched.consoles.last()) {
            let saved = match &self.jail {
                None => SAVED,
                Some(_) => jail::SAVED,
            };
            let restored = control.restore(saved, stderr);
            restored.map_err(|error| with_messages(error, stderr))?;
        }
        Ok(launched.control(control))
    }
}

/// Returns the descriptors of a VM that boots, after its disk.
fn boot_files(machine: &Machine, transport: &AgentTransport) -> Result<[OwnedFd; 2], Error> {
    let initramfs = machine.initramfs("/dev/vda", transport.boot_link())?;
    let paths = Paths {
        kernel: utf8_path(&machine.kernel()?)?,
        initramfs: INITRAMFS.to_owned(),
        disk: DISK.to_owned(),
        vsock: VSOCK.to_owned(),
    };
    let config = memory_file("vmcell-config", config(machine, &paths).as_bytes())
        .map_err(Error::host("make Firecracker's config file"))?;
    Ok([initramfs.into(), config.into()])
}

/// Returns the descriptors of a VM that is restored, after its disk.
fn saved_files(saved: &SavedMachine) -> Result<[OwnedFd; 2], Error> {
    let open = |kind| {
        let file = saved.open_first(kind);
        file.map_err(Error::host("open the saved VM"))
    };
    Ok([
        open(PartKind::State)?.into(),
        open(PartKind::Memory)?.into(),
    ])
}

/// Returns its command line.
fn arguments(machine: &Machine, config: Option<&str>, api: Option<&Path>) -> Vec<OsString> {
    let id = instance_id(machine.id());
    let identity = ["--id", &id].map(OsString::from);
    identity.into_iter().chain(options(config, api)).collect()
}

/// Returns the options that it also gets in a jail, with paths as it sees them.
fn options(config: Option<&str>, api: Option<&Path>) -> Vec<OsString> {
    let mut words: Vec<OsString> = match api {
        None => vec!["--no-api".into()],
        Some(socket) => vec!["--api-sock".into(), socket.into()],
    };
    if let Some(config) = config {
        words.extend(["--config-file", config].map(OsString::from));
    }
    // Its log goes to the guest's console; only warnings and errors are wanted.
    words.extend(["--level", "Warning"].map(OsString::from));
    words
}

/// Returns a path as UTF-8, which JSON needs.
fn utf8_path(path: &Path) -> Result<String, Error> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::BadFile {
            what: "path",
            path: path.to_owned(),
            reason: "is not UTF-8, which Firecracker's config file has to be".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceleration::Acceleration;

    fn command_line(config: Option<&str>, api: Option<&str>) -> String {
        let machine = Machine::sample(Acceleration::Kvm);
        let words = arguments(&machine, config, api.map(Path::new));
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn the_whole_command_line() {
        assert_eq!(
            command_line(Some(CONFIG), None),
            "--id vmcell-0123 --no-api --config-file /proc/self/fd/5 --level Warning"
        );
    }

    #[test]
    fn the_whole_command_line_with_the_api() {
        assert_eq!(
            command_line(Some(CONFIG), Some("/run/vmcell/0123/api")),
            "--id vmcell-0123 --api-sock /run/vmcell/0123/api --config-file /proc/self/fd/5 \
             --level Warning"
        );
        assert_eq!(
            command_line(None, Some("/run/vmcell/0123/api")),
            "--id vmcell-0123 --api-sock /run/vmcell/0123/api --level Warning"
        );
    }

    #[test]
    fn the_api_of_a_vm_is_in_its_folder_or_its_jail() {
        let firecracker = Firecracker::at("/bin/true").with_api();
        let free = firecracker.api_socket("0123").unwrap();
        assert_eq!(free, RunFolder::base().join("0123/vmm/api"));
        let jailed = firecracker.jailed(Jail::new(123, 100).folder("/jails"));
        let program = std::fs::canonicalize("/bin/true").unwrap();
        let name = program.file_name().unwrap().to_str().unwrap();
        assert_eq!(
            jailed.api_socket("0123").unwrap(),
            Path::new(&format!("/jails/0123/{name}/vm/root/api"))
        );
    }

    #[test]
    fn who_has_no_api_is_told_how_to_have_one() {
        let error = Firecracker::new().api_socket("0123").unwrap_err();
        assert_eq!(error.code(), "invalid");
        assert!(error.to_string().contains("with_api"), "{error}");
    }
}
