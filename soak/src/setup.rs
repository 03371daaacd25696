//! Where everything is, and the VMs that are started.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use vmcell::{
    Vm, VmBuilder,
    workspace::{Keeper, NewWorkspace, Workspaces},
};

use crate::arguments::{Arguments, Kind};

/// The environment variable that names the folder of a run.
pub(crate) const FOLDER: &str = "VMCELL_SOAK_FOLDER";

/// The folders of a run that programs write to.
pub(crate) const FOLDERS: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_RUNTIME_DIR", "run"),
    ("XDG_STATE_HOME", "state"),
    ("TMPDIR", "tmp"),
];

/// The folder below it for what scenarios write themselves, with one for each process.
const SCRATCH: &str = "scratch";

/// Returns where a process writes what it does not get from the library.
pub(crate) fn scratch_of(pid: u32) -> Result<PathBuf> {
    let folder = std::env::var_os(FOLDER).context("no folder is set")?;
    Ok(PathBuf::from(folder).join(SCRATCH).join(pid.to_string()))
}

/// Creates a folder for files of a scenario, which is removed with it.
pub(crate) fn scratch() -> Result<tempfile::TempDir> {
    let own = scratch_of(std::process::id())?;
    std::fs::create_dir_all(&own)?;
    Ok(tempfile::tempdir_in(own)?)
}

/// What all rounds have in common.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) folder: PathBuf,
    pub(crate) image: PathBuf,
}

impl Setup {
    pub(crate) fn new(arguments: &Arguments) -> Result<Self> {
        let folder = std::env::var_os(FOLDER).context("no folder is set")?;
        Ok(Self {
            kind: arguments.backend,
            folder: folder.into(),
            image: vmcell_rootfs::recipe::base().cached()?.path,
        })
    }

    /// What the ids of all VMs begin with, so that what they leave can be told from what others
    /// have.
    pub(crate) fn prefix(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        let letters = name.to_string_lossy().to_lowercase();
        letters
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect()
    }

    pub(crate) fn id(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix())
    }

    pub(crate) fn vm(&self, name: &str) -> VmBuilder {
        let vm = Vm::builder()
            .image(&self.image)
            .id(self.id(name))
            .memory_mib(128)
            .backend(self.kind.name());
        match self.kind {
            Kind::Qemu => vm,
            Kind::Process => vm.allow_host_compat(),
        }
    }

    pub(crate) fn workspaces(&self) -> Result<Workspaces> {
        let keeper = Keeper::new(std::env::current_exe()?).arg("keeper");
        let workspaces = Workspaces::open()?.id_prefix(self.prefix());
        Ok(workspaces.keeper(keeper))
    }

    pub(crate) fn new_workspace(&self) -> NewWorkspace {
        NewWorkspace::new(&self.image).memory_mib(128)
    }
}
