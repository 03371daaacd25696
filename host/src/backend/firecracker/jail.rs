//! Firecracker in a jail: with a root folder, a user and a cgroup of its own.
//!
//! ```text
//!  <base>/<id>                    the folder of the VM
//!    firecracker/vm/root          what Firecracker sees as /
//!      kernel initramfs disk config.json
//!      v  v_1025                  vsock
//!      api                        if it is enabled
//! ```
//!
//! A VM that is restored has `state` and `memory` in place of the first two and the
//! last. A VM is saved into the root, too, and copied from there.
//!
//! A process that changes its user loses its parent death signal (prctl(2)). So
//! a jailed VM outlives a program that is killed, until the next start finds
//! its folder and kills its cgroup.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::geteuid;

use super::{API, Started, VSOCK, config, control::SavedPaths, options};
use crate::{
    backend::{
        AgentTransport, Launched, Machine, PartKind, SavedMachine,
        firecracker::config::Paths,
        process::cgroup::mount_point,
        raw_disk::{copy, fill_raw_disk, raw_disk_quota},
        savable::Savable,
    },
    error::Error,
    locate,
    metrics::DiskFile,
    run_folder::RunFolder,
    vmm::ProcessLimits,
};

/// How Firecracker is jailed. Requires root.
#[derive(Clone, Debug)]
pub struct Jail {
    user: u32,
    group: u32,
    folder: Option<PathBuf>,
    program: Option<PathBuf>,
}

/// The id of the VM for the jailer. Each folder has only one.
const JAIL_ID: &str = "vm";

/// What a snapshot says about where it was taken.
pub(super) const IN_JAIL: &str = "in a jail";

/// The files of a saved VM in the root of its jail.
pub(super) const SAVED: SavedPaths = SavedPaths {
    state: "/state",
    memory: "/memory",
};

impl Jail {
    /// Runs Firecracker as this user and group, which nothing else should use.
    pub fn new(user: u32, group: u32) -> Self {
        Self {
            user,
            group,
            folder: None,
            program: None,
        }
    }

    /// Sets the folder that jails are created in. Its path should be short, and
    /// its file system needs room for a disk of each VM; best is that of the
    /// images. It must belong to this user alone. The default is
    /// [`RunFolder::base`].
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the jailer to use; by default the one that `VMCELL_JAILER` names,
    /// or the one in `PATH`.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Checks that a jail can be created.
    pub(super) fn check(&self) -> Result<(), Error> {
        locate::jailer(self.program.as_deref())?;
        if !geteuid().is_root() {
            return Err(Error::Invalid(
                "a jail can be made by root only: run as root, or without a jail".to_owned(),
            ));
        }
        cgroup2_root().map(drop)
    }

    pub(super) fn start(
        &self,
        firecracker: &Path,
        machine: &Machine,
        has_api: bool,
    ) -> Result<Started, Error> {
        if machine.layer.is_some() {
            return Err(Error::Invalid(
                "the disk of a VM in a jail cannot become an image: make the template without the jail"
                    .to_owned(),
            ));
        }
        let jailer = locate::jailer(self.program.as_deref())?;
        let folder = RunFolder::create(&self.base(), machine.id())?;
        let cgroup = format!("vmcell-{}", machine.id());
        let cgroup_path = cgroup2_root()?.join(&cgroup);
        folder.remove_cgroup_on_drop(&cgroup_path)?;
        fs::create_dir(&cgroup_path).map_err(Error::host("make a cgroup for the VM"))?;

        let root = self.root(firecracker, machine.id());
        let populated = self.populate(&root, machine);
        let (transport, disk) = populated.map_err(|error| match error {
            PopulateError::Io(source) => Error::host("create the files of the jail")(source),
            PopulateError::Machine(error) => error,
        })?;
        let savable = has_api
            .then(|| Savable::new(machine, &disk, IN_JAIL))
            .transpose()?;
        let config = match machine.saved() {
            None => Some("/config.json"),
            Some(_) => None,
        };
        let mut command = Command::new(jailer);
        let api = has_api.then(|| Path::new("/").join(API));
        let options = options(config, api.as_deref());
        command
            .args(self.arguments(firecracker, folder.path(), &cgroup, options))
            .current_dir("/");
        let (quota, file_size) = raw_disk_quota(machine, &disk, "firecracker")?;
        let limits = ProcessLimits {
            file_size: Some(file_size),
            cpu_seconds: machine.quotas.cpu_seconds,
        };
        let launched = Launched::spawn_jailed(command, transport, limits)?
            .disk(DiskFile::new(&disk))
            .layer_quota(quota)
            .keep(folder);
        Ok(Started { launched, savable })
    }

    /// Creates the files that the VM needs in the root of the jail. Returns its disk.
    fn populate(
        &self,
        root: &Path,
        machine: &Machine,
    ) -> Result<(AgentTransport, File), PopulateError> {
        fs::create_dir_all(root)?;
        let transport = AgentTransport::hybrid(root.join(VSOCK))?;
        let disk = create(root, "disk")?;
        fill_raw_disk(machine, "firecracker", &disk)?;
        match machine.saved() {
            None => create_boot_files(root, machine, &transport)?,
            Some(saved) => create_saved_files(root, saved)?,
        }
        // This includes the socket of the agent's first connection.
        for entry in fs::read_dir(root)? {
            chown(entry?.path(), Some(self.user), Some(self.group))?;
        }
        Ok((transport, disk))
    }

