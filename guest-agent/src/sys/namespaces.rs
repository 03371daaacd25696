//! System calls for namespaces(7) that rustix lacks or does not wrap safely.

use core::ffi::c_int;

use rustix::{
    fd::{AsRawFd, OwnedFd},
    io::Errno,
    thread::{UnshareFlags, unshare_unsafe},
};

/// Makes the current cgroup of this process the root of those that it sees:
/// cgroup_namespaces(7).
pub(crate) fn unshare_cgroups() -> Result<(), Errno> {
    // SAFETY: descriptors stay as they are.
    unsafe { unshare_unsafe(UnshareFlags::NEWCGROUP) }
}

/// Maps the owners of the files of a mount through the user namespace:
/// mount_setattr(2), `MOUNT_ATTR_IDMAP`.
pub(crate) fn idmap_mount(mount: &OwnedFd, user_namespace: &OwnedFd) -> Result<(), Errno> {
    const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
    let user_namespace = u64::from(user_namespace.as_raw_fd().unsigned_abs());
    set_mount_attribute(mount, MOUNT_ATTR_IDMAP, user_namespace)
}

/// Makes a mount read-only, before it is attached: mount_setattr(2),
/// `MOUNT_ATTR_RDONLY`.
pub(crate) fn make_mount_read_only(mount: &OwnedFd) -> Result<(), Errno> {
    const MOUNT_ATTR_RDONLY: u64 = 1;
    set_mount_attribute(mount, MOUNT_ATTR_RDONLY, 0)
}

fn set_mount_attribute(mount: &OwnedFd, set: u64, user_namespace: u64) -> Result<(), Errno> {
    /// `struct mount_attr` of `linux/mount.h`.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const EMPTY_PATH: c_int = libc::AT_EMPTY_PATH;
    let attributes = Attributes {
        set,
        clear: 0,
        propagation: 0,
        user_namespace,
    };
    // SAFETY: the kernel reads an empty path and attributes of the given size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            EMPTY_PATH,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    super::check(result).map(|_| ())
}
