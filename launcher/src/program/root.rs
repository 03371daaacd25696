//! An empty root, with what the VMM needs.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::CWD,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
        OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
        mount_change, move_mount, open_tree, unmount,
    },
    process::{chdir, pivot_root},
};
use vmcell_launcher::{Failure, Layer, Plan};

use crate::{stage::StageExt as _, sys};

/// Where the root is assembled. Every system has this directory, and what it hides was opened
/// before.
const STAGING: &str = "/tmp";

/// Room for the directories that lead to the mounts.
const ROOT_SIZE: &str = "1m";

const NO_PRIVILEGES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NO_DEVICES: MountAttrFlags = NO_PRIVILEGES.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const NO_PROGRAMS: MountAttrFlags = NO_DEVICES.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);
const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;

/// A part of the host's files, to be attached to the new root at the same path.
struct Part {
    path: PathBuf,
    is_folder: bool,
    mount: OwnedFd,
}

/// Makes a root that contains only what the plan names, and changes to it.
pub(crate) fn set_up(plan: &Plan) -> Result<(), Failure> {
    let layer = Layer::Namespaces;
    let everything = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", everything).layer(layer, "make mounts private")?;
    let mut parts = Vec::new();
    let groups = [
        (&plan.readable, NO_DEVICES | READ_ONLY),
        (&plan.writable, NO_PROGRAMS),
        (&plan.devices, NO_PRIVILEGES),
    ];
    for (paths, flags) in groups {
        for path in paths {
            let part = Part::open(path, flags);
            let part = part.layer(layer, &format!("find {}", path.display()))?;
            parts.extend(part);
        }
    }
    // While the old one is visible, which the kernel demands.
    let processes = new_file_system(
        "proc",
        NO_PROGRAMS | READ_ONLY,
        &[("subset", "pid"), ("hidepid", "2")],
    )
    .layer(layer, "mount /proc")?;
    change_root().layer(layer, "change the root")?;
    // Folders before what is in them.
    parts.sort_by(|one, other| one.path.cmp(&other.path));
    for part in &parts {
        let attached = part.attach();
        attached.layer(layer, &format!("show {}", part.path.display()))?;
    }
    fs::create_dir("/proc").layer(layer, "mount /proc")?;
    attach(&processes, Path::new("/proc")).layer(layer, "mount /proc")?;
    // The new root itself, not what is mounted in it.
    let root = File::open("/").layer(layer, "change the root")?;
    sys::restrict_mount(root.as_fd(), READ_ONLY, false).layer(layer, "change the root")
}

impl Part {
    /// Opens a part. There is none if the host has no such file.
    fn open(path: &OsStr, flags: MountAttrFlags) -> io::Result<Option<Self>> {
        let path = PathBuf::from(path);
        let is_folder = match fs::metadata(&path) {
            Ok(metadata) => metadata.is_dir(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let clone = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let mount = open_tree(CWD, &path, clone)?;
        sys::restrict_mount(mount.as_fd(), flags, true)?;
        Ok(Some(Self {
            path,
            is_folder,
            mount,
        }))
    }

    fn attach(&self) -> io::Result<()> {
        // It is there if it is in a folder that was attached before.
        if fs::symlink_metadata(&self.path).is_err() {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            match self.is_folder {
                true => fs::create_dir(&self.path)?,
                false => drop(File::create_new(&self.path)?),
            }
        }
        attach(&self.mount, &self.path)
    }
}

/// Makes an empty file system the root.
fn change_root() -> io::Result<()> {
    let options = [("mode", "0755"), ("size", ROOT_SIZE)];
    let root = new_file_system("tmpfs", NO_PROGRAMS, &options)?;
    attach(&root, Path::new(STAGING))?;
    chdir(STAGING)?;
    // The old root is mounted over the new one, and unmounted: pivot_root(2).
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    Ok(())
}

fn attach(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    move_mount(
        mount,
        "",
        CWD,
        path,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )?;
    Ok(())
}

fn new_file_system(
    kind: &str,
    flags: MountAttrFlags,
    options: &[(&str, &str)],
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}
