use core::mem::MaybeUninit;

use rustix::{
    fd::{AsRawFd, BorrowedFd},
    io::Errno,
};

use crate::child_exit::{ChildExit, ResourceUsage};

/// Reaps one ended child of this process, whoever started it. `None`: there are
/// children, and all of them run.
///
/// rustix has no wait that returns resource usage, hence wait4(2).
///
/// # Errors
/// `ECHILD` if there is no child at all.
pub(crate) fn reap_any() -> Result<Option<ChildExit>, Errno> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both places are valid for the kernel to write to.
    let result = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    super::check(result.into())?;
    // SAFETY: zeroed is a valid rusage, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok((result > 0).then(|| ChildExit {
        pid: result,
        status,
        usage: ResourceUsage::from(&usage),
    }))
}

/// Reaps the child of a pidfd, if it has ended: waitid(2).
///
/// # Errors
/// `ECHILD` if it was reaped by somebody else.
pub(crate) fn reap_by_handle(child: BorrowedFd<'_>) -> Result<Option<ChildExit>, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // The function of the C library has no argument for the resource usage.
    // SAFETY: both places are valid for the kernel to write to.
    let result = unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PIDFD,
            child.as_raw_fd(),
            info.as_mut_ptr(),
            libc::WEXITED | libc::WNOHANG,
            usage.as_mut_ptr(),
        )
    };
    super::check(result)?;
    // SAFETY: both are valid when zeroed, and the kernel has filled them. The
    // fields are those of SIGCHLD, or zero if the child runs.
    let (info, usage, pid, value) = unsafe {
        let info = info.assume_init();
        (info, usage.assume_init(), info.si_pid(), info.si_status())
    };
    // As wait4(2) encodes it.
    let status = match info.si_code {
        libc::CLD_EXITED => (value & 0xff) << 8,
        libc::CLD_DUMPED => (value & 0x7f) | 0x80,
        _ => value & 0x7f,
    };
    Ok((pid > 0).then(|| ChildExit {
        pid,
        status,
        usage: ResourceUsage::from(&usage),
    }))
}

/// Returns whether this process has children, running or not reaped.
pub(crate) fn has_children() -> bool {
    // SAFETY: a system call that is given no memory. With WNOWAIT it reaps
    // nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_ALL,
            0,
            core::ptr::null_mut::<libc::siginfo_t>(),
            libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
            core::ptr::null_mut::<libc::rusage>(),
        )
    };
    super::check(result) != Err(Errno::CHILD)
}