    fn base(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(RunFolder::base)
    }

    /// Returns the folder that Firecracker sees as its root in the VM with this
    /// id.
    pub(super) fn root(&self, firecracker: &Path, id: &str) -> PathBuf {
        // The jailer names a folder after the program, with symlinks resolved.
        let program = firecracker.canonicalize();
        let program = program.as_deref().unwrap_or(firecracker);
        let name = program.file_name().unwrap_or_default();
        self.base().join(id).join(name).join(JAIL_ID).join("root")
    }

    /// Returns the command line of the jailer, with the options of Firecracker.
    fn arguments(
        &self,
        firecracker: &Path,
        folder: &Path,
        cgroup: &str,
        options: Vec<OsString>,
    ) -> Vec<OsString> {
        let user = self.user.to_string();
        let group = self.group.to_string();
        let jail: [(&str, OsString); 7] = [
            ("--id", JAIL_ID.into()),
            ("--exec-file", firecracker.into()),
            ("--uid", user.into()),
            ("--gid", group.into()),
            ("--chroot-base-dir", folder.into()),
            ("--cgroup-version", "2".into()),
            // It exists and nothing is set in it, so the jailer only joins it.
            ("--parent-cgroup", cgroup.into()),
        ];
        let jail = jail
            .into_iter()
            .flat_map(|(name, value)| [name.into(), value]);
        jail.chain(["--".into()]).chain(options).collect()
    }
}

/// Creates the files with which a VM boots in a jail.
fn create_boot_files(
    root: &Path,
    machine: &Machine,
    transport: &AgentTransport,
) -> Result<(), PopulateError> {
    let kernel = File::open(machine.kernel()?)?;
    copy_into(root, "kernel", &kernel)?;
    let initramfs = machine.initramfs("/dev/vda", transport.boot_link())?;
    copy_into(root, "initramfs", &initramfs)?;
    let paths = Paths {
        kernel: "/kernel".to_owned(),
        initramfs: "/initramfs".to_owned(),
        disk: "/disk".to_owned(),
        vsock: format!("/{VSOCK}"),
    };
    create(root, "config.json")?.write_all(config::config(machine, &paths).as_bytes())?;
    Ok(())
}

/// Creates the files from which a VM is restored in a jail.
fn create_saved_files(root: &Path, saved: &SavedMachine) -> io::Result<()> {
    copy_into(root, "state", &saved.open_first(PartKind::State)?)?;
    copy_into(root, "memory", &saved.open_first(PartKind::Memory)?)
}

/// Copies a file into a jail.
fn copy_into(root: &Path, name: &str, file: &File) -> io::Result<()> {
    copy(file, file.metadata()?.len(), &create(root, name)?)
}

/// Creates a file in a jail.
fn create(root: &Path, name: &str) -> io::Result<File> {
    let file = File::create_new(root.join(name))?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Returns where the cgroup v2 hierarchy is mounted.
fn cgroup2_root() -> Result<PathBuf, Error> {
    mount_point().ok_or_else(|| Error::Missing {
        what: "the cgroup hierarchy of version 2",
        remedy: "mount it, or run Firecracker without a jail: what is in a jail is ended through \
                 its cgroup"
            .to_owned(),
    })
}

/// Why the files of a jail could not be created.
enum PopulateError {
    Io(io::Error),
    Machine(Error),
}

impl From<io::Error> for PopulateError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for PopulateError {
    fn from(error: Error) -> Self {
        Self::Machine(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_line(config: Option<&str>, api: Option<&str>) -> String {
        let words = Jail::new(123, 100).arguments(
            Path::new("/usr/bin/firecracker"),
            Path::new("/run/vmcell/0123"),
            "vmcell-0123",
            options(config, api.map(Path::new)),
        );
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn the_whole_command_line_of_the_jailer() {
        assert_eq!(
            command_line(Some("/config.json"), None),
            "--id vm --exec-file /usr/bin/firecracker --uid 123 --gid 100 \
             --chroot-base-dir /run/vmcell/0123 --cgroup-version 2 --parent-cgroup vmcell-0123 \
             -- --no-api --config-file /config.json --level Warning"
        );
    }

    #[test]
    fn the_api_is_where_firecracker_sees_it() {
        let line = command_line(Some("/config.json"), Some("/api"));
        let expected = " -- --api-sock /api --config-file /config.json --level Warning";
        assert!(line.ends_with(expected), "{line}");
        let line = command_line(None, Some("/api"));
        assert!(
            line.ends_with(" -- --api-sock /api --level Warning"),
            "{line}"
        );
    }

    #[test]
    fn the_jail_is_where_the_jailer_will_look_for_it() {
        let jail = Jail::new(123, 100).folder("/run/vmcell");
        let root = jail.root(Path::new("/nowhere/firecracker"), "0123");
        assert_eq!(root, Path::new("/run/vmcell/0123/firecracker/vm/root"));
    }
}
