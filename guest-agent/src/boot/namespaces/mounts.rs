//! Sets up a root that has nothing of the host but a few devices.
//!
//! Everything that needs the host's files is prepared first, as detached mounts.
//! They are attached after the root was changed, so links in the image cannot lead
//! to the host's files.

use alloc::{ffi::CString, format, string::String, vec::Vec};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags,
        MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount,
        fsopen, mount, mount_change, move_mount, open_tree, unmount,
    },
    process::{chdir, pivot_root},
};
use vmcell_wire::namespaces::{IdMapping, Namespaces};

use super::super::{BootError, Cause};

/// Where the root is assembled. Every system has this directory, and nothing in
/// this mount namespace needs what it hides.
const STAGING: &str = "/tmp";

/// The devices of the host that are visible.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const NO_SUID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NO_DEVICES: MountAttrFlags = NO_SUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const NO_PROGRAMS: MountAttrFlags = NO_DEVICES.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Mounts that are not attached yet.
struct DetachedMounts {
    devices: Vec<(&'static str, OwnedFd)>,
    device_directory: OwnedFd,
    terminals: OwnedFd,
    shared_memory: OwnedFd,
    processes: OwnedFd,
    run: OwnedFd,
}

/// Makes the directory that the plan names the root, or the ID-mapped mount of it
/// that the monitor has made.
pub(super) fn set_up_root(
    plan: &Namespaces<'_>,
    tree: Option<OwnedFd>,
    cgroups: Option<OwnedFd>,
) -> Result<(), BootError> {
    let failed = |stage: &'static str| {
        move |errno| BootError {
            stage,
            cause: Cause::Kernel(errno),
        }
    };
    let everything = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", everything).map_err(failed("make mounts private"))?;
    let detached = DetachedMounts::create(plan).map_err(failed("mount /dev, /proc and others"))?;
    mount_layers(plan, tree).map_err(failed("mount the directory"))?;
    mount_overlay().map_err(|errno| BootError {
        stage: "mount an overlay",
        cause: Cause::NoOverlay(errno),
    })?;
    change_root().map_err(failed("change the root"))?;
    let attached = detached.attach(cgroups);
    attached.map_err(failed("attach /dev, /proc and others"))?;
    super::super::mounts::share_mounts().map_err(failed("share mounts"))
}

impl DetachedMounts {
    fn create(plan: &Namespaces<'_>) -> Result<Self, Errno> {
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mut devices = Vec::new();
        for name in DEVICES {
            devices.push((name, open_tree(CWD, format!("/dev/{name}"), clone)?));
        }
        let size = format!("{}m", plan.writable_mib);
        // The group `tty`, if groups are mapped.
        let group = match plan.ids {
            IdMapping::Single { .. } => "0",
            IdMapping::Range { .. } => "5",
        };
        Ok(Self {
            devices,
            device_directory: new_fs("tmpfs", NO_SUID, &[("mode", "0755"), ("size", "64k")])?,
            terminals: new_fs(
                "devpts",
                NO_SUID.union(MountAttrFlags::MOUNT_ATTR_NOEXEC),
                &[("mode", "0620"), ("ptmxmode", "0666"), ("gid", group)],
            )?,
            shared_memory: new_fs("tmpfs", NO_DEVICES, &[("mode", "1777"), ("size", &size)])?,
            processes: new_fs("proc", NO_PROGRAMS, &[])?,
            run: new_fs("tmpfs", NO_DEVICES, &[("mode", "0755"), ("size", &size)])?,
        })
    }

    /// Attaches them where programs expect them.
    fn attach(self, cgroups: Option<OwnedFd>) -> Result<(), Errno> {
        attach(&self.device_directory, "/dev")?;
        for (name, device) in &self.devices {
            let path = format!("/dev/{name}");
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            drop(rustix::fs::open(&*path, flags, Mode::empty())?);
            attach_at(device, &path)?;
        }
        attach(&self.terminals, "/dev/pts")?;
        attach(&self.shared_memory, "/dev/shm")?;
        attach(&self.processes, "/proc")?;
        attach(&self.run, "/run")?;
        if let Some(cgroups) = &cgroups {
            make_directory("/sys")?;
            make_directory("/sys/fs")?;
            attach(cgroups, super::super::CGROUPS)?;
        }
        for (target, link) in [
            ("pts/ptmx", "/dev/ptmx"),
            ("/proc/self/fd", "/dev/fd"),
            ("/proc/self/fd/0", "/dev/stdin"),
            ("/proc/self/fd/1", "/dev/stdout"),
            ("/proc/self/fd/2", "/dev/stderr"),
        ] {
            rustix::fs::symlink(target, link)?;
        }
        Ok(())
    }
}

/// Mounts the layers of the root: the directory, and a tmpfs for what is written.
fn mount_layers(plan: &Namespaces<'_>, tree: Option<OwnedFd>) -> Result<(), Errno> {
    let size = CString::new(format!("mode=0755,size={}m", plan.writable_mib));
    let size = size.map_err(|_| Errno::INVAL)?;
    // The tmpfs may hide the directory, so that is opened first.
    let tree = match tree {
        Some(tree) => tree,
        None => {
            let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            open_tree(CWD, plan.directory, clone)?
        }
    };
    mount("tmpfs", STAGING, "tmpfs", MountFlags::NODEV, &*size)?;
    for name in ["lower", "upper", "work", "root"] {
        make_directory(&in_staging(name))?;
    }
    attach_at(&tree, &in_staging("lower"))
}

/// Mounts the overlay. It uses user.overlay.* in place of trusted.overlay.*, which
/// user namespaces cannot set.
fn mount_overlay() -> Result<(), Errno> {
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        in_staging("lower"),
        in_staging("upper"),
        in_staging("work")
    );
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    let root = in_staging("root");
    mount("overlay", &*root, "overlay", MountFlags::NODEV, &*options)
}

/// Changes the root: pivot_root(2) puts the old root over the new one, from which
/// it is unmounted.
fn change_root() -> Result<(), Errno> {
    chdir(in_staging("root"))?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")
}

fn in_staging(name: &str) -> String {
    format!("{STAGING}/{name}")
}

/// Creates a file system and a detached mount of it.
fn new_fs(kind: &str, flags: MountAttrFlags, options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

fn attach(mount: &OwnedFd, directory: &str) -> Result<(), Errno> {
    make_directory(directory)?;
    attach_at(mount, directory)
}

fn attach_at(mount: &OwnedFd, path: &str) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
    move_mount(mount, "", CWD, path, flags)
}

fn make_directory(path: &str) -> Result<(), Errno> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}
