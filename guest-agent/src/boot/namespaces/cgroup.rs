use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, mkdirat, openat},
    io::Errno,
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
};

use crate::sys;

/// The cgroup of the agent. The one above must have no process of its own to
/// enable controllers for those below: cgroups(7).
const AGENT: &str = "agent";

/// Makes the cgroup of this process the root of a new cgroup namespace. Returns a
/// mount of it that is not attached yet.
pub(super) fn enter() -> Result<OwnedFd, Errno> {
    sys::unshare_cgroups()?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let context = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let cgroups = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
    mkdirat(&cgroups, AGENT, Mode::from_raw_mode(0o755))?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let processes = openat(&cgroups, "agent/cgroup.procs", flags, Mode::empty())?;
    // 0 is the process that writes it.
    rustix::io::write(&processes, b"0")?;
    Ok(cgroups)
}
