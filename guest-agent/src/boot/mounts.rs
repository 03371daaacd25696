use core::ffi::CStr;

use rustix::{
    fs::Mode,
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change, mount_move},
    process::{chdir, chroot},
};

use super::shared_memory_limits::SharedMemoryLimits;

/// Where the disk is mounted before it becomes the root.
const NEW_ROOT: &str = "/root";

const NO_EXEC: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// Mounts `/dev`, which has the device of the disk.
pub(super) fn mount_devices() -> Result<(), Errno> {
    let flags = MountFlags::NOSUID.union(MountFlags::NOEXEC);
    mount_at("devtmpfs", "/dev", flags, c"mode=0755")
}

pub(super) fn mount_root(device: &str) -> Result<(), Errno> {
    make_directory(NEW_ROOT)?;
    // Images of vmcell have no inode tables to initialise in the background, and
    // those of others can wait until another system mounts them.
    mount(
        device,
        NEW_ROOT,
        "ext4",
        MountFlags::RELATIME,
        c"noinit_itable",
    )
}

/// Makes the disk the root. It is mounted over the initramfs, not beside it: only
/// then may processes create user namespaces (user_namespaces(7)).
pub(super) fn switch_root() -> Result<(), Errno> {
    chdir(NEW_ROOT)?;
    mount_move(".", "/")?;
    chroot(".")?;
    chdir("/")
}

/// Mounts what programs expect on the disk. `/dev` is mounted again: the disk hides
/// the first mount.
pub(super) fn mount_system_directories(limits: &SharedMemoryLimits) -> Result<(), Errno> {
    let terminals = MountFlags::NOSUID.union(MountFlags::NOEXEC);
    let memory = MountFlags::NOSUID.union(MountFlags::NODEV);
    mount_devices()?;
    mount_at("proc", "/proc", NO_EXEC, c"")?;
    mount_at("sysfs", "/sys", NO_EXEC, c"")?;
    mount_at(
        "devpts",
        "/dev/pts",
        terminals,
        c"mode=0620,gid=5,ptmxmode=0666",
    )?;
    let shared_memory = limits.shared_memory_mount()?;
    mount_at("tmpfs", "/dev/shm", memory, &shared_memory)?;
    mount_at("tmpfs", "/run", memory, &limits.run_mount()?)?;
    mount_at("cgroup2", "/sys/fs/cgroup", NO_EXEC, c"nsdelegate")?;
    for (target, link) in [
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ] {
        rustix::fs::symlink(target, link)?;
    }
    share_mounts()
}

/// Propagates mounts to all mount namespaces that are created from this one: some
/// commands have one of their own (`sys/contain.rs`).
pub(super) fn share_mounts() -> Result<(), Errno> {
    let everything = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    mount_change("/", everything)
}

fn mount_at(kind: &str, target: &str, flags: MountFlags, options: &CStr) -> Result<(), Errno> {
    make_directory(target)?;
    mount(kind, target, kind, flags, options)
}

fn make_directory(path: &str) -> Result<(), Errno> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}
