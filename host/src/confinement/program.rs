use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _, unix::process::CommandExt as _},
    path::PathBuf,
    process::{Command, Stdio},
};

use rustix::process::geteuid;
use vmcell_launcher::{Failure, Layer, LayerStatus, Limits, OwnUser, Plan};

use super::{
    Confinement,
    cgroup::{CgroupLimits, VmmCgroup},
    launcher::{self, Confined, LaunchError},
    libraries,
};
use crate::{
    backend::Machine,
    error::Error,
    quotas::Quotas,
    random::random_bytes,
    sys::{join_cgroup, limit_process},
    vmm::{Inherited, ProcessLimits, Started, Vmm, spawn_child},
};

/// A VMM to be started, and all that it may use of the host.
///
/// ```no_run
/// use std::os::fd::OwnedFd;
/// use vmcell::{Error, backend::{Machine, Vmm, VmmProgram}};
///
/// fn start(machine: &Machine, disk: OwnedFd, stderr: OwnedFd) -> Result<Vmm, Error> {
///     VmmProgram::new("/usr/bin/my-vmm", machine)
///         .args(["--disk-fd", "3", "--kernel"])
///         .arg(machine.kernel()?)
///         .readable(machine.kernel()?)
///         .device("/dev/kvm")
///         .stderr(stderr)
///         .descriptors([disk])
///         .spawn()
/// }
/// ```
#[derive(Debug)]
#[must_use]
pub struct VmmProgram {
    path: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    inherited: Inherited,
    confinement: Confinement,
    unconfined: Option<&'static str>,
    id: String,
    memory_mib: u32,
    vcpus: u32,
    quotas: Quotas,
    file_size: Option<u64>,
    access: Access,
}

/// What a VMM may use besides its program and its libraries.
#[derive(Clone, Debug, Default)]
struct Access {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    reopened: Vec<i32>,
    uses_sockets: bool,
    uses_memory_files: bool,
}

/// Programs open it whatever they do.
const NULL: &str = "/dev/null";

/// How many files a VMM may have open.
const OPEN_FILES: u64 = 1024;

/// How many threads it may have.
const THREADS: u64 = 512;

/// How much address space it may have beyond the memory of its guest: its program, the stacks
/// and heaps of its threads, and a gigabyte of code that QEMU translates if it emulates the
/// processor.
const ADDRESS_SPACE_BEYOND_MEMORY: u64 = 8 << 30;

/// The first of the user ids that VMMs of root get: above those of people, services and
/// container managers.
const FIRST_USER: u32 = 0x7000_0000;

