//! All unsafe code of the launcher.
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use rustix::{
    mount::MountAttrFlags,
    process::Pid,
    thread::{UnshareFlags, unshare_unsafe},
};

/// Takes over a descriptor that this process has inherited.
pub(crate) fn take_descriptor(number: i32) -> io::Result<OwnedFd> {
    check_open(number)?;
    // SAFETY: it is open, and the launcher takes each of its own descriptors once. The
    // standard library has those below 3.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Borrows a descriptor that the VMM will have. Nothing in this program closes one of these.
pub(crate) fn borrow_descriptor(number: i32) -> io::Result<BorrowedFd<'static>> {
    check_open(number)?;
    // SAFETY: it is open, and stays so until the VMM is executed.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

fn check_open(number: i32) -> io::Result<()> {
    if number < 3 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the call reads a flag. It fails if the descriptor is not open.
    match unsafe { libc::fcntl(number, libc::F_GETFD) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Leaves namespaces for new ones: unshare(2).
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: no descriptors are unshared, and there are no other threads.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Forks a process whose parent is the parent of this one: `CLONE_PARENT` of clone(2).
/// Returns `None` in it.
pub(crate) fn fork_sibling() -> io::Result<Option<Pid>> {
    let flags = libc::CLONE_PARENT | libc::SIGCHLD;
    let none = 0usize;
    // SAFETY: as fork(2), without memory or a stack that would be shared. There are no other
    // threads, so all that the copy has is in order.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags as usize, none, none, none, none) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(i32::try_from(child).ok().and_then(Pid::from_raw)),
    }
}

/// Adds restrictions to a mount, or to all mounts below it too: mount_setattr(2).
pub(crate) fn restrict_mount(
    mount: BorrowedFd<'_>,
    flags: MountAttrFlags,
    is_recursive: bool,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: flags.bits().into(),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let mut lookup = libc::AT_EMPTY_PATH;
    if is_recursive {
        lookup |= libc::AT_RECURSIVE;
    }
    // SAFETY: the path is empty and terminated, and the structure is as large as it says.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            lookup,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ignores the signal that a process gets when it makes a file too large. Programs that it
/// executes ignore it too.
pub(crate) fn ignore_file_size_signal() -> io::Result<()> {
    // SAFETY: ignoring a signal runs no code.
    match unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
