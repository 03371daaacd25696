//! A root of its own, with nothing of the host's in it but a few devices.
//!
//! Everything that needs the host's files is made ready first, as mounts that
//! are attached nowhere. Then the root is changed, and they are put in place
//! there: links in the image lead nowhere else.

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
use vmcell_wire::namespaces::{Ids, Namespaces};

use super::super::{BootError, Cause};

/// Where the root is put together. Every system has this directory, and in our
/// own mount namespace nobody misses what is beneath.
const SITE: &str = "/tmp";

/// The devices of the host that are to be seen.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const NO_SUID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NO_DEVICES: MountAttrFlags = NO_SUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const NO_PROGRAMS: MountAttrFlags = NO_DEVICES.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Mounts that are attached nowhere yet.
struct Detached {
    devices: Vec<(&'static str, OwnedFd)>,
    device_folder: OwnedFd,
    terminals: OwnedFd,
    shared_memory: OwnedFd,
    processes: OwnedFd,
    run: OwnedFd,
}

/// Moves into the directory that the plan names, or the mount of it that the
/// keeper has made.
pub(super) fn move_in(
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
    mount_change("/", everything).map_err(failed("keep mounts to ourselves"))?;
    let detached = Detached::make(plan).map_err(failed("mount /dev, /proc and others"))?;
    lay_foundation(plan, tree).map_err(failed("use the directory"))?;
    mount_overlay().map_err(|errno| BootError {
        stage: "mount an overlay",
        cause: Cause::NoOverlay(errno),
    })?;
    change_root().map_err(failed("change the root"))?;
    let attached = detached.attach(cgroups);
    attached.map_err(failed("attach /dev, /proc and others"))?;
    super::super::mounts::share_mounts().map_err(failed("share mounts"))
}

impl Detached {
    fn make(plan: &Namespaces<'_>) -> Result<Self, Errno> {
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mut devices = Vec::new();
        for name in DEVICES {
            devices.push((name, open_tree(CWD, format!("/dev/{name}"), clone)?));
        }
        let size = format!("{}m", plan.writable_mib);
        // The group of terminals that ttys are to have, where there are groups.
        let group = match plan.ids {
            Ids::Single { .. } => "0",
            Ids::Range { .. } => "5",
        };
        Ok(Self {
            devices,
            device_folder: make("tmpfs", NO_SUID, &[("mode", "0755"), ("size", "64k")])?,
            terminals: make(
                "devpts",
                NO_SUID.union(MountAttrFlags::MOUNT_ATTR_NOEXEC),
                &[("mode", "0620"), ("ptmxmode", "0666"), ("gid", group)],
            )?,
            shared_memory: make("tmpfs", NO_DEVICES, &[("mode", "1777"), ("size", &size)])?,
            processes: make("proc", NO_PROGRAMS, &[])?,
            run: make("tmpfs", NO_DEVICES, &[("mode", "0755"), ("size", &size)])?,
        })
    }

    /// Puts them where programs expect them.
    fn attach(self, cgroups: Option<OwnedFd>) -> Result<(), Errno> {
        attach(&self.device_folder, "/dev")?;
        for (name, device) in &self.devices {
            let path = format!("/dev/{name}");
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            drop(rustix::fs::open(&*path, flags, Mode::empty())?);
            put(device, &path)?;
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

/// The layers of the root: the directory, and memory for what is written.
fn lay_foundation(plan: &Namespaces<'_>, tree: Option<OwnedFd>) -> Result<(), Errno> {
    let size = CString::new(format!("mode=0755,size={}m", plan.writable_mib));
    let size = size.map_err(|_| Errno::INVAL)?;
    // What it covers may hold the directory, so that is opened first.
    let tree = match tree {
        Some(tree) => tree,
        None => {
            let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            open_tree(CWD, plan.directory, clone)?
        }
    };
    mount("tmpfs", SITE, "tmpfs", MountFlags::NODEV, &*size)?;
    for name in ["lower", "upper", "work", "root"] {
        make_directory(&in_site(name))?;
    }
    put(&tree, &in_site("lower"))
}

/// user.overlay.* in place of trusted.overlay.*, which is not for user
/// namespaces.
fn mount_overlay() -> Result<(), Errno> {
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        in_site("lower"),
        in_site("upper"),
        in_site("work")
    );
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    let root = in_site("root");
    mount("overlay", &*root, "overlay", MountFlags::NODEV, &*options)
}

/// The old root is mounted over the new one, and then taken away.
fn change_root() -> Result<(), Errno> {
    chdir(in_site("root"))?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")
}

fn in_site(name: &str) -> String {
    format!("{SITE}/{name}")
}

/// A new file system, attached nowhere.
fn make(kind: &str, flags: MountAttrFlags, options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

fn attach(mount: &OwnedFd, directory: &str) -> Result<(), Errno> {
    make_directory(directory)?;
    put(mount, directory)
}

fn put(mount: &OwnedFd, place: &str) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
    move_mount(mount, "", CWD, place, flags)
}

fn make_directory(path: &str) -> Result<(), Errno> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}
