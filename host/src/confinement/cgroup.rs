use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use crate::{
    backend::{RunFolder, cgroup_mount_point},
    error::Error,
};

/// A cgroup v2 of one VMM.
#[derive(Debug)]
pub(super) struct VmmCgroup {
    pub(super) directory: File,
    /// What it limits, for people.
    pub(super) limits: String,
    /// Removes the cgroup when this is dropped, or after a crash.
    _folder: RunFolder,
}

/// The controllers that it needs.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The most memory of a VMM beyond that of its guest, in MiB. QEMU has up to a gigabyte of
/// translated code if it emulates the processor.
const MEMORY_BEYOND_GUEST_MIB: u32 = 2048;

/// The most threads of a VMM.
const MAX_THREADS: u32 = 512;

impl VmmCgroup {
    /// Creates it, or returns why there is none. A VM may have several, with names of their own.
    pub(super) fn create(id: &str, name: &str, memory_mib: u32) -> Result<Self, String> {
        let path = parent()?.join(format!("vmcell-{id}.{name}"));
        let folder = folder(&format!("{id}.{name}"), &path).map_err(|error| error.to_string())?;
        let memory_mib = memory_mib.saturating_add(MEMORY_BEYOND_GUEST_MIB);
        let made = make(&path, memory_mib);
        let directory =
            made.map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        Ok(Self {
            directory,
            limits: format!("{memory_mib} MiB of memory, {MAX_THREADS} threads"),
            _folder: folder,
        })
    }
}

/// Creates the folder that removes the cgroup.
fn folder(name: &str, cgroup: &Path) -> Result<RunFolder, Error> {
    let folder = RunFolder::create(&RunFolder::base(), name)?;
    folder.remove_cgroup_on_drop(cgroup)?;
    Ok(folder)
}

fn make(path: &Path, memory_mib: u32) -> io::Result<File> {
    fs::create_dir(path)?;
    let bytes = u64::from(memory_mib) << 20;
    fs::write(path.join("memory.max"), bytes.to_string())?;
    fs::write(path.join("pids.max"), MAX_THREADS.to_string())?;
    File::open(path)
}

/// Returns the nearest cgroup above this program that lets its children have limits, and that
/// this user may change. systemd gives each user one.
fn parent() -> Result<PathBuf, String> {
    let root = cgroup_mount_point().ok_or("there is no cgroup v2 hierarchy")?;
    let ours = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let ours = ours.lines().find_map(|line| line.strip_prefix("0::/"));
    let ours = root.join(ours.ok_or("this program has no cgroup")?);
    let above = ours.ancestors().take_while(|path| path.starts_with(&root));
    let mut suitable = above.filter(|path| delegates(path) && may_change(path));
    suitable.next().map(Path::to_owned).ok_or_else(|| {
        format!(
            "no cgroup above this program has {} for its children and may be changed by this \
             user: start it with `systemd-run --user --scope -p Delegate=yes`",
            CONTROLLERS.join(" and ")
        )
    })
}

/// Whether the children of a cgroup can have limits.
fn delegates(cgroup: &Path) -> bool {
    let enabled = fs::read_to_string(cgroup.join("cgroup.subtree_control")).unwrap_or_default();
    let is_enabled = |wanted: &&str| enabled.split_whitespace().any(|name| name == *wanted);
    CONTROLLERS.iter().all(is_enabled)
}

/// Whether this user may create cgroups in one, and move its processes into them.
fn may_change(cgroup: &Path) -> bool {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    may_write(cgroup) && may_write(&cgroup.join("cgroup.procs"))
}
