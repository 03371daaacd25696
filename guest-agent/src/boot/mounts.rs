use core::ffi::CStr;

use rustix::{
    fs::Mode,
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change, mount_move},
    process::{chdir, chroot},
};

use super::unowned_memory::UnownedMemory;

/// Where the disk is mounted before it becomes the root.
const NEW_ROOT: &str = "/root";

const NO_EXEC: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// Before the disk can be mounted, its device must be there.
pub(super) fn mount_devices() -> Result<(), Errno> {
    let flags = MountFlags::NOSUID.union(MountFlags::NOEXEC);
    attach("devtmpfs", "/dev", flags, c"mode=0755")
}

pub(super) fn mount_root(device: &str) -> Result<(), Errno> {
    make_directory(NEW_ROOT)?;
    // The images that we make have nothing to initialise in the background, and
    // for others it can wait until somebody else mounts them.
    mount(
        device,
        NEW_ROOT,
        "ext4",
        MountFlags::RELATIME,
        c"noinit_itable",
    )
}

/// Moves into the disk. The disk is mounted over the initramfs, not beside it:
/// only then may processes make user namespaces (user_namespaces(7)).
pub(super) fn switch_root() -> Result<(), Errno> {
    chdir(NEW_ROOT)?;
    mount_move(".", "/")?;
    chroot(".")?;
    chdir("/")
}

/// Mounts in the disk what programs expect. The devices are the same that
/// were mounted before; nobody sees the first mount any more.
pub(super) fn mount_the_rest(limits: &UnownedMemory) -> Result<(), Errno> {
    let terminals = MountFlags::NOSUID.union(MountFlags::NOEXEC);
    let memory = MountFlags::NOSUID.union(MountFlags::NODEV);
    mount_devices()?;
    attach("proc", "/proc", NO_EXEC, c"")?;
    attach("sysfs", "/sys", NO_EXEC, c"")?;
    attach(
        "devpts",
        "/dev/pts",
        terminals,
        c"mode=0620,gid=5,ptmxmode=0666",
    )?;
    let shared_memory = limits.shared_memory_mount()?;
    attach("tmpfs", "/dev/shm", memory, &shared_memory)?;
    attach("tmpfs", "/run", memory, &limits.run_mount()?)?;
    attach("cgroup2", "/sys/fs/cgroup", NO_EXEC, c"nsdelegate")?;
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

/// Has every mount seen in all mount namespaces that are made from this one, now
/// and later: some commands have one of their own (`sys/contain.rs`).
pub(super) fn share_mounts() -> Result<(), Errno> {
    let everything = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    mount_change("/", everything)
}

fn attach(kind: &str, target: &str, flags: MountFlags, options: &CStr) -> Result<(), Errno> {
    make_directory(target)?;
    mount(kind, target, kind, flags, options)
}

fn make_directory(path: &str) -> Result<(), Errno> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}
