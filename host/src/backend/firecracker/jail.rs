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

use super::{API, VSOCK, config, options, spawn};
use crate::{
    backend::{
        AgentTransport, Launched, Machine,
        firecracker::config::Paths,
        process::cgroup::mount_point,
        raw_disk::{copy, fill_raw_disk},
    },
    error::Error,
    locate,
    run_folder::RunFolder,
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

    pub(super) fn launch(
        &self,
        firecracker: &Path,
        machine: &Machine,
        has_api: bool,
    ) -> Result<Launched, Error> {
        let jailer = locate::jailer(self.program.as_deref())?;
        let folder = RunFolder::create(&self.base(), machine.id())?;
        let cgroup = format!("vmcell-{}", machine.id());
        let cgroup_path = cgroup2_root()?.join(&cgroup);
        folder.remove_cgroup_on_drop(&cgroup_path)?;
        fs::create_dir(&cgroup_path).map_err(Error::host("make a cgroup for the VM"))?;

        let root = self.root(firecracker, machine.id());
        let transport = self.populate(&root, machine).map_err(|error| match error {
            PopulateError::Io(source) => Error::host("create the files of the jail")(source),
            PopulateError::Machine(error) => error,
        })?;
        let mut command = Command::new(jailer);
        let api = has_api.then(|| Path::new("/").join(API));
        command.args(self.arguments(firecracker, folder.path(), &cgroup, api.as_deref()));
        Ok(spawn(command, Vec::new(), transport)?.keep(folder))
    }

    /// Creates the files that the VM needs in the root of the jail.
    fn populate(&self, root: &Path, machine: &Machine) -> Result<AgentTransport, PopulateError> {
        fs::create_dir_all(root)?;
        let transport = AgentTransport::hybrid(root.join(VSOCK))?;
        let kernel = File::open(machine.kernel()?)?;
        copy(&kernel, kernel.metadata()?.len(), &create(root, "kernel")?)?;
        let initramfs = machine.initramfs("/dev/vda", transport.boot_link())?;
        copy(
            &initramfs,
            initramfs.metadata()?.len(),
            &create(root, "initramfs")?,
        )?;
        fill_raw_disk(machine, "firecracker", &create(root, "disk")?)?;
        let paths = Paths {
            kernel: "/kernel".to_owned(),
            initramfs: "/initramfs".to_owned(),
            disk: "/disk".to_owned(),
            vsock: format!("/{VSOCK}"),
        };
        create(root, "config.json")?.write_all(config::config(machine, &paths).as_bytes())?;
        // This includes the socket of the agent's first connection.
        for entry in fs::read_dir(root)? {
            chown(entry?.path(), Some(self.user), Some(self.group))?;
        }
        Ok(transport)
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

    /// Returns the command line of the jailer, which includes Firecracker's.
    fn arguments(
        &self,
        firecracker: &Path,
        folder: &Path,
        cgroup: &str,
        api: Option<&Path>,
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
        jail.chain(["--".into()])
            .chain(options("/config.json", api))
            .collect()
    }
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

    fn command_line(api: Option<&str>) -> String {
        let words = Jail::new(123, 100).arguments(
            Path::new("/usr/bin/firecracker"),
            Path::new("/run/vmcell/0123"),
            "vmcell-0123",
            api.map(Path::new),
        );
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn the_whole_command_line_of_the_jailer() {
        assert_eq!(
            command_line(None),
            "--id vm --exec-file /usr/bin/firecracker --uid 123 --gid 100 \
             --chroot-base-dir /run/vmcell/0123 --cgroup-version 2 --parent-cgroup vmcell-0123 \
             -- --no-api --config-file /config.json --level Warning"
        );
    }

    #[test]
    fn the_api_is_where_firecracker_sees_it() {
        let line = command_line(Some("/api"));
        let expected = " -- --api-sock /api --config-file /config.json --level Warning";
        assert!(line.ends_with(expected), "{line}");
    }

    #[test]
    fn the_jail_is_where_the_jailer_will_look_for_it() {
        let jail = Jail::new(123, 100).folder("/run/vmcell");
        let root = jail.root(Path::new("/nowhere/firecracker"), "0123");
        assert_eq!(root, Path::new("/run/vmcell/0123/firecracker/vm/root"));
    }
}
