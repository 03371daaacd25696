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
    /// `struct mount_attr` of `linux/mount.h`.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
    const EMPTY_PATH: c_int = libc::AT_EMPTY_PATH;
    let attributes = Attributes {
        set: MOUNT_ATTR_IDMAP,
        clear: 0,
        propagation: 0,
        user_namespace: u64::from(user_namespace.as_raw_fd().unsigned_abs()),
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
