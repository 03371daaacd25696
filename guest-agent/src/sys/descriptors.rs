use rustix::{
    fd::{FromRawFd, OwnedFd},
    io::Errno,
};

use crate::kernel_error::KernelError;

/// Sets close-on-exec on every descriptor but 0, 1 and 2: close_range(2).
pub(crate) fn set_cloexec_on_all() -> Result<(), Errno> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: a flag of descriptors is changed; nothing is closed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    super::check(result).map(|_| ())
}

/// Returns the first of the descriptors 0, 1 and 2 that is not open.
pub(crate) fn first_closed_stream() -> Option<u8> {
    (0..3).find(|number| {
        // SAFETY: the flags of a descriptor are read, if it is one.
        let flags = unsafe { libc::fcntl((*number).into(), libc::F_GETFD) };
        super::check(flags.into()).is_err()
    })
}

/// Closes every descriptor but these: close_range(2).
///
/// # Safety
/// The others must not be used or owned.
pub(super) unsafe fn close_all_but<const N: usize>(mut kept: [libc::c_uint; N]) {
    kept.sort_unstable();
    let mut first = 0;
    for descriptor in kept {
        if descriptor > first {
            // SAFETY: the caller guarantees it.
            unsafe {
                libc::syscall(
                    libc::SYS_close_range,
                    first,
                    descriptor.saturating_sub(1),
                    0,
                )
            };
        }
        first = descriptor.saturating_add(1);
    }
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
}

/// Takes ownership of a descriptor that the program was started with, by its
/// number.
///
/// # Errors
/// `EBADF` if there is none, or if it was taken before.
pub(crate) fn inherited(number: u32) -> Result<OwnedFd, Errno> {
    const FIRST: libc::c_int = 3;
    let number = libc::c_int::try_from(number).map_err(|_| Errno::BADF)?;
    if number < FIRST {
        return Err(Errno::BADF);
    }
    // SAFETY: the flags of a descriptor are read, if it is one.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    super::check(flags.into())?;
    // Everything that this program opens has the flag, so it is not mistaken
    // for an inherited descriptor.
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: a flag of a descriptor is changed.
    let result = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    super::check(result.into())?;
    // SAFETY: it was open before anything in this program could own it, and is
    // marked now, so that it cannot be taken a second time.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Returns a copy of the standard input.
///
/// # Errors
/// There is none.
pub fn stdin_copy() -> Result<OwnedFd, KernelError> {
    Ok(copy_of(0)?)
}

/// Returns a copy of the standard error.
pub(crate) fn standard_error() -> Result<OwnedFd, Errno> {
    copy_of(2)
}

fn copy_of(number: libc::c_int) -> Result<OwnedFd, Errno> {
    const FIRST: libc::c_int = 3;
    // SAFETY: the kernel makes a new descriptor and touches no memory.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, FIRST) };
    super::check(copy.into())?;
    // SAFETY: the descriptor is new, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