impl VmmProgram {
    /// Describes a VMM for a machine. It runs without an environment, in `/`, without input
    /// and output, and may use the processor time of the machine's
    /// [quotas](Machine::quotas).
    pub fn new(path: impl Into<PathBuf>, machine: &Machine) -> Self {
        Self {
            path: path.into(),
            arguments: Vec::new(),
            folder: "/".into(),
            inherited: Inherited::default(),
            confinement: machine.confinement(),
            unconfined: None,
            id: machine.id().to_owned(),
            memory_mib: machine.memory_mib(),
            vcpus: machine.vcpus(),
            quotas: machine.quotas(),
            file_size: machine.quotas().layer_bytes,
            access: Access::default(),
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets the folder that it is started in. It must be one that it may use.
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets its standard output.
    pub fn stdout(mut self, stdout: impl Into<OwnedFd>) -> Self {
        self.inherited.stdout = Some(stdout.into());
        self
    }

    /// Sets its standard error.
    pub fn stderr(mut self, stderr: impl Into<OwnedFd>) -> Self {
        self.inherited.stderr = Some(stderr.into());
        self
    }

    /// Adds descriptors that it inherits, numbered from 3 on. It inherits no others.
    pub fn descriptors(mut self, descriptors: impl IntoIterator<Item = OwnedFd>) -> Self {
        self.inherited.descriptors.extend(descriptors);
        self
    }

    /// Lets it read a file or a folder, if that exists. Its program and the libraries of this
    /// system it may always read.
    pub fn readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.readable.push(path.into());
        self
    }

    /// Lets it create, change and remove files in a folder.
    pub fn writable(mut self, folder: impl Into<PathBuf>) -> Self {
        self.access.writable.push(folder.into());
        self
    }

    /// Lets it use a device, if that exists.
    pub fn device(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.devices.push(path.into());
        self
    }

    /// Lets it open the file of an inherited descriptor once more, by its path in
    /// `/proc/self/fd`.
    pub fn reopens(mut self, descriptor: usize) -> Self {
        self.access.reopened.extend(i32::try_from(descriptor));
        self
    }

    /// Lets it create Unix sockets. Without this it has those that it inherits only.
    pub fn uses_sockets(mut self) -> Self {
        self.access.uses_sockets = true;
        self
    }

    /// Lets it create files in memory: memfd_create(2).
    pub fn uses_memory_files(mut self) -> Self {
        self.access.uses_memory_files = true;
        self
    }

    /// Limits the size of each file that it writes, whether it is confined or not; by default to
    /// the [quota of the layer](crate::Quotas::layer_bytes()), if there is one. What it would
    /// write beyond that fails with `EFBIG`.
    pub fn file_size(mut self, bytes: u64) -> Self {
        self.file_size = Some(bytes);
        self
    }

    /// Does not confine it, for this reason. It is not started then if it
    /// [must be](Confinement::Required).
    pub(crate) fn unconfined(mut self, reason: &'static str) -> Self {
        self.unconfined = Some(reason);
        self
    }

    /// Starts it. It ends when the [`Vmm`] is dropped, or when this program ends.
    ///
    /// # Errors
    /// [`Error::Host`] if it cannot be started, [`Error::Confinement`] if it must be confined
    /// and cannot be.
    pub fn spawn(self) -> Result<Vmm, Error> {
        Vmm::start(move || match (self.confinement, self.unconfined) {
            (Confinement::Off, _) => self.spawn_free("confinement is off"),
            (Confinement::BestEffort, Some(reason)) => self.spawn_free(reason),
            (Confinement::Required, Some(reason)) => Err(Error::Confinement {
                reason: reason.to_owned(),
            }),
            (Confinement::Required | Confinement::BestEffort, None) => self.spawn_confined(),
        })
    }

    /// Starts it without confinement.
    fn spawn_free(self, reason: &str) -> Result<Started, Error> {
        let inactive = |layer| LayerStatus::inactive(layer, reason);
        // Without confinement it has one only if it was asked for.
        let cgroup = self.quotas.cpu_milli.map(|_| self.cgroup());
        let cgroup = cgroup.transpose().map_err(quota_error)?;
        let enforced = self.enforced();
        let limits = self.limits();
        let mut command = Command::new(self.path);
        command
            .args(self.arguments)
            .env_clear()
            .current_dir(self.folder)
            // A Ctrl-C at the terminal is for the program, not for its VMs.
            .process_group(0)
            .stdout(self.inherited.stdout.map_or_else(Stdio::null, Stdio::from))
            .stderr(self.inherited.stderr.map_or_else(Stdio::null, Stdio::from));
        if let Some(cgroup) = &cgroup {
            let members = cgroup.members().map_err(Error::host("enter the cgroup"))?;
            join_cgroup(&mut command, members);
        }
        limit_process(&mut command, limits);
        let child = spawn_child(command, self.inherited.descriptors);
        let child = child.map_err(Error::host("start the VMM"))?;
        let layers = Layer::ALL.into_iter().map(inactive).collect();
        let started = Started::unconfined(&child, layers)?;
        Ok(started.enforces(enforced).keep(cgroup))
    }

    /// Returns the limits that its process has in any case.
    fn limits(&self) -> ProcessLimits {
        ProcessLimits {
            file_size: self.file_size,
            cpu_seconds: self.quotas.cpu_seconds,
        }
    }

    /// Returns the quotas that hold for it.
    fn enforced(&self) -> Quotas {
        Quotas {
            cpu_seconds: self.quotas.cpu_seconds,
            cpu_milli: self.quotas.cpu_milli,
            ..Quotas::new()
        }
    }

    fn spawn_confined(self) -> Result<Started, Error> {
        let cgroup = self.cgroup();
        if let (Some(_), Err(reason)) = (self.quotas.cpu_milli, &cgroup) {
            return Err(quota_error(reason.clone()));
        }
        let plan = self.plan(&cgroup)?;
        let cgroup = cgroup.ok();
        let directory = cgroup.as_ref().map(|cgroup| &cgroup.directory);
        let launched = launcher::launch(plan, &self.inherited, directory);
        match launched {
            Ok(Confined { pid, layers }) => {
                let started = Started::new(pid, layers)?;
                Ok(started.enforces(self.enforced()).keep(cgroup))
            }
            Err(LaunchError::Failed(failure)) => Err(failure_error(failure)),
            Err(LaunchError::NoLauncher(error)) => match self.confinement {
                Confinement::Required => Err(Error::Confinement {
                    reason: format!("the launcher does not run: {error}"),
                }),
                Confinement::BestEffort | Confinement::Off => {
                    drop(cgroup);
                    self.spawn_free(&format!("the launcher does not run: {error}"))
                }
            },
        }
    }

    /// Returns how it would be confined.
    fn examine(self) -> Result<Vec<LayerStatus>, Error> {
        let cgroup = self.cgroup();
        let plan = Plan {
            program: None,
            ..self.plan(&cgroup)?
        };
        let cgroup = cgroup.ok();
        let directory = cgroup.as_ref().map(|cgroup| &cgroup.directory);
        match launcher::launch(plan, &self.inherited, directory) {
            Ok(Confined { pid, layers }) => {
                launcher::wait(pid);
                Ok(layers)
            }
            Err(LaunchError::Failed(failure)) => Err(failure_error(failure)),
            Err(LaunchError::NoLauncher(error)) => Err(Error::Confinement {
                reason: format!("the launcher does not run: {error}"),
            }),
        }
    }

    fn cgroup(&self) -> Result<VmmCgroup, String> {
        let name = self.path.file_name().unwrap_or_default();
        let limits = CgroupLimits {
            memory_mib: self.memory_mib,
            vcpus: self.vcpus,
            cpu_milli: self.quotas.cpu_milli,
        };
        VmmCgroup::create(&self.id, &name.to_string_lossy(), limits)
    }

    fn plan(&self, cgroup: &Result<VmmCgroup, String>) -> Result<Plan, Error> {
        let program = fs::canonicalize(&self.path).map_err(Error::host("find the VMM"))?;
        let mut readable = libraries::of(&program);
        readable.extend(self.access.readable.iter().cloned());
        let arguments = std::iter::once(self.path.clone().into_os_string());
        Ok(Plan {
            arguments: arguments.chain(self.arguments.iter().cloned()).collect(),
            folder: self.folder.clone().into(),
            is_required: self.confinement == Confinement::Required,
            no_namespaces: None,
            readable: paths(readable.into_iter().chain([program.clone()]))?,
            writable: paths(self.access.writable.iter().cloned())?,
            devices: paths(self.access.devices.iter().cloned().chain([NULL.into()]))?,
            reopened: self.access.reopened.clone(),
            uses_sockets: self.access.uses_sockets,
            uses_memory_files: self.access.uses_memory_files,
            own_user: own_user(&self.access.devices)?,
            limits: Limits {
                open_files: OPEN_FILES,
                threads: THREADS,
                address_space: Some(
                    (u64::from(self.memory_mib) << 20) + ADDRESS_SPACE_BEYOND_MEMORY,
                ),
                file_size: self.file_size,
                cpu_seconds: self.quotas.cpu_seconds,
            },
            cgroup: match cgroup {
                Ok(cgroup) => Ok(cgroup.limits.clone()),
                Err(reason) => Err(reason.clone()),
            },
            needs_cgroup: self.quotas.cpu_milli.is_some(),
            program: Some(program.into()),
        })
    }
}

/// Makes paths absolute. They are the same in the root of the VMM.
fn paths(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<OsString>, Error> {
    let absolute = |path: PathBuf| std::path::absolute(path).map(PathBuf::into_os_string);
    let paths: io::Result<BTreeSet<_>> = paths.into_iter().map(absolute).collect();
    let paths = paths.map_err(Error::host("find the current directory"))?;
    Ok(paths.into_iter().collect())
}

/// Returns a user for a VMM, if this program is root. It may use the devices that the groups of
/// their owners may use.
fn own_user(devices: &[PathBuf]) -> Result<Option<OwnUser>, Error> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let group = |device: &PathBuf| fs::metadata(device).ok().map(|found| found.gid());
    let [one, two, three] = random_bytes()?;
    Ok(Some(OwnUser {
        id: FIRST_USER + u32::from_le_bytes([one, two, three, 0]),
        groups: devices
            .iter()
            .filter_map(group)
            .filter(|gid| *gid != 0)
            .collect(),
    }))
}

fn quota_error(reason: String) -> Error {
    Error::Quota {
        quota: Quotas::CPU_RATE,
        reason,
    }
}

fn failure_error(failure: Failure) -> Error {
    let Failure {
        layer,
        doing,
        reason,
    } = failure;
    if layer == Some(Layer::Cgroup) {
        return quota_error(format!("cannot {doing}: {reason}"));
    }
    Error::Confinement {
        reason: format!("cannot {doing}: {reason}"),
    }
}

/// Returns how a VMM of QEMU's kind would be confined.
pub(super) fn examine() -> Result<Vec<LayerStatus>, Error> {
    let id = crate::hex::encode(&random_bytes::<6>()?);
    let sample = VmmProgram {
        path: "/proc/self/exe".into(),
        arguments: Vec::new(),
        folder: "/".into(),
        inherited: Inherited::default(),
        confinement: Confinement::BestEffort,
        unconfined: None,
        id,
        memory_mib: 1024,
        vcpus: 1,
        quotas: Quotas::new(),
        file_size: None,
        access: Access::default(),
    };
    sample.examine()
}
